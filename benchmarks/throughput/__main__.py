"""Trials per second of long studies that are kept in a file: Farthing compared with Optuna.

    python -m benchmarks.throughput            10,000 trials; writes docs/throughput.md and docs/data/throughput.json
    QUICK=1 python -m benchmarks.throughput    1,000 trials, prints only
    ... --folder DIR                             with the study files there, and not where temporary files go
    python -m benchmarks.throughput --page       the page again, from its data

Optuna waits for the disk about ten times per trial: on a slow or busy one 10,000 trials of it take an hour.

Every system runs a study of all trials but the last tenth, in turns with the others. Then each starts a second study,
and four studies take turns: the last trials of the long ones and the first trials of the new ones, a few each. What
disturbs the machine or its disk disturbs them all, so that a study which gets slower with its length can be told from
a machine that does.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common.children import Child
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import ensure, quick
from benchmarks.common.statistics import percent

NAMES = {"farthing": "Farthing", "optuna": "Optuna"}
ANSWER_SECONDS = 600.0
COMMITS = 200


@dataclass(frozen=True)
class Setting:
    """How many trials, the last of how many are compared with the first, and how many there are to a turn."""

    trials: int
    compared: int
    long_turn: int
    short_turn: int


FULL = Setting(10_000, 1_000, 500, 50)
SHORT = Setting(1_000, 200, 200, 20)


@dataclass
class Spent:
    """Wall and CPU seconds of some trials."""

    trials: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, trials: int, answer: dict[str, float]) -> None:
        self.trials += trials
        self.seconds += answer["seconds"]
        self.cpu_seconds += answer["cpu_seconds"]

    @property
    def per_second(self) -> float:
        return self.trials / self.seconds

    @property
    def milliseconds(self) -> float:
        return 1000.0 * self.seconds / self.trials

    @property
    def cpu_share(self) -> float:
        return self.cpu_seconds / self.seconds

    @property
    def cpu_milliseconds(self) -> float:
        return 1000.0 * self.cpu_seconds / self.trials


@dataclass
class Results:
    """What the first, the last and all trials took, by system; bytes of its file; versions; one commit's seconds."""

    first: dict[str, Spent] = field(default_factory=lambda: {system: Spent() for system in NAMES})
    last: dict[str, Spent] = field(default_factory=lambda: {system: Spent() for system in NAMES})
    total: dict[str, Spent] = field(default_factory=lambda: {system: Spent() for system in NAMES})
    file_bytes: dict[str, int] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    commit_seconds: list[float] = field(default_factory=list)

    def slower(self, system: str) -> float:
        """How many times longer the last trials took than the first."""
        return self.last[system].seconds / self.first[system].seconds

    @property
    def times_optuna(self) -> float:
        return self.total["farthing"].per_second / self.total["optuna"].per_second


def measure(setting: Setting, folder: Path) -> Results:
    """Long studies; then, in turns, the end of the long ones and the start of new ones."""
    results = Results()
    results.commit_seconds += commits(folder / "before.db")
    with ExitStack() as stack:

        def started(system: str, age: str) -> Child:
            arguments = [folder / f"{system}-{age}.db", setting.trials]
            child = Child(system, f"throughput.peers.{system}_peer", arguments, ANSWER_SECONDS)
            results.versions[system] = stack.enter_context(child).answer()["ready"]
            return child

        old = {system: started(system, "old") for system in NAMES}
        for done in range(0, setting.trials - setting.compared, setting.long_turn):
            for system, child in old.items():
                results.total[system].add(setting.long_turn, child.ask(setting.long_turn))
            shown = (f"{NAMES[system]} {results.total[system].milliseconds:.2f} ms per trial" for system in NAMES)
            print(f"{done + setting.long_turn} trials: {'; '.join(shown)}", flush=True)
        new = {system: started(system, "new") for system in NAMES}
        for _ in range(0, setting.compared, setting.short_turn):
            for system in NAMES:
                results.first[system].add(setting.short_turn, new[system].ask(setting.short_turn))
                answer = old[system].ask(setting.short_turn)
                for spent in (results.last[system], results.total[system]):
                    spent.add(setting.short_turn, answer)
    results.file_bytes = {system: (folder / f"{system}-old.db").stat().st_size for system in NAMES}
    results.commit_seconds += commits(folder / "after.db")
    return results


def commits(path: Path) -> list[float]:
    """Seconds of one commit of a kilobyte, many times: what the disk takes whatever is recorded."""
    seconds = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE rows (body TEXT)")
        for _ in range(COMMITS):
            begin = time.perf_counter()
            connection.execute("INSERT INTO rows VALUES (?)", ("x" * 1000,))
            seconds.append(time.perf_counter() - begin)
    return seconds


