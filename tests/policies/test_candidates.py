"""What is still fresh: `farthing.policies.candidates`."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.history import History
from farthing.policies.candidates import RANDOM_TRIES, FreshSpace


def nearly_exhausted(left: int, **more: object) -> FreshSpace:
    """A space of 400 configurations of which all but `left` are taken."""
    space = ft.Space(a=ft.Choice(list(range(20))), b=ft.Integer(1, 20), **more)
    fresh = FreshSpace(space, History(seed=0))
    configs = list(space.enumerate())
    order = np.random.default_rng(5).permutation(len(configs))
    for i in order[left:]:
        fresh.taken.add(space.key(configs[i]))
    return fresh


def one_by_one(fresh: FreshSpace, rng: np.random.Generator) -> dict[str, object] | None:
    """What `claim_any` is defined to be: the first fresh draw, then the first fresh configuration of all."""
    config = fresh.claim(rng.random(len(fresh.levels)) for _ in range(RANDOM_TRIES))
    return config or next((c for c in fresh.space.enumerate() if fresh.claim([fresh.space.encode(c)])), None)


@pytest.mark.parametrize("left", [1, 3, 40, 400])
def test_any_fresh_configuration_is_what_draws_one_by_one_find(left):
    """Also where the generator stands afterwards: later draws of the same ask depend on it."""
    quick, slow = nearly_exhausted(left), nearly_exhausted(left)
    rngs = np.random.default_rng(9), np.random.default_rng(9)
    for _ in range(min(left, 30)):
        assert quick.claim_any(rngs[0]) == one_by_one(slow, rngs[1]) is not None
        assert rngs[0].bit_generator.state == rngs[1].bit_generator.state
    if left <= 30:
        assert quick.claim_any(rngs[0]) is None


def test_a_forbidden_configuration_is_never_claimed_and_forbid_is_not_asked_about_taken_ones():
    asked = []

    def forbid(config):
        asked.append((config["a"], config["b"]))
        return config["b"] % 2 == 0

    fresh = nearly_exhausted(400, forbid=forbid)
    rng = np.random.default_rng(0)
    found = [config for _ in range(200) if (config := fresh.claim_any(rng)) is not None]
    assert len({(c["a"], c["b"]) for c in found}) == 200
    asked.clear()
    assert fresh.claim_any(rng) is None
    assert all(b % 2 == 0 for _, b in asked)
