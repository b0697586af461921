"""Reporting from inside the objective's own loop: to a study it is a learner that yields."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

import pytest

import farthing as ft
from learners import STEPS, Alternating, cost_of, curve_of, learner, value_at
from reporting import ANYWHERE, StopAtTwo, run_on, study_of

pytestmark = pytest.mark.usefixtures("logged")


def reporting(config):
    """The learner that writes no checkpoints, as a plain loop."""
    run = ft.current_run()
    decision = ft.Decision.CONTINUE
    for step in range(1, STEPS + 1):
        assert decision is ft.Decision.CONTINUE, "a call that goes on"
        decision = run.report(value_at(config, step), cost=cost_of(step), process=os.getpid())


def told(study):
    """What is known of the trials, apart from where they ran."""
    return [(trial.number, trial.config, trial.status, trial.value, trial.cost, trial.curve) for trial in study.trials]


class TestInWorkers:
    def test_paused_and_resumed_it_is_the_study_of_a_learner_that_yields(self):
        """Trainings take turns step by step; each is one call in one process, trained once."""
        pauses = Counter()

        def count(study, trial):
            pauses[trial.number] += trial.status is ft.Status.PAUSED

        study = study_of().run(reporting, isolate=True, progress=False, callbacks=[count])
        assert told(study) == told(study_of().run(learner, isolate=False, progress=False))
        complete = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
        assert len(complete) >= 3
        assert all(pauses[trial.number] == STEPS - 1 for trial in complete)
        assert all(trial.curve.values == curve_of(trial.config) for trial in complete)
        assert "retrained" not in study.ledger.accounts

    def test_time_inside_a_paused_report_is_nobodys(self):
        """Five trainings take turns on one worker: counting pauses, their seconds would be those of the clock five
        times."""

        def sleeper(config):
            for step in range(STEPS):
                time.sleep(0.02)
                ft.current_run().report(float(STEPS - step))

        began = time.perf_counter()
        study = study_of("5m", policy=Alternating(width=5))
        study.run(sleeper, progress=False, callbacks=[lambda study, trial: trial.status == "complete" and study.stop()])
        seconds = time.perf_counter() - began
        assert [len(trial.curve) for trial in study.trials] == [STEPS, *[STEPS - 1] * 4], study.trials[0].error
        assert (5 * STEPS - 4) * 0.02 <= sum(trial.cost for trial in study.trials) <= seconds

    def test_closed_while_paused_it_cleans_up_and_goes_on_from_its_checkpoint(self, tmp_path):
        """No paused process is kept: each resumed training is called anew, and told so by `step`."""

        def saving(config):
            run = ft.current_run()
            file = run.checkpoint_dir / "state"
            assert not run.step or int(file.read_text()) == run.step
            for step in range(run.step + 1, STEPS + 1):
                file.write_text(str(step))
                if run.report(value_at(config, step), cost=cost_of(step), from_step=run.step) is ft.Decision.STOP:
                    (tmp_path / f"{run.trial}-{step}").touch()
                    break

        study = study_of()
        study.run(saving, isolate=True, progress=False, paused_limit=0)
        complete = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
        assert len(complete) >= 3
        assert all(trial.attributes["from_step"] == STEPS - 1 for trial in complete)
        assert {path.name for path in tmp_path.iterdir()} >= {f"0-{step}" for step in range(1, STEPS + 1)}
        assert all(trial.curve.values == curve_of(trial.config) for trial in complete)
        assert "retrained" not in study.ledger.accounts

    def test_the_limit_of_a_trial_holds_after_a_report(self):
        def hangs(config):
            ft.current_run().report(1.0)
            time.sleep(600)

        study = study_of("5m, 1 evaluation", policy="sobol").run(hangs, trial_seconds=0.5, progress=False)
        (trial,) = study.trials
        assert (trial.status, trial.curve.values) == (ft.Status.KILLED, (1.0,)), trial.error

    def test_a_signal_while_it_waits_is_left_to_the_run(self):
        """Schedulers of clusters signal all processes of a job; a training that is paused has nothing to end."""

        def signal_it(study, trial):
            if trial.status is ft.Status.PAUSED:
                os.kill(trial.attributes["process"], signal.SIGTERM)

        study = study_of().run(reporting, isolate=True, progress=False, callbacks=[signal_it])
        assert study.count(ft.Status.COMPLETE) >= 3, study.trials[0].error
        assert study.count(ft.Status.FAILED) == 0
        assert "retrained" not in study.ledger.accounts

    def test_a_worker_is_used_again_after_it(self):
        def objective(config):
            ft.current_run().report(value_at(config, 1), process=os.getpid(), raises=True)
            ft.current_run().report(value_at(config, 2), raises=True)

        study = study_of("4 evaluations", policy=StopAtTwo()).run(objective, isolate=True, progress=False)
        assert [trial.status for trial in study.trials] == [ft.Status.STOPPED] * 4, study.trials[0].error
        assert len({trial.attributes["process"] for trial in study.trials}) == 1


class TestHere:
    def test_nothing_is_paused(self):
        """What the policy would pause goes on to the end; there is no run inside policies and callbacks."""
        statuses = []

        def look(study, trial):
            statuses.append(trial.status)
            with pytest.raises(ft.errors.InvalidArgument):
                ft.current_run()

        study = study_of("4 evaluations").run(reporting, isolate=False, progress=False, callbacks=[look])
        assert statuses == [ft.Status.COMPLETE] * 4, study.trials[0].error
        assert [trial.curve.values for trial in study.trials] == [curve_of(trial.config) for trial in study.trials]

    def test_the_budget_stops_it_and_more_budget_continues_it(self, tmp_path):
        stops = []

        def objective(config):
            for step in range(1, STEPS + 1):
                if ft.current_run().report(value_at(config, step), cost=cost_of(step)) is ft.Decision.STOP:
                    stops.append(step)
                    return

        path = tmp_path / "study.db"
        with study_of(ft.Budget(cost=1.5), policy="sobol", storage=path) as study:
            study.run(objective, isolate=False, progress=False)
        (trial,) = study.trials
        assert (trial.status, len(trial.curve), stops) == (ft.Status.PAUSED, 3, [3]), trial.error
        assert trial.ended_by is ft.EndedBy.BUDGET
        more = ft.Budget(cost=1.5 + sum(map(cost_of, range(1, STEPS + 1))))
        with ft.Study.resume(path, budget=more) as study:
            study.run(objective, isolate=False, progress=False)
        assert (study.trials[0].status, stops) == (ft.Status.COMPLETE, [3, STEPS])
        assert study.ledger.account("retrained") == 1.5, "there was no checkpoint"

    def test_seconds_add_up_to_the_clock(self, fake_time):
        def objective(config):
            for step in range(1, STEPS + 1):
                time.sleep(0.004)
                ft.current_run().report(value_at(config, step))

        pause = [lambda study, trial: time.sleep(0.001)]
        start = time.perf_counter()
        study = study_of("100s, 5 evaluations").run(objective, isolate=False, progress=False, callbacks=pause)
        wall = time.perf_counter() - start
        evaluation, optimiser = (study.ledger.account(name, "seconds") for name in ("evaluation", "optimiser"))
        assert evaluation == pytest.approx(5 * STEPS * 0.004, abs=0.001)
        assert evaluation + optimiser == pytest.approx(wall, abs=1e-4)

    @pytest.mark.parametrize("where", ["objective", "decision"])
    def test_ctrl_c_ends_the_run_even_if_the_objective_swallows_it(self, where):
        def interrupt(here):
            if here == where:
                os.kill(os.getpid(), signal.SIGINT)

        class Policy(Alternating):
            def decide(self, space, history, ledger, trial, rng):
                interrupt("decision")
                return super().decide(space, history, ledger, trial, rng)

        def objective(config):
            with Swallowing():
                ft.current_run().report(1.0)
                interrupt("objective")
                time.sleep(60)

        began = time.perf_counter()
        study = study_of("9 evaluations", policy=Policy())
        with pytest.raises(KeyboardInterrupt):
            study.run(objective, isolate=False, progress=False)
        assert study.interrupted
        assert [len(trial.curve) for trial in study.trials] == [1]
        assert time.perf_counter() - began < 30.0

    def test_an_error_of_the_run_is_not_the_objectives(self):
        def objective(config):
            with Swallowing():
                ft.current_run().report(1.0)
                ft.current_run().report(0.5)

        def broken(study, trial):
            raise ZeroDivisionError("in a callback")

        study = study_of("3 evaluations", policy=StopAtTwo())
        with pytest.raises(ZeroDivisionError, match="in a callback"):
            study.run(objective, isolate=False, progress=False, callbacks=[broken])
        assert [trial.status for trial in study.trials] == [ft.Status.STOPPED]


class Swallowing:
    """Every exception, as careless objectives do."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return True