PAGE = """\
# Trials per second of long studies

How fast does a long study run whose every event is on disk before the next begins, and does it get slower as it grows?
{trials:,} trials of an objective that takes 1 ms, five parameters, drawn at random: Farthing's policy `random` with a
study file, compared with Optuna's `RandomSampler` with `RDBStorage` in an SQLite file, both at their defaults. The
files were on {place}.

- Farthing runs {ratio:.1f} times as many trials per second as Optuna ({ours:.0f}, compared with {theirs:.0f}).
- The last {compared:,} trials take {slower:.2f} times as long as the first {compared:,}; Optuna's take
  {peer_slower:.2f} times as long.

Milliseconds are those of a whole trial, including the 1 ms of the objective:

{table}

The first {compared:,} trials are those of a second study, run in turns with the last {compared:,} of the long one, so
that both meet the same machine. CPU is the process's own time, without waiting for the disk or for a core: it was
{cpu_share} of wall time for Farthing and {peer_share} for Optuna.

Farthing commits twice per trial: when it is asked for and when it is told. A commit of a kilobyte by SQLite alone took
{commit:.2f} ms there in the median ({high:.2f} ms in the 95th percentile). To commit once, the outcome of an evaluation
would have to wait in memory until the next one is proposed. It would be lost if the process died, and it is the most
expensive thing to get again.

{machine}

Reproduce with `make bench-throughput` (`FOLDER=DIR` puts the files there). The numbers are in
[data/throughput.json](data/throughput.json).
"""


def rows(results: Results) -> list[list[str]]:
    return [
        [
            NAMES[system],
            f"{results.total[system].per_second:.0f}",
            f"{results.first[system].milliseconds:.2f} ms",
            f"{results.last[system].milliseconds:.2f} ms",
            f"{results.slower(system):.2f}",
            f"{results.first[system].cpu_milliseconds:.2f} / {results.last[system].cpu_milliseconds:.2f} ms",
            f"{results.file_bytes[system] / 1e6:.1f} MB",
        ]
        for system in NAMES
    ]


def file_system(folder: Path) -> str:
    """What kind of file system a folder is on, in words."""
    mounts, kind = Path("/proc/mounts"), "an unknown kind"
    if mounts.exists():
        found = (line.split()[1:3] for line in mounts.read_text().splitlines())
        holding = [(len(point), kind) for point, kind in found if folder.resolve().is_relative_to(point)]
        kind = max(holding, default=(0, kind))[1]
    return "a file system in memory, so nothing waited for a disk" if kind == "tmpfs" else f"a disk ({kind})"


def document(results: Results, facts: dict[str, Any], place: str) -> str:
    """The page: the table, and what the disk takes."""
    header = ["", "trials / s", "first", "last", "last / first", "CPU, first / last", "file"]
    seconds, total = sorted(results.commit_seconds), results.total
    return PAGE.format(
        place=place,
        trials=total["farthing"].trials,
        compared=results.last["farthing"].trials,
        table=table(header, rows(results)),
        slower=results.slower("farthing"),
        peer_slower=results.slower("optuna"),
        ratio=results.times_optuna,
        ours=total["farthing"].per_second,
        theirs=total["optuna"].per_second,
        cpu_share=percent(total["farthing"].cpu_share),
        peer_share=percent(total["optuna"].cpu_share),
        commit=1000 * median(seconds),
        high=1000 * seconds[int(0.95 * len(seconds))],
        machine=machine_text(facts, results.versions),
    )


def data_of(results: Results, facts: dict[str, Any], place: str) -> dict[str, Any]:
    spent = {"first": results.first, "last": results.last, "total": results.total}
    return {
        "machine": facts,
        "place": place,
        "versions": results.versions,
        **{name: {system: vars(found) for system, found in by.items()} for name, by in spent.items()},
        "file_bytes": results.file_bytes,
        "commit_seconds": results.commit_seconds,
    }


def results_of(data: dict[str, Any]) -> Results:
    """Back from the data of the page."""
    parts = [{system: Spent(**one) for system, one in data[name].items()} for name in ("first", "last", "total")]
    return Results(*parts, data["file_bytes"], data["versions"], data["commit_seconds"])


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--folder", type=Path, help="where the study files go; temporary files' place if not given")
    asked = options.parse_args()
    if asked.page:
        data = kept_data("throughput")
        write_page("throughput", document(results_of(data), data["machine"], data["place"]), data)
        return
    for system in NAMES:
        ensure(system)
    with tempfile.TemporaryDirectory(prefix="farthing-throughput-", dir=asked.folder) as folder:
        results, place = measure(SHORT if quick() else FULL, Path(folder)), file_system(Path(folder))
    data = data_of(results, machine(), place)
    text = document(results, data["machine"], place)
    publish("throughput", text, data, is_whole=not quick())


if __name__ == "__main__":
    main()
