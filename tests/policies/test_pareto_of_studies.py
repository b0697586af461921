"""The front of a study: now, and as the ask of an earlier trial saw it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import farthing as ft
from farthing.acquisitions.pareto import Front
from farthing.errors import InvalidArgument, NoTrial, SpaceExhausted
from farthing.policies.pareto import front_at, persistence_of
from farthing.record.events import Asked, Ended
from farthing.record.study_events import Budgeted
from farthing.trial import Outcome, Proposal, Status

SPACE = ft.Space(rate=ft.Real(1e-4, 1.0, log=True), rounds=ft.Integer(1, 200, log=True), kind=ft.Choice(["a", "b"]))
CONTINUOUS = ft.Space(rate=ft.Real(1e-4, 1.0, log=True), rounds=ft.Real(1, 200, log=True))  # three times as quick
TRIALS = 11


def evaluate(config):
    value = (np.log10(config["rate"]) + 2) ** 2 + config["rounds"] ** -0.5 + 0.3 * (config.get("kind") == "a")
    return float(value), 0.1 + 0.05 * config["rounds"]


def tuned(policy="cei", trials=TRIALS, cost=True, space=SPACE, **options) -> ft.Study:
    study = ft.Study(space, ft.Budget(cost=1000.0), policy=policy, seed=5, **options)
    for _ in range(trials):
        proposal = study.ask()
        value, spent = evaluate(proposal.config)
        study.tell(proposal, value=value, cost=spent if cost else None)
    return study


@pytest.fixture(scope="module")
def study() -> ft.Study:
    return tuned()


@pytest.fixture(scope="module")
def front(study) -> Front:
    """The front of that study as it is now."""
    return study.pareto()


def state(study: ft.Study):
    return study.space, study._history, study.ledger, np.random.default_rng([study.seed, study._history.asks])


def same(a, b):
    np.testing.assert_array_equal(a.U, b.U)
    np.testing.assert_array_equal(a.log_cost, b.log_cost)
    np.testing.assert_array_equal(a.log_ei, b.log_ei)
    assert a.alphas == b.alphas
    return True


def test_a_study_has_a_front_and_the_four_picks_lie_on_it(front):
    assert len(front.U) > 5
    assert list(front.picks) == ["EI", "EIpu", "EI-cool", "CEI"]
    for name, pick in front.picks.items():
        assert front.shortfall(np.array([pick.log_cost]), np.array([pick.log_ei]))[0] <= 0.01, name
    assert front.picks["EI"].log_ei == pytest.approx(front.log_ei[-1], abs=1e-3)
    assert front.picks["CEI"].log_ei >= front.picks["EI"].log_ei + np.log(0.3) - 1e-6
    assert front.picks["CEI"].log_cost <= front.picks["EI"].log_cost + 1e-9
    best_quotient = np.max(front.log_ei - front.log_cost)
    assert front.picks["EIpu"].log_ei - front.picks["EIpu"].log_cost == pytest.approx(best_quotient, abs=0.01)


def test_looking_changes_nothing_and_gives_the_same_each_time():
    looked, blind = tuned(trials=7, space=CONTINUOUS), tuned(trials=7, space=CONTINUOUS)
    assert same(looked.pareto(), looked.pareto())
    assert same(looked.pareto(6), looked.pareto(6))
    assert looked.ask().config == blind.ask().config


@pytest.mark.parametrize(("policy", "name"), [("cei", "CEI"), ("eipu", "EIpu"), ("ei_cool", "EI-cool")])
def test_the_pick_of_the_policy_is_what_the_study_asks_for_next_and_asked_for_before(policy, name):
    study = tuned(policy, trials=8)
    assert SPACE.decode(study.pareto().picks[name].u) == study.ask().config
    assert SPACE.decode(study.pareto(7).picks[name].u) == study.trials[7].config


def test_the_options_of_the_study_s_own_policy_count():
    front = tuned(ft.policies.CEI(tradeoff=0.0), trials=8).pareto()
    np.testing.assert_array_equal(front.picks["CEI"].u, front.picks["EI"].u)
    assert front.alphas is not None
    assert front.alphas[0] == 0.0


def test_an_earlier_front_is_the_one_that_was_seen_then():
    study, seen = tuned(trials=6, space=CONTINUOUS), []
    for _ in range(2):
        seen.append(study.pareto())
        proposal = study.ask()
        value, spent = evaluate(proposal.config)
        study.tell(proposal, value=value, cost=spent)
    assert all(same(study.pareto(6 + k), front) for k, front in enumerate(seen))


def test_trials_told_later_were_running_when_an_earlier_trial_was_asked_for():
    """Trial 7 is asked while 6 runs; telling 6 afterwards must not change what the ask of 7 saw."""
    study = tuned(trials=6, space=CONTINUOUS)
    sixth = study.ask()
    seen = study.pareto()
    seventh = study.ask()
    for proposal in (seventh, sixth):
        value, spent = evaluate(proposal.config)
        study.tell(proposal, value=value, cost=spent)
    assert same(study.pareto(7), seen)
    assert CONTINUOUS.decode(seen.picks["CEI"].u) == seventh.config


def test_a_file_gives_the_same_earlier_fronts_and_can_be_written_to_after(tmp_path):
    expected = tuned(space=CONTINUOUS).pareto(7)
    stored = tuned(trials=8, space=CONTINUOUS, storage=tmp_path / "study.db")
    assert same(stored.pareto(7), expected)
    stored.ask()
    stored.close()
    with ft.Study.resume(tmp_path / "study.db") as resumed:
        assert same(resumed.pareto(7), expected)


def test_the_state_before_a_trial_is_the_fold_of_the_events_before_it():
    space, budget = ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=10.0)
    ledger = {"accounts": {"evaluation": {"cost": 3.0}}, "committed": 0.5, "running": 1}
    events = [
        Budgeted(budget),
        Asked(0, Proposal(0, {"x": 0.1}, 1.0), {"accounts": {}, "committed": 0.0, "running": 0}),
        Ended(0, Outcome(Status.COMPLETE, 4.0, 3.0)),
        Asked(1, Proposal(1, {"x": 0.2}, 0.5), ledger),
        Asked(2, Proposal(2, {"x": 0.3}, 2.0, fits={"value": [1]}), ledger),
        Asked(2, Proposal(3, {"x": 0.4}, 2.0), ledger),
        Ended(1, Outcome(Status.COMPLETE, 5.0, 1.0)),
    ]
    study = ft.Study(space, ft.Budget(cost=20.0), seed=0)
    study._session.record.write(*events)
    before = study._session.record.before(3)
    history, seen = before.history, before.ledger
    assert [trial.status for trial in history.trials] == [Status.COMPLETE, Status.RUNNING, Status.RUNNING]
    assert (history.asks, history.fits) == (2, {"value": [1]})
    assert (seen.spent, seen.committed, seen.running) == (3.0, 2.5, 2)


def test_points_of_an_earlier_front_have_a_place_in_the_one_of_now(study, front):
    before = study.pareto(9)
    after = persistence_of(before, *state(study))
    assert len(after.log_cost) == len(after.log_ei) == len(before.U)
    assert 0.0 <= after.share < 1.0
    dominated = front.shortfall(after.log_cost, after.log_ei) > 1e-6
    assert not np.any(after.kept & dominated)
    assert persistence_of(front, *state(study)).share == 1.0


def test_persistence_of_a_study_is_that_of_its_two_fronts_also_when_its_file_is_opened(tmp_path):
    stored = tuned(trials=9, space=CONTINUOUS, storage=tmp_path / "study.db")
    found = stored.persistence(6, 8)
    assert same(found.before, stored.pareto(6))
    assert same(found.now, stored.pareto(8))
    assert found.kept.shape == found.log_ei.shape == found.before.log_ei.shape
    stored.close()
    with ft.Study.open(tmp_path / "study.db") as opened:
        np.testing.assert_array_equal(opened.persistence(6, 8).log_ei, found.log_ei)
        assert [item.trial for item in opened.implied_alphas([7, 8])] == [7, 8]
        assert opened.implied_alphas([7])[0].interval == opened.pareto(7).alphas
        assert opened.value_cost_front()[-1].value == opened.best.value


def test_what_is_found_of_a_front_has_a_name_in_the_package(study):
    assert isinstance(study.persistence(9), ft.Persistence)
    assert isinstance(study.implied_alphas([9])[0], ft.ImpliedAlpha)
    assert isinstance(study.ei_change(9, None, [study.best.config]), ft.EIChange)
    assert isinstance(study.value_cost_front()[0], ft.ValueAtCost)


def told(study: ft.Study, *proposals: Proposal, failed: bool = False, cost: bool = True) -> None:
    for proposal in proposals:
        value, spent = evaluate(proposal.config)
        outcome = {"failed": "out of memory"} if failed else {"value": value}
        study.tell(proposal, **outcome, cost=spent if cost else None)


class TestWhichAlphas:
    """By default implied alphas are those of the trials that a model of values chose, and of none of the design."""

    @staticmethod
    def begun(policy) -> ft.Study:
        return ft.Study(CONTINUOUS, ft.Budget(cost=200.0), policy=policy, seed=5)

    @staticmethod
    def implied(study: ft.Study) -> list[int]:
        return [item.trial for item in study.implied_alphas()]

    def test_a_design_that_was_asked_for_at_once_may_be_longer_than_it_would_be(self):
        study = self.begun(ft.policies.CEI.paper())
        told(study, *study.ask(8))
        for _ in range(2):
            told(study, study.ask())
        assert self.implied(study) == [8, 9]
        with pytest.raises(NoTrial, match="trials, got 0"):
            study.implied_alphas([7, 8])  # of a trial that is named, it is said why it has none

    def test_a_design_is_longer_where_its_trials_fail(self):
        study = self.begun(ft.policies.CEI.paper())
        for number in range(9):
            told(study, study.ask(), failed=number < 5)
        assert self.implied(study) == [7, 8]

    @pytest.mark.parametrize("policy", ["carbo", "auto"])
    def test_the_cost_effective_design_is_a_design(self, policy):
        study = self.begun(policy)
        while sum("initial design" not in trial.reason for trial in study.trials) < 2:
            told(study, study.ask())
        first = len(study.trials) - 2
        assert first > 6
        assert self.implied(study) == [first, first + 1]

    def test_without_a_model_of_values_they_are_those_of_all_that_saw_a_front(self):
        study = self.begun("sobol")
        told(study, *study.ask(6))
        told(study, study.ask())
        assert self.implied(study) == [6]

    def test_trials_before_the_first_cost_have_none_and_a_study_without_costs_says_so(self):
        study = self.begun("ei")
        for _ in range(6):
            told(study, study.ask(), cost=False)
        with pytest.raises(NoTrial, match="cost of at least 1 trial"):
            study.implied_alphas()
        for _ in range(2):
            told(study, study.ask())
        assert self.implied(study) == [7]


@pytest.mark.parametrize("compared", ["persistence", "ei_change"])
def test_what_is_compared_comes_in_the_order_of_time(study, compared):
    with pytest.raises(InvalidArgument, match="now: expected a whole number of at least 9, or None, got 8"):
        getattr(study, compared)(9, 8)


def test_the_options_of_the_study_s_own_policy_count_for_persistence_too():
    """The paper's form has another EI: its points must not be looked at with the EI of the default."""
    study = tuned(ft.policies.CEI.paper(), trials=9, space=CONTINUOUS)
    same_time = study.persistence(8, 8)
    np.testing.assert_allclose(same_time.log_ei, study.pareto(8).log_ei, atol=1e-9)
    assert same_time.share == 1.0


