"""Studies that the tests of Optuna's storages share."""

from __future__ import annotations

from typing import Any

import farthing as ft
from farthing.record.added import Added
from farthing.trial import EndedBy, Status

SPACE = ft.Space(
    rate=ft.Real(1e-4, 1.0, log=True),
    depth=ft.Integer(1, 12),
    width=ft.Integer(8, 512, log=True),
    batch=ft.Ordered([16, 32, 64], log=True),
    kind=ft.Choice(["a", 1, True, (2, 3), None]),
    momentum=ft.Real(0.0, 0.9, when={"kind": "a"}),
)
PLAIN = {"rate": 0.01, "depth": 3, "width": 64, "batch": 32, "kind": 1}
WITH_MOMENTUM = {**PLAIN, "kind": "a", "momentum": 0.5}


def of_every_kind(storage: Any = None, *, maximize: bool = False) -> ft.Study:
    """One trial of every status but running: with curves, failures, and all kinds of parameters."""
    study = ft.Study(SPACE, ft.Budget(cost=100), seed=7, storage=storage, maximize=maximize, max_steps=3)
    record, sign = study._session.record, -1.0 if maximize else 1.0
    ends = [
        (PLAIN, Status.COMPLETE, None, (), 0.5),
        (WITH_MOMENTUM, Status.COMPLETE, None, (0.9, 0.4, 0.6), None),
        ({**PLAIN, "kind": True}, Status.STOPPED, None, (0.8, 0.7), None),
        ({**PLAIN, "kind": (2, 3)}, Status.PAUSED, None, (0.3,), None),
        ({**PLAIN, "kind": None}, Status.FAILED, "ValueError: no\n\x1b[2J", (), None),
        ({**PLAIN, "depth": 12}, Status.KILLED, "killed: it took longer than 5s", (0.95,), None),
        ({**PLAIN, "depth": 11}, Status.INTERRUPTED, None, (), None),
    ]
    for number, (config, status, error, curve, value) in enumerate(ends):
        turned = tuple(sign * step for step in curve)
        least = min(turned) if turned else None if value is None else sign * value
        by = EndedBy.BUDGET if status is Status.KILLED else None
        record.write(
            Added(
                number, config, least, 2.5 + number, error, turned, {"epochs": number, "note": "x"},
                1e9 + 10 * number, 1e9 + 10 * number + 3, status, by,
            )
        )  # fmt: skip
    return study


def seen(trial: ft.Trial) -> tuple[Any, ...]:
    """What a round trip keeps."""
    return (
        trial.number, trial.config, trial.status, trial.value, trial.cost, trial.curve.values, trial.error,
        trial.attributes, trial.ended_by,
    )  # fmt: skip
