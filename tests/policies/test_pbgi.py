"""Policy `pbgi`: it takes the point of least index, and its price decays as a pure function of the history."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import farthing as ft
from farthing.acquisitions.gittins import gittins_index
from farthing.errors import StorageError
from farthing.policies import PBGI
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import chosen_cost_model
from farthing.policies.fits import FittedModels
from farthing.policies.pbgi import FIRST_PRICE
from farthing.record import stored_fits
from farthing.record.events import Asked

SPACE = ft.Space(x=ft.Integer(0, 30), y=ft.Integer(0, 30))


def searched(policy: PBGI, budget: float = 60.0, **given) -> ft.Study:
    study = ft.Study(SPACE, ft.Budget(cost=budget), policy=policy, seed=0, **given)
    while study.ended is None:
        tell(study, study.ask())
    return study


def tell(study: ft.Study, proposal: ft.Proposal) -> None:
    x, y = proposal.config["x"] / 30, proposal.config["y"] / 30
    study.tell(proposal, value=(x - 0.3) ** 2 + 0.1 * abs(y - 0.2), cost=1.0 + 5.0 * y)


def prices(study: ft.Study) -> list[float]:
    """Those that asks left for the next one."""
    asks = [event.proposal for event in study._session.record.past() if isinstance(event, Asked)]
    return [proposal.fits["pbgi"]["price"] for proposal in asks if "pbgi" in proposal.fits]


def test_it_proposes_the_untried_point_of_least_index():
    """By brute force over all 961 points of a space that can be listed."""
    study = searched(PBGI(price=0.02), 30.0)
    history, ledger = study._session.history, study._session.ledger
    ledger = type(ledger)(ft.Budget(cost=200.0), ledger.accounts)  # far from its end
    rng = np.random.default_rng(5)
    (proposal,) = study.policy.propose(SPACE, history, ledger, 1, rng)
    models = FittedModels.of(
        PBGI(), SPACE, FreshSpace(SPACE, history), history, ledger, 4, np.random.default_rng(5), chosen_cost_model
    )
    grid = [config for config in SPACE.enumerate() if SPACE.key(config) not in history.taken]
    X = SPACE.features(SPACE.encode_many(grid))
    means, variance = models.fantasies.predict(X)
    log_mean, log_variance = models.log_price.predict(X)
    usual = models.log_price.mean_at(models.fantasies.process.X).mean()
    g = gittins_index(means, np.sqrt(variance), np.log(0.02) + log_mean + 0.5 * log_variance - usual)
    assert proposal.config == grid[int(np.argmin(g))]


def test_the_price_begins_at_a_tenth_and_is_halved_or_stays():
    found = [FIRST_PRICE, *prices(searched(PBGI()))]
    ratios = {b / a for a, b in pairwise(found)}
    assert ratios == {0.5, 1.0}  # both happen in this study
    assert found[-1] < FIRST_PRICE / 8


def test_a_fixed_price_stays_and_leaves_nothing_in_the_file():
    assert prices(searched(PBGI(price=0.05), 30.0)) == []


def test_a_study_that_was_closed_goes_on_at_its_price(tmp_path):
    whole = searched(PBGI(), 45.0)
    path = tmp_path / "s.db"
    with ft.Study(SPACE, ft.Budget(cost=45.0), policy=PBGI(), seed=0, storage=path) as study:
        for _ in range(12):
            tell(study, study.ask())
    with ft.Study.resume(path) as study:
        while study.ended is None:
            tell(study, study.ask())
        assert [trial.config for trial in study.trials] == [trial.config for trial in whole.trials]


@pytest.mark.parametrize("stored", [{}, {"price": 0.0}, {"price": "x"}, {"price": 1.0, "more": 1}, [0.1]])
def test_a_file_with_another_price_is_refused(stored):
    with pytest.raises((ValueError, KeyError, TypeError, StorageError)):
        stored_fits.check({"pbgi": stored}, {"name": "pbgi"}, 2)