def test_ei_changes_by_what_a_study_learned_and_only_by_that(study):
    configs = [trial.config for trial in study.trials[:3]] + [{"rate": 0.5, "rounds": 100, "kind": "b"}]
    nothing = study.ei_change(9, 9, configs)
    np.testing.assert_array_equal(nothing.total, 0.0)
    change = study.ei_change(9, None, configs)
    np.testing.assert_allclose(change.by_target + change.by_model, change.total)
    assert np.all(change.by_target <= 0.0)
    least = [min(trial.value for trial in study.trials[:n]) for n in (9, TRIALS)]
    assert change.printed_global == pytest.approx(least[1] - least[0])
    assert len(study.ei_change(9).total) == len(study.pareto(9).U)


def test_best_values_and_total_costs_are_in_the_user_s_sign_and_known_results_are_for_nothing():
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "9 evaluations", policy="random", seed=0, maximize=True)
    study.add({"x": 0.5}, value=1.0, cost=100.0)
    for value, cost in ((0.5, 2.0), (3.0, 4.0), (None, 8.0), (3.0, 16.0), (5.0, 32.0)):
        proposal = study.ask()
        if value is None:
            study.tell(proposal, failed="out of memory", cost=cost)
        else:
            study.tell(proposal, value=value, cost=cost)
    assert [(p.cost, p.value, p.trial) for p in study.value_cost_front()] == [(0, 1, 0), (6, 3, 2), (62, 5, 5)]
    other = ft.Study(ft.Space(x=ft.Real(0, 1)), "9 evaluations", policy="random", seed=0, maximize=True)
    other.tell(other.ask(), value=4.0, cost=70.0)
    ends = ft.value_cost_front({"one": study, "other": other})
    assert [(p.study, p.cost, p.value) for p in ends] == [("one", 62, 5)]
    whole = ft.value_cost_front({"one": study, "other": other}, whole=True)
    assert [p.cost for p in whole] == [0, 6, 62]
    with pytest.raises(InvalidArgument, match="all minimise or all maximise"):
        ft.value_cost_front({"one": study, "two": tuned("random", trials=1)})


