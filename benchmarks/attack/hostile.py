"""Hostile objectives under a budget of five seconds, one after the other; and under Optuna's timeout where that makes
sense.

The overrun is the wall-clock time of the call minus the budget. A call that has not ended twenty seconds after it
began, counted from outside with the start of Python, is killed.

held            the call ended by itself, the study can be continued, and no process was left behind
late            it ended by itself, but more than a second after its budget
not ended       it had to be killed
died            its process died
aborted         it raised an error
left processes  processes of it were alive two seconds later
unusable        the study could not be read, or not be continued
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import farthing as ft
from benchmarks.attack.objectives import ALL, Hostile
from benchmarks.attack.processes import end_marked, environment, left_after, new_mark
from benchmarks.attack.results import Result
from benchmarks.common.environments import ROOT, ensure
from farthing.errors import FarthingError

CAP_SECONDS = 15.0  # after the budget
GRACE_SECONDS = 2.0
LATE_SECONDS = 1.0
HELD, LATE, NOT_ENDED, DIED, ABORTED, LEFT, UNUSABLE = (
    "held", "late", "not ended", "died", "aborted", "left processes", "unusable",
)  # fmt: skip
OUTCOMES = (HELD, LATE, NOT_ENDED, DIED, ABORTED, LEFT, UNUSABLE)
OPTUNA_ENVIRONMENT = "runner_budgets"


@dataclass(frozen=True)
class Ran:
    """One call: None as seconds if it gave no answer."""

    name: str
    seconds: float | None
    ended: bool
    error: str
    left: int
    usable: bool

    def outcome(self, budget: float) -> str:
        if not self.ended:
            return NOT_ENDED
        if self.seconds is None:
            return DIED
        if self.error:
            return ABORTED
        if self.left:
            return LEFT
        if not self.usable:
            return UNUSABLE
        return LATE if self.seconds > budget + LATE_SECONDS else HELD


def ran(command: Sequence[str], attack: Hostile, budget: float, place: Path) -> Ran:
    """A peer runs the objective in a process, and session, of its own; what it writes is read and forgotten."""
    mark, folder = new_mark(), Path(tempfile.mkdtemp(dir=place))
    path, result = folder / "study.db", folder / "result.json"
    process = subprocess.Popen(
        [*command, attack.name, f"{budget:g}", str(path), str(result)], cwd=ROOT, env=environment(mark),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    for stream in (process.stdout, process.stderr):
        threading.Thread(target=_drain, args=(stream,), daemon=True).start()
    try:
        process.wait(budget + CAP_SECONDS)
        ended = True
    except subprocess.TimeoutExpired:
        ended = False
    answer: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {}
    left = len(left_after(mark, GRACE_SECONDS)) if ended else 0
    process.kill()
    end_marked(mark)
    process.wait()
    with suppress(FileNotFoundError):
        os.unlink(f"/dev/shm/attack-{mark}")
    usable = _is_usable(path) if command[-1].endswith("farthing_peer") else True
    return Ran(attack.name, answer.get("seconds"), ended, answer.get("error", ""), left, usable)


def _drain(stream: IO[bytes]) -> None:
    while stream.read(1 << 20):
        pass


def _is_usable(path: Path) -> bool:
    """Whether the study can be continued with a larger budget."""
    try:
        with ft.Study.resume(path, budget="1000s, 100000 evaluations") as study:
            study.tell(study.ask(), value=1.0, cost=0.1)
    except FarthingError as error:
        print(f"hostile: unusable: {error}", flush=True)
        return False
    return True


def chosen(quick: bool) -> list[Hostile]:
    return [attack for number, attack in enumerate(ALL.values()) if not quick or number % 8 == 0]


def summary(name: str, runs: Iterable[Ran], budget: float) -> Result:
    """Outcomes, and how far those calls went over the budget that ended by themselves."""
    found = list(runs)
    counts = {outcome: sum(one.outcome(budget) == outcome for one in found) for outcome in OUTCOMES}
    overruns = sorted(one.seconds - budget for one in found if one.seconds is not None and not one.error)
    numbers = {
        "budget": budget,
        "median overrun": statistics.median(overruns),
        "95th percentile": overruns[min(int(0.95 * len(overruns)), len(overruns) - 1)],
        "worst overrun": overruns[-1],
        "processes left": sum(one.left for one in found),
    }
    return Result(name, len(found), counts, numbers)


def one_by_one(attacks: Sequence[Hostile], budget: float, place: Path) -> list[Ran]:
    found = []
    for attack in attacks:
        one = ran([sys.executable, "-m", "benchmarks.attack.peers.farthing_peer"], attack, budget, place)
        found.append(one)
        _say("Farthing", one, budget)
    return found


def by_optuna(attacks: Sequence[Hostile], budget: float, place: Path) -> list[Ran]:
    """Two at a time: most of them wait."""
    python = str(ensure(OPTUNA_ENVIRONMENT))

    def tried(attack: Hostile) -> Ran:
        one = ran([python, "-m", "benchmarks.attack.peers.optuna_peer"], attack, budget, place)
        _say("Optuna", one, budget)
        return one

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(tried, attacks))


def optuna_version() -> str:
    asked = [str(ensure(OPTUNA_ENVIRONMENT)), "-c", "import optuna; print(optuna.__version__)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def _say(system: str, one: Ran, budget: float) -> None:
    over = "no answer" if one.seconds is None else f"{one.seconds - budget:+.2f} s"
    print(f"hostile, {system}, {one.name}: {one.outcome(budget)}, {over} {one.error} left {one.left}", flush=True)


def attack(quick: bool, budget: float = 5.0) -> list[Result]:
    budget, attacks = (2.0 if quick else budget), chosen(quick)
    with tempfile.TemporaryDirectory(prefix="attack-hostile-") as folder:
        began = time.monotonic()
        ours = one_by_one(attacks, budget, Path(folder))
        print(f"hostile: {len(ours)} objectives in {time.monotonic() - began:.0f} s", flush=True)
    results = [summary("Farthing", ours, budget)]
    results += [
        Result(one.name, 1, {one.outcome(budget): 1}, {"overrun": (one.seconds or budget) - budget, "left": one.left})
        for one in ours
    ]
    print(results[0], flush=True)
    return results


def attack_optuna(quick: bool, budget: float = 5.0) -> list[Result]:
    budget, attacks = (2.0 if quick else budget), [one for one in chosen(quick) if one.for_peers]
    with tempfile.TemporaryDirectory(prefix="attack-hostile-") as folder:
        found = by_optuna(attacks, budget, Path(folder))
    result = replace(summary("Optuna", found, budget), note=optuna_version())
    print(result, flush=True)
    return [result, *(Result(one.name, 1, {one.outcome(budget): 1}) for one in found)]
