"""Studies on a real Ray cluster of several nodes on this machine, which is in a process of its own.

All tests are in one file and share the cluster: to start one takes seconds.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ray_objectives import busy, forgetful, hanging, large, moving, nap, with_accidents

import farthing as ft
from farthing.adapters.ray import pool
from farthing.adapters.ray.agent import Agent
from farthing.adapters.ray.messages import Job, Start
from farthing.errors import InvalidArgument
from farthing.runner.surroundings import Surroundings
from farthing.runner.worker_process import import_path, pickle_objective
from farthing.trial import EndedBy
from learners import bodies

ray = pytest.importorskip("ray", reason="the tests of the cluster need Ray")

HERE = Path(__file__).parent
LINE = ft.Space(x=ft.Real(0, 1))
RATES = {"market=spot": 1.0, "market": 4.0}  # dollars per hour
LATE = 30.0  # seconds by which a busy machine may be late
PATHS = [str(HERE), str(HERE.parent.parent), str(Path(ft.__file__).parent.parent)]


@dataclass
class Machines:
    """The process with the cluster."""

    process: subprocess.Popen[str]
    address: str

    def ask(self, order: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def add(self, cpus: int, market: str) -> int:
        return int(self.ask(f"add {cpus} market={market}"))

    def remove(self, number: int) -> None:
        assert self.ask(f"remove {number}") == "removed"

    def workers(self, n: int = 4, **options: Any) -> ft.Ray:
        return ft.Ray(address=self.address, n=n, **options)


def environment() -> dict[str, str]:
    path = os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONPATH": path}


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """Two nodes of two processors: one is a spot machine, the other reserved. This process is connected to them."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "cluster_process.py")], env=environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_AUTH_MODE", "disabled")
            found = Machines(process, process.stdout.readline().strip())
            found.add(2, "spot")
            found.add(2, "reserved")
            before = signal.getsignal(signal.SIGTERM)
            ray.init(found.address, logging_level="ERROR", log_to_driver=False)
            signal.signal(signal.SIGTERM, before)
            yield found
            ray.shutdown()
    finally:
        with process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(LATE)
            except subprocess.TimeoutExpired:
                process.kill()


def run(machines: Machines, objective: Callable[..., Any], budget: str | ft.Budget, **options: Any) -> ft.Study:
    given: dict[str, Any] = {"workers": machines.workers(), "policy": "sobol", "seed": 0, "progress": False, **options}
    return ft.tune(objective, LINE, budget, **given)


def asked(file: Path) -> list[int]:
    return [body["trial"] for body in bodies(file, "asked")]


def require_nothing_lost_or_doubled(study: ft.Study, count: int) -> None:
    """As many evaluations as were paid for, each under a number of its own and with the value of its configuration."""
    assert [trial.number for trial in study.trials] == list(range(count))
    assert len({trial.config["x"] for trial in study.trials}) == count
    assert study.ledger.total("evaluations") == count
    for trial in study.trials:
        if trial.status is ft.Status.COMPLETE:
            assert trial.value == pytest.approx((trial.config["x"] - 0.3) ** 2)


