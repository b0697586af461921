"""The folder for OptunaHub's registry is whole, and loads as OptunaHub loads it: as a module from a file."""

import importlib.util
import re
import runpy
import sys
import types
from pathlib import Path

import optuna

from farthing.adapters.optuna import FarthingPruner, FarthingSampler

FOLDER = Path(__file__).parents[3] / "optunahub" / "samplers" / "farthing"

optuna.logging.set_verbosity(optuna.logging.ERROR)


def loaded():
    spec = importlib.util.spec_from_file_location("registry.samplers.farthing", FOLDER / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_has_what_the_registry_asks_for():
    assert {path.name for path in FOLDER.iterdir()} >= {"__init__.py", "README.md", "LICENSE", "example.py"}
    text = (FOLDER / "README.md").read_text()
    front = dict(re.findall(r"^(\w+): (.+)$", text.split("---")[1], flags=re.MULTILINE))
    assert set(front) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in front["tags"].strip("[]").split(", ")
    for section in ("Abstract", "APIs", "Installation", "Example"):
        assert f"\n## {section}\n" in text
    assert (FOLDER / "LICENSE").read_text() == (FOLDER.parents[2] / "LICENSE").read_text()


def test_it_loads():
    assert loaded().FarthingSampler is FarthingSampler
    assert loaded().FarthingPruner is FarthingPruner


def test_its_example_runs(monkeypatch, capsys):
    """With a stand-in for the download alone."""
    hub = types.SimpleNamespace(load_module=lambda package: {"samplers/farthing": loaded()}[package])
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    runpy.run_path(str(FOLDER / "example.py"), run_name="__main__")
    assert "100% used" in capsys.readouterr().out
    example = re.search(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), flags=re.DOTALL)[1]
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.count("100% used") == 1
