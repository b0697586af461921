"""Model-based search over thousands of options that say nothing about each other."""

from __future__ import annotations

import numpy as np

import farthing as ft

OPTIONS, EVALUATIONS = 2_000, 50


def best_found(policy: str, seed: int) -> float:
    """The best of 50 evaluations where 1 % of 2,000 options are good, and two numbers matter as much."""
    rng = np.random.default_rng(1_000 + seed)
    offset = rng.uniform(0.5, 2.0, OPTIONS)
    good = rng.choice(OPTIONS, OPTIONS // 100, replace=False)
    offset[good] = rng.uniform(0.0, 0.1, len(good))
    x, y = rng.uniform(0.1, 0.9, 2)
    space = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1), kind=ft.Choice(list(range(OPTIONS))))
    study = ft.Study(space, f"{EVALUATIONS} evaluations", policy=policy, seed=seed)
    for _ in range(EVALUATIONS):
        proposal = study.ask()
        config = proposal.config
        study.tell(
            proposal, value=float(offset[config["kind"]] + 4 * (config["x"] - x) ** 2 + 4 * (config["y"] - y) ** 2)
        )
    return study.best.value


def test_expected_improvement_beats_random_among_two_thousand_options():
    """0.45 and 0.68 on average over many seeds: it learns the numbers, and stays with options that were good. One study
    in four or five meets a very good option by luck, so several are asked."""
    seeds = range(10)
    assert np.mean([best_found("ei", seed) for seed in seeds]) < (
        np.mean([best_found("random", seed) for seed in seeds]) - 0.1
    )
