"""Who searches: policies of Farthing's, and peers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FARTHING = "farthing"


@dataclass(frozen=True)
class Method:
    """A way to search. `system` is its environment, `module` the peer; `policy` is Farthing's, as JSON."""

    name: str
    title: str
    kind: str  # "subject": what a page is about; "ablation": with other options; "own": others of ours; "peer"
    system: str
    module: str
    policy: str = "{}"

    @property
    def library(self) -> str:
        return self.module.rpartition(".")[2].removesuffix("_peer")

    @property
    def knows_budget(self) -> bool:
        """Whether another budget may make another run, and not only a longer one."""
        return self.system == FARTHING


def own(name: str, kind: str = "own", title: str | None = None, /, **policy: Any) -> Method:
    """A policy of Farthing's, with options."""
    described = json.dumps(policy or {"name": name}, sort_keys=True)
    return Method(name, title or f"`{name}`", kind, FARTHING, "curves.peers.farthing_peer", described)


def described(text: str) -> Method:
    """A policy of Farthing's from JSON, such as `{"name": "bapi", "points": "last"}`."""
    policy = json.loads(text)
    options = [f"{name}={value}" for name, value in policy.items() if name != "name"]
    return own("-".join([policy["name"], *options]), **policy)


def peer(name: str, title: str, system: str, module: str) -> Method:
    return Method(name, title, "peer", system, f"curves.peers.{module}")


PEERS = (
    peer("random", "random search", "blackbox", "optuna_peer"),
    peer("hyperband", "Hyperband", "bohb", "bohb_peer"),
    peer("bohb", "BOHB", "bohb", "bohb_peer"),
    peer("tpe-median", "TPE, median pruner", "blackbox", "optuna_peer"),
    peer("tpe-hyperband", "TPE, Hyperband pruner", "blackbox", "optuna_peer"),
    peer("gp", "GPSampler", "blackbox", "optuna_peer"),
    peer("dehb", "DEHB", "dehb", "dehb_peer"),
    peer("asha", "ASHA (NePS)", "neps", "neps_peer"),
    peer("smac", "SMAC3, multi-fidelity", "blackbox", "smac_peer"),
)
