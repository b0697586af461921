"""Evaluations in worker processes: in parallel, whatever the objective is, and no process is left behind."""

from __future__ import annotations

import contextlib
import functools
import logging
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.history import History
from farthing.policies.sampling import Random
from farthing.runner import supervisor_process, worker_process
from learners import LINE, STEPS, Alternating, Halving, curve_of, iterative, value_at

pytestmark = pytest.mark.skipif(os.name != "posix", reason="worker processes need POSIX")

PROC = Path("/proc")
LATE = 20.0  # seconds by which a busy machine may be late; what must be ended takes HANGS
HANGS = 60.0


MARK = "WHO_IS_LEFT"  # an environment variable that all processes of a test inherit


def marked(value: str) -> set[int]:
    """All processes but this one that a test started, directly or not, including those that ended and were not waited
    for."""
    found = set()
    for process in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_child = int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if is_child or f"{MARK}={value}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found - {os.getpid()}


@pytest.fixture(autouse=True)
def _nobody_is_left(caplog, monkeypatch, request):
    caplog.set_level(logging.INFO, logger="farthing")
    value = f"{os.getpid()} {request.node.name}"
    monkeypatch.setenv(MARK, value)
    before = marked(value)
    yield
    assert marked(value) <= before, "a process was left"


def run(objective: Any, budget: str | ft.Budget = "4 evaluations", **options: Any) -> ft.Study:
    """A run in worker processes without progress; options go to the study or to the run."""
    names = ("workers", "isolate", "callbacks", "trial_seconds", "trial_memory", "paused_limit")
    running = {name: options.pop(name) for name in names if name in options}
    study = ft.Study(options.pop("space", LINE), budget, **{"policy": "random", "seed": 0, **options})
    return study.run(objective, progress=False, **{"isolate": True, **running})


def kill(pid: int) -> None:
    """Kill a worker, and wait until it has ended: on a busy machine it lives on for a moment."""
    os.kill(pid, signal.SIGKILL)
    end = os.pidfd_open(pid)
    select.select([end], [], [], LATE)
    os.close(end)


def statuses(study: ft.Study) -> list[str]:
    return [trial.status.value for trial in study.trials]


class Model:
    """A callable object."""

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def __call__(self, config: dict[str, Any]) -> float:
        return config["x"] + self.shift

    def method(self, config: dict[str, Any]) -> float:
        return config["x"] + self.shift


def shifted(shift: float, config: dict[str, Any]) -> float:
    return config["x"] + shift


def doubled(x: float) -> float:
    return 2 * x