def left_by(folder: Path) -> list[int]:
    """Processes that were started by evaluations with that folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"LEFT_BY={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def soon(condition: Callable[[], bool], seconds: float = LATE) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_trials_run_side_by_side_on_nodes_that_cost_what_their_labels_say(machines):
    workers = machines.workers(usd_per_hour=RATES)
    study = run(machines, partial(nap, 0.4), "$1, 12 evaluations", workers=workers)
    require_nothing_lost_or_doubled(study, 12)
    spans = [(trial.attributes["began"], trial.attributes["ended"]) for trial in study.trials]
    assert max(sum(began <= moment < ended for began, ended in spans) for moment, _ in spans) == 4
    by_node: dict[str, set[float]] = {}
    for trial in study.trials:
        seconds = trial.attributes["ended"] - trial.attributes["began"]
        assert trial.cost is not None
        by_node.setdefault(trial.attributes["node"], set()).add(round(trial.cost * 3600.0 / seconds, 1))
    assert len(by_node) == 2
    least = sorted(min(rates) for rates in by_node.values())  # what is charged includes what a busy machine adds
    assert least == pytest.approx([1.0, 4.0], rel=0.1)
    waited = study.ledger.accounts["start-up"]["usd"]  # what they held while nothing ran
    assert 0.0 < waited < 10.0 * LATE / 3600.0
    assert study.ledger.total("usd") == pytest.approx(waited + sum(trial.cost or 0.0 for trial in study.trials))


def test_a_budget_of_dollars_is_hard(machines):
    """Four workers at a cent per second: a second more than the budget is four cents."""
    began = time.monotonic()
    study = run(machines, partial(nap, 1.5), "$0.20", workers=machines.workers(usd_per_hour=36.0))
    assert study.why_ended == "the budget of $0.20 is spent"
    assert 0.20 <= study.ledger.total("usd") <= 0.24
    assert time.monotonic() - began < LATE
    assert study.trials[-1].error == "killed: the budget is spent"


def test_a_budget_of_seconds_is_hard(machines):
    """Which is long enough for actors to start on a busy machine."""
    began = time.monotonic()
    study = run(machines, partial(nap, 60.0), "10s", workers=machines.workers(2))
    assert study.ledger.total("seconds") <= 11.0
    assert time.monotonic() - began < 11.0 + LATE
    assert {trial.status for trial in study.trials} == {ft.Status.KILLED}


@dataclass(frozen=True)
class Tour:
    """Trains trial 0 for two steps, then two others, then goes on with trial 0; that is all."""

    name: ClassVar[str] = "tour"

    def propose(self, space, history, ledger, n, rng):
        paused = history.of(ft.Status.PAUSED)
        if paused and len(history.trials) >= 3:
            return [ft.Proposal(paused[0].number, paused[0].config, start_step=paused[0].kept_step)]
        number = len(history.trials)
        if number == 3:
            return []
        return [ft.Proposal(number, {"x": float(rng.random())}, until_step=2 if number == 0 else None)]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.CONTINUE


def test_a_paused_training_goes_on_at_another_node_from_its_checkpoint(machines, tmp_path):
    workers = machines.workers(2, num_cpus=2, checkpoints=tmp_path / "shared")  # one on each node
    study = ft.tune(
        partial(moving, tmp_path), LINE, "1m, 12 evaluations", policy=Tour(), seed=0, max_steps=4, workers=workers,
        storage=tmp_path / "s.db", progress=False,
    )  # fmt: skip
    first = study.trial(0)
    assert first.status is ft.Status.COMPLETE
    assert len(first.curve) == 4
    nodes = [first.attributes[f"node_{step}"] for step in range(1, 5)]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    assert study.ledger.accounts.get("retrained", {}).get("seconds", 0.0) == 0.0
    assert (tmp_path / "shared" / "s.db.checkpoints").is_dir()


def test_a_paused_learner_keeps_its_actor_until_another_evaluation_wants_it(machines, monkeypatch):
    """Without checkpoints: while an actor is free it is kept, and then it goes on where it was."""
    monkeypatch.setattr(pool, "YOUNG_SECONDS", 4 * LATE)  # actors start late on a busy machine

    def retrained(n: int) -> float:
        study = ft.tune(
            forgetful, LINE, ft.Budget(cost=100), policy=Tour(), seed=0, max_steps=3, workers=machines.workers(n),
            progress=False,
        )  # fmt: skip
        assert [trial.status for trial in study.trials] == [ft.Status.COMPLETE] * 3
        return study.ledger.accounts.get("retrained", {}).get("cost", 0.0)

    assert retrained(4) == 0.0
    assert retrained(1) == 2.0


def test_a_killed_worker_fails_its_trial_and_a_killed_actor_interrupts_it(machines, tmp_path):
    file = tmp_path / "s.db"
    study = run(machines, partial(with_accidents, tmp_path), "1m, 8 evaluations", storage=file)
    require_nothing_lost_or_doubled(study, 8)
    assert study.trial(1).status is ft.Status.FAILED
    assert study.trial(1).error == "the objective died of SIGKILL, perhaps for lack of memory"
    assert study.trial(2).status is ft.Status.COMPLETE
    assert sorted(asked(file)) == sorted([*range(8), 2])
    lost = next(body for body in bodies(file, "told") if body["trial"] == 2)
    assert lost["status"] == "interrupted"
    assert "was lost" in lost["error"]
    assert soon(lambda: not left_by(tmp_path))


def test_the_trials_of_a_node_that_goes_run_again_and_a_node_that_comes_is_used(machines, tmp_path):
    file, new = tmp_path / "s.db", machines.add(2, "spot")

    def callback(study: ft.Study, trial: ft.Trial) -> None:
        if len(study.trials) >= 6 and not gone:
            gone.append(new)
            machines.remove(new)

    gone: list[int] = []
    workers = machines.workers(6)
    study = run(machines, partial(nap, 0.7), "2m, 18 evaluations", workers=workers, storage=file, callbacks=[callback])
    assert gone
    require_nothing_lost_or_doubled(study, 18)
    assert study.count(ft.Status.COMPLETE) == 18
    again = [number for number in range(18) if asked(file).count(number) == 2]
    assert 1 <= len(again) <= 2  # one of the two may just have ended
    assert study.ledger.accounts["interrupted"]["compute_seconds"] > 0.0


def test_a_hanging_trial_is_killed_at_its_limit_with_all_it_started(machines, tmp_path):
    workers = machines.workers(2)
    study = run(machines, partial(hanging, tmp_path), "1m, 4 evaluations", trial_seconds=1.0, workers=workers)
    require_nothing_lost_or_doubled(study, 4)
    assert study.trial(1).status is ft.Status.KILLED
    assert study.trial(1).ended_by is EndedBy.TRIAL_LIMIT
    assert soon(lambda: not left_by(tmp_path))


def test_memory_and_processor_time_are_measured_on_the_nodes(machines):
    study = run(machines, large, "1m, 4 evaluations", trial_memory="300MB", workers=machines.workers(2))
    assert study.trial(1).error == "killed: it held more than 0.3 GB of memory, the limit of a trial"
    assert study.count(ft.Status.COMPLETE) == 3
    study = run(machines, busy, ft.Budget(compute_seconds=60, evaluations=2), meter="cpu", workers=machines.workers(2))
    assert all(0.4 < (trial.cost or 0.0) < 1.5 for trial in study.trials)


def test_the_driver_is_killed_and_the_study_goes_on(machines, tmp_path):
    file = tmp_path / "s.db"
    driver = subprocess.Popen(
        [sys.executable, str(HERE / "driver.py"), machines.address, str(file)], env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with driver:
        assert driver.stdout is not None
        for _ in range(3):
            assert any(line == "ended\n" for line in driver.stdout)  # Ray says more
        time.sleep(0.7)  # others have begun
        driver.kill()
    assert soon(lambda: ray.available_resources().get("CPU", 0.0) == 4.0), "its actors are still there"
    with ft.Study.open(file) as before:
        ended = {trial.number: trial.value for trial in before.trials if trial.status is ft.Status.COMPLETE}
    study = ft.Study.resume(file).run(partial(nap, 0.1), workers=machines.workers(), progress=False)
    require_nothing_lost_or_doubled(study, 12)
    assert study.count(ft.Status.COMPLETE) == 12
    assert {number: study.trial(number).value for number in ended} == ended
    assert 1 <= sum(asked(file).count(number) == 2 for number in range(12)) <= 4


def test_an_actor_that_nobody_asks_ends_itself_and_its_worker(machines, tmp_path):
    """As when a node is cut off from the driver and from the head."""
    pickled = io.BytesIO()
    pickle_objective(partial(hanging, tmp_path), LINE, pickled)
    job = Job(Surroundings.here({}), tuple(import_path()), 1.0)
    actor = ray.remote(Agent).options(num_cpus=1, max_concurrency=2).remote(job, pickled.getvalue(), silence=4.0)
    ray.get(actor.order.remote(0, Start(1, 1, {"x": 0.5}, 0, str(tmp_path), 0.0, 0.0)))
    assert soon(lambda: bool(left_by(tmp_path)))
    assert soon(lambda: not left_by(tmp_path))
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(actor.hear.remote())


def test_an_objective_that_cannot_be_sent_is_refused(machines):
    lock = __import__("threading").Lock()
    with pytest.raises(InvalidArgument, match="cannot run on the cluster: it cannot be pickled"):
        run(machines, lambda config: lock.locked(), "1m, 4 evaluations")


def test_nodes_without_a_rate_are_refused(machines):
    with pytest.raises(InvalidArgument, match=r"got none for node .* which has .*market=.*; the rates are for H100"):
        run(machines, partial(nap, 0.1), "$1", workers=machines.workers(1, usd_per_hour={"H100": 3.0}))


def test_a_program_runs_on_the_cluster_from_the_command_line(machines, tmp_path):
    (tmp_path / "train.sh").write_text("#!/bin/bash\necho $(( ($1 - 70) ** 2 ))\n")
    (tmp_path / "train.sh").chmod(0o755)
    (tmp_path / "space.toml").write_text('x = {type = "integer", low = 0, high = 100}\n')
    command = [
        sys.executable, "-m", "farthing", "run", "--command", "./train.sh {x}", "--space", "space.toml",
        "--budget", "1m, 6 evaluations", "--storage", "c.db", "--json", "--quiet", "--ray", machines.address,
        "--workers", "2",
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=90)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)
    with ft.Study.open(tmp_path / "c.db") as study:
        assert [(trial.config["x"] - 70) ** 2 for trial in study.trials] == [trial.value for trial in study.trials]
        assert len(study.trials) == 6
