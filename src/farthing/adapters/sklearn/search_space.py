"""What is searched: a dict, a `Space`, or a list of dicts of which each candidate comes from one.

In a list of dicts, as RandomizedSearchCV takes it, a name may have other values in another dict. The study then
searches a space with conditions: a choice of the dict, and the parameters of each dict, active where it is chosen. A
parameter that several dicts describe in the same way is one parameter; otherwise each dict has its own, "C [1]" for
that of the second dict. Candidates have plain names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.checks import refuse
from farthing.errors import InvalidConfig, InvalidSpace
from farthing.space import Choice, Parameter, Space
from farthing.trial import Config

WHICH = "which dict"  # no estimator's parameter: they are identifiers
ACCEPTED = "a dict from names to parameters, a list of such dicts, or a Space"


@dataclass(frozen=True)
class SearchSpace:
    """The space that the study searches, and the estimator's names of its parameters."""

    space: Space
    plain: Mapping[str, str] = field(default_factory=dict)  # where they are other ones
    dicts: tuple[Mapping[str, str], ...] = ()  # of each dict, the names in the space by plain names

    @property
    def names(self) -> tuple[str, ...]:
        """The estimator's names."""
        return tuple(dict.fromkeys(self.plain.get(name, name) for name in self.space.names if name != WHICH))

    def params(self, config: Config) -> dict[str, Any]:
        """The estimator's parameters of a configuration."""
        return {self.plain.get(name, name): value for name, value in config.items() if name != WHICH}

    def configs(self, params: Mapping[str, Any], partly: bool = False) -> Iterator[Config]:
        """Parameters as configurations of the study: one for each dict that has all of their names.

        `partly` takes of all parameters those that a dict has.
        """
        if not self.dicts:
            yield dict(params)
        for number, own in enumerate(self.dicts):
            if partly or params.keys() <= own.keys():
                yield {WHICH: number, **{own[name]: value for name, value in params.items() if name in own}}

    def config(self, params: Mapping[str, Any]) -> Config:
        """The configuration of parameters given by the user, or `InvalidConfig`."""
        reason = f"{dict(params)!r}: no dict of the list has these parameters: {', '.join(map(repr, params))}"
        for config in self.configs(params):
            try:
                return self.space.validate(config)
            except InvalidConfig as error:
                reason = str(error)
        raise InvalidConfig(f"start: {reason}")


def search_space(given: Any) -> SearchSpace:
    """The space of `param_distributions`, made from copies: parameters cache what they compute.

    >>> from farthing import Real
    >>> found = search_space([{"kernel": ["linear"]}, {"kernel": ["rbf"], "gamma": Real(0, 1)}])
    >>> found.space.decode([0.9, 0.5, 0.5, 0.25])
    {'which dict': 1, 'kernel [1]': 'rbf', 'gamma': 0.25}
    >>> found.params({"which dict": 1, "kernel [1]": "rbf", "gamma": 0.25})
    {'kernel': 'rbf', 'gamma': 0.25}
    """
    if isinstance(given, Space):
        return SearchSpace(given)
    if isinstance(given, Mapping):
        return SearchSpace(Space(_params_of(given)))
    dicts = [_params_of(one) for one in given]
    return SearchSpace(Space(dicts[0])) if len(dicts) == 1 else _joined(dicts)


def require_search_space(given: Any) -> None:
    """Refuse what cannot be `param_distributions` by its type."""
    listed = isinstance(given, list | tuple) and given and all(isinstance(one, Mapping) for one in given)
    if not listed and not isinstance(given, Mapping | Space):
        refuse("param_distributions", ACCEPTED, given)


def _params_of(given: Mapping[str, Any]) -> dict[str, Parameter]:
    return dict(Space.of({name: _item(item) for name, item in given.items()}).params) if given else {}


def _item(given: Any) -> Any:
    """A tuple is a list of options, as everywhere in scikit-learn."""
    if isinstance(given, tuple):
        return list(given)
    return copy(given) if isinstance(given, Parameter) else given


def _joined(dicts: Sequence[Mapping[str, Parameter]]) -> SearchSpace:
    """One space of several dicts, each as likely as the others."""
    if not any(dicts):
        raise InvalidSpace("param_distributions: all dicts are empty; expected names and parameters")
    params: dict[str, Parameter] = {WHICH: Choice(list(range(len(dicts))))}
    shared = {name for own in dicts for name in own if _is_shared(name, dicts)}
    names = [
        {name: name if name in shared else f"{name} [{number}]" for name in own} for number, own in enumerate(dicts)
    ]
    for number, (own, named) in enumerate(zip(dicts, names, strict=True)):
        for name, param in own.items():
            where = {number} if name not in shared else {n for n, other in enumerate(dicts) if name in other}
            params[named[name]] = replace(param, when={WHICH: where, **_renamed(param.when or {}, named)})
    plain = {inner: name for named in names for name, inner in named.items() if inner != name}
    return SearchSpace(Space(params), plain, tuple(names))


def _is_shared(name: str, dicts: Sequence[Mapping[str, Parameter]]) -> bool:
    """Whether all dicts that have a parameter describe it alike."""
    first, *others = [own[name] for own in dicts if name in own]
    return not others or (first.when is None and all(other == first for other in others))


def _renamed(when: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    """A condition on parameters of the same dict."""
    return {named[name]: value for name, value in when.items()}
