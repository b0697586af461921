"""Where the best expected improvement is at a point that was tried, contextual EI still picks one."""

from __future__ import annotations

import pytest

import farthing as ft

SPACE = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1), depth=ft.Integer(1, 8))


def corner_study(policy: str, seed: int, cost: float = 150.0) -> ft.Study:
    """The best configuration is a corner of the space, where the search for the next one ends again and again."""
    study = ft.Study(SPACE, ft.Budget(cost=cost), seed=seed, policy=policy)
    while study.ended is None:
        proposal = study.ask()
        u = SPACE.encode(proposal.config)
        study.tell(proposal, value=float(u.sum()), cost=1.0 + 9.0 * float(u[0]))
    return study


@pytest.mark.parametrize(("policy", "seed"), [("auto", 0), ("ei", 1)])
def test_every_method_has_a_pick_and_none_was_tried(policy, seed):
    study = corner_study(policy, seed)
    picks = study.pareto().picks
    assert list(picks) == ["EI", "EIpu", "EI-cool", "CEI"]
    tried = [trial.config for trial in study.trials]
    assert all(SPACE.decode(pick.u) not in tried for pick in picks.values())


def test_contextual_ei_does_not_draw_at_random_once_a_corner_was_tried():
    """It searched for cheap points with nearly the EI of the corner, found the corner alone, and drew at random: points
    whose median is 1.5, in every study."""
    medians = []
    for seed in range(5):
        study = corner_study("cei", seed, cost=120.0)
        found = [trial.number for trial in study.trials if trial.value == study.best.value]
        later = [trial.value for trial in study.trials[found[0] + 1 :]]
        assert len(later) > 5
        medians.append(sorted(later)[len(later) // 2])
    assert sorted(medians)[2] < 1.0
    assert max(medians) < 1.5
