"""Policy `bopt`: Bayesian optimisation with Pareto-principled training (BOPT-HPO; Yang, Deng and Zhu 2023).

A training has two levels: eighty percent of the improvement comes early, and the end of that fast period is found on
the curve as it grows (`stopping/`). New configurations are trained that far and paused; after every `s` new ones, the
most promising paused one is trained completely (Algorithm 1; see `next_run.py`):

    the next new one       the largest -mu_e(x) + w s_e(x) over the whole space                      (Eq. 4.1)
    the next complete one  the largest -mu_c(x) + w s_c(x) among the paused                          (Eq. 4.2)

with w from `acquisitions/confidence.py`, (mu_e, s_e) the process of the fast level and (mu_c, s_c) the joint surrogate
of both (`surrogates/two_fidelity/`). The initial design is a nested Latin hypercube.

Defaults that differ from the paper are in `BOPT.PAPER`; docs/bopt.md says why. The two that matter most: new
configurations are chosen by the bound of the complete level too (`aim`), since the optimum of the fast level is not
always that of the complete one; and w does not grow with the number of parameters (`width`), since in ten dimensions
the search would never stop exploring. `BOPT.paper()` has the options of the paper.

Symbols: y_e the value when the fast period ended, y_c the value of the complete training. With `level="best"`, the
default, both are the best so far, so that y_c <= y_e and the bias y_c - y_e lies in [-inf, 0], or, where values are not
negative, in [-M, 0] with M the limit at which values of the fast level are cut, the largest of them if nothing is cut.
In the paper they are the values at the ends of both periods: `level="last"`.

Beyond the paper, as options: `per_cost` divides the gain of both choices by what they cost; `joint` chooses between the
levels by the same quantity, in place of the fixed s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, get_args

import numpy as np

from farthing.budget import Ledger
from farthing.checks import finite, number, one_of, refuse, switch, whole_number
from farthing.errors import InvalidArgument
from farthing.history import History, TrackedTrial
from farthing.numerics.arrays import Array
from farthing.policies.bopt import stopping
from farthing.policies.bopt.level_costs import CompleteCost
from farthing.policies.bopt.next_run import Aim, NextRun, Width
from farthing.policies.bopt.two_levels import (
    BiasBounds,
    BiasKind,
    Fit,
    Imputation,
    Kernel,
    LevelValues,
    Modelling,
    Noise,
    SurrogateKind,
    ValueIs,
)
from farthing.policies.model_options import EndOfBudget
from farthing.policies.protocol import Published, settle_option
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.trial import Curve, Decision, Proposal, Status


@dataclass(frozen=True, repr=False)
class BOPT(Published):
    """Two levels of training.

    surrogate  "tgp", the bias bounded, or "dgp", not bounded
    s          new configurations for each complete training; None takes half of the measured ratio of their costs
    initial    complete trainings of the initial design
    fast_ends  rule that ends the fast period, by name or as an object of `policies.bopt.stopping`
    ends       rule that ends a complete training before max_steps, None for none
    bias       "truncated" as in the paper, or "lognormal"
    level      value of a run at a level of training: the "best" reported so far, or the "last", as in the paper
    rho        factor between the levels, None to estimate it; give level="last" too, since with the best so far
               y_c <= y_e, and a factor above 1 cannot be seen
    bounds     (b1, b2) of the bias y_c - rho y_e in the units of the value, None at an end without one: (-1, 0) for
               errors; biases seen outside widen them. None: from what the values can be, or from those seen
    aim        of new configurations: where the bound of the "complete" level is least, or of the "fast" as in the paper
    width      of the bound: "even" for any number of parameters, or growing with it ("dimension"), as in the paper
    per_cost   divide the gain of both choices by their predicted cost
    joint      choose the level by improvement per cost, in place of s
    values     "cut": those of diverged runs are cut to the worst ordinary one; "plain": modelled as they are
    kernel     "matern52", or "gaussian" as in the paper
    imputation of a fast value that was not seen: "carry" its uncertainty, or "plug-in" its mean as in the paper
    fit        most probable hyperparameters under our priors ("map"), or of maximum likelihood ("mle") as in the paper
    noise      of the values: "fitted", or "none" as in the paper
    ratio      configurations of the initial design for each complete training; None: s, or 2 without it
    end        "planned": what the rest of a budget can pay for decides near its end; "ignored": as in the paper
    complete_cost  what runs cost: a new one the median so far, and completing one the median "ratio" to its fast
               period; or by a "model" of costs and of that ratio
    cost_model of what is modelled: all models of cost, weighted ("auto"), or one of them by name (docs/cost.md)
    """

    name: ClassVar[str] = "bopt"
    PAPER: ClassVar[Mapping[str, Any]] = {
        "s": 2, "initial": 5, "level": "last", "aim": "fast", "width": "dimension", "values": "plain",
        "kernel": "gaussian", "imputation": "plug-in", "fit": "mle", "noise": "none", "ratio": None, "end": "ignored",
    }  # fmt: skip
    surrogate: SurrogateKind = "tgp"
    s: int | None = None
    initial: int = 4
    fast_ends: stopping.NamedRule = stopping.EIGHTY_PERCENT
    ends: stopping.NamedRule | None = stopping.COMPLETE
    bias: BiasKind = "truncated"
    level: ValueIs = "best"
    rho: float | None = 1.0
    aim: Aim = "complete"
    width: Width = "even"
    per_cost: bool = False
    joint: bool = False
    bounds: BiasBounds | None = None
    values: LevelValues = "cut"
    kernel: Kernel = "matern52"
    imputation: Imputation = "carry"
    fit: Fit = "map"
    noise: Noise = "fitted"
    ratio: int | None = 2
    end: EndOfBudget = "planned"
    complete_cost: CompleteCost = "ratio"
    cost_model: CostModelName = "auto"

    def __post_init__(self) -> None:
        for option, accepted in (
            ("surrogate", SurrogateKind), ("bias", BiasKind), ("level", ValueIs), ("aim", Aim), ("width", Width),
            ("values", LevelValues), ("kernel", Kernel), ("imputation", Imputation), ("fit", Fit), ("noise", Noise),
            ("end", EndOfBudget), ("complete_cost", CompleteCost), ("cost_model", CostModelName),
        ):  # fmt: skip
            settle_option(self, option, one_of, accepted=get_args(accepted))
        settle_option(self, "s", whole_number, least=1, or_none=True)
        settle_option(self, "initial", whole_number, least=1)
        settle_option(self, "ratio", whole_number, least=1, or_none=True)
        settle_option(self, "fast_ends", stopping.checked_rule)
        settle_option(self, "ends", stopping.checked_rule, or_none=True)
        settle_option(self, "rho", number, above=0.0, or_none=True)
        if self.rho is None and self.bias == "lognormal":
            raise InvalidArgument("bopt: rho: expected a number above 0 with a log-normal bias, got None")
        settle_option(self, "per_cost", switch)
        settle_option(self, "joint", switch)
        settle_option(self, "bounds", _checked_bounds, or_none=True)
        if self.bounds is not None and not self.modelling.is_bounded:
            raise InvalidArgument(f"bopt: bounds: expected None with surrogate 'dgp', got {self.bounds}")

    @property
    def modelling(self) -> Modelling:
        """The options that say how both levels are modelled."""
        return Modelling(**{field.name: getattr(self, field.name) for field in fields(Modelling)})

    # -- after a step ------------------------------------------------------------------------------------------------

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
    ) -> Decision:
        """Pause where the fast period ends, stop where training has converged; not while max_steps is unknown."""
        if history.max_steps is None:
            return Decision.CONTINUE
        fast = _first_end(self.fast_ends, trial.curve, history.max_steps)
        if fast is None:
            return Decision.CONTINUE
        if fast >= len(trial.curve):
            return Decision.PAUSE
        if self.ends is None:
            return Decision.CONTINUE
        end = _first_end(self.ends, trial.curve, history.max_steps)
        return Decision.CONTINUE if end is None else Decision.STOP

    def rows(self, history: History) -> int:
        return len(history.trials)

    def fast_end(self, trial: TrackedTrial, max_steps: int | None) -> int | None:
        """The step at which the fast period of a trial ended: the last step, if it is complete and no rule was met."""
        found = _remembered_end(self.fast_ends, trial.curve, max_steps)
        if found is None and trial.status in (Status.COMPLETE, Status.STOPPED) and len(trial.curve):
            return len(trial.curve)
        return found

    # -- the next proposals ------------------------------------------------------------------------------------------

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        return NextRun.of(self, space, history, ledger, rng).proposals(n)


def _checked_bounds(name: str, given: Any, or_none: bool = False) -> BiasBounds:
    """A pair of bounds: in order, and not both absent."""
    accepted = f"a pair (b1, b2) with b1 < b2, at most one of them None{', or None' if or_none else ''}"
    if not isinstance(given, tuple | list) or len(given) != 2 or all(bound is None for bound in given):
        refuse(name, accepted, given)
    lower, upper = (None if bound is None else finite(bound) for bound in given)
    if (lower is None) != (given[0] is None) or (upper is None) != (given[1] is None):
        refuse(name, accepted, given)
    if lower is not None and upper is not None and not lower < upper:
        refuse(name, accepted, given)
    return lower, upper


def _first_end(rule: stopping.NamedRule, curve: Curve, max_steps: int | None) -> int | None:
    return stopping.first_end(rule, curve.values, _train_values(curve), max_steps)


# Every ask looks at all curves, of which one has changed: without this, 2,000 take half a second.
_remembered_end = lru_cache(maxsize=4_096)(_first_end)


def _train_values(curve: Curve) -> Array | None:
    """Training values, NaN where a step reported none; None where none did."""
    if all(value is None for value in curve.train_values):
        return None
    return np.array([np.nan if value is None else value for value in curve.train_values])
