"""What goes wrong with reports: a clear error, or the failed trial that a learner that yields would be."""

from __future__ import annotations

import math
import os
import threading

import pytest

import farthing as ft
from reporting import ANYWHERE, run_on

pytestmark = pytest.mark.usefixtures("logged")


def in_thread(action):
    errors = []

    def call():
        try:
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def in_fork(action):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    raise RuntimeError(os.read(read, 10_000).decode())


class TestMistakes:
    @ANYWHERE
    @pytest.mark.parametrize("value", [math.nan, "0.5", None, [1.0, 2.0]], ids=str)
    def test_a_value_that_is_none_fails_the_trial_as_if_it_was_yielded(self, isolate, value):
        def yields(config):
            yield 1.0
            yield value

        def reports(config):
            run = ft.current_run()
            run.report(1.0)
            if run.report(value) is not ft.Decision.STOP:
                run.report(0.0)

        expected = run_on(yields, False, "1 evaluation", policy="sobol").trials[0]
        found = run_on(reports, isolate, "1 evaluation", policy="sobol").trials[0]
        assert (found.status, found.error, found.curve.values) == (ft.Status.FAILED, expected.error, (1.0,))
        assert "the value must be" in found.error

    @pytest.mark.parametrize("place", [in_thread, in_fork])
    def test_elsewhere_than_where_the_objective_was_called_it_is_refused(self, place):
        def objective(config):
            run = ft.current_run()
            place(lambda: run.report(1.0))

        error = run_on(objective, True, "1 evaluation", policy="sobol").trials[0].error
        assert "report: call it in the process and thread in which the objective was called" in error

    @ANYWHERE
    @pytest.mark.parametrize("first", ["yields", "reports"])
    def test_yielding_and_reporting_do_not_mix(self, isolate, first):
        def yields(config):
            yield 1.0
            ft.current_run().report(0.5)

        def reports(config):
            ft.current_run().report(0.5)
            return yields(config)

        objective = yields if first == "yields" else reports
        trial = run_on(objective, isolate, "1 evaluation", policy="sobol").trials[0]
        assert trial.status is ft.Status.FAILED
        assert "it either yields its steps or reports them" in trial.error

    def test_a_run_that_is_over_takes_no_reports(self):
        runs = []

        def objective(config):
            runs.append(ft.current_run())
            runs[0].report(1.0)
            if len(runs) == 1:
                ft.current_run().report(0.5)

        study = run_on(objective, False, policy="sobol")
        assert study.trials[0].curve.values == (1.0, 0.5), study.trials[0].error
        assert "report: its trial has ended" in study.trials[1].error

    @ANYWHERE
    def test_an_error_after_a_report_fails_the_trial(self, isolate):
        def objective(config):
            ft.current_run().report(1.0)
            raise ValueError("diverged")

        study = run_on(objective, isolate, "1 evaluation", policy="sobol")
        assert [(trial.status, trial.curve.values) for trial in study.trials] == [(ft.Status.FAILED, (1.0,))]
        assert study.trials[0].error.endswith("ValueError: diverged")

    def test_a_clean_stop_without_a_report_is_a_failure(self):
        def objective(config):
            raise ft.errors.TrainingStopped("by hand")

        assert run_on(objective, False, "1 evaluation", policy="sobol").trials[0].error.endswith("by hand")
