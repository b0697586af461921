"""Checks of the first event of a file: what a study is made of. What its space and its policy make of their own
options they check themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from farthing.record import stored_checks as stored

KNOWLEDGE = ("known", "features", "prior", "task", "cheap")


def check(body: Any) -> None:
    """A ValueError, or whatever Python makes of it, unless this can be the first event."""
    stored.mapping("the first event", body)
    stored.plain("the first event", body)
    for name in ("space", "policy"):
        stored.mapping(name, body[name])
    if not isinstance(body["space"].get("parameters"), list):
        raise ValueError("the space has no list of parameters")
    stored.text("the name of the policy", body["policy"].get("name"))
    if not isinstance(body["start"], list):
        raise ValueError("start is no list")
    for config in body["start"]:
        stored.mapping("a config to start with", config)
    stored.whole("seed", body["seed"], most=math.inf)
    stored.switch("maximize", body["maximize"])
    if body.get("stop_at") is not None:
        stored.number("stop_at", body["stop_at"])
    if body.get("max_steps") is not None:
        stored.whole("max_steps", body["max_steps"], least=1, most=stored.MOST_STEPS)
    _check_knowledge(body.get("cost", {}), len(body["space"]["parameters"]))


def _check_knowledge(cost: Any, parameters: int) -> None:
    """What is known of cost in advance."""
    stored.mapping("cost", cost)
    stored.only("cost", cost, KNOWLEDGE)
    for name in ("known", "features"):
        stored.switch(name, cost.get(name, False))
    _check_task(cost.get("task", {}))
    stored.mapping("cheap", cost.get("cheap", {}))
    for name, unit in cost.get("cheap", {}).items():
        stored.number(f"{name} of what is cheap", unit)
    if cost.get("prior") is not None:
        _check_prior(cost["prior"], parameters)


def _check_task(task: Any) -> None:
    stored.mapping("task", task)
    for name, item in task.items():
        if not isinstance(item, str):
            stored.number(f"{name} of the task", item)


def _check_prior(prior: Any, parameters: int) -> None:
    stored.mapping("prior", prior)
    stored.mapping("the space of the prior", prior["space"])
    stored.switch("fixed", prior["fixed"])
    if not isinstance(prior["studies"], list) or not prior["studies"]:
        raise ValueError("the prior has no list of studies")
    for study in prior["studies"]:
        _check_earlier(study, parameters)


def _check_earlier(study: Mapping[str, Any], parameters: int) -> None:
    """Costs of an earlier study, at points of the unit cube."""
    stored.mapping("an earlier study", study)
    costs, units, killed = study["costs"], study["units"], study.get("killed", [])
    if not all(isinstance(given, list) for given in (costs, units, killed)) or not costs or len(costs) != len(units):
        raise ValueError("an earlier study has not as many points as costs")
    for cost in costs:
        stored.spent("an earlier cost", cost)
    for unit in units:
        if not isinstance(unit, list) or len(unit) != parameters:
            raise ValueError("a point of an earlier study is none of this space")
        for coordinate in unit:
            stored.number("a coordinate", coordinate)
            if not 0 <= coordinate <= 1:
                raise ValueError(f"a coordinate is {coordinate!r}")
    for place in killed:
        stored.whole("a killed trial", place, most=len(costs) - 1)
    _check_task(study["task"])
