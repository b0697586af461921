"""Everything that is needed to run a study again: versions, seed, space, policy, budget, and what was run."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from farthing.budget import worth_text
from farthing.errors import FarthingError
from farthing.report.copies import as_json, literal
from farthing.session import Session
from farthing.space import Space
from farthing.text.escaping import on_one_line

PACKAGES = {"farthing": "Farthing", "numpy": "NumPy", "scipy": "SciPy"}
RUN_NOTE = "cli"  # the note that `farthing run` leaves of what it runs: cli/run_note.py
LONGEST_FACT = 2_000

Copies = list[dict[str, str]]  # each with a title and a text


def facts(session: Session, left_out: Sequence[str]) -> list[tuple[str, str]]:
    """Names and texts. A file does not say by which versions it was written: these are the ones that read it."""
    settings, history = session.record.settings, session.history
    run = run_note(session)
    found: list[tuple[str, Any]] = [
        ("Versions", versions()),
        ("Python of the objective", _python_of_objective(session)),
        ("What was run", run.get("command") or run.get("objective")),
        ("Search", f"{'maximise' if settings.maximize else 'minimise'}, seed {session.seed}"),
        ("Policy", policy_text(session).strip("'\"")),
        ("Budget", session.ledger.budget),
        ("Stop at", settings.stop_at),
        ("Steps of a complete training", history.max_steps),
        ("An improvement by 1 is worth", history.worth and worth_text(session.ledger.budget, history.worth)),
        ("Configurations to begin with", len(settings.start) or None),
        ("Earlier studies taken over", _earlier(settings.warm_start)),
        ("Task", as_json(task) if (task := settings.cost.get("task")) else None),
        ("Not in the file", ", ".join(left_out) or None),
    ]
    return [(name, on_one_line(str(value)[:LONGEST_FACT])) for name, value in found if value is not None]


def versions() -> str:
    """Of Farthing and what it computes with, here and now."""
    named = [f"{title} {_version(package)}" for package, title in PACKAGES.items()]
    return ", ".join([*named, f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it runs from a folder that nobody has installed
        return "(version unknown)"


def _python_of_objective(session: Session) -> str | None:
    ran = session.record.state.objective
    return None if ran is None else ran.code.partition(":")[0]


def _earlier(warm_start: Mapping[str, Any] | None) -> str | None:
    return None if warm_start is None else ", ".join(str(study["study"]) for study in warm_start["studies"])


def run_note(session: Session) -> Mapping[str, Any]:
    """What `farthing run` has noted, as far as it can be that; notes are anybody's."""
    note = session.record.notes.get(RUN_NOTE)
    noted = note if isinstance(note, Mapping) else {}
    return {name: said for name, said in noted.items() if isinstance(said, str | int)}


def policy_text(session: Session) -> str:
    """The policy with the options that are not its defaults, as Python would make it.

    >>> import farthing as ft
    >>> policy_text(ft.Study({"x": (0.0, 1.0)}, "1m", policy=ft.policies.CEI(tradeoff=0.5), seed=0)._session)
    'policies.CEI(tradeoff=0.5)'
    """
    policy = session.policy
    if not type(policy).__module__.startswith("farthing.policies."):
        return literal(str(policy.name))
    text = repr(policy)
    return literal(policy.name) if text.endswith("()") else f"policies.{text}"


def copies(session: Session) -> Copies:
    """The search as Python, and its space and policy as the file holds them."""
    settings = session.record.settings
    stored = {"space": settings.space, "policy": settings.policy, "seed": session.seed, "maximize": settings.maximize}
    return [
        {"title": "Python", "text": _python(session)},
        {"title": "JSON", "text": as_json({**stored, "budget": session.ledger.budget.as_json()})},
    ]


def _python(session: Session) -> str:
    """The same search from its beginning. Options that are objects are the text that describes them: code of a
    stranger's must not come into what somebody runs."""
    settings, history = session.record.settings, session.history
    arguments = {
        "budget": repr(session.ledger.budget), "policy": policy_text(session), "seed": str(session.seed),
        "maximize": "True" if settings.maximize else "", "stop_at": _given(settings.stop_at),
        "max_steps": _given(history.max_steps),
    }  # fmt: skip
    given = "".join(f"    {name}={text},\n" for name, text in arguments.items() if text)
    return (
        "from farthing import Budget, policies, tune\nfrom farthing import Choice, Integer, Ordered, Real, Space\n\n"
        f"{space_text(settings.space)}\n\nstudy = tune(\n    objective,\n    space,\n{given})\n"
    )


def _given(value: float | None) -> str:
    return "" if value is None else literal(value)


def space_text(stored: Mapping[str, Any]) -> str:
    """A space as Python, from what a file holds.

    >>> print(space_text(Space.of({"lr": (0.0, 1.0), "n": ["a", "b"]}).as_json()))
    space = Space({
        'lr': Real(0.0, 1.0),
        'n': Choice(['a', 'b']),
    })
    """
    parameters = [{**entry, **_described(entry)} for entry in stored["parameters"]]
    function = isinstance(stored.get("forbid"), Mapping)
    try:
        space = Space.from_json({"parameters": parameters, "forbid": None if function else stored.get("forbid")})
    except FarthingError:  # two objects that are described alike
        return "# The options of the space are objects that text cannot stand for: see the JSON."
    lines = "".join(f"    {name!r}: {param!r},\n" for name, param in space.params.items())
    forbid = repr(space).removeprefix(repr(Space(space.params)).removesuffix(")"))  # ")" or ", forbid=[...])"
    remark = f"\n# forbidden by a function: {on_one_line(str(stored['forbid'].get('function')))}" if function else ""
    return f"space = Space({{\n{lines}}}{forbid}{remark}"


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {field: _without_objects(entry[field]) for field in ("options", "values") if field in entry}


def _without_objects(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_without_objects(item) for item in stored]
    if not isinstance(stored, Mapping):
        return stored
    return str(stored["repr"]) if "repr" in stored else {kind: _without_objects(item) for kind, item in stored.items()}
