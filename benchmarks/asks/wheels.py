"""The size of the wheel, with the network of training curves and without its weights."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common.environments import ROOT
from farthing.surrogates.curves.network import FILE

BESIDE = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")


def wheel_bytes() -> dict[str, int]:
    """Built by pip from a copy of the sources, which fetches the build system unless it is there."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "farthing"
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in BESIDE:
            shutil.copy(ROOT / name, copy)
        whole = _built(copy, Path(place) / "whole")
        (copy / "src" / "farthing" / "surrogates" / "curves" / FILE).unlink()
        return {"with": whole, "without": _built(copy, Path(place) / "without")}


def _built(source: Path, target: Path) -> int:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)]
    subprocess.run(command, check=True)
    (wheel,) = target.glob("*.whl")
    return wheel.stat().st_size
