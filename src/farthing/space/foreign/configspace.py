"""A ConfigSpace, with its conditions and forbidden clauses, as a Farthing space.

In both libraries conditions and clauses are about the levels of discrete parameters. Each is turned into the levels it
allows, by name of the parent: an "and" intersects them, and an "or" unites them as far as `when=` can express it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from farthing.errors import InvalidSpace
from farthing.space.foreign.common import Partials, class_names, integer, listed, naming, no_counterpart, real
from farthing.space.parameters import Choice, Parameter, Real

Allowed: TypeAlias = dict[str, frozenset[int]]  # a conjunction: the levels that meet it, by name

MAX_LEVELS = 1000  # of a parameter in a comparison: each level is compared, and stored in the condition
ACCEPTED = "a ConfigSpace hyperparameter"
HYPERPARAMETERS = "UniformFloat, UniformInteger, Categorical, Ordinal or Constant"
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "LessThanCondition": operator.lt,
    "GreaterThanCondition": operator.gt,
    "NotEqualsCondition": operator.ne,
    "ForbiddenLessThanClause": operator.lt,
    "ForbiddenLessThanEqualsClause": operator.le,
    "ForbiddenGreaterThanClause": operator.gt,
    "ForbiddenGreaterThanEqualsClause": operator.ge,
}


def hyperparameter(thing: Any) -> Parameter:
    """The Farthing parameter of a ConfigSpace hyperparameter, without its default value."""
    classes = class_names(thing, "ConfigSpace")
    if "UniformFloatHyperparameter" in classes:
        return real(thing.lower, thing.upper, log=bool(thing.log))
    if "UniformIntegerHyperparameter" in classes:
        return integer(thing.lower, thing.upper, log=bool(thing.log))
    if "OrdinalHyperparameter" in classes:
        return listed(thing.sequence, in_order=True)
    if "Constant" in classes:
        return Choice([thing.value])
    if "CategoricalHyperparameter" in classes and thing.weights is None:
        return Choice(thing.choices)
    priors = " (see remove_hyperparameter_priors() of the ConfigurationSpace)"
    raise no_counterpart(thing, f"{HYPERPARAMETERS}, all without weights{priors}")


def configuration_space(foreign: Any) -> tuple[dict[str, Parameter], Partials | None]:
    """The parameters of a ConfigurationSpace with their conditions, and what it forbids."""
    plain = {name: _named(name, foreign[name]) for name in foreign}
    params = {}
    for name, param in plain.items():
        conditions = foreign.parent_conditions_of[name]
        allowed = _both(name, [_condition(one, foreign, plain) for one in conditions])
        when = {parent: _values(plain[parent], levels) for parent, levels in allowed.items()}
        params[name] = replace(param, when=when) if when else param
    forbidden = [clause for one in foreign.forbidden_clauses for clause in _forbidden(one, plain)]
    partials = [{name: _values(plain[name], levels) for name, levels in clause.items()} for clause in forbidden]
    return params, partials or None


def _named(name: str, thing: Any) -> Parameter:
    with naming(name):
        return hyperparameter(thing)


# Conditions


def _condition(condition: Any, foreign: Any, plain: Mapping[str, Parameter]) -> Allowed:
    """When a condition holds, as levels by parent."""
    child, classes = condition.child.name, class_names(condition, "ConfigSpace")
    if "Conjunction" in classes:
        parts = [_condition(one, foreign, plain) for one in condition.components]
        return _both(child, parts) if "AndConjunction" in classes else _either(child, condition, parts)
    parent = condition.parent.name
    who = f"parameter {child!r}: the condition {condition}"
    if "NotEqualsCondition" in classes and foreign.parent_conditions_of[parent]:
        # In ConfigSpace it also holds if the parent is inactive; in Farthing no condition does.
        raise InvalidSpace(f"{who} on a conditional parameter has no counterpart in Farthing; expected == or in")
    return {parent: _levels(who, condition, condition.parent, plain[parent])}


def _both(child: str, parts: Iterable[Allowed]) -> Allowed:
    allowed = _intersection(parts)
    for parent, levels in allowed.items():
        if not levels:
            raise InvalidSpace(f"parameter {child!r}: its conditions on {parent!r} never hold together")
    return allowed


def _either(child: str, condition: object, parts: list[Allowed]) -> Allowed:
    parents = {parent for part in parts for parent in part}
    if len(parents) > 1:
        raise InvalidSpace(
            f"parameter {child!r}: the condition {condition} has no counterpart in Farthing; "
            "expected 'or' between values of one parameter"
        )
    return {parent: frozenset[int]().union(*(part[parent] for part in parts)) for parent in parents}


def _intersection(parts: Iterable[Allowed]) -> Allowed:
    met: Allowed = {}
    for part in parts:
        for name, levels in part.items():
            met[name] = met.get(name, levels) & levels
    return met


# Forbidden clauses


def _forbidden(clause: Any, plain: Mapping[str, Parameter]) -> list[Allowed]:
    """What a clause forbids: conjunctions of which none may hold. One that cannot hold is left out."""
    classes = class_names(clause, "ConfigSpace")
    if "ForbiddenOrConjunction" in classes:
        return [one for part in clause.components for one in _forbidden(part, plain)]
    if "ForbiddenAndConjunction" in classes:
        met: list[Allowed] = [{}]
        for part in clause.components:
            met = [_intersection([one, other]) for one in met for other in _forbidden(part, plain)]
        return [one for one in met if all(one.values())]
    if "ForbiddenClause" not in classes:
        raise InvalidSpace(
            f"the clause {clause} has no counterpart in Farthing; expected clauses about values of one parameter, "
            "joined by and / or; Space(..., forbid=function) can express the rest"
        )
    name = clause.hyperparameter.name
    levels = _levels(f"the clause {clause}", clause, clause.hyperparameter, plain[name])
    return [{name: levels}] if levels else []


# Levels


def _levels(who: str, condition: Any, about: Any, param: Parameter) -> frozenset[int]:
    """The levels of a parameter that a condition or clause names."""
    if isinstance(param, Real):
        raise InvalidSpace(f"{who} is about {about.name!r}, a Real; expected conditions on parameters with levels")
    comparison = next(
        (COMPARISONS[kind] for kind in class_names(condition, "ConfigSpace") if kind in COMPARISONS), None
    )
    if comparison is not None:
        return _compared(who, comparison, condition.value, about, param)
    values = condition.values if hasattr(condition, "values") else [condition.value]
    found = [param.find(value) for value in values]
    if None in found:
        raise InvalidSpace(f"{who} names a value that {about.name!r} does not have; expected {param.accepted}")
    return frozenset(level for level in found if level is not None)


def _compared(
    who: str, comparison: Callable[[Any, Any], Any], value: Any, about: Any, param: Parameter
) -> frozenset[int]:
    count = param.levels or 0
    if count > MAX_LEVELS:
        raise InvalidSpace(f"{who} compares {about.name!r}, which has {count} values; expected at most {MAX_LEVELS}")
    if "OrdinalHyperparameter" in class_names(about, "ConfigSpace"):
        return frozenset(level for level in range(count) if comparison(level, param.find(value)))
    if comparison is operator.ne:
        return frozenset(level for level in range(count) if level != param.find(value))
    return frozenset(level for level in range(count) if comparison(param.value(level), value))


def _values(param: Parameter, levels: frozenset[int]) -> object:
    """Levels as `when` and `forbid` want them: the value, or a set of them."""
    values = [param.value(level) for level in sorted(levels)]
    if len(values) == 1:
        return values[0]
    try:
        several = set(values)
    except TypeError:
        several = set()
    if len(several) < len(values):  # a set cannot hold lists, nor tell 1 from True
        raise InvalidSpace(
            f"a condition on several of {values!r} has no counterpart in Farthing; expected values that differ "
            "and can be held in a set, such as strings and numbers"
        )
    return several
