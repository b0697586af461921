"""What a policy is: a pure function from what is known to what to evaluate next.

A policy learns nothing that cannot be rebuilt from the history: the same history, ledger and generator give the same
proposals. Hyperparameters it fitted travel in `Proposal.fits` and come back through `History.fits`. Policies are frozen
dataclasses whose fields are their options, so that a study file can hold them.

To add a policy, write a class with this protocol (`sampling.Random` is the shortest; `ei.EI` is the shortest with a
model), check its options by `settle_option`, and add the class to `BY_NAME` in `named.py`. To add an option
to a policy, say in `earlier.py` which value studies ran with before it existed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from farthing.budget import Ledger
from farthing.checks import optional, settle, whole_number
from farthing.errors import InvalidArgument
from farthing.history import History, TrackedTrial
from farthing.space import Space
from farthing.trial import ContinueTo, Decision, Proposal


class Policy(Protocol):
    """Decides what to evaluate next."""

    name: ClassVar[str]

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        """At most n proposals: new trials, numbered from len(history.trials), or paused ones under their own number.
        There are fewer only when the space runs out.

        A policy for iterative learners also has decide(space, history, ledger, trial, rng), called after every step of
        a trial; see the function `decide`. It refuses plain functions, unless it sets `needs_steps = False`. One that
        has no `decide` and still needs steps sets `needs_steps = True`.

        A policy that pauses runs may set `finishes_best = True`: then the best run is completed before the budget ends
        (`finishing.py`). `bapi` and `bopt` do not: their papers have no such rule.

        A policy that can think in several ways (`history.ways`) reads `history.way`, and has rows(history), the number
        of observations its largest model is fitted to: from it follows how long an ask takes. Any other policy may
        take as long as it likes.

        A policy whose asks can be prepared while evaluations run is one that `Prepares` too. A history whose `prepared`
        is set asks for both in one (`propose_prepared`).
        """
        ...


@runtime_checkable
class Prepares(Protocol):
    """A policy whose asks can be prepared while evaluations run: see `prepared.py`. What `prepare` returns has
    surprised(history), whether it is better to think again; it is None if there is nothing to prepare."""

    def prepare(self, space: Space, history: History, ledger: Ledger, rng: np.random.Generator) -> Any: ...
    def finish(
        self, prepared: Any, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
    ) -> Proposal | None: ...


class Published:
    """A method that was published: `PAPER` holds the options of its paper where our defaults differ from them.

    >>> from farthing.policies import EI
    >>> EI.paper(initial=8)
    EI(values='plain', end='ignored', target='least', initial=8)
    """

    name: ClassVar[str]
    PAPER: ClassVar[Mapping[str, Any]]

    @classmethod
    def paper(cls, **options: Any) -> Self:
        """The method as its paper has it, but for the options that are given. By name: `policy="cei-paper"`."""
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]  # every policy is a dataclass
        if unknown := sorted(options.keys() - known):
            accepted = ", ".join(sorted(known))
            raise InvalidArgument(f"{cls.name}: paper: expected options of {accepted}, got {unknown[0]!r}")
        return cls(**{**cls.PAPER, **options})

    def __repr__(self) -> str:
        """The options that are not the defaults: most policies have many."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def rows_of(policy: Policy, history: History) -> int | None:
    """The number of observations its largest model is fitted to, None for a policy that knows one way of thinking."""
    method = getattr(policy, "rows", None)
    return None if method is None else int(method(history))


def generator_of(history: History, *, preparing: bool = False) -> np.random.Generator:
    """The generator of the next ask, or of preparing it."""
    return np.random.default_rng([history.seed, history.asks, *([1] if preparing else [])])


def propose_prepared(
    policy: Prepares, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
) -> list[Proposal]:
    """An ask that was prepared from an earlier state, from its beginning."""
    seen = history.prepared
    assert seen is not None
    prepared = policy.prepare(space, seen.history, seen.ledger, generator_of(seen.history, preparing=True))
    found = None if prepared is None else policy.finish(prepared, space, history, ledger, rng)
    return [] if found is None else [found]


def decide(
    policy: Policy, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
) -> Decision | ContinueTo:
    """What happens to a trial after one of its steps. A policy without a method `decide` always continues.

    At the trial's `until_step` it is paused, unless the policy moves that step by `ContinueTo`; it may do so earlier.
    """
    method = getattr(policy, "decide", None)
    found = Decision.CONTINUE if method is None else method(space, history, ledger, trial, rng)
    return _still_to_come(policy, trial, found) if isinstance(found, ContinueTo) else Decision(found)


def _still_to_come(policy: Policy, trial: TrackedTrial, found: ContinueTo) -> ContinueTo:
    """A step that has passed would never be reached, and the run never paused."""
    return replace(found, step=whole_number(f"{policy.name}: ContinueTo", found.step, least=trial.kept_step + 1))


def needs_steps(policy: Policy) -> bool:
    """Whether a policy is only for objectives that yield or report a value after every step."""
    return bool(getattr(policy, "needs_steps", hasattr(policy, "decide")))


def require_whole(policy: Policy) -> None:
    """An error if a policy has no use for an objective that is evaluated as a whole."""
    if needs_steps(policy):
        raise InvalidArgument(
            f"policy {policy.name!r} is for learners that train step by step: the objective must yield "
            "or report a value after every step; for one that returns a value use policy='auto'"
        )


def settle_option(policy: Any, option: str, check: Callable[..., Any], *, or_none: bool = False, **bounds: Any) -> None:
    """Check one option in the `__post_init__` of a policy, and store what the check returned: np.int64(3) becomes 3.

    >>> from farthing.policies import CEI
    >>> CEI(tradeoff="a")
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: cei: tradeoff: expected a number from 0 to 1, got 'a'
    """
    name, given = f"{policy.name}: {option}", getattr(policy, option)
    checked = optional(check, name, given, **bounds) if or_none else check(name, given, **bounds)
    settle(policy, **{option: checked})


def policy_as_json(policy: Any) -> dict[str, Any]:
    """A policy's name and options, JSON-ready. `policy_from_json` reads it.

    >>> from farthing.policies import EI
    >>> policy_as_json(EI(initial=8))
    {'name': 'ei', 'values': 'warped', 'end': 'planned', 'target': 'mean', 'initial': 8}
    """
    return {"name": policy.name, **(_options(policy) if is_dataclass(policy) else {})}


def _options(policy: Any) -> dict[str, Any]:
    """Options by name. An option that has options of its own becomes an object too, a tuple a list, as in JSON."""
    given = {f.name: getattr(policy, f.name) for f in fields(policy)}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return {name: policy_as_json(value) if is_dataclass(value) else value for name, value in lists.items()}
