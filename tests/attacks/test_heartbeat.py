"""What a killed process has spent is charged when its study is opened again, but for about a second."""

from __future__ import annotations

import os
import select
import signal
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import farthing as ft
from warm_python import WarmPython

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")

PYTHON = WarmPython()
LIFE = 1.6  # seconds from the beginning of a run to its kill
LOST = 1.0  # seconds that a kill may lose: half of one between two beats, and as much for a busy machine
HANGS = 30.0  # seconds

SCRIPT = """
    import os, sys, time
    import farthing as ft

    class Slow:
        name = "slow"

        def propose(self, space, history, ledger, n, rng):
            if KIND == "thinks":
                time.sleep(60)
            return [ft.Proposal(len(history.trials), {"x": 0.5})]

    def objective(config):
        time.sleep(60)
        return config["x"]

    KIND, PATH, BUDGET = sys.argv[1:]
    os.write(1, b"begins")
    study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(seconds=float(BUDGET), usd=900, usd_per_hour=3600),
                     policy=Slow(), seed=0, storage=PATH)
    study.run(objective, workers=2 if KIND == "workers" else 1, isolate=KIND == "workers", progress=False)
    """


@pytest.fixture(scope="module", autouse=True)
def _close() -> Iterator[None]:
    yield
    PYTHON.close()


def live(path: Path, kind: str, budget: float, life: float) -> tuple[float, int]:
    """The seconds of a run that is killed after `life`, if it has not ended by then; and its status."""
    output, stdout = os.pipe()
    with open(os.devnull, "r+") as nothing:
        running = PYTHON.start(
            textwrap.dedent(SCRIPT), kind, str(path), str(budget), stdin=nothing.fileno(), stdout=stdout,
            stderr=nothing.fileno(), environment=dict(os.environ),
        )  # fmt: skip
    os.close(stdout)
    assert os.read(output, 6) == b"begins"
    began = time.perf_counter()
    ended, _, _ = select.select([running.connection], [], [], life)
    if not ended:
        os.kill(running.pid, signal.SIGKILL)
    seconds, status = time.perf_counter() - began, running.wait()
    os.close(output)
    return seconds, status


def charged(path: Path) -> ft.Ledger:
    with ft.Study.resume(path, policy=Slow()) as study:
        return study.ledger


class Slow:
    """As in the script; it is not asked here."""

    name = "slow"

    def propose(self, *_):
        raise NotImplementedError


@pytest.mark.parametrize(("kind", "kills"), [("workers", 4), ("here", 2), ("thinks", 2)])
def test_the_ledger_holds_what_killed_runs_have_spent(tmp_path, kind, kills):
    path = tmp_path / "study.db"
    spent = sum(live(path, kind, 300.0, LIFE)[0] for _ in range(kills))
    ledger = charged(path)
    assert spent - kills * LOST < ledger.total("seconds") < spent + 0.1
    assert charged(path) == ledger, "opening it once more changes nothing"
    account = "optimiser" if kind == "thinks" else "interrupted"
    assert ledger.account(account, "seconds") > 0.3 * spent
    evaluations = {"workers": 2, "here": 1, "thinks": 0}[kind]  # at a time; a dollar is a second of one of them
    assert ledger.account("interrupted", "usd") <= evaluations * spent
    assert ledger.account("interrupted", "usd") >= evaluations * (0.6 * ledger.account("interrupted", "seconds"))


def test_a_study_that_is_killed_again_and_again_comes_to_its_end(tmp_path):
    path, budget, spent = tmp_path / "study.db", 4.0, []
    for _ in range(5):
        seconds, status = live(path, "workers", budget, 2 * LIFE)
        spent.append(seconds)
        if status == 0:
            break
    assert status == 0, f"after {sum(spent):.1f} s of a budget of {budget} s it was still running"
    assert sum(spent) < budget + LOST * len(spent), "each kill lost less than a second"
    assert charged(path).reached == "seconds"
