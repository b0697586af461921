"""The page of the comparison with the papers' forms, from its data alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from benchmarks.common.documents import listed, machine_text, table
from benchmarks.common.environments import DOCS
from benchmarks.common.statistics import Interval, less
from benchmarks.papers.compared import RESAMPLES, Comparison, comparisons

HALVES = ("choosing", "held out")


@dataclass(frozen=True)
class Words:
    """How a page speaks of a group of problems."""

    title: str
    where: str  # in a sentence
    score: str  # "12 % less ..."
    measures: Mapping[str, str]  # heads of columns
    about: str


WORDS = {
    "tables": Words(
        "Tables of real trainings",
        "tables",
        "regret",
        {"25 %": "at 25 %", "50 %": "at 50 %"},
        "{problems} tables with measured costs, as on the page of [black-box tuning](blackbox.md): the budget is 20 "
        "mean costs, and the score is the mean normalised regret at its end. Half of the tables are those that "
        "defaults are chosen on, the others are held out.",
    ),
    "lcbench": Words(
        "Networks that train epoch by epoch",
        "LCBench",
        "regret",
        {"25 %": "at 25 %", "50 %": "at 50 %"},
        "{problems} tasks of LCBench, as on the page of [iterative learners](bapi-bench.md): the budget is 8 mean "
        "costs of a complete training, and the score is the mean normalised regret at its end. Policies other than "
        "`bapi` and `bopt` train every network completely, so they can pay for about ten. Every second task is "
        "counted as held out. None of these tasks was used to choose a default before this comparison.",
    ),
    "two-level": Words(
        "Functions of two levels",
        "two-level functions",
        "area",
        {"end": "at the end"},
        "{problems} functions with a cheap version, as on the page of [two levels](bopt-synthetic.md). The score is "
        "the area under regret against cost, from the first design to the end of the budget; the regret at the end "
        "is shown too, counted as at least 1e-6. Scales differ, so means are geometric. The levels, the first design "
        "and the number of cheap runs are those of the experiment, for both forms. Defaults of `bopt` were chosen on "
        "three of these functions with other seeds: no half is held out.",
    ),
}
METHOD_PAGES = {
    "methods.md": "suggestions", "cei.md": "`cei`", "carbo.md": "`carbo`", "cost.md": "cost", "bapi.md": "`bapi`",
    "bopt.md": "`bopt`",
}  # fmt: skip
ABSENT = "Not measured: it needs the surrogate of LCBench (`make bench-papers LCBENCH=FOLDER`)."


# -- sentences ---------------------------------------------------------------------------------------------------------


def _numbers(one: Comparison) -> str:
    halves = zip(HALVES, (one.choosing, one.held_out), strict=True)
    split = [f"{half.value:.2f} {title}" for title, half in halves if half is not None]
    return f"ratio {one.main.value:.2f}, {one.main.to('.2f')}" + (f"; {', '.join(split)}" if split else "")


def paper_line(name: str, one: Comparison) -> str:
    """The default of a policy compared with the paper's form."""
    words = WORDS[name]
    how = f"{less(one.main.value)} {words.score} than `{one.form}` ({_numbers(one)})"
    note = {"better": "", "worse": " **The paper's form is better.**", "open": " This may be chance."}[one.verdict]
    return f"- `{one.policy}`, {words.where}: {how}.{note}"


def paper_lines(found: Mapping[str, Sequence[Comparison]]) -> str:
    papers = [(name, one) for name, every in found.items() for one in every if one.kind == "paper"]
    policies = dict.fromkeys(one.policy for _, one in papers)
    return "\n".join(paper_line(name, one) for policy in policies for name, one in papers if one.policy == policy)


def single_lines(found: Mapping[str, Sequence[Comparison]]) -> str:
    """Which single changes are worth something, which are not, and which make it worse."""
    singles = [(name, one) for name, every in found.items() for one in every if one.kind == "single"]
    lines = []
    for verdict, head in (
        ("better", "Our choice is better than the paper's"),
        ("worse", "The paper's choice is better than ours"),
    ):
        of = [(name, one) for name, one in singles if one.verdict == verdict]
        texts = [f"`{one.policy}` with `{one.shown}`, {WORDS[name].where} ({_short(one)})" for name, one in of]
        lines.append(f"- {head}: {'; '.join(texts) or 'none'}.")
    return "\n".join([*lines, f"- The difference may be chance: {_open_text(singles) or 'none'}."])


def _open_text(singles: Sequence[tuple[str, Comparison]]) -> str:
    """The options without a verdict, by group and policy."""
    options: dict[tuple[str, str], list[str]] = {}
    for name, one in singles:
        if one.verdict == "open":
            options.setdefault((name, one.policy), []).append(f"`{one.form.removeprefix(one.policy + '-')}`")
    texts = [f"{listed(of)} of `{policy}`, {WORDS[name].where}" for (name, policy), of in options.items()]
    return "; ".join(texts)


def _short(one: Comparison) -> str:
    return f"{one.main.value:.2f}, {one.main.to('.2f')}"


# -- tables ------------------------------------------------------------------------------------------------------------


def _cell(found: Interval | None) -> str:
    if found is None:
        return ""
    return f"{found:.2f}" if found.value >= 0.1 else f"{found:.1g}"


