"""Who may import whom: no upward edge, no cycle, no heavy package at import time."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import farthing

SOURCE = Path(farthing.__file__).parent

# Every module belongs to one group, found by its first name under the package ("" is the package itself). Groups are
# listed from the bottom up: docs/architecture.md draws them.
GROUPS = {
    "errors": ["errors"],
    "numerics": ["numerics"],
    "values": ["text", "checks", "space", "trial", "budget", "direction", "run_context"],
    "history": ["history"],
    "record": ["record"],
    "designs": ["designs"],
    "surrogates": ["surrogates"],
    "acquisitions": ["acquisitions"],
    "policies": ["policies"],
    "session": ["session", "given"],
    "runner": ["runner", "report"],
    "study": ["study", "study_view", "comparing", "tuning", "warm_starting"],
    "package": [""],
    "shell": ["problems", "adapters", "cli", "__main__"],
}
ARRAYS = {"errors", "numerics", "designs", "surrogates", "acquisitions"}
DOMAIN = {"errors", "numerics", "values", "history", "record"}
MAY_IMPORT = {  # besides its own group
    "errors": set(),
    "numerics": {"errors"},
    "values": {"errors", "numerics"},
    "history": {"errors", "numerics", "values"},
    "record": {"errors", "numerics", "values", "history"},
    "designs": {"errors", "numerics"},
    "surrogates": {"errors", "numerics"},
    "acquisitions": {"errors", "numerics", "designs", "surrogates"},
    "policies": {*ARRAYS, *DOMAIN},
    "session": {*ARRAYS, *DOMAIN, "policies"},
    "runner": {*ARRAYS, *DOMAIN, "policies", "session"},
    "study": {*ARRAYS, *DOMAIN, "policies", "session", "runner"},
    "package": {*ARRAYS, *DOMAIN, "policies", "session", "runner", "study"},
    "shell": {*ARRAYS, *DOMAIN, "policies", "session", "runner", "study", "package"},
}
LAZY_NAMES = {  # what the package's __getattr__ imports when it is first used: the only names above who says them
    ("", "adapters.sklearn.search"),
    ("", "adapters.ray.workers"),
}

ANYWHERE = {"numpy", "scipy", "cloudpickle", "threadpoolctl"}
LAZILY = {
    "rich": {"runner.progress"}, "IPython": {"runner.notebook"}, "pandas": {"study_view"}, "sklearn": {"problems.demo"},
    "plotly": {"comparing", "report.drawing", "report.live.server", "report.page.page", "report.plots"},
    "starlette": {"report.live.app", "report.live.server"}, "uvicorn": {"report.live.server"},
    "psutil": {"runner.process_tree"}, "pynvml": {"runner.meters.nvidia"},
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    """One import statement: who, what, and whether it waits until a function is called or for a type checker."""

    importer: str
    target: str
    line: int
    lazy: bool


def modules(root: Path) -> dict[str, Path]:
    """The modules of a package by their name under it; a package is named by its folder."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def group_of(module: str) -> str | None:
    first = module.partition(".")[0]
    return next((group for group, names in GROUPS.items() if first in names), None)


