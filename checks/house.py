"""The house in numbers: how far one ask and tell walks, import cycles, and the sizes of files and functions.

    python checks/house.py [--json]

Measures the `farthing` that Python finds (PYTHONPATH chooses another tree). Cycles are looked for over all import
statements, those inside functions and for type checkers included, except the lazy names of the package itself.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import farthing as ft

ROOT = Path(ft.__file__).parent
BLACK_BOX = ("carbo", "cei", "ei", "eipu", "sobol", "random")
STEPWISE = ("bapi", "bopt", "eqie", "thaw")
TRIALS = 20  # before the ask that is followed: every policy is past its initial design
STEPS = 10


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = []
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.append(full if full.removeprefix("farthing.") in known else node.module)
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "farthing":
                yield name.removeprefix("farthing").removeprefix(".")


def cycles() -> list[list[str]]:
    """The groups of modules that import each other, largest first."""
    known = modules()
    edges = {module: {*imported(module, path, known)} & set(known) for module, path in known.items() if module}
    reach = {module: _reached(module, edges) for module in edges}
    groups = {frozenset({b for b in reach[a] if a in reach.get(b, ())}) for a in edges if a in reach[a]}
    return sorted((sorted(group) for group in groups), key=len, reverse=True)


def _reached(start: str, edges: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = set(edges[start])
    while ahead:
        found |= ahead
        ahead = {target for module in ahead for target in edges.get(module, ())} - found
    return found


def sizes() -> dict[str, Any]:
    files = {module: path.read_text(encoding="utf-8").count("\n") for module, path in modules().items()}
    files = {module: lines for module, lines in files.items() if lines > 0}
    functions = {
        f"{module}.{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    longest_file, longest_function = max(files, key=files.__getitem__), max(functions, key=functions.__getitem__)
    return {
        "files": len(files),
        "lines": sum(files.values()),
        "modules at the root": len([path for path in ROOT.glob("*.py") if path.name != "__init__.py"]),
        "median file": statistics.median(files.values()),
        "longest file": f"{files[longest_file]} ({longest_file})",
        "median function": statistics.median(functions.values()),
        "longest function": f"{functions[longest_function]} ({longest_function})",
        "functions over 70 lines": sum(lines > 70 for lines in functions.values()),
        "files over 400 lines": sum(lines > 400 for lines in files.values()),
    }


def walk(policy: str) -> tuple[int, int]:
    """How many files of the package one ask and tell of a study visits, and how many of its functions it calls."""
    study = ft.Study(
        ft.Space(x=ft.Real(0, 1), y=ft.Real(1e-3, 1, log=True), n=ft.Integer(1, 9), kind=ft.Choice(["a", "b"])),
        ft.Budget(cost=1e4), policy=policy, seed=0, max_steps=STEPS if policy in STEPWISE else None,
    )  # fmt: skip
    while len(study.trials) < TRIALS:
        evaluate(study, policy)
    files: set[str] = set()
    calls = 0

    def follow(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            files.add(frame.f_code.co_filename)
            calls += 1

    sys.setprofile(follow)
    try:
        evaluate(study, policy)
    finally:
        sys.setprofile(None)
    return len(files), calls


def evaluate(study: ft.Study, policy: str) -> None:
    proposal = study.ask()
    value = (proposal.config["x"] - 0.3) ** 2 + proposal.config["n"] / 9
    if policy not in STEPWISE:
        study.tell(proposal, value=value, cost=1.0 + proposal.config["n"])
        return
    for step in range(proposal.start_step + 1, STEPS + 1):
        if study.report(proposal, value + 1.0 / step, cost=1.0) != "continue":
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="for programs")
    arguments = parser.parse_args()
    groups = cycles()
    found: dict[str, Any] = {
        **sizes(),
        "import cycles": len(groups),
        "modules in cycles": sum(map(len, groups)),
        "files of one ask and tell": {policy: walk(policy)[0] for policy in (*BLACK_BOX, *STEPWISE)},
        "calls of one ask and tell": {policy: walk(policy)[1] for policy in (*BLACK_BOX, *STEPWISE)},
    }
    if arguments.json:
        print(json.dumps(found, indent=1))  # noqa: T201
        return
    for name, value in found.items():
        text = ", ".join(f"{key} {number}" for key, number in value.items()) if isinstance(value, dict) else value
        print(f"{name:28} {text}")  # noqa: T201
    for group in groups:
        print(f"cycle: {', '.join(group)}")  # noqa: T201


if __name__ == "__main__":
    main()
