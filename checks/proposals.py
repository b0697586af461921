"""Are proposals what they were? Records 60 asks of every policy on four problems, or compares with a recording.

    python checks/proposals.py record FILE [--only POLICY[,POLICY]] [--asks N]
    python checks/proposals.py compare FILE [--only POLICY[,POLICY]]

A rework must not change what is proposed. The recording is only good on the machine and the library versions that made
it: the last digits of a fit depend on both. Only the public interface is used, so that one script runs with the code
before and after. What is compared: trial, configuration, predicted cost, start and end steps, hyperparameters found.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import farthing as ft

ASKS = 60
POLICIES = (
    "auto",
    "carbo",
    "cei",
    "ei_alpha",
    "ei_cool",
    "eipu",
    "ei",
    "pbgi",
    "bopt",
    "bapi",
    "thaw",
    "sobol",
    "random",
)
FOR_STEPS = ("bopt", "bapi", "thaw")

Config = dict[str, Any]


def mixed() -> ft.Space:
    return ft.Space(
        rate=ft.Real(1e-4, 1.0, log=True), momentum=ft.Real(0.0, 0.99), depth=ft.Integer(1, 12),
        width=ft.Integer(8, 512, log=True), batch=ft.Ordered([16, 32, 64, 128], log=True),
        kind=ft.Choice(["relu", "tanh", "gelu"]),
    )  # fmt: skip


def conditional() -> ft.Space:
    return ft.Space(
        {
            "model": ft.Choice(["svm", "forest", "boosting"]),
            "C": ft.Real(1e-3, 1e3, log=True, when={"model": "svm"}),
            "kernel": ft.Choice(["rbf", "poly"], when={"model": "svm"}),
            "degree": ft.Integer(2, 5, when={"model": "svm", "kernel": "poly"}),
            "trees": ft.Integer(10, 500, log=True, when={"model": {"forest", "boosting"}}),
            "rate": ft.Real(1e-3, 0.5, log=True, when={"model": "boosting"}),
        },
        forbid=[{"model": "svm", "kernel": "poly", "degree": 5}],
    )


def listed() -> ft.Space:
    return ft.Space(
        a=ft.Ordered([1, 2, 4, 8, 16, 32], log=True), b=ft.Ordered([0.0, 0.1, 0.2, 0.5, 0.9]),
        c=ft.Choice(["x", "y", "z", "w"]), d=ft.Integer(0, 4),
    )  # fmt: skip


def _scale(config: Config, name: str, reference: float) -> float:
    return math.log(config.get(name, reference) / reference)


def mixed_value(config: Config) -> tuple[float, float]:
    value = (
        0.3 * _scale(config, "rate", 0.03) ** 2 + (config["momentum"] - 0.8) ** 2 + 0.02 * (config["depth"] - 6) ** 2
        + 0.2 * _scale(config, "width", 96.0) ** 2 + {"relu": 0.0, "tanh": 0.3, "gelu": 0.1}[config["kind"]]
        + 0.05 * _scale(config, "batch", 64.0) ** 2
    )  # fmt: skip
    return value, 0.1 + config["depth"] * config["width"] / 400.0 + 4.0 / config["batch"]


def conditional_value(config: Config) -> tuple[float, float]:
    if config["model"] == "svm":
        value = 0.4 + 0.05 * _scale(config, "C", 3.0) ** 2 + 0.1 * config.get("degree", 1.5)
        return value, 2.0 + 0.2 * config.get("degree", 1)
    if config["model"] == "forest":
        return 0.7 - 0.08 * math.log(config["trees"]), 0.02 * config["trees"]
    value = 0.25 + 0.08 * _scale(config, "rate", 0.05) ** 2 + 0.05 * _scale(config, "trees", 150.0) ** 2
    return value, 0.05 * config["trees"]


def listed_value(config: Config) -> tuple[float, float]:
    value = (
        abs(math.log2(config["a"]) - 3) + 2 * abs(config["b"] - 0.2) + {"x": 1, "y": 0, "z": 0.5, "w": 2}[config["c"]]
    )
    return value + 0.3 * config["d"], 0.5 + 0.25 * config["a"]


BLACK_BOXES: dict[str, tuple[Callable[[], ft.Space], Callable[[Config], tuple[float, float]]]] = {
    "mixed": (mixed, mixed_value),
    "conditional": (conditional, conditional_value),
    "listed": (listed, listed_value),
}
BUDGETS = {"mixed": 4.0, "conditional": 12.0, "listed": 6.0}  # per ask: the end of a budget comes soon after the last
STEPS = 20


def curve_value(config: Config, step: int) -> tuple[float, float]:
    """An iterative learner: decays at a speed that depends on the configuration, with a ripple in place of noise."""
    end, cost = mixed_value(config)
    speed = 0.1 + 0.4 * config["momentum"]
    return end + 2.0 * math.exp(-speed * step) + 0.01 * math.sin(7.0 * step + 10.0 * end), 0.05 + 0.02 * cost


def as_json(proposal: ft.Proposal) -> dict[str, Any]:
    return {
        "trial": proposal.trial, "config": proposal.config, "cost": proposal.predicted_cost,
        "start": proposal.start_step, "until": proposal.until_step, "fits": dict(proposal.fits),
    }  # fmt: skip


def fails(number: int) -> bool:
    return number % 11 == 7


def black_box(policy: str, problem: str, asks: int) -> list[Any]:
    space, evaluate = BLACK_BOXES[problem]
    study = ft.Study(space(), ft.Budget(cost=BUDGETS[problem] * ASKS), policy=policy, seed=11)
    seen: list[Any] = []
    while len(seen) < asks and study.ended is None:
        try:
            proposals = study.ask(3 if len(seen) % 20 == 12 else 1)
        except ft.errors.StudyEnded:
            break
        for proposal in proposals:
            seen.append(as_json(proposal))
            value, cost = evaluate(proposal.config)
            if fails(proposal.trial):
                study.tell(proposal, failed="planted", cost=cost)
            else:
                study.tell(proposal, value=value, cost=cost)
    return seen


def stepwise(policy: str, asks: int) -> list[Any]:
    study = ft.Study(mixed(), ft.Budget(cost=2.5 * ASKS), policy=policy, seed=11, max_steps=STEPS)
    seen: list[Any] = []
    while len(seen) < asks and study.ended is None:
        try:
            proposal = study.ask()
        except ft.errors.StudyEnded:
            break
        decisions = []
        for step in range(proposal.start_step + 1, STEPS + 1):
            value, cost = curve_value(proposal.config, step)
            decisions.append(str(study.report(proposal, value, cost=cost, saved=step % 5 == 0)))
            if decisions[-1] != "continue":
                break
        seen.append({**as_json(proposal), "decisions": decisions})
    return seen


def job(policy: str, problem: str, asks: int) -> tuple[str, list[Any]]:
    seen = stepwise(policy, asks) if problem == "steps" else black_box(policy, problem, asks)
    return f"{policy}/{problem}", json.loads(json.dumps(seen))


def jobs(only: list[str]) -> list[tuple[str, str]]:
    wanted = [policy for policy in POLICIES if not only or policy in only]
    return [
        (policy, problem) for policy in wanted for problem in (*BLACK_BOXES, "steps")
        if problem == "steps" or policy not in FOR_STEPS
    ]  # fmt: skip


def recorded(only: list[str], asks: int) -> dict[str, list[Any]]:
    with ProcessPoolExecutor() as pool:
        futures = [pool.submit(job, policy, problem, asks) for policy, problem in jobs(only)]
        return dict(future.result() for future in futures)


def first_difference(before: list[Any], after: list[Any]) -> str | None:
    for i, (a, b) in enumerate(zip(before, after, strict=False)):
        if a != b:
            keys = [key for key in a if a[key] != b.get(key)]
            return f"ask {i}: " + "; ".join(
                f"{key}: {str(a[key])[:200]} became {str(b.get(key))[:200]}" for key in keys
            )
    return None if len(before) == len(after) else f"{len(before)} asks became {len(after)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="policies, joined by commas")
    parser.add_argument("--asks", type=int, default=ASKS)
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    if arguments.action == "record":
        arguments.file.write_text(json.dumps(recorded(only, arguments.asks)))
        return 0
    before = json.loads(arguments.file.read_text())
    after = recorded(only, arguments.asks)
    different = 0
    for name, asks in after.items():
        difference = first_difference(before[name][: arguments.asks], asks)
        different += difference is not None
        print(f"{name:24} {len(asks):3} asks  {difference or 'identical'}")  # noqa: T201
    print(f"{len(after) - different} of {len(after)} identical")  # noqa: T201
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
