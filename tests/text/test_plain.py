"""What is kept of attributes, whatever they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from farthing.text import plain
from farthing.text.plain import LEFT_OUT, kept_attributes, stored_attributes


def laughs() -> list[Any]:
    """Sixty lists that hold the one before twice."""
    found: list[Any] = ["ha"]
    for _ in range(60):
        found = [found, found]
    return found


class TestSize:
    def test_what_is_too_large_is_left_out_and_the_rest_is_kept(self, monkeypatch):
        monkeypatch.setattr(plain, "ATTRIBUTES", 1000)
        given = {"a": "x" * 1990, "b": 1, "c": [0.5] * 2000, "d": "y" * 20}
        assert kept_attributes(given) == {"a": LEFT_OUT, "b": 1, "c": LEFT_OUT, "d": "y" * 20}

    def test_text_counts_as_it_is_written(self, monkeypatch):
        """A character of another alphabet takes six in JSON."""
        monkeypatch.setattr(plain, "ATTRIBUTES", 1000)
        assert kept_attributes({"a": "\u00e9" * 200}) == {"a": LEFT_OUT}

    def test_many_names_end_somewhere(self, monkeypatch):
        monkeypatch.setattr(plain, "ATTRIBUTES", 1000)
        kept = kept_attributes({f"name {number}": 0 for number in range(1000)})
        assert len(json.dumps(kept)) < 2000
        assert kept["..."] == LEFT_OUT

    @pytest.mark.parametrize(
        "value", [laughs(), np.zeros(10**8, dtype=np.uint8), bytes(10**8), range(10**9), {"inner": "x" * 10**8}],
        ids=["laughs", "array", "bytes", "range", "inside"],
    )  # fmt: skip
    def test_nothing_is_made_of_it_first(self, monkeypatch, value):
        monkeypatch.setattr(plain, "ATTRIBUTES", 10_000)
        assert kept_attributes({"value": value, "other": 1}) == {"value": LEFT_OUT, "other": 1}

    def test_a_warning_names_it(self, monkeypatch):
        monkeypatch.setattr(plain, "ATTRIBUTES", 1000)
        with pytest.warns(RuntimeWarning, match="left out.*: a$"):
            stored_attributes({"a": "x" * 2000, "b": 1})


@pytest.mark.parametrize("value", [dict, np.float64, len, {1, 2}, np.arange(3), b"abc"], ids=str)
def test_what_has_no_json_form_is_its_repr_or_its_list(value):
    expected = value.tolist() if isinstance(value, np.ndarray) else repr(value)
    assert kept_attributes({"value": value}) == {"value": expected}


def test_what_was_kept_is_kept_as_it_is():
    given = {"a": [1, 2.5, None, True, "\u00e9"], "b": {"c": {"d": []}}, "e": float("inf")}
    assert kept_attributes(given) == kept_attributes(kept_attributes(given)) == given
