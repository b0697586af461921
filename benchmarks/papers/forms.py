"""The forms of a policy that are compared: our default, the paper's, and our default with one option as in the paper.

They follow from `PAPER` of each class, so that an option that is added there is measured too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from farthing.errors import InvalidArgument
from farthing.policies import BY_NAME
from farthing.policies.protocol import Published, policy_as_json

Kind = Literal["default", "paper", "single"]


@dataclass(frozen=True)
class Form:
    """`carbo`, `carbo-paper`, or `carbo-values`: the default with `values` as in the paper."""

    name: str
    policy: str
    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)  # that are not our default

    @property
    def made(self) -> Any:
        kind: Any = BY_NAME[self.policy]
        return kind(**self.options)

    @property
    def as_json(self) -> dict[str, Any]:
        """Every option: where one is missing, a file is taken for an old one, and gets what old ones ran with."""
        return policy_as_json(self.made)

    @property
    def shown(self) -> str:
        """The options that differ, as one writes them."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items()).replace("'", '"')


# For each policy, options of the paper's form as its experiments had them, where they depend on what is measured.
# Belakaria et al. have eps = 0.01 in accuracy in experiments 1 to 7, and `eps="least"` only where no such number can be
# set. `bapi` runs on LCBench alone, whose values are errors between 0 and 1 (common/lcbench.py).
FOR_ERRORS: Mapping[str, Mapping[str, Any]] = {"bapi": {"eps": 0.01}}


def forms_of(
    policy: str, with_singles: bool = False, fixed: Collection[str] = (), given: Mapping[str, Any] | None = None
) -> list[Form]:
    """The default first. Options in `fixed` are set by the experiment, so no form has its own; those that are `given`
    are as the paper had them in such an experiment."""
    kind: Any = BY_NAME.get(policy)
    if kind is None or not issubclass(kind, Published):
        print(f"missing: Farthing has no policy {policy!r} with a paper's form", flush=True)
        return []
    printed = {option: value for option, value in {**kind.PAPER, **(given or {})}.items() if option not in fixed}
    found = [Form(policy, policy, "default"), Form(f"{policy}-paper", policy, "paper", printed)]
    if with_singles:
        found += [Form(f"{policy}-{option}", policy, "single", {option: value}) for option, value in printed.items()]
    return _distinct([form for form in found if _can_be(form)])


def _can_be(form: Form) -> bool:
    """An option of the paper may need another one."""
    try:
        form.made  # noqa: B018 - raises
    except InvalidArgument as error:
        print(f"left out: {form.name}: {error}", flush=True)
        return False
    return True


def _distinct(forms: list[Form]) -> list[Form]:
    """Without what is another form under another name."""
    made: list[Any] = []
    kept = []
    for form in forms:
        if form.made not in made:
            made.append(form.made)
            kept.append(form)
    return kept


def selected(forms: list[Form], names: Collection[str]) -> list[Form]:
    """By name: a policy stands for all of its forms, and any other form comes with the default it is compared with."""
    policies = {form.policy for form in forms if form.policy in names}
    compared = {form.policy for form in forms if form.name in names}
    return [
        form
        for form in forms
        if form.policy in policies or form.name in names or (form.kind == "default" and form.policy in compared)
    ]