def imports(root: Path, module: str, known: dict[str, Path]) -> Iterator[Import]:
    """What a module imports, its own package's modules by their name under it and others with a leading '/'."""
    path = known[module]
    here = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def own(name: str) -> str:
        return name.removeprefix(f"{root.name}").removeprefix(".")

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inner = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inner = True
            for target in targets(child):
                yield Import(module, target, child.lineno, lazy)
            yield from visit(child, inner)

    def targets(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from one(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = here.split(".")[: len(here.split(".")) - node.level + 1] if here else []
                base = ".".join([root.name, *filter(None, parts), *filter(None, [base])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield from one(full if own(full) in known and is_own(full) else base)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield from one(argument.value)

    def is_own(name: str) -> bool:
        return name == root.name or name.startswith(f"{root.name}.")

    def one(name: str) -> Iterator[str]:
        if is_own(name):
            yield own(name)
        elif name.partition(".")[0] not in sys.stdlib_module_names:
            yield "/" + name.partition(".")[0]

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


def violations(root: Path) -> list[str]:
    """Every breach of the rules above, as module:line and what is wrong."""
    known = modules(root)
    found = [f"{module}: is in no group of the table" for module in known if group_of(module) is None]
    edges: dict[str, set[str]] = {module: set() for module in known}
    for module in known:
        for statement in imports(root, module, known):
            if wrong := _wrong(statement):
                found.append(f"{module}:{statement.line}: {wrong}")
            if statement.target in known and (module, statement.target) not in LAZY_NAMES:
                edges[module].add(statement.target)
    return found + [f"{' -> '.join(cycle)}: is a cycle" for cycle in cycles(edges)]


def _wrong(statement: Import) -> str | None:
    target, group = statement.target, group_of(statement.importer)
    if target.startswith("/"):
        package = target[1:]
        if package in ANYWHERE or group == "shell":
            return None
        if statement.importer not in LAZILY.get(package, set()):
            return f"imports {package}, which has no place there"
        return None if statement.lazy else f"imports {package} at once instead of lazily"
    if group is None or group_of(target) in {None, group, *MAY_IMPORT[group]}:  # no group: said already
        return None
    if (statement.importer, target) in LAZY_NAMES and statement.lazy:
        return None
    return f"imports {target or 'the package'}, which is not below it"


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """One cycle through each module from which a walk leads back to it, shortest first; none if there is none."""
    found = []
    for start in sorted(edges):
        paths = [[start]]
        seen: set[str] = set()
        while paths:
            path = paths.pop(0)
            for target in sorted(edges[path[-1]]):
                if target == start:
                    found.append([*path, start])
                    paths = []
                    break
                if target not in seen:
                    seen.add(target)
                    paths.append([*path, target])
    return found


class TestThisPackage:
    def test_every_module_has_a_group(self):
        """A new module must be placed in the table before it may exist."""
        assert [module for module in modules(SOURCE) if group_of(module) is None] == []

    def test_no_rule_is_broken(self):
        assert violations(SOURCE) == []

    def test_the_walk_sees_what_is_there(self):
        """The edges everyone knows of: an empty answer above is not for want of looking."""
        known = modules(SOURCE)
        edges = {(s.importer, s.target, s.lazy) for module in known for s in imports(SOURCE, module, known)}
        assert {
            ("", "study", True),
            ("study", "policies", False),
            ("study", "runner.loop", False),
            ("runner.loop", "session", False),
            ("policies.sampling", "designs.filling", False),
            ("surrogates.gp", "numerics.linalg", False),
            ("surrogates.gp", "numerics.late_scipy", False),
            ("study_view", "/pandas", True),
            ("runner.progress", "/rich", True),
            ("numerics.threads", "/threadpoolctl", True),
            ("problems.demo", "", False),
        } <= edges

    def test_every_exception_is_still_needed(self):
        known = modules(SOURCE)
        lazy = {(s.importer, s.target) for module in known for s in imports(SOURCE, module, known) if s.lazy}
        assert lazy >= LAZY_NAMES

    def test_the_tables_speak_of_the_same_groups_and_nothing_points_up(self):
        assert set(GROUPS) == set(MAY_IMPORT)
        order = list(MAY_IMPORT)
        for group, below in MAY_IMPORT.items():
            assert all(order.index(name) < order.index(group) for name in below)


CLEAN = {
    "__init__.py": "from toy.study import Study",
    "errors.py": "import math",
    "numerics/__init__.py": "",
    "numerics/linalg.py": "import numpy as np\nfrom scipy.linalg import solve",
    "surrogates/__init__.py": "",
    "surrogates/gp.py": "from toy.numerics import linalg\nfrom toy.numerics.linalg import solve",
    "trial.py": "from toy.errors import Wrong",
    "space.py": "from toy.trial import Trial",
    "policies/__init__.py": "from toy.policies.ei import EI",
    "policies/ei.py": "from toy.surrogates import gp\nfrom toy.space import Space",
    "session.py": "from toy.policies import EI",
    "study.py": "from toy.policies import EI\nfrom toy.runner.loop import run",
    "runner/__init__.py": "",
    "runner/loop.py": "from toy.session import Session",
    "runner/progress.py": "def show():\n    from rich.live import Live",
    "cli.py": "import click\nimport toy as ft\nfrom toy.runner import loop",
}


class TestTheCheckItself:
    """Planted in a small package, each kind of violation is found, and only it."""

    def planted(self, folder: Path, **files: str) -> list[str]:
        root = folder / "toy"
        for name, text in {**CLEAN, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return violations(root)

    def test_a_clean_package_has_no_violation(self, tmp_path):
        assert self.planted(tmp_path) == []

    @pytest.mark.parametrize(
        ("module", "text", "expected"),
        [
            ("numerics/linalg.py", "import toy.trial", "numerics.linalg:1: imports trial, which is not below it"),
            ("numerics/linalg.py", "from toy import space", "numerics.linalg:1: imports space, which is not below it"),
            ("numerics/linalg.py", "from ..trial import Trial", "numerics.linalg:1: imports trial, which is not"),
            ("numerics/linalg.py", "from .. import errors, trial", "numerics.linalg:1: imports trial, which is not"),
            ("surrogates/gp.py", "x = 1\nfrom toy.space import Space", "surrogates.gp:2: imports space, which is not"),
            ("trial.py", "from toy.surrogates.gp import GP", "trial:1: imports surrogates.gp, which is not below it"),
            ("trial.py", "def f():\n    from toy.policies import EI", "trial:2: imports policies, which is not"),
            ("trial.py", "def f():\n    import toy", "trial:2: imports the package, which is not below it"),
            ("trial.py", "if TYPE_CHECKING:\n    import toy.cli", "trial:2: imports cli, which is not below it"),
            ("trial.py", "m = import_module('toy.cli')", "trial:1: imports cli, which is not below it"),
            ("runner/loop.py", "from toy.study import Study", "runner.loop:1: imports study, which is not below it"),
            ("study.py", "def f():\n    import toy.cli", "study:2: imports cli, which is not below it"),
            ("study_view.py", "import pandas as pd", "study_view:1: imports pandas at once instead of lazily"),
            ("study_view.py", "class S:\n    import pandas", "study_view:2: imports pandas at once instead of lazily"),
            ("policies/ei.py", "def f():\n    import torch", "policies.ei:2: imports torch, which has no place there"),
            ("runner/loop.py", "def f():\n    import rich", "runner.loop:2: imports rich, which has no place there"),
            (
                "space.py",
                "try:\n    import pandas\nexcept E: pass",
                "space:2: imports pandas, which has no place there",
            ),
            ("extra.py", "", "extra: is in no group of the table"),
            ("helpers/deep/more.py", "", "helpers.deep.more: is in no group of the table"),
        ],
    )
    def test_a_planted_violation_is_found(self, tmp_path, module, text, expected):
        found = self.planted(tmp_path, **{module: text})
        assert len([line for line in found if "cycle" not in line]) == 1, found
        assert found[0].startswith(expected)

    def test_a_cycle_among_equals_is_found(self, tmp_path):
        found = self.planted(tmp_path, **{"trial.py": "def f():\n    from toy.space import Space"})
        assert found == ["space -> trial -> space: is a cycle", "trial -> space -> trial: is a cycle"]

    def test_a_longer_cycle_is_found(self, tmp_path):
        found = self.planted(
            tmp_path, **{"trial.py": "import toy.budget", "budget.py": "if TYPE_CHECKING:\n    import toy.space"}
        )
        assert "space -> trial -> budget -> space: is a cycle" in found
        assert len(found) == 3


def in_new_process(script: str) -> str:
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_importing_farthing_loads_nothing_from_others_but_numpy_and_scipy():
    loaded = in_new_process(
        "import sys, numpy, scipy.linalg, scipy.optimize, scipy.special\n"
        "before = set(sys.modules)\n"
        "import farthing\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})\n"
    ).split()
    assert "farthing" in loaded
    assert set(loaded) - set(sys.stdlib_module_names) <= {"farthing", "numpy", "scipy"}


def test_importing_farthing_takes_less_than_half_a_second_beyond_numpy_and_scipy():
    seconds = [
        float(
            in_new_process(
                "import time, numpy, scipy.linalg, scipy.optimize, scipy.special\n"
                "start = time.perf_counter()\n"
                "import farthing\n"
                "print(time.perf_counter() - start)\n"
            )
        )
        for _ in range(3)
    ]
    assert statistics.median(seconds) < 0.5


def test_every_public_name_is_there_and_documented():
    for name in farthing.__all__:
        assert getattr(farthing, name).__doc__, name
