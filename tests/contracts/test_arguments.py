"""Every argument of the public surface refuses nonsense by an error of Farthing's own that names it.

Tables say for each argument what is nonsense for it. A new argument of `Study`, `tune` or `Study.run` that is not in
them fails here. The options of policies are walked in tests/policies/test_options.py, the arguments of the search
in scikit-learn in tests/adapters/test_sklearn.py.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import FarthingError

SPACE = ft.Space(x=ft.Real(0, 1))


class Odd:
    """An object that nothing expects, and that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


NOT_A_NUMBER = ["a", "0.1", [1], {}, Odd(), math.nan, math.inf, True, 1j]
NOT_WHOLE = [*NOT_A_NUMBER, 1.5, -1, np.bool_(True)]
NOT_A_SWITCH = ["yes", 1, 0, 1.0, [], Odd()]
NOT_A_FUNCTION = [5, "f", [], Odd()]
NOT_TEXT_OR_POLICY = [5, None, "no such policy", ft.policies.EI, Odd(), [], True]

STUDY: dict[str, list[Any]] = {  # argument -> nonsense
    "space": [None, 5, "space", {"x": 5}, Odd()],
    "budget": [None, 5, 0.5, "soon", "", [], Odd(), True],
    "policy": NOT_TEXT_OR_POLICY,
    "maximize": [*NOT_A_SWITCH, None],
    "seed": NOT_WHOLE,
    "start": [5, "a", {"x": 0.5}, [5], [{"y": 1}], [{"x": 7}], None, Odd()],
    "stop_at": NOT_A_NUMBER,
    "stop_when_not_worth": [*NOT_A_NUMBER, 0, -1.0, "5", "1s per", "per 0.1", "$5 per 1", "1s per -1", "1s, $5 per 1"],
    "max_steps": [*NOT_WHOLE, 0],
    "known_cost": NOT_A_FUNCTION,
    "cost_features": NOT_A_FUNCTION,
    "cost_prior": [5, "prior", [], Odd()],
    "warm_start": [5, None, [5], [None], Odd(), "no such file", ["no such file"], b"file"],
    "task": [5, "rows", [1], {"rows": None}, {"rows": math.nan}, Odd()],
    "cheap": [5, "x", [1], {"x": None}, {"nowhere": 1}, {"x": math.nan}, Odd()],
}
RUN: dict[str, list[Any]] = {
    "workers": [*NOT_WHOLE, 0, None],
    "isolate": NOT_A_SWITCH,
    "trial_seconds": ["soon", "$5", 0, -1, math.nan, math.inf, [], Odd(), True],
    "trial_memory": ["much", 0, -1, math.nan, math.inf, [], Odd(), True],
    "paused_limit": [*NOT_WHOLE, None],
    "paused_memory": ["much", 0, -1, math.nan, math.inf, [], Odd(), True],
    "keep_checkpoints": [*NOT_WHOLE, 0, None],
    "max_failures": [*NOT_WHOLE, 0],
    "meter": [5, "litres", [], Odd()],
    "progress": NOT_A_SWITCH,
    "callbacks": [5, [5], None, Odd()],
}
ELSEWHERE = {"storage": "tests/record/test_storage.py", "objective": "below"}


def cases(table: dict[str, list[Any]]) -> list[Any]:
    def shown(given: Any) -> str:
        return "object" if isinstance(given, Odd) or "Odd" in type(given).__name__ else repr(given)[:30]

    return [
        pytest.param(name, given, id=f"{name}={shown(given) if not _odd_inside(given) else 'odd'}")
        for name, nonsense in table.items()
        for given in nonsense
    ]


def _odd_inside(given: Any) -> bool:
    return isinstance(given, list) and any(isinstance(item, Odd) for item in given)


def require_refused(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises(FarthingError) as refused:
        call()
    assert name in str(refused.value), f"{refused.value} does not name {name}"


@pytest.mark.parametrize(("name", "given"), cases(STUDY))
def test_an_argument_of_a_study(name, given):
    arguments: dict[str, Any] = {"space": SPACE, "budget": "3 evaluations", name: given}
    require_refused(name, lambda: ft.Study(**arguments))


@pytest.mark.parametrize(("name", "given"), cases(RUN))
def test_an_argument_of_a_run(name, given):
    study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0)
    require_refused(name, lambda: study.run(lambda config: config["x"], **{"progress": False, name: given}))
    assert study.trials == [], "nothing was begun"


@pytest.mark.parametrize("objective", [5, None, "objective", Odd()])
def test_an_objective(objective):
    require_refused("objective", lambda: ft.Study(SPACE, "3 evaluations").run(objective, progress=False))


def test_the_tables_know_every_argument():
    """A new one has to say what it refuses."""
    study = set(inspect.signature(ft.Study).parameters)
    run = set(inspect.signature(ft.Study.run).parameters) - {"self"}
    assert study - set(ELSEWHERE) == set(STUDY)
    assert run - set(ELSEWHERE) == set(RUN)
    assert set(inspect.signature(ft.tune).parameters) == study | run


@pytest.mark.parametrize("n", [*NOT_WHOLE, 0])
def test_how_many_to_ask_for(n):
    study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0)
    require_refused("n", lambda: study.ask(n))
    assert study.trials == []


