"""Scripts as people write them, run as they run them."""

from __future__ import annotations

import subprocess
import sys

import pytest

CACHED = """
import functools
import farthing as ft

@functools.{cache}
def data():
    return [0.25]

@functools.lru_cache(maxsize=7)
def factorial(n):
    return n * factorial(n - 1) if n > 1 else 1

def objective(config):
    value = (config["x"] - data()[0]) ** 2 + factorial(3)
    return value + data.cache_info().misses + factorial.cache_info().maxsize

if __name__ == "__main__":
    data()
    study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "60s, 3 evaluations", policy="random", seed=0, progress=False)
    print(study.count(ft.Status.COMPLETE), int(study.best.value))
"""


@pytest.mark.parametrize("cache", ["cache", "lru_cache"])
def test_a_script_whose_functions_are_cached_runs_under_a_budget_of_time(tmp_path, cache):
    """Its data are often read by such a function. Workers have a cache of their own."""
    script = tmp_path / "script.py"
    script.write_text(CACHED.replace("{cache}", cache))
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.stdout, ended.returncode) == ("3 14\n", 0), ended.stderr[-1000:]
