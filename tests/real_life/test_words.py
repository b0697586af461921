"""Texts as a new user meets them: help that explains, links that lead somewhere, numbers with the right words."""

from __future__ import annotations

import inspect
import pydoc
import re
import runpy
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import UnknownTrial

README = Path(__file__).parents[2] / "README.md"


def test_help_explains_every_argument_of_tune():
    text = pydoc.render_doc(ft.tune, renderer=pydoc.plaintext)
    explained = set(re.findall(r"^\s+(?:\w+, )*(\w+) {2,}\S", text, re.M))
    assert explained >= set(inspect.signature(ft.tune).parameters)
    assert "{arguments}" not in text


def test_links_of_the_readme_lead_somewhere_on_a_package_index_too():
    """There a relative link has nothing to be relative to; a link to a heading of the page itself works. Pictures of
    the repository are left out of what an index shows."""
    readme = README.read_text(encoding="utf-8")
    text = runpy.run_path(str(README.parent / "hatch_build.py"))["described"](readme)
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    assert pictures
    assert all((README.parent / picture).is_file() for picture in pictures)
    assert text.split() == re.sub(r"!\[[^\]]+\]\([^)]+\)", "", readme).split()
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    headings = re.findall(r"^#+ (.*)", text, re.M)
    anchors = {"#" + re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    lost = [target for target in targets if not target.startswith("https://") and target not in anchors]
    assert lost == []


def test_documents_that_the_readme_names_exist():
    named = re.findall(r"`((?:docs/)?[\w-]+\.md)`", README.read_text(encoding="utf-8"))
    assert len(named) > 5
    assert [name for name in named if not (README.parent / name).is_file()] == []


def test_one_of_something_is_singular():
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "1 evaluation", seed=0)
    study.tell(study.ask(), value=1.0)
    texts = [repr(study), str(study.ledger), str(study.ended)]
    assert not [text for text in texts if re.search(r"\b1 (evaluations|trials)\b", text)], texts


def test_a_study_without_trials_does_not_count_to_minus_one():
    with pytest.raises(UnknownTrial) as refused:
        ft.Study(ft.Space(x=ft.Real(0, 1)), "3 evaluations").tell(0, value=1.0)
    assert str(refused.value) == "trial 0 was never asked for; none was"