def test_a_value_whose_cost_is_not_known_gives_no_front_of_total_costs():
    """As 0 it would make all that came later look cheaper than it was."""
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "9 evaluations", policy="random", seed=0)
    study.add({"x": 0.5}, value=9.0)
    study.tell(study.ask(), value=2.0, cost=4.0)
    study.tell(study.ask(), failed="out of memory")
    assert [(p.cost, p.value) for p in study.value_cost_front()] == [(0.0, 9.0), (4.0, 2.0)]
    study.tell(study.ask(), value=1.0)
    for front in (study.value_cost_front, lambda: ft.value_cost_front({"one": study})):
        with pytest.raises(NoTrial, match="the cost of trial 3 is not known"):
            front()


def test_front_of_a_state_is_the_front_of_the_study(study, front):
    assert same(front_at(*state(study), study.policy), front)


def test_a_front_can_be_pickled(front):
    assert same(pickle.loads(pickle.dumps(front)), front)


def test_nothing_on_the_front_was_tried_before():
    space = ft.Space(n=ft.Integer(1, 12))
    study = ft.Study(space, "12 evaluations", policy="cei", seed=0)
    for _ in range(9):
        proposal = study.ask()
        study.tell(proposal, value=1.0 / proposal.config["n"], cost=float(proposal.config["n"]))
    tried = {trial.config["n"] for trial in study.trials}
    assert not tried & {space.decode(u)["n"] for u in study.pareto().U}
    for proposal in study.ask(3):
        study.tell(proposal, value=1.0 / proposal.config["n"], cost=float(proposal.config["n"]))
    with pytest.raises(SpaceExhausted, match="every allowed configuration"):
        study.pareto()


def test_a_corner_that_was_tried_is_not_on_the_front_though_it_is_the_cheapest_point():
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=100.0), policy="cei", seed=0, start=[{"x": 0.0}])
    for _ in range(5):
        proposal = study.ask()
        x = proposal.config["x"]
        study.tell(proposal, value=(x - 0.6) ** 2, cost=1.0 + 9.0 * x)
    assert study.pareto().U.min() > 0.0


def test_without_values_or_costs_there_is_no_front_and_the_error_says_what_is_missing(study):
    with pytest.raises(NoTrial, match="values of 2 complete trials, got 1"):
        tuned(trials=1).pareto()
    with pytest.raises(NoTrial, match="cost of at least 1 trial"):
        tuned(trials=3, cost=False).pareto()
    with pytest.raises(NoTrial, match="trials, got 1"):
        study.pareto(1)


@pytest.mark.parametrize("trial", [-1, TRIALS, 1000])
def test_a_trial_that_never_was_is_refused(study, trial):
    with pytest.raises(InvalidArgument, match=f"trial: expected .*, got {trial}"):
        study.pareto(trial)
