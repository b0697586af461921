"""Hashes of what a result depends on, so that kept results are used only as long as they are valid."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from benchmarks.common.environments import BENCHMARKS, ROOT, digest, requirements

SOURCE = ROOT / "src" / "farthing"

# Parts of Farthing that asking and telling does not touch: a change there leaves results as they are.
NOT_ASKED = frozenset({"__main__.py", "adapters", "cli", "problems", "report", "runner"})
# The same for a study that Farthing runs by itself, perhaps through an adapter.
NOT_RUN = frozenset({"__main__.py", "cli", "problems", "report"})


def short_hash(key: object) -> str:
    """Of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]


def code_of(path: Path) -> str:
    """What a file does, written alike by every version of Python: comments, docstrings and layout are left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        match node:
            case ast.AST(body=[ast.Expr(value=ast.Constant()), *rest]):
                node.body = rest or [ast.Pass()]
    return repr(_plain(tree))


def _plain(node: object) -> object:
    """A tree as nested lists without what is empty: newer versions of Python add fields, such as `type_params`."""
    if isinstance(node, list):
        return [_plain(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    parts = [[name, _plain(part)] for name, part in ast.iter_fields(node) if part is not None and part != []]
    return [type(node).__name__, *parts]


def code_hash(paths: Iterable[Path]) -> str:
    return hashlib.sha256("".join(map(code_of, paths)).encode()).hexdigest()[:16]


def module_file(module: str) -> Path:
    """The file of `benchmarks.<module>`."""
    return BENCHMARKS.joinpath(*module.split(".")).with_suffix(".py")


@cache
def farthing_code(without: frozenset[str] = NOT_ASKED) -> str:
    """A hash of the library, some parts left out."""
    return code_hash(path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in without)


@cache
def fingerprint(system: str, modules: tuple[str, ...], without: frozenset[str] = NOT_ASKED) -> str:
    """A hash of what a peer's results depend on: its pinned versions, its own code and, if it is ours, the library's.

    `modules` are named without their `benchmarks.`.
    """
    own = farthing_code(without) if system in ("farthing", "sklearn") else ""
    return digest(requirements(system)) + code_hash(map(module_file, modules)) + own
