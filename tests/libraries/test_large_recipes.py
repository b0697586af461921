"""The recipes of the documentation for PyTorch, Keras and Lightning run."""

from __future__ import annotations

import pytest

from recipes import recipes, require_that_it_runs

RECIPES = recipes(large=True)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_that_it_runs(RECIPES[name])


def test_they_are_there():
    assert {name.split()[0] for name in RECIPES} == {"PyTorch", "Keras", "Lightning"}