class TestObjectives:
    """Whatever can be called can run in another process."""

    @pytest.mark.parametrize(
        "objective",
        [lambda config: config["x"] + 1, functools.partial(shifted, 1), Model(1), Model(1).method],
        ids=["lambda", "partial", "object", "method"],
    )
    def test_of_any_kind(self, objective):
        study = run(objective, "3 evaluations")
        assert [trial.value for trial in study.trials] == [trial.config["x"] + 1 for trial in study.trials]

    def test_it_runs_in_another_process_in_its_main_thread_and_reads_nothing(self):
        def objective(config: dict[str, Any]) -> dict[str, Any]:
            try:
                read = input()
            except EOFError:
                read = "nothing"
            main = threading.current_thread() is threading.main_thread()
            return {"value": 1.0, "pid": os.getpid(), "main": main, "read": read, "arguments": sys.argv}

        study = run(objective, "2 evaluations")
        found = [trial.attributes for trial in study.trials]
        assert found[0]["pid"] == found[1]["pid"] != os.getpid(), "a process that did well is used again"
        assert found[0]["main"]
        assert found[0]["read"] == "nothing"
        assert found[0]["arguments"] == sys.argv

    def test_what_it_prints_is_written_before_its_process_ends(self, capfd):
        run(lambda config: sys.stdout.write(f"hello from {ft.current_run().trial}\n") and 1.0, "2 evaluations")
        assert capfd.readouterr().out.splitlines() == ["hello from 0", "hello from 1"]

    def test_options_are_the_very_objects_that_the_objective_knows(self):
        class Kind:
            """A local class: no other process can import it."""

        kinds = [Kind(), Kind(), lambda: 3]
        space = ft.Space(kind=ft.Choice(kinds), size=ft.Ordered([1, 2, 4]))

        def objective(config: dict[str, Any]) -> float:
            return float([kind is config["kind"] for kind in kinds].index(True)) + config["size"]

        study = run(objective, "6 evaluations", space=space)
        assert statuses(study) == ["complete"] * 6
        assert all(t.value == kinds.index(t.config["kind"]) + t.config["size"] for t in study.trials)

    def test_folder_and_environment_are_the_runs_for_every_trial(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FARTHING_TEST", "before")
        here = os.getcwd()

        def objective(config: dict[str, Any]) -> dict[str, Any]:
            seen = {"value": 1.0, "folder": os.getcwd(), "name": os.environ.get("FARTHING_TEST"), "pid": os.getpid()}
            os.chdir(tmp_path)
            os.environ["FARTHING_TEST"] = "mine"
            os.environ["FARTHING_OTHER"] = "mine"
            seen["other"] = len([name for name in os.environ if name.startswith("FARTHING_")])
            return seen

        def change(study: ft.Study, trial: ft.Trial) -> None:
            os.environ["FARTHING_TEST"] = "changed while it ran"

        study = run(objective, "3 evaluations", callbacks=[change])
        assert {t.attributes["folder"] for t in study.trials} == {here}
        assert {t.attributes["name"] for t in study.trials} == {"before"}
        assert {t.attributes["other"] for t in study.trials} == {2}
        assert len({t.attributes["pid"] for t in study.trials}) == 1

    def test_attributes_may_be_large_and_of_any_class(self):
        class Text(str):
            """A local class."""

        def objective(config: dict[str, Any]) -> dict[str, Any]:
            return {"value": 1.0, "large": "x" * 5_000_000, "text": Text("mine"), "lock": threading.Lock()}

        (trial,) = run(objective, "1 evaluation").trials
        assert len(trial.attributes["large"]) == 5_000_000
        assert trial.attributes["text"] == "mine"
        assert "lock" in trial.attributes["lock"]

    def test_a_large_objective_is_shipped_without_waiting_for_each_process(self):
        data = np.ones(4_000_000)  # 32 MB: no pipe holds that
        study = run(lambda config: float(data.sum()), "4 evaluations", workers=2)
        assert [trial.value for trial in study.trials] == [4e6] * 4

    def test_it_may_use_processes_of_its_own(self):
        def objective(config: dict[str, Any]) -> float:
            with multiprocessing.get_context("fork").Pool(2) as pool:
                both = pool.map(doubled, [1.0, 2.0])
            output = subprocess.run([sys.executable, "-c", "print(4)"], capture_output=True, text=True, check=True)
            return sum(both) + float(output.stdout)

        study = run(objective, "2 evaluations")
        assert [trial.value for trial in study.trials] == [10.0] * 2

    @pytest.mark.parametrize("isolate", [False, True])
    def test_what_it_forks_can_be_ended_by_sigterm_from_its_first_moment_on(self, isolate):
        """As pools do: if a signal were lost, they would wait forever."""

        def objective(config: dict[str, Any]) -> float:
            codes = set()
            for delay in range(40):
                child = os.fork()
                if child == 0:
                    time.sleep(HANGS)
                    os._exit(0)
                time.sleep(0.0001 * (delay % 10))
                os.kill(child, signal.SIGTERM)
                codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return float(codes == {-signal.SIGTERM})

        began = time.perf_counter()
        assert run(objective, "1 evaluation", isolate=isolate).trials[0].value == 1.0
        assert time.perf_counter() - began < HANGS

    @pytest.mark.parametrize("isolate", [False, True])
    def test_a_fork_that_comes_back_from_it_ends(self, isolate):
        def objective(config: dict[str, Any]) -> float:
            child = os.fork()
            if child == 0:
                sys.exit(7)
            return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        study = run(objective, "3 evaluations", isolate=isolate)
        assert [trial.value for trial in study.trials] == [7.0] * 3

    @pytest.mark.parametrize("isolate", [False, True])
    def test_it_may_run_a_study_of_its_own(self, isolate):
        def objective(config: dict[str, Any]) -> float:
            inner = ft.tune(
                lambda c: c["x"] + config["x"], LINE, "3 evaluations", policy="random", seed=1, isolate=isolate,
                progress=False,
            )  # fmt: skip
            return inner.best.value

        study = run(objective, "2 evaluations", isolate=isolate)
        assert statuses(study) == ["complete"] * 2


class TestCannotIsolate:
    """An objective that cannot run in another process is refused under a budget of time, which could not be kept."""

    def objective(self) -> Any:
        lock = threading.Lock()

        def objective(config: dict[str, Any]) -> dict[str, Any]:
            with lock:
                return {"value": config["x"], "pid": os.getpid()}

        return objective

    def test_a_budget_of_time_is_refused_with_the_way_out(self):
        with pytest.raises(InvalidArgument, match=r"cannot pickle '_thread.lock' object.*isolate=False.*only between"):
            run(self.objective(), "60s, 3 evaluations", isolate=None)

    @pytest.mark.parametrize(("budget", "isolate"), [("60s, 3 evaluations", False), ("3 evaluations", None)])
    def test_it_runs_here_where_that_was_asked_for_or_time_is_not_limited(self, budget, isolate):
        study = run(self.objective(), budget, isolate=isolate)
        assert {trial.attributes["pid"] for trial in study.trials} == {os.getpid()}

    @pytest.mark.parametrize("options", [{}, {"workers": 2, "isolate": None}, {"trial_seconds": 5, "isolate": None}])
    def test_where_processes_are_needed_it_is_refused(self, options):
        with pytest.raises(InvalidArgument, match=r"cannot run in a process of its own.*lock"):
            run(self.objective(), **options)

    def test_an_option_that_cannot_be_pickled_is_seen_at_the_start(self):
        with pytest.raises(InvalidArgument, match="pickle"):
            run(lambda config: 1.0, space=ft.Space(lock=ft.Choice([threading.Lock(), 1])))

    def test_one_that_cannot_be_loaded_there(self, tmp_path, monkeypatch):
        (tmp_path / "vanishing.py").write_text("def objective(config):\n    return 1.0\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        from vanishing import objective

        (tmp_path / "vanishing.py").write_text("raise ImportError('not here')\n")
        with pytest.raises(InvalidArgument, match=r"a worker process cannot load it \(ImportError: not here\)"):
            run(objective)

    def test_one_that_ends_the_process_while_it_is_loaded(self):
        class Deadly:
            def __reduce__(self) -> Any:
                return os._exit, (3,)

            def __call__(self, config: dict[str, Any]) -> float:
                return 1.0

        with pytest.raises(InvalidArgument, match="did not start: it ended its process with exit code 3"):
            run(Deadly())

    @pytest.mark.parametrize("program", [None, "", "/nowhere/python"])
    def test_a_python_that_cannot_be_started(self, monkeypatch, program):
        monkeypatch.setattr(sys, "executable", program)
        for budget, isolate in [("2 evaluations", True), ("60s, 2 evaluations", None)]:
            with pytest.raises(InvalidArgument, match=r"sys.executable|/nowhere/python"):
                run(lambda config: 1.0, budget, isolate=isolate)
        assert len(run(lambda config: 1.0, "60s, 2 evaluations", isolate=False).trials) == 2

    def test_a_folder_that_was_removed(self, tmp_path, monkeypatch):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert statuses(run(lambda config: 1.0, "2 evaluations")) == ["complete"] * 2


SCRIPT = """
import farthing as ft

space = ft.Space(x=ft.Real(0, 1))

class Helper:
    def __init__(self, x):
        self.x = x

def helper(x):
    return Helper(x).x

def objective(config):
    return helper(config["x"])

print("begun")
study = ft.tune(objective, space, "60s, 3 evaluations", seed=0, progress=False)
print([trial.status.value for trial in study.trials])
"""


class TestScripts:
    """Workers import nothing from a script, so it needs no `__main__` guard."""

    EXPECTED = "begun\n['complete', 'complete', 'complete']\n"

    def check(self, arguments: list[str], **options: Any) -> None:
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options)
        assert (done.stdout, done.returncode) == (self.EXPECTED, 0), done.stderr
        assert "cannot run in a process" not in done.stderr

    def test_without_a_guard(self, tmp_path):
        (tmp_path / "script.py").write_text(SCRIPT)
        self.check([str(tmp_path / "script.py")], cwd=tmp_path)

    def test_from_standard_input(self):
        self.check(["-"], input=SCRIPT)

    def test_executed_as_a_notebook_does(self):
        self.check(["-c", f"exec(compile({SCRIPT!r}, '<cell 1>', 'exec'), {{'__name__': '__main__'}})"])

    def test_its_functions_are_found_by_what_it_forks(self, tmp_path):
        pool = "import multiprocessing\n" + SCRIPT.replace(
            'return helper(config["x"])',
            'return multiprocessing.get_context("fork").Pool(1).map(helper, [config["x"]])[0]',
        )
        (tmp_path / "script.py").write_text(pool)
        self.check([str(tmp_path / "script.py")])


class Watching(Random):
    """Notes which trials are running when it proposes."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []

    def propose(self, space: Any, history: History, ledger: Any, n: int, rng: Any) -> Any:
        self.seen.append(tuple(trial.number for trial in history.running))
        return super().propose(space, history, ledger, n, rng)


class TestSideBySide:
    def test_a_free_worker_gets_the_next_proposal_which_knows_what_is_running(self, tmp_path):
        """Trial 0 waits for the others, and the second worker does all of them."""
        flag, policy = tmp_path / "flag", Watching()

        def objective(config: dict[str, Any]) -> float:
            number = ft.current_run().trial
            deadline = time.monotonic() + HANGS
            while number == 0 and not flag.exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            return float(number)

        ended = []

        def note(study: ft.Study, trial: ft.Trial) -> None:
            ended.append(trial.number)
            if trial.number == 4:
                flag.touch()

        study = ft.Study(LINE, "6 evaluations", policy=policy, seed=0)
        study.run(objective, workers=2, progress=False, callbacks=[note])
        assert policy.seen[:5] == [(), (0,), (0,), (0,), (0,)]
        assert ended[:4] == [1, 2, 3, 4]
        assert sorted(ended) == list(range(6))

    @pytest.mark.parametrize("policy", ["sobol", "ei", "carbo"])
    def test_the_same_order_of_events_gives_the_same_proposals(self, tmp_path, policy):
        """Each ask of a parallel study is repeated with the history and ledger that it saw."""
        path = tmp_path / "study.db"

        def objective(config: dict[str, Any]) -> float:
            time.sleep(0.02 + 0.1 * (config["x"] * 10 % 1))
            return (config["x"] - 0.3) ** 2

        study = ft.Study(LINE, "14 evaluations", policy=policy, seed=3, storage=path)
        with study:
            study.run(objective, workers=2, progress=False)
            record, policy = study._session.record, study.policy
            replayed = ft.Study(LINE, "14 evaluations", policy=policy, seed=3)._session.record
            asked = 0
            for event in record.past()[2:]:
                if type(event).__name__ == "Asked":
                    rng = np.random.default_rng([3, event.ask])
                    (again,) = policy.propose(LINE, replayed.history, replayed.ledger, 1, rng)
                    assert again.config == event.proposal.config
                    assert replayed.ledger.as_json() == event.ledger
                    asked += 1
                replayed.write(event)
            assert asked == 14

    def test_wall_seconds_are_shared_and_compute_seconds_add_up(self):
        budget = ft.Budget(seconds=100, evaluations=6)
        began = time.perf_counter()
        study = run(lambda config: time.sleep(0.4) or 1.0, budget, workers=2)
        wall = time.perf_counter() - began
        ledger = study.ledger
        assert ledger.total("seconds") == pytest.approx(wall, abs=0.5 + 0.05 * wall)
        assert ledger.total("seconds") <= wall
        assert 6 * 0.4 <= ledger.total("compute_seconds") <= 6 * 0.4 + LATE
        assert ledger.account("evaluation", "seconds") < ledger.total("compute_seconds")
        assert ledger.account("evaluation", "compute_seconds") == pytest.approx(sum(t.cost for t in study.trials))

    def test_dollars_are_paid_for_each_worker(self):
        budget = ft.Budget(usd=100, usd_per_hour=3600, evaluations=6)
        study = run(lambda config: time.sleep(0.3) or 1.0, budget, workers=2)
        assert study.ledger.account("evaluation", "usd") == pytest.approx(sum(trial.cost for trial in study.trials))
        assert 6 * 0.3 <= study.ledger.account("evaluation", "usd") < 6 * 0.3 + LATE

    def test_the_target_reached_ends_the_others(self):
        def objective(config: dict[str, Any]) -> float:
            if ft.current_run().trial == 1:
                return 0.0
            time.sleep(HANGS)
            return 1.0

        began = time.perf_counter()
        study = run(objective, "10 evaluations", workers=2, stop_at=0.5)
        assert time.perf_counter() - began < HANGS
        assert statuses(study) == ["interrupted", "complete"]
        assert "stop_at" in study.trials[0].error

    def test_stop_lets_what_is_running_end(self):
        def stop(study: ft.Study, trial: ft.Trial) -> None:
            study.stop()

        def objective(config: dict[str, Any]) -> float:
            time.sleep(0.3 * ft.current_run().trial)
            return 1.0

        study = run(objective, "10 evaluations", workers=2, callbacks=[stop])
        assert statuses(study) in (["complete"], ["complete"] * 2)

    def test_an_error_of_a_callback_ends_everything_and_is_the_users(self):
        def objective(config: dict[str, Any]) -> float:
            time.sleep(HANGS * (ft.current_run().trial == 0))
            return 1.0

        def callback(study: ft.Study, trial: ft.Trial) -> None:
            raise ZeroDivisionError

        study = ft.Study(LINE, "10 evaluations", policy="random", seed=0)
        with pytest.raises(ZeroDivisionError):
            study.run(objective, workers=2, progress=False, callbacks=[callback])
        assert statuses(study) == ["interrupted", "complete"]
        study.run(lambda config: 1.0, progress=False, callbacks=[lambda study, trial: study.stop()])
        assert statuses(study) == ["complete"] * 2

    def test_in_a_thread(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(run(lambda config: 1.0, "4 evaluations", workers=2)))
        thread.start()
        thread.join(HANGS)
        assert statuses(found[0]) == ["complete"] * 4


class TestTrainings:
    """Iterative learners in processes, paused and resumed."""

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("policy", [Alternating(), Halving()], ids=["alternating", "halving"])
    def test_every_curve_is_whole(self, policy, workers):
        """And no step is trained twice, where steps cost something else than time."""

        def learner(config):
            return ({"value": value_at(config, s), "cost": 1} for s in range(1, STEPS + 1))

        study = iterative(ft.Budget(evaluations=8, cost=1000), policy=policy)
        study.run(learner, workers=workers, progress=False)
        assert len(study.trials) == 8
        assert "retrained" not in study.ledger.accounts
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))

    def test_with_few_alive_the_worst_is_trained_again(self):
        study = iterative("6 evaluations")
        study.run(
            lambda config: (value_at(config, s) for s in range(1, STEPS + 1)), workers=2, paused_limit=1, progress=False
        )  # fmt: skip
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))
        assert "retrained" in study.ledger.accounts

    def test_bopt(self):
        study = ft.Study(LINE, "6 evaluations", policy="bopt", seed=0, max_steps=STEPS)
        study.run(lambda config: (value_at(config, s) for s in range(1, STEPS + 1)), workers=2, progress=False)
        assert study.ledger.total("evaluations") == 6
        assert not study.count(ft.Status.FAILED, ft.Status.KILLED)

    @pytest.mark.parametrize("saves", [False, True])
    def test_one_killed_while_paused_is_trained_again_from_its_checkpoint(self, saves):
        killed = []

        def objective(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
            here = ft.current_run()
            for step in range(here.step + 1, STEPS + 1):
                if saves:
                    (here.checkpoint_dir / "state").write_text(str(step))
                yield {"value": value_at(config, step), "pid": os.getpid()}

        def kill_first(study: ft.Study, trial: ft.Trial) -> None:
            if trial.number == 1 and trial.status is ft.Status.PAUSED and not killed:
                first = study.trial(0)
                assert first.status is ft.Status.PAUSED
                kill(first.attributes["pid"])
                killed.append(len(first.curve))

        study = iterative("4 evaluations")
        study.run(objective, isolate=True, progress=False, callbacks=[kill_first])
        assert killed == [1]
        assert statuses(study) == ["complete" if len(t.curve) == STEPS else "paused" for t in study.trials]
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))
        assert len(study.trials[0].curve) > 1, "it went on"
        assert ("retrained" in study.ledger.accounts) == (not saves)

    def test_a_learner_that_does_not_let_itself_be_closed_is_killed_in_time(self, monkeypatch):
        monkeypatch.setattr("farthing.runner.paused.CLOSING_SECONDS", 0.5)

        def objective(config: dict[str, Any]) -> Iterator[float]:
            try:
                for step in range(1, STEPS + 1):
                    yield value_at(config, step)
            finally:
                time.sleep(HANGS)

        study, began = iterative("4 evaluations", policy=Alternating(width=4)), time.perf_counter()
        with pytest.warns(RuntimeWarning, match="took too long"):
            study.run(objective, isolate=True, progress=False)
        assert time.perf_counter() - began < HANGS, "all of them together"


class SlowToLoad:
    """Takes long to load in another process."""

    def __setstate__(self, state: Any) -> None:
        time.sleep(HANGS)

    def __getstate__(self) -> dict[str, int]:
        return {"any": 1}

    def __call__(self, config: dict[str, Any]) -> float:
        return 1.0


def test_a_budget_that_is_over_before_a_process_is_ready_is_kept():
    study = ft.Study(LINE, "0.3s", policy="random", seed=0)
    began = time.perf_counter()
    study.run(SlowToLoad(), progress=False)
    assert time.perf_counter() - began < LATE
    assert study.trials == []
    assert isinstance(study.ended, ft.errors.BudgetSpent)


class TestProcesses:
    def test_one_that_died_while_idle_is_not_used(self):
        def kill_idle(study: ft.Study, trial: ft.Trial) -> None:
            kill(trial.attributes["pid"])

        study = run(lambda config: {"value": 1.0, "pid": os.getpid()}, "4 evaluations", callbacks=[kill_idle])
        assert statuses(study) == ["complete"] * 4
        assert len({trial.attributes["pid"] for trial in study.trials}) == 4

    @pytest.mark.parametrize("pidfd", [True, False])
    def test_the_end_of_one_is_seen_even_if_a_fork_of_it_lives_on(self, monkeypatch, pidfd):
        if not pidfd:
            monkeypatch.setattr(worker_process, "open_pidfd", lambda pid: None)

        def objective(config: dict[str, Any]) -> float:
            if os.fork() == 0:
                time.sleep(HANGS)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGSEGV)
            return 1.0

        began = time.perf_counter()
        study = run(objective, "2 evaluations")
        assert time.perf_counter() - began < HANGS
        assert [trial.error for trial in study.trials] == ["the objective died of SIGSEGV"] * 2

    def test_a_fork_of_the_run_does_not_hold_up_its_end(self):
        """It holds copies of all sockets open."""
        forked = []

        def fork(study: ft.Study, trial: ft.Trial) -> None:
            forked.append(os.fork())
            if forked[-1] == 0:
                time.sleep(HANGS)
                os._exit(0)

        began = time.perf_counter()
        try:
            assert statuses(run(lambda config: 1.0, "1 evaluation", callbacks=[fork])) == ["complete"]
            assert time.perf_counter() - began < supervisor_process.CLOSING_SECONDS
        finally:
            for pid in forked:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    @pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot adopt orphans")
    def test_children_that_an_objective_keeps_stay_and_what_nobody_waits_for_does_not_pile_up(self, tmp_path):
        """A pool of its own serves several evaluations. A worker with many processes that ended is replaced."""
        kept = tmp_path / "kept"

        def objective(config: dict[str, Any]) -> dict[str, Any]:
            if not kept.exists():
                child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({HANGS})"])
                kept.write_text(str(child.pid))
            for _ in range(30):
                subprocess.run(["sh", "-c", "sleep 0 &"], check=True)
            time.sleep(0.3)
            state = (PROC / kept.read_text() / "stat").exists()
            return {"value": 1.0, "pid": os.getpid(), "is_there": state}

        study = run(objective, "6 evaluations")
        assert statuses(study) == ["complete"] * 6
        first = [t for t in study.trials if t.attributes["pid"] == study.trials[0].attributes["pid"]]
        assert len(first) >= 2
        assert all(trial.attributes["is_there"] for trial in first)
        assert len({trial.attributes["pid"] for trial in study.trials}) > 1

    def test_no_files_stay_open(self):
        """Each run has processes that are reused, that fail, that die, that are killed and that are never used: so a
        file that any of them leaves open shows after one run."""

        def objective(config: dict[str, Any]) -> float:
            number = ft.current_run().trial
            if number == 2:
                os._exit(3)
            time.sleep(HANGS * (number == 3))
            return 1.0 / (number != 1)

        def open_files() -> int:
            return len(list((PROC / "self" / "fd").iterdir()))

        run(lambda config: 0.0, "1 evaluations")  # the folder for all studies in memory of this process is locked
        for _ in range(2):
            before = open_files()
            study = run(objective, "5 evaluations", workers=2, trial_seconds=1.0)
            assert statuses(study) == ["complete", "failed", "failed", "killed", "complete"]
            assert open_files() <= before