def group_table(name: str, group: Mapping[str, Any], every: Sequence[Comparison]) -> str:
    """One row per form, the policies one after the other."""
    words = WORDS[name]
    others = [words.measures[measure] for measure in group["measures"][:-1]]
    halves = [title for title in HALVES if any(_half(one, title) is not None for one in every)]
    header = ["default compared with", "together", *halves, *others, "better / worse / same", "means", "own seconds"]
    rows = []
    for one in every:
        cells = [_cell(one.main), *(_cell(_half(one, title)) for title in halves), *map(_cell, one.together[:-1])]
        means, seconds = (f"{mine:.3g}, {other:.3g}" for mine, other in (one.means, one.seconds))
        rows.append([_titled(one), *cells, str(one.count), means, seconds])
    return table(header, rows)


def _half(one: Comparison, title: str) -> Interval | None:
    return one.choosing if title == HALVES[0] else one.held_out


def _titled(one: Comparison) -> str:
    return f"`{one.form}`" if one.kind == "paper" else f"`{one.policy}`, `{one.shown}`"


def forms_table(groups: Mapping[str, Mapping[str, Any]]) -> str:
    """What the paper's form of each policy switches."""
    papers = {
        form["policy"]: form["shown"]
        for group in reversed(list(groups.values()))  # the first group has all options, functions set some themselves
        for form in group["forms"].values()
        if form["kind"] == "paper"
    }
    return table(["policy", "options of the paper's form"], [[f"`{p}`", f"`{shown}`"] for p, shown in papers.items()])


def _singles_on(groups: Mapping[str, Mapping[str, Any]]) -> str:
    """How many of the problems the single options were run on."""
    texts = []
    for name, group in groups.items():
        counts = {len(form["scores"]) for form in group["forms"].values() if form["kind"] == "single"}
        texts += [f"{max(counts)} of {len(group['problems'])} ({WORDS[name].where})"] if counts else []
    return listed(texts) or "none"


# -- the page ----------------------------------------------------------------------------------------------------------


PAGE = """\
# What our changes to the papers' methods are worth

Farthing's policies follow published methods, with changes. By default you get our version; `policy="carbo-paper"`, or
`policies.CArBO.paper()`, is the method as its paper has it. This page runs both on the same problems with the same
{seeds} seeds. Then it takes our version and sets one option after the other as in the paper, to show what each change
is worth.

Numbers are ratios, our default divided by the other form: below 1 our default is better. Behind each is its 95 %
interval. "May be chance" means that the interval includes 1, or that the two halves of the problems disagree. There are
{count} comparisons: about one in twenty intervals leaves out 1 by chance alone. "Choosing" are the problems that
defaults may be chosen on, "held out" the others.

## In short

Our defaults compared with the papers' forms:

{papers}

Our default compared with itself when one option is as in the paper:

{singles}

{sections}

## What the papers' forms switch

{forms}

The pages of the methods say what each option is: {pages}.

## How it was measured

- With the same seed all forms of a policy are given the same start, and differ only in their options.
- Intervals: {resamples} bootstrap samples, the seeds of every problem drawn again, alike for both forms. They say how
  sure the ratio is on these problems, not on others; the halves show how much problems matter.
- "Together" is over all problems of the group. Single options were run on {singles_on}, with half of the seeds; so
  were `eipu`, `ei_cool` and `ei` on tables, and `ei` on the functions. Columns at 25 % and 50 % have the ratios after
  that share of the budget.
- "Better / worse / same" counts pairs of runs with the same problem and seed: how often our default has the lower score
  at the end, the higher, or the same. "Means" and "own seconds" have the default first. Own seconds are those that the
  policy takes in a whole run; they are not charged to the budget, and were measured while all cores were busy.
{machines}

Reproduce with `make bench-papers` (`LCBENCH=FOLDER` for the networks; [extrapolation](extrapolation.md) says what the
folder holds). The scores of all runs are in [data/papers.json](data/papers.json).
"""


def section(name: str, group: Mapping[str, Any] | None, every: Sequence[Comparison]) -> str:
    words = WORDS[name]
    if group is None:
        return f"## {words.title}\n\n{ABSENT}"
    about = words.about.format(problems=len(group["problems"]))
    missing = group["left_out"]
    left_out = f"\n\nLeft out, because not all of their runs are done: {listed(missing)}." if missing else ""
    ordered = [one for _, of in groupby(every, key=lambda one: one.policy) for one in of]
    return f"## {words.title}\n\n{about}{left_out}\n\n{group_table(name, group, ordered)}"


def document(data: Mapping[str, Any]) -> str:
    groups: Mapping[str, Mapping[str, Any]] = data["groups"]
    found = {name: comparisons(groups[name]) for name in WORDS if name in groups}
    return PAGE.format(
        seeds=max(group["seeds"] for group in groups.values()),
        count=sum(map(len, found.values())),
        papers=paper_lines(found) or "- none was measured.",
        singles=single_lines(found),
        sections="\n\n".join(section(name, groups.get(name), found.get(name, ())) for name in WORDS),
        forms=forms_table(groups),
        singles_on=_singles_on(groups),
        pages=listed([f"[{title}]({file})" for file, title in METHOD_PAGES.items() if (DOCS / file).exists()]),
        resamples=f"{RESAMPLES:,}",
        machines="\n".join(
            f"- {WORDS[name].title}: {machine_text(group['machine'], {'farthing': group['versions']})}"
            for name, group in groups.items()
        ),
    )
