"""Which way of thinking there is time for, and what the quicker ways are worth."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.budget import Ledger
from farthing.history import History, Way
from farthing.history.ways import MOST_FEW
from farthing.numerics.deadline import keep_to_deadline
from farthing.numerics.threads import one_blas_thread
from farthing.policies import BAPI, EI, policy_of, rows_of
from farthing.policies import thinking as thinking_module
from farthing.policies.bapi.curves import TrainingCurves
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import linear_cost_model
from farthing.policies.fits import FittedModels
from farthing.policies.sampling import NO_TIME
from farthing.policies.thinking import Thinking, seconds_of, way_within
from farthing.record.events import Asked, Reported
from farthing.record.record import Record
from farthing.trial import Decision, Outcome, Report, Status
from histories import after, asked, ended
from learners import LINE, STEPS, learner, steps_from

TAKES = {Way.FULL: 8.0, Way.KEPT: 1.0, Way.FEW: 0.1, Way.NONE: 0.0}
CUBE = ft.Space({name: ft.Real(0, 1) for name in "abcd"})
MANY = 500


class TestChoosing:
    @pytest.mark.parametrize(
        ("seconds", "way"),
        [
            (math.inf, Way.FULL), (16.0, Way.FULL), (15.9, Way.KEPT), (2.0, Way.KEPT), (1.9, Way.FEW), (0.1, Way.FEW),
            (0.09, Way.NONE), (0.0, Way.NONE), (-1.0, Way.NONE),
        ],
    )  # fmt: skip
    def test_the_most_careful_way_that_leaves_time_for_another(self, seconds, way):
        assert way_within(seconds, TAKES) is way

    def test_a_way_that_was_given_up_is_not_chosen_again(self):
        assert way_within(99.0, {way: TAKES[way] for way in (Way.FEW, Way.NONE)}) is Way.FEW

    @pytest.mark.parametrize("rows", [1, 100, 1_000, 10_000])
    def test_quicker_ways_take_less_and_a_faster_machine_too(self, rows):
        full, kept, few, none = (seconds_of(way, rows, 1e-3) for way in Way)
        assert full > kept >= few > none == 0.0
        assert seconds_of(Way.FULL, rows, 5e-4) == pytest.approx(full / 2)
        assert seconds_of(Way.FEW, 10 * rows + 256, 1e-3) == seconds_of(Way.FEW, 256, 1e-3)


class TestThinking:
    @pytest.fixture(autouse=True)
    def one_second_machine(self, monkeypatch):
        monkeypatch.setattr(thinking_module, "reference_seconds", lambda: 1e-4)

    def test_without_a_limit_it_thinks_in_full_and_has_no_deadline(self):
        assert Thinking().within(math.inf, 10**6, lambda way: way) == (Way.FULL, Way.FULL)

    def test_a_policy_that_knows_no_ways_thinks_as_it_likes(self):
        assert Thinking().within(0.0, None, lambda way: way) == (Way.FULL, Way.FULL)

    def test_an_attempt_that_takes_too_long_is_given_up_for_a_cheaper_way(self):
        tried = []

        def think(way: Way) -> str:
            tried.append(way)
            while way in (Way.FULL, Way.KEPT):
                time.sleep(0.001)
                keep_to_deadline()
            return "found"

        began = time.perf_counter()
        assert Thinking().within(0.4, 50, think) == ("found", Way.FEW)
        assert tried == [Way.FULL, Way.KEPT, Way.FEW]
        assert time.perf_counter() - began < 2.0

    @pytest.mark.parametrize(("seconds", "way"), [(60.0, Way.FULL), (0.05, Way.KEPT), (0.0, Way.FEW)])
    def test_what_nobody_waits_for_has_a_model_however_short_the_time(self, seconds, way):
        assert Thinking().ahead(seconds, 1_000, lambda way: way) == (way, way)

    def test_it_learns_from_what_took_too_long(self):
        thinking = Thinking()

        def think(way: Way) -> Way:
            while way is Way.FULL:
                time.sleep(0.001)
                keep_to_deadline()
            return way

        before = thinking.predicted(Way.FULL, 50)
        thinking.within(0.2, 50, think)
        assert thinking.predicted(Way.FULL, 50) > 2.0 * before

    def test_what_was_slow_once_is_tried_again(self):
        """After a moment in which the machine stood still."""
        thinking = Thinking({Way.FULL: 1e4})
        ways = [thinking.within(1.0, 50, lambda way: way)[1] for _ in range(60)]
        assert ways[0] is Way.KEPT
        assert ways[-1] is Way.FULL

    def test_without_time_there_is_no_model_and_still_an_answer(self):
        assert Thinking().within(0.0, 2_000, lambda way: way) == (Way.NONE, Way.NONE)


def known(count: int, seed: int = 0, *, failures: bool = False) -> History:
    """A history of random points of a bowl with a valley, some of them failed."""
    rng, history = np.random.default_rng(seed), History(seed)
    for number in range(count):
        config = CUBE.decode(rng.random(4))
        value = sum((config[name] - 0.37) ** 2 for name in "abc") + 0.3 * math.sin(7.0 * config["d"]) ** 2
        history = asked(history, CUBE, config)
        if failures and config["a"] > 0.9:
            outcome = Outcome(Status.FAILED, error="boom", cost=1.0)
        else:
            outcome = Outcome(Status.COMPLETE, value=value, cost=1.0 + config["b"])
        history = ended(history, CUBE, number, outcome)
    return history


def improvement(history: History, config: dict[str, float]) -> float:
    """log EI of a configuration under models that are fitted in full."""
    fresh, ledger = FreshSpace(CUBE, history), Ledger(ft.Budget(evaluations=10**6))
    models = FittedModels.of(EI(), CUBE, fresh, history, ledger, 6, np.random.default_rng(0), linear_cost_model)
    return float(models.improvement(CUBE.features(CUBE.encode(config)[None, :]))[0])


class TestQuality:
    @pytest.mark.parametrize("way", [Way.KEPT, Way.FEW])
    def test_quick_proposals_are_nearly_as_good_as_careful_ones(self, way):
        """By expected improvement under the full model: half of the best at least, and random ones are far below."""
        history, ledger = known(MANY), Ledger(ft.Budget(evaluations=10**6))
        reached = {}
        with one_blas_thread():
            for each in (Way.FULL, way, Way.NONE):
                seen = replace(history, way=each)
                (proposal,) = EI().propose(CUBE, seen, ledger, 1, np.random.default_rng([0, 1]))
                reached[each] = improvement(history, proposal.config)
        assert reached[way] > reached[Way.FULL] - math.log(2.0)
        assert reached[way] > reached[Way.NONE] + 3.0

    @pytest.mark.parametrize("way", [Way.KEPT, Way.FEW])
    @pytest.mark.parametrize("name", ["ei", "carbo", "cei", "eipu", "pbgi"])
    def test_failures_and_kept_fits_are_used(self, name, way):
        """With what an ask in full has stored, quicker ways search for nothing, and avoid where trials failed."""
        history, policy = known(300, failures=True), policy_of(name)
        ledger = Ledger(ft.Budget(cost=600.0)).charged({"evaluation": {"cost": 200}})
        with one_blas_thread():
            (first,) = policy.propose(CUBE, history, ledger, 1, np.random.default_rng(1))
            stored = replace(history, fits=first.fits, way=way)
            (second,) = policy.propose(CUBE, stored, ledger, 1, np.random.default_rng(1))
        assert second.config["a"] < 0.95
        for model in ("value", "success"):
            if model in first.fits:
                assert second.fits[model]["log_scales"] == first.fits[model]["log_scales"]
        assert "cost" not in second.fits, "the choice of cost models stays as it was"


class TestSession:
    def asks(self, study: ft.Study) -> list[Asked]:
        return [event for event in study._session.record.past() if isinstance(event, Asked)]

    @pytest.mark.parametrize(("pace", "way"), [(1e-9, Way.FULL), (1.0, Way.NONE)])
    @pytest.mark.parametrize("name", ["ei", "carbo", "cei", "auto", "bopt", "bapi", "eqie", "thaw"])
    def test_the_event_says_what_was_given_and_taken(self, name, pace, way, tmp_path):
        with ft.Study(CUBE, ft.Budget(cost=100), policy=name, seed=1, storage=tmp_path / "s.db") as study:
            for _ in range(8):
                study.tell(study.ask(), value=0.5, cost=1.0)
            session = study._session
            session._thinking.paces.update(dict.fromkeys(Way, pace))
            session.propose(1, dict, 600.0 if way is Way.FULL else 1e-6)
        with ft.Study.resume(tmp_path / "s.db") as study:
            *before, last = self.asks(study)
            assert all((event.seconds, event.way) == (None, Way.FULL) for event in before)
            assert (last.seconds, last.way) == (600.0 if way is Way.FULL else 1e-6, way)
            assert (NO_TIME in last.proposal.reason) == (way is Way.NONE)

    @pytest.mark.parametrize("way", [Way.KEPT, Way.FEW, Way.NONE])
    @pytest.mark.parametrize("name", ["ei", "carbo", "cei"])
    def test_replay_takes_the_same_way(self, name, way):
        """From the state before the ask and the way stored, the policy proposes what it proposed then."""
        start = [CUBE.decode(u) for u in np.random.default_rng(0).random((320, 4))]
        study = ft.Study(CUBE, ft.Budget(cost=500), policy=name, seed=1, start=start)
        for number, proposal in enumerate(study.ask(320)):
            study.tell(proposal, value=math.sin(number) + proposal.config["a"], cost=1.0 + proposal.config["b"])
        session = study._session
        session._thinking.paces.update({each: 1e9 for each in Way if list(Way).index(each) < list(Way).index(way)})
        (proposal,) = session.propose(1, dict, 60.0)
        assert self.asks(study)[-1].way is way
        then = session.record.before(320)
        rng = np.random.default_rng([study.seed, then.history.asks])
        with one_blas_thread():
            (again,) = study.policy.propose(CUBE, then.history, then.ledger, 1, rng)
        assert (again.config, again.fits) == (proposal.config, proposal.fits)
        if name == "cei" and way is not Way.NONE:
            assert CUBE.decode(study.pareto(320).picks["CEI"].u) == proposal.config

    @pytest.mark.parametrize("name", ["ei", "cei"])
    def test_without_time_the_initial_design_is_what_it_is(self, name):
        """It needs no model."""
        hurried, calm = (ft.Study(CUBE, "99 evaluations", policy=name, seed=1) for _ in range(2))
        configs = [[study._session.propose(1, dict, seconds)[0].config for _ in range(4)]
                   for study, seconds in ((hurried, 0.0), (calm, math.inf))]  # fmt: skip
        assert configs[0] == configs[1]

    def test_a_policy_of_ones_own_is_not_hurried(self):
        @dataclass(frozen=True)
        class Slow:
            name: ClassVar[str] = "slow"

            def propose(self, space, history, ledger, n, rng):
                keep_to_deadline()
                assert history.way is Way.FULL
                return [ft.Proposal(len(history.trials), space.decode(rng.random(4)))]

        study = ft.Study(CUBE, "9 evaluations", policy=Slow())
        assert rows_of(study.policy, study._history) is None
        assert study._session.propose(1, dict, 0.0)

    def test_without_time_a_training_goes_on(self):
        """bapi pauses a training that will not win; to see that it needs a model."""
        space = ft.Space(x=ft.Real(0, 1))
        study = ft.Study(space, ft.Budget(cost=1e3), policy="bapi", seed=0, max_steps=10)
        history = study._history
        for number in range(8):
            history = asked(history, space, {"x": number / 8})
        trial = replace(history.trials[7], kept_step=2)
        decided = study.policy.decide(
            space, replace(history, way=Way.NONE), study.ledger, trial, np.random.default_rng(0)
        )  # fmt: skip
        assert decided is Decision.CONTINUE


@pytest.fixture(scope="module", params=["bapi", "bopt", "eqie", "thaw"])
def training(request) -> ft.Study:
    """A study in the middle of its trainings, some of them paused."""
    study = ft.Study(LINE, ft.Budget(cost=60.0), policy=request.param, seed=0, max_steps=STEPS)
    while study.ledger.fraction < 0.5:
        proposal, decision = study.ask(), Decision.CONTINUE
        for report in steps_from(proposal.config, proposal.start_step):
            decision = study.report(proposal, report["value"], cost=report["cost"])
            if decision is not Decision.CONTINUE:
                break
    return study


@pytest.mark.parametrize("stored", [True, False], ids=["stored fits", "no fits"])
@pytest.mark.parametrize("way", [Way.KEPT, Way.FEW, Way.NONE])
def test_trainings_go_on_in_every_way(training, way, stored):
    """New ones or paused ones, the same each time; with kept hyperparameters where there are any."""
    history, policy = training._history, training.policy
    assert history.count(Status.PAUSED) > 0
    seen = replace(history, way=way, fits=history.fits if stored else {})
    first, again = (policy.propose(LINE, seen, training.ledger, 3, np.random.default_rng(5)) for _ in range(2))
    assert first == again
    assert len({proposal.trial for proposal in first}) == 3
    assert all(p.trial >= len(history.trials) or history.trials[p.trial].status is Status.PAUSED for p in first)
    model = "bopt" if policy.name == "eqie" else policy.name  # whose surrogate it is
    found = {proposal.fits[model] == history.fits[model] for proposal in first if model in proposal.fits}
    assert found <= {stored}


def test_a_training_is_judged_by_its_own_curve_among_few():
    """The worst of 200 trainings is running: it is not among the best, and yet the model must know it."""
    space, rng = ft.Space(x=ft.Real(0, 1)), np.random.default_rng(0)
    history = replace(History(0), max_steps=6)
    for number, x in enumerate(rng.random(200)):
        history = asked(history, space, {"x": float(x)})
        worst = number == 57
        for step in (1, 2, 3):
            history = after(history, space, Reported(number, Report(10.0 * worst + x + 1.0 / step, 1.0)))
        if not worst:
            history = ended(history, space, number, Outcome(Status.PAUSED))
    curves = TrainingCurves.of(BAPI(), space, replace(history, way=Way.FEW), np.random.default_rng(0))
    assert curves is not None
    assert len(curves.model.plain.y) <= MOST_FEW
    assert history.trials[57].unit[0] in curves.model.plain.X[:, 0]


def test_a_run_without_a_timed_budget_thinks_in_full():
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=8.0), policy="bapi", seed=0, max_steps=6)
    study.run(learner, progress=False, isolate=False)
    events = [event for event in study._session.record.past() if isinstance(event, Asked)]
    assert {(event.seconds, event.way) for event in events} == {(None, Way.FULL)}


class TestFile:
    @pytest.fixture
    def record(self) -> Record:
        study = ft.Study(CUBE, "9 evaluations", policy="random", seed=1)
        study.ask()
        return study._session.record

    def stored(self, record: Record, change: dict[str, object], without: tuple[str, ...] = ()) -> Asked:
        """The first ask as it would be read from a file in which it was changed."""
        body = next(event for event in record.past() if isinstance(event, Asked)).body(record._encoding)
        event = Asked.read(
            {name: value for name, value in {**body, **change}.items() if name not in without}, record._encoding
        )
        event.check(record._first)
        return event

    @pytest.mark.parametrize(
        "damage",
        [{"way": "hurried"}, {"way": 3}, {"way": None}, {"seconds": -1.0}, {"seconds": "1"}, {"seconds": math.nan}],
    )
    def test_what_it_says_about_thinking_is_checked(self, record, damage):
        with pytest.raises(ValueError, match=r"."):
            self.stored(record, damage)

    def test_an_older_one_says_nothing_and_thought_in_full(self, record):
        event = self.stored(record, {}, without=("seconds", "way"))
        assert (event.seconds, event.way) == (None, Way.FULL)
