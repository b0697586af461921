"""The options that model-based policies have in common: in them lies most of what differs from the papers.

Our defaults model warped values, beat the least posterior mean and plan the end of a budget; the papers do none of it
(docs/cei.md says what each is for). `FittedModels` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from farthing.checks import one_of
from farthing.policies.protocol import Published, settle_option

ModelledValues: TypeAlias = Literal["warped", "plain"]
EndOfBudget: TypeAlias = Literal["planned", "ignored"]
ValueToBeat: TypeAlias = Literal["mean", "least", "belief"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelOptions(Published):
    """How values are modelled, and whether the end of the budget changes what is proposed.

    values  "warped": EI is that of values after a monotone transform, robust against diverged runs; "plain": EI is in
            the units of the objective
    end     "planned": in the second half of a budget only what the rest of it can pay for is proposed; "ignored": the
            end comes unforeseen. Only the time to think is limited by it, also then: under a budget of seconds, the
            last proposals come from models of fewer trials, or from none
    target  the value that EI has to beat. "mean": the least posterior mean at the evaluated points, because with noise
            the least value may be luck; "least": the least value seen, f_min of the papers; "belief": as "mean", by
            the posterior mean that a candidate will have once it is evaluated, and not by its true value: what noise
            would hide does not count, so that the best point is not measured again and again
    """

    judges_worth: ClassVar[bool] = True  # says of every ask what it is expected to bring, see worth.py
    PAPER: ClassVar[Mapping[str, Any]] = {"values": "plain", "end": "ignored", "target": "least"}

    values: ModelledValues = "warped"
    end: EndOfBudget = "planned"
    target: ValueToBeat = "mean"

    def __post_init__(self) -> None:
        settle_option(self, "values", one_of, accepted=get_args(ModelledValues))
        settle_option(self, "end", one_of, accepted=get_args(EndOfBudget))
        settle_option(self, "target", one_of, accepted=get_args(ValueToBeat))

    @property
    def plans_end(self) -> bool:
        return self.end == "planned"
