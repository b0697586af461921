"""The virtual environments of the systems that the benchmarks compare.

Each system lives in `.venvs/<name>`. It is made from `requirements/<name>.txt` the first time it is needed, and again
whenever that file or the project's own dependencies change.

Where nothing can be installed, `BENCHMARK_PYTHON=/path/to/python` names one Python that is used for all systems as it
is. It needs what the systems in question need; PYTHONPATH may say where that lies.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
ROOT = BENCHMARKS.parent
DOCS = ROOT / "docs"

# Systems that import Farthing (its problems, or the library itself) get it as an editable install.
NEEDS_FARTHING = frozenset({"farthing", "optuna", "sklearn", "start", "ray"})

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def requirements(name: str) -> Path:
    """The requirement file of a system."""
    return BENCHMARKS / "common" / "requirements" / f"{name}.txt"


def digest(*paths: Path) -> str:
    """A short hash of the content of some files, in the given order."""
    joined = hashlib.sha256()
    for path in paths:
        joined.update(path.read_bytes())
    return joined.hexdigest()[:16]


def ensure(name: str) -> Path:
    """The Python of a system's environment, which is made if it is missing or its requirements changed.

    With BENCHMARK_PYTHON it is that one, and nothing is made.
    """
    if given := os.environ.get("BENCHMARK_PYTHON"):
        return Path(given)
    home = ROOT / ".venvs" / name
    python = home / "bin" / "python"
    stamp = home / "requirements.sha256"
    wanted = digest(requirements(name), ROOT / "pyproject.toml")
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"making the environment of {name} (minutes the first time)", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    _install(python, "-r", str(requirements(name)))
    if name in NEEDS_FARTHING:
        _install(python, "-e", str(ROOT))
    stamp.write_text(wanted)
    return python


def _install(python: Path, *arguments: str) -> None:
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *arguments], check=True)


def module_command(system: str, module: str, arguments: Sequence[object]) -> list[str]:
    """The command that runs `benchmarks.<module>` in the environment of a system; its folder has to be `ROOT`."""
    return [str(ensure(system)), "-m", f"benchmarks.{module}", *map(str, arguments)]


def run_module(system: str, module: str, *arguments: object) -> None:
    """Run `benchmarks.<module>` in the environment of a system, and wait for it."""
    subprocess.run(module_command(system, module, arguments), cwd=ROOT, env=child_environment(), check=True)


def child_environment() -> dict[str, str]:
    """Our environment with one thread for every numerical library, and sets in the same order every time.

    SMAC walks through sets of configurations: without a fixed hash seed its runs could not be repeated.
    """
    return {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1"), "PYTHONHASHSEED": "0"}


def quick() -> bool:
    """Whether QUICK=1 asks for the short version."""
    return os.environ.get("QUICK", "") not in ("", "0")