@ANYWHERE
class TestDecisions:
    def test_stop_is_said_once_and_for_all(self, isolate):
        """What is reported afterwards is not recorded, and what goes wrong afterwards does not matter."""

        def objective(config):
            run = ft.current_run()
            decisions = [str(run.report(float(step))) for step in range(9, 5, -1)]
            return decisions if decisions == ["continue", "stop", "stop", "stop"] else 1 / 0

        study = run_on(objective, isolate, policy=StopAtTwo())
        assert [trial.curve.values for trial in study.trials] == [(9.0, 8.0)] * 2, study.trials[0].error
        assert [trial.status for trial in study.trials] == [ft.Status.STOPPED] * 2

    def test_an_error_after_stop_is_only_a_warning(self, isolate):
        def objective(config):
            ft.current_run().report(2.0)
            ft.current_run().report(1.0)
            raise ValueError("too late")

        with pytest.warns(RuntimeWarning, match="trial 0: while it was closed the objective raised ValueError: too l"):
            study = run_on(objective, isolate, "1 evaluation", policy=StopAtTwo())
        assert study.trials[0].status is ft.Status.STOPPED

    def test_raises_ends_a_training_cleanly(self, isolate):
        def objective(config):
            for step in range(1, STEPS + 1):
                ft.current_run().report(value_at(config, step), raises=True)
            return 1 / 0

        study = run_on(objective, isolate, policy=StopAtTwo())
        assert [trial.status for trial in study.trials] == [ft.Status.STOPPED] * 2, study.trials[0].error
        assert issubclass(ft.errors.TrainingStopped, ft.errors.FarthingError)

    def test_the_first_training_that_ends_says_how_long_one_is(self, isolate):
        """And what it returns is no more than that."""

        def objective(config):
            run, decisions = ft.current_run(), []
            for step in range(1, 4 if run.trial == 0 else 99):
                decisions.append(run.report(value_at(config, step)))
                if decisions[-1] is ft.Decision.STOP:
                    break
            return -1.0

        study = run_on(objective, isolate, max_steps=None, policy="sobol")
        assert [trial.status for trial in study.trials] == [ft.Status.COMPLETE] * 2, study.trials[0].error
        assert [trial.curve.values for trial in study.trials] == [curve_of(trial.config, 3) for trial in study.trials]
        assert study.best.value == min(trial.curve.values[-1] for trial in study.trials)

    def test_policies_for_learners_that_yield_accept_it(self, isolate):
        study = study_of(ft.Budget(cost=25), policy="bopt" if isolate else "bapi")
        study.run(reporting, isolate=isolate, progress=False)
        assert study.count(ft.Status.FAILED) == 0, study.trials[0].error
        assert study.count() >= 4

    def test_what_is_left_of_the_budget_is_kept_up_to_date(self, isolate):
        def objective(config):
            run = ft.current_run()
            for _ in range(3):
                run.report(1.0, cost=2.0, left=run.remaining)

        study = run_on(objective, isolate, ft.Budget(cost=100, evaluations=1), policy="sobol", max_steps=3)
        assert study.trials[0].attributes["left"] == 96.0
