"""What happens to a study, as values: opened, given a budget, asked, reported, told, noted.

A study is the fold of these over its history and its ledger, and the file holds nothing else. In the file values are in
the user's own sign and options are indices; here, in memory, values are minimised and configs hold the options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.budget import Budget, Charges
from farthing.checks import plain
from farthing.space import Space
from farthing.trial import Config, Outcome, Proposal, Report, Status

Json = dict[str, Any]


@dataclass(frozen=True)
class Opened:
    """The first event: all that a study is made of, but for its budget."""

    space: Json
    policy: Json
    seed: int
    maximize: bool
    start: tuple[Json, ...] = ()  # stored configs
    stop_at: float | None = None
    cost: Json = field(default_factory=dict)  # what was known of it: CostKnowledge.as_json()
    max_steps: int | None = None


@dataclass(frozen=True)
class Budgeted:
    """The budget from here on."""

    budget: Budget


@dataclass(frozen=True)
class Asked:
    """A proposal was handed out: in which ask, what the ledger said, and what the optimiser spent on it."""

    ask: int
    proposal: Proposal
    ledger: Mapping[str, Any]
    charges: Charges = field(default_factory=dict)


@dataclass(frozen=True)
class Reported:
    """A trial has trained one more step."""

    trial: int
    report: Report
    charges: Charges = field(default_factory=dict)


@dataclass(frozen=True)
class Dropped:
    """A run that rests is not alive any more: it will go on from its checkpoint, or from the beginning."""

    trial: int
    kept_step: int = 0  # of the checkpoint


@dataclass(frozen=True)
class Told:
    """A trial ended, with what it cost."""

    trial: int
    outcome: Outcome
    charges: Charges = field(default_factory=dict)


@dataclass(frozen=True)
class Charged:
    """What a run spent after its last trial."""

    charges: Charges


@dataclass(frozen=True)
class Noted:
    """What whoever runs the study wants to find in its file again, as JSON; it replaces what was noted before."""

    notes: Json


Event = Opened | Budgeted | Asked | Reported | Dropped | Told | Charged | Noted


@dataclass(frozen=True)
class Codec:
    """Events to and from (kind, JSON text). `space` and `sign` are known once the Opened event is."""

    space: Space
    maximize: bool

    def write(self, event: Event) -> tuple[str, str]:
        kind, body = self._body(event)
        return kind, json.dumps(body, separators=(",", ":"))

    def _body(self, event: Event) -> tuple[str, Json]:
        match event:
            case Opened():
                return "opened", opened_body(event)
            case Budgeted(budget):
                return "budgeted", {"budget": budget.as_json()}
            case Asked(ask, proposal, ledger, charges):
                return "asked", {
                    "ask": ask,
                    "trial": proposal.trial,
                    "config": self.space.store_config(proposal.config),
                    "predicted_cost": proposal.predicted_cost,
                    "reason": proposal.reason,
                    "fits": dict(proposal.fits),
                    "start_step": proposal.start_step,
                    "until_step": proposal.until_step,
                    "ledger": dict(ledger),
                    "charges": charges,
                }
            case Reported(trial, report, charges):
                return "reported", {
                    "trial": trial,
                    "value": self._flip(report.value),
                    "cost": report.cost,
                    "train_value": self._flip(report.train_value),
                    "saved": report.saved,
                    "attributes": plain(report.attributes),
                    "charges": charges,
                }
            case Dropped(trial, kept_step):
                return "dropped", {"trial": trial, "kept_step": kept_step}
            case Told(trial, outcome, charges):
                return "told", {
                    "trial": trial,
                    "status": outcome.status.value,
                    "value": self._flip(outcome.value),
                    "cost": outcome.cost,
                    "error": outcome.error,
                    "attributes": plain(outcome.attributes),
                    "charges": charges,
                }

            case Charged(charges):
                return "charged", {"charges": charges}
            case Noted(notes):
                return "noted", {"notes": plain(notes)}

    def read(self, kind: str, text: str) -> Event:
        body = json.loads(text)
        match kind:
            case "opened":
                return read_opened(body)
            case "budgeted":
                return Budgeted(Budget.from_json(body["budget"]))
            case "asked":
                config: Config = self.space.load_config(body["config"])
                proposal = Proposal(
                    body["trial"], config, body["predicted_cost"], body["reason"], body["fits"],
                    body.get("start_step", 0), body.get("until_step"),
                )  # fmt: skip
                return Asked(body["ask"], proposal, body["ledger"], body["charges"])
            case "reported":
                value = self._flip(body["value"])
                assert value is not None
                train_value = self._flip(body["train_value"])
                report = Report(value, body["cost"], train_value, body["saved"], body["attributes"])
                return Reported(body["trial"], report, body["charges"])
            case "dropped":
                return Dropped(body["trial"], body["kept_step"])
            case "told":
                outcome = Outcome(
                    Status(body["status"]),
                    self._flip(body["value"]),
                    body["cost"],
                    body["error"],
                    body["attributes"],
                )
                return Told(body["trial"], outcome, body["charges"])
            case "charged":
                return Charged(body["charges"])
            case "noted":
                if not isinstance(body["notes"], dict):
                    raise ValueError(f"notes is {body['notes']!r}")
                return Noted(body["notes"])
            case _:
                raise ValueError(f"unknown kind of event {kind!r}")

    def _flip(self, value: float | None) -> float | None:
        return -value if self.maximize and value is not None else value


def opened_body(event: Opened) -> Json:
    return {
        "space": event.space, "policy": event.policy, "seed": event.seed, "maximize": event.maximize,
        "start": list(event.start), "stop_at": event.stop_at, "cost": event.cost,
        "max_steps": event.max_steps,
    }  # fmt: skip


def read_opened(body: Json) -> Opened:
    return Opened(**{**body, "start": tuple(body["start"])})
