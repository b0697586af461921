"""The page on two-level functions is the one that its program makes: from its data, and from runs."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.bopt_synthetic.findings import findings  # noqa: E402
from benchmarks.bopt_synthetic.page import METHODS_TODAY, data, document  # noqa: E402
from benchmarks.bopt_synthetic.runs import METHODS, Result, planned  # noqa: E402
from benchmarks.common.documents import kept_data, page  # noqa: E402

FACTS = {"farthing": "1", "cpu": "a CPU", "cores": 2, "system": "Linux", "python": "3.12"}


def test_the_page_is_what_its_data_say():
    kept = kept_data("bopt-synthetic")
    assert page(document(kept), kept) == (ROOT / "docs" / "bopt-synthetic.md").read_text()


def test_a_page_of_new_runs_says_what_the_methods_are_today():
    """Invented runs: cheap ones and their continuations in turn, at regrets that fall in the order of the methods."""
    results = {}
    for run in planned(2, ["currin"], METHODS):
        levels, n = np.tile([0.0, 1.0], 30), METHODS.index(run.method)
        values = -13.8 + np.repeat(np.geomspace(5.0, 1e-3 * (n + 1), 30), 2)
        results[run] = Result(levels, values, np.tile([0.2, 0.8], 30), 1.0, {"numpy": "2.0"})
    found, missing = findings(results, ["currin"], METHODS, 2)
    text = page(document(data(found, missing, 2, FACTS)), {})
    words = " ".join(text.split())
    assert all(said in words for said in METHODS_TODAY.values())
    assert "| either, as in the paper |" in text
    assert "Eq. 4.1 |" not in text
    assert "% on Currin exponential (2d)" in words
