"""In which part of a search a trial was proposed, as the reason that its policy gave tells."""

from __future__ import annotations

from enum import StrEnum

from farthing.given import GIVEN, ON_REQUEST, TAKEN_OVER
from farthing.history.history import TrackedTrial
from farthing.policies import BY_NAME
from farthing.policies.finishing import FINISHING
from farthing.policies.sampling import NO_TIME
from farthing.policies.thaw.policy import TOO_LITTLE_LEFT


class Phase(StrEnum):
    """Parts of a search, in their usual order."""

    GIVEN = "given by start or by request"
    TAKEN_OVER = "from earlier studies"
    DESIGN = "initial design"
    MODEL = "chosen by a model"
    NO_MODEL = "chosen without a model"
    FINISHING = "finishing the best"
    OTHER = "proposed by the policy"  # one of the user's own, whose reasons are not known here


EXACTLY = {
    GIVEN: Phase.GIVEN, ON_REQUEST: Phase.GIVEN, TAKEN_OVER: Phase.TAKEN_OVER, NO_TIME: Phase.NO_MODEL,
    TOO_LITTLE_LEFT: Phase.NO_MODEL, FINISHING: Phase.FINISHING,
}  # fmt: skip
BEGINNINGS = (
    ("initial design", Phase.DESIGN),
    ("drawn", Phase.NO_MODEL),
    ("next in the Sobol sequence", Phase.NO_MODEL),
)


def phase_of(trial: TrackedTrial, policy: str) -> Phase:
    """The part that a trial belongs to, of a study whose policy has that name. One that was asked for several times
    belongs to that of the last."""
    reason = trial.reason
    speaker, colon, rest = reason.partition(": ")
    if colon and speaker in BY_NAME:  # policy auto says who has chosen
        reason = rest
    if reason in EXACTLY:
        return EXACTLY[reason]
    if policy not in BY_NAME or not reason:
        return Phase.OTHER
    return next((phase for beginning, phase in BEGINNINGS if reason.startswith(beginning)), Phase.MODEL)
