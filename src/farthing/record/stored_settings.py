"""Checks of the first event of a file: what a study is made of. What its space and its policy make of their own
options they check themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from farthing.record import stored_checks as stored
from farthing.space.shared import FARTHEST

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
    if body.get("warm_start") is not None:
        _check_warm_start(body["warm_start"], body["space"]["parameters"])


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


def _check_warm_start(warm_start: Any, parameters: list[Any]) -> None:
    """What was taken over from earlier studies."""
    stored.mapping("warm_start", warm_start)
    stored.only("warm_start", warm_start, ("studies", "first"))
    if not isinstance(warm_start["studies"], list) or not isinstance(warm_start["first"], list):
        raise ValueError("warm_start has no list of studies")
    for config in warm_start["first"]:
        stored.mapping("a config to begin with", config)
    options = {entry["name"]: len(entry["options"]) if "options" in entry else None for entry in parameters}
    for study in warm_start["studies"]:
        _check_earlier_values(study, options)


def _check_earlier_values(study: Any, options: Mapping[str, int | None]) -> None:
    """Values of an earlier study, at places in parameters of this one, which have so many `options` by name."""
    stored.mapping("an earlier study", study)
    stored.text("the name of an earlier study", study["study"])
    names, places, values = study["names"], study["places"], study["values"]
    if not all(isinstance(given, list) for given in (names, places, values)) or not names:
        raise ValueError("an earlier study has no list of parameters, places and values")
    if len(set(names)) < len(names) or not set(names) <= set(options):
        raise ValueError("an earlier study has parameters that are none of this space")
    if len(places) != len(values) or len(values) < 2:
        raise ValueError("an earlier study has not as many places as values, or fewer than 2")
    for value in values:
        stored.number("an earlier value", value)
    for row in places:
        if not isinstance(row, list) or len(row) != len(names):
            raise ValueError("a place of an earlier study is none of this space")
        for name, place in zip(names, row, strict=True):
            _check_place(place, options[name])


def _check_place(place: Any, options: int | None) -> None:
    if place is None:
        return
    if options is not None:
        stored.number("the option of an earlier study", place)
        if place not in range(options):
            raise ValueError(f"the option of an earlier study is {place!r}")
        return
    stored.number("a place of an earlier study", place)
    if not -FARTHEST <= place <= 1 + FARTHEST:
        raise ValueError(f"a place of an earlier study is {place!r}")


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