def test_whole_numbers_of_numpy_are_whole_numbers():
    study = ft.Study(SPACE, "9 evaluations", policy="random", seed=np.int64(3), max_steps=np.int32(4))
    assert len(study.ask(np.int64(2))) == 2
    assert (study.seed, type(study.seed)) == (3, int)


OF_A_TRIAL = ["a", 1.5, None, True, [], Odd()]


@pytest.mark.parametrize("trial", OF_A_TRIAL)
def test_the_trial_of_tell_and_of_report(trial):
    study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0)
    study.ask()
    require_refused("tell", lambda: study.tell(trial, value=1.0))
    require_refused("report", lambda: study.report(trial, 1.0))
    assert study.trials[0].status is ft.Status.RUNNING


@pytest.mark.parametrize("cost", ["a", -1, math.nan, math.inf, [], Odd(), 1j])
def test_a_cost(cost):
    study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0)
    proposal = study.ask()
    require_refused("cost", lambda: study.tell(proposal, value=1.0, cost=cost))
    require_refused("cost", lambda: study.report(proposal, 1.0, cost=cost))
    assert study.trials[0].status is ft.Status.RUNNING


@pytest.mark.parametrize("saved", NOT_A_SWITCH)
def test_whether_a_checkpoint_was_saved(saved):
    study = ft.Study(SPACE, ft.Budget(cost=9), policy="random", seed=0, max_steps=3)
    proposal = study.ask()
    require_refused("saved", lambda: study.report(proposal, 1.0, saved=saved))


@pytest.mark.parametrize("trial", ["a", 1.5, True, -1, 7, [], Odd()])
def test_the_trial_of_a_front(trial):
    study = ft.Study(SPACE, ft.Budget(cost=99), seed=0)
    for _ in range(3):
        proposal = study.ask()
        study.tell(proposal, value=proposal.config["x"], cost=1.0)
    require_refused("trial", lambda: study.pareto(trial))


@pytest.mark.parametrize("given", ["a", 1.5, True, -1, Odd()])
def test_what_is_compared_of_earlier_fronts(given):
    study = ft.Study(SPACE, ft.Budget(cost=99), seed=0)
    for _ in range(3):
        proposal = study.ask()
        study.tell(proposal, value=proposal.config["x"], cost=1.0)
    require_refused("before", lambda: study.persistence(given))
    require_refused("now", lambda: study.persistence(2, given))
    require_refused("before", lambda: study.ei_change(given, configs=[{"x": 0.5}]))
    require_refused("trials", lambda: study.implied_alphas([given]))
    require_refused("trials", lambda: study.implied_alphas(given))
    require_refused("configs", lambda: study.ei_change(2, configs=given))
    require_refused("studies", lambda: ft.value_cost_front(given))
    require_refused("studies", lambda: ft.value_cost_front({"a": given}))


@pytest.mark.parametrize("number", ["a", 1.5, None, True, [], Odd(), -1, 7])
def test_the_number_of_a_trial(number):
    with pytest.raises(FarthingError):
        ft.Study(SPACE, "3 evaluations", policy="random", seed=0).trial(number)


AMOUNTS = ["a", 0, -1, math.nan, math.inf, [], Odd(), True, 1j]


@pytest.mark.parametrize("name", [*ft.Budget.UNITS, "evaluations", "usd_per_hour"])
@pytest.mark.parametrize("amount", AMOUNTS, ids=lambda given: "object" if isinstance(given, Odd) else repr(given))
def test_an_amount_of_a_budget(name, amount):
    require_refused(name, lambda: ft.Budget(**{"seconds": 5, name: amount}))


PARAMETERS: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, list[Any]]]] = {
    "Real": (ft.Real, {"low": 0.5, "high": 1}, {
        "low": [*NOT_A_NUMBER, None, 2], "high": [*NOT_A_NUMBER, None, 0], "log": NOT_A_SWITCH,
        "when": [5, "a", [1], Odd()],
    }),
    "Integer": (ft.Integer, {"low": 1, "high": 9}, {
        "low": [*NOT_A_NUMBER, None, 1.5, 10], "high": [*NOT_A_NUMBER, None, 1.5, 0],
        "step": [*NOT_A_NUMBER, 1.5, 0, None], "log": NOT_A_SWITCH, "when": [5, "a", [1], Odd()],
    }),
    "Ordered": (ft.Ordered, {"values": [1, 2]}, {
        "values": [5, "ab", None, [], [1, 1], Odd()], "log": NOT_A_SWITCH, "when": [5, "a", [1], Odd()],
    }),
    "Choice": (ft.Choice, {"options": [1, 2]}, {
        "options": [5, "ab", None, [], [1, 1], Odd()], "when": [5, "a", [1], Odd()],
    }),
}  # fmt: skip


@pytest.mark.parametrize("kind", PARAMETERS)
def test_an_argument_of_a_parameter(kind):
    make, usual, table = PARAMETERS[kind]
    make(**usual)
    assert set(table) == set(inspect.signature(make).parameters)
    for name, nonsense in table.items():
        for given in nonsense:
            require_refused(kind, lambda given=given, name=name: make(**{**usual, name: given}))
