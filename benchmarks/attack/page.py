"""The page of the attacks, made from what they found now and before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.attack import damage, hostile, kills, mutations
from benchmarks.attack.results import YES, Result, total
from benchmarks.common.documents import machine_text, table

BAR_OVERRUN = 0.3  # seconds, at the 95th percentile

PAGE = """\
# Attacks

What happens to a study when its process is killed, its file is damaged, its objective is hostile, or its file comes
from a stranger? These are the attacks as programs, each with a count. They use the public API and the real command
line, with real processes. "Before" is the commit before the defences were built; "now" is the measured version.
Nothing is left out: where Farthing does not hold, the tables say so.

{summary}

## Kills

{kills_count} times a study was killed with SIGKILL at a random moment, in six modes, and then continued. The objective
writes every evaluation to a side log, synced to the disk, before it returns it. At the end the file is compared with
what was known to be recorded before each kill, with the side log, and with a study that nobody killed.

{kills_table}

- **Lost**: an answer that was on disk before a kill is missing or different afterwards. **Doubled**: a trial has two
  final results. **Invented**: a result that no evaluation noted.
- **Wrong ledgers**: the number of evaluations is not that of the trials; or more seconds were charged than passed.
  **Undercharged**: studies that lost more than a second and a half per kill of what they really spent. What they spent
  includes the start of Python, and most of these lives are shorter than that: the section on preempted jobs below has
  longer ones.
- **Other proposals**: configurations that differ from those of the study that nobody killed.
- **False alarms**: warnings of damage where there was none but the kill.
- **Left behind**: processes that lived on for more than {grace:g} seconds after their run was killed.
- **Done again**: evaluations that had ended, but were not recorded when the kill came. They are lost work, not lost
  records: at most one per worker and kill, or one step of a training.

## Damaged files

{damage_count} damaged study files: of studies that were closed, and of studies whose process was killed, so that most
of the file is still in its write-ahead log. Each is opened by a reader and by `Study.resume`; the worse outcome
counts.

{damage_table}

- **Same**: the content is the same as before the damage. **Said**: an error or a warning says that something was lost,
  and what was read is right. **Not said**: events are missing, and nothing was said. **Wrong**: a trial, a value or a
  ledger that never was. **Internal**: an exception that is not one of Farthing's own, or more than ten seconds.
- **Changed**: a reader, which should only look, changed the file or its log.
- `farthing status` on a sample of {status_count} of them: {status}.

## Hostile objectives

{hostile_count} hostile objectives under a budget of {budget:g} seconds, one after the other. They sleep, ignore
signals, catch everything, hold the interpreter's lock, fork, become daemons, stop themselves, fill memory and pipes,
close their files, break their interpreter, and answer with what is not a number. The overrun is the wall-clock time
of the call minus the budget.

{hostile_table}

{hostile_exceptions}

Optuna ran {optuna_count} of these attacks with `study.optimize(objective, timeout={budget:g}, catch=(Exception,))`
and an SQLite file, where the same attack makes sense: it runs the objective in its own process, by design, and looks
at the clock between trials. A call that had not ended {cap:g} seconds after its budget was killed.

{optuna_table}

## Altered events

{mutations_count} study files whose events were altered as a stranger could, with correct checksums. Each is read,
shown, resumed and asked for one proposal. A lie that could be true is accepted. What cannot be true should be
refused, with the number of the event.

{mutations_table}

## Every other way in

{questions_table}

## How this was measured

{machine} {load}

Reproduce with `make bench-attack`; it takes about half an hour on an idle machine, and `python -m benchmarks.attack
--part damage` runs one part. The numbers are in [data/attacks.json](data/attacks.json), those of the commit before in
[data/attacks-before.json](data/attacks-before.json).
"""


@dataclass(frozen=True)
class Found:
    """The results of one version, by part."""

    parts: dict[str, list[Result]]

    @classmethod
    def of(cls, data: dict[str, Any]) -> Found:
        return cls({part: [Result(**one) for one in found["results"]] for part, found in data["parts"].items()})

    def __getitem__(self, part: str) -> list[Result]:
        return self.parts[part]

    @property
    def damaged(self) -> list[Result]:
        return self["damage"][:-1]

    def named(self, part: str) -> dict[str, Result]:
        return {result.name: result for result in self[part]}


def tries(results: Sequence[Result]) -> int:
    return sum(result.tries for result in results)


def document(data: dict[str, Any], data_before: dict[str, Any]) -> str:
    now, before = Found.of(data), Found.of(data_before)
    status = now["damage"][-1]
    return PAGE.format(
        summary=summary_table(now, before),
        kills_count=tries(now["kills"]),
        kills_table=kills_table(now, before),
        grace=3,
        damage_count=f"{tries(now.damaged):,}",
        damage_table=damage_table(now, before),
        status_count=status.tries,
        status=", ".join(f"{outcome} {count}" for outcome, count in status.outcomes.items()),
        hostile_count=now["hostile"][0].tries,
        budget=now["hostile"][0].numbers["budget"],
        hostile_table=hostile_table(now, before),
        hostile_exceptions=hostile_exceptions(now, before),
        optuna_count=now["optuna"][0].tries,
        optuna_table=optuna_table(now),
        cap=hostile.CAP_SECONDS,
        mutations_count=tries(now["mutations"]),
        mutations_table=mutations_table(now, before),
        questions_table=questions_table(now, before),
        machine=machine_text(data["machine"], {"optuna": {"optuna": now["optuna"][0].note}}),
        load=load_text(data, data_before),
    )


# -- tables ------------------------------------------------------------------------------------------------------------


def summary_table(now: Found, before: Found) -> str:
    """The bars, and where both versions are."""
    rows = [
        [f"kills: {outcome}", "0", *(str(total(one["kills"], outcome)) for one in (before, now))]
        for outcome in ("lost", "doubled", "wrong ledgers")
    ]
    rows += [
        [f"damage: {outcome}", "0", *(str(total(one.damaged, outcome)) for one in (before, now))]
        for outcome in (damage.WRONG, damage.UNSAID, damage.TRACEBACK, damage.CHANGED)
    ]
    rows.append(
        ["hostile objectives: overrun, 95th percentile", f"{BAR_OVERRUN:g} s"]
        + [f"{one['hostile'][0].numbers['95th percentile']:.2f} s" for one in (before, now)]
    )
    rows.append(
        ["hostile objectives: processes left behind", "0"]
        + [f"{one['hostile'][0].numbers['processes left']:.0f}" for one in (before, now)]
    )
    rows += [
        [f"altered events: {outcome}", "0", *(str(total(one["mutations"], outcome)) for one in (before, now))]
        for outcome in (mutations.ABSURD, mutations.TRACEBACK)
    ]
    count = len(now["questions"])
    rows.append(
        ["other questions: answered with yes", str(count)]
        + [f"{total(one['questions'], YES)} of {len(one['questions'])}" for one in (before, now)]
    )
    return table(["", "bar", "before", "now"], rows)


def kills_table(now: Found, before: Found) -> str:
    header = ["mode", "kills", *kills.OUTCOMES, "done again", "evaluations", "charged / lived"]
    rows = [_kills_row(result.name, result) for result in now["kills"]]
    rows += [_kills_row("all, now", _sum(now["kills"])), _kills_row("all, before", _sum(before["kills"]))]
    return table(header, rows)


def _kills_row(name: str, result: Result) -> list[str]:
    numbers = result.numbers
    return [
        name,
        str(result.tries),
        *(str(result[outcome]) for outcome in kills.OUTCOMES),
        f"{numbers['done again']:.0f}",
        f"{numbers['evaluations']:.0f}",
        f"{numbers['seconds charged']:.0f} / {numbers['seconds lived']:.0f} s",
    ]


def _sum(results: Sequence[Result]) -> Result:
    outcomes = {outcome: total(results, outcome) for result in results for outcome in result.outcomes}
    numbers = {name: sum(result.numbers[name] for result in results) for name in results[0].numbers}
    return Result("all", tries(results), outcomes, numbers)


def damage_table(now: Found, before: Found) -> str:
    header = ["damage", "files", "same", "said", "not said", "wrong", "internal", "changed"]
    rows = [_damage_row(result.name, result) for result in now.damaged]
    rows += [_damage_row("**all, now**", _sum_of(now.damaged)), _damage_row("**all, before**", _sum_of(before.damaged))]
    return table(header, rows)


def _sum_of(results: Sequence[Result]) -> Result:
    outcomes = {outcome: total(results, outcome) for result in results for outcome in result.outcomes}
    return Result("all", tries(results), outcomes)


def _damage_row(name: str, result: Result) -> list[str]:
    internal = result[damage.TRACEBACK] + result[damage.LATE]
    shown = [result[outcome] for outcome in (damage.SAME, damage.SAID, damage.UNSAID, damage.WRONG)]
    return [name, str(result.tries), *map(str, shown), str(internal), str(result[damage.CHANGED])]


def hostile_table(now: Found, before: Found) -> str:
    header = ["", "objectives", "budget", "median overrun", "95th percentile", "worst", *hostile.OUTCOMES]
    shown = {"Farthing, before": before["hostile"], "Farthing, now": now["hostile"], "Optuna": now["optuna"]}
    return table(header, [_hostile_row(name, results[0]) for name, results in shown.items()])


def _hostile_row(name: str, result: Result) -> list[str]:
    numbers = result.numbers
    overruns = [f"{numbers[key]:.2f} s" for key in ("median overrun", "95th percentile", "worst overrun")]
    outcomes = [str(result[outcome]) for outcome in hostile.OUTCOMES]
    return [name, str(result.tries), f"{numbers['budget']:g} s", *overruns, *outcomes]


def hostile_exceptions(now: Found, before: Found) -> str:
    """Which objectives did not hold."""
    lines = []
    for name, found in (("Now", now), ("Before", before)):
        bad = [f"{one.name} ({next(iter(one.outcomes))})" for one in found["hostile"][1:] if not one[hostile.HELD]]
        lines.append(f"- {name}, not held: {'; '.join(bad) or 'none'}.")
    return "\n".join(lines)


def optuna_table(now: Found) -> str:
    ours = now.named("hostile")
    rows = [
        [one.name, next(iter(one.outcomes)), next(iter(ours[one.name].outcomes))]
        for one in now["optuna"][1:]
        if one.name in ours
    ]
    return table(["attack", "Optuna", "Farthing"], rows)


def mutations_table(now: Found, before: Found) -> str:
    rows = [_mutations_row(result.name, result) for result in now["mutations"]]
    rows.append(_mutations_row("**all, now**", _sum_of(now["mutations"])))
    rows.append(_mutations_row("**all, before**", _sum_of(before["mutations"])))
    return table(["change", "files", *mutations.OUTCOMES], rows)


def _mutations_row(name: str, result: Result) -> list[str]:
    return [name, str(result.tries), *(str(result[outcome]) for outcome in mutations.OUTCOMES)]


def questions_table(now: Found, before: Found) -> str:
    earlier = before.named("questions")
    rows = [[one.name.replace("|", "\\|"), _answer(earlier.get(one.name)), _answer(one)] for one in now["questions"]]
    return table(["what should hold", "before", "now"], rows)


def _answer(result: Result | None) -> str:
    if result is None:
        return "not asked"
    numbers = ", ".join(f"{name} {number:.3g}" for name, number in result.numbers.items())
    return ("yes" if result[YES] else "**no**") + (f" ({numbers})" if numbers else "")


def load_text(data: dict[str, Any], before: dict[str, Any]) -> str:
    seconds = sum(found["seconds"] for found in data["parts"].values())
    load, earlier = (one["parts"]["hostile"]["load"] for one in (data, before))
    return (
        f"All parts together took {seconds / 60:.0f} minutes. When the hostile objectives began, the load average was "
        f"{load:.1f} now and {earlier:.1f} before; a busy machine makes overruns longer."
    )
