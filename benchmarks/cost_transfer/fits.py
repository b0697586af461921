"""Errors of offline and online cost models on a held-out task.

Offline models are trained on all other tasks of the family and never see the held-out one. Online models see n of its
evaluations and nothing else. Farthing's prior is both: it starts from the other tasks and corrects itself by n
evaluations. A repetition orders the held-out configurations at random: the first are for online models, those after
the largest n are what every model is tested on.

`methods` lists the rows; to add one, name it there and add its errors in `task_errors`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from benchmarks.common.children import Child
from benchmarks.common.fingerprints import code_hash, farthing_code, fingerprint, module_file
from benchmarks.common.kept_runs import once
from benchmarks.cost_models.fits import rmse
from benchmarks.cost_transfer.tasks import Task
from farthing.surrogates.cost import choice as cost_choice
from farthing.surrogates.cost import lines as linear_cost
from farthing.surrogates.cost import log_cost
from farthing.surrogates.cost.log_cost import CostModel

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

OFFLINE_PEER = "cost_transfer.peers.offline"
ONLINE_SIZES = (2, 5, 10, 20, 50)
PRIOR_SIZES = (0, 2, 5, 10, 20)
OFFLINE = {
    "naive-linear": "naive line",
    "task-linear": "task-aware line",
    "mlp": "MLP",
    "knn": "k nearest neighbours",
    "tree": "decision tree",
    "hist-boosting": "boosted trees (scikit-learn)",
    "xgboost": "boosted trees (XGBoost)",
}
ONLINE = {"gp": "GP", "line-3": "line, 3 parameters", "auto": "automatic choice"}
PRIOR = {"prior": "CostPrior"}
KINDS = {"offline": "other data sets only", "online": "this data set only", "prior": "Farthing's prior"}


def methods() -> dict[str, tuple[str, str]]:
    """Name of each row to its title and its kind; an online row is named by model and size."""
    return {
        **{name: (title, "offline") for name, title in OFFLINE.items()},
        **{f"{name}({n})": (f"{title} ({n})", "online") for name, title in ONLINE.items() for n in ONLINE_SIZES},
        **{f"{name}({n})": (f"{title} ({n})", "prior") for name, title in PRIOR.items() for n in PRIOR_SIZES},
    }


# -- offline -----------------------------------------------------------------------------------------------------------


def offline_predictions(child: Child, held: Task, others: Sequence[Task]) -> dict[str, Array]:
    """Predicted log costs of all configurations of the held-out task, by model; from the cache where they are."""
    question = {
        "Z": np.concatenate([task.Z for task in others]).tolist(),
        "M": np.concatenate([np.tile(task.meta, (len(task.configs), 1)) for task in others]).tolist(),
        "b": np.concatenate([task.log_cost for task in others]).tolist(),
        "Z_test": held.Z.tolist(),
        "M_test": np.tile(held.meta, (len(held.configs), 1)).tolist(),
    }
    name = f"costs-offline-{held.name.replace(' ', '_')}"
    answer = once(name, [question, fingerprint("costs", (OFFLINE_PEER,))], lambda: child.ask(question))
    return {name: np.array(predicted) for name, predicted in answer.items()}


# -- online ------------------------------------------------------------------------------------------------------------


def online_errors(held: Task, order: Rows) -> dict[str, float]:
    """Models that see the first n of the order; the automatic choice hands its state from one n to the next."""
    b, X, Z, test = held.log_cost, held.X, held.Z, order[max(ONLINE_SIZES) :]
    groups, ratios, state, errors = held.space.groups, held.space.ratios, None, {}
    for n in range(1, max(ONLINE_SIZES) + 1):
        seen = order[:n]
        chosen = cost_choice.choose(X[seen], b[seen], groups, ratios, state)
        state = chosen.state
        if n not in ONLINE_SIZES:
            continue
        errors[f"gp({n})"] = rmse(log_cost.process(Z[seen], b[seen], groups).predict(Z[test])[0], b[test])
        line = linear_cost.fit_sizes(Z[seen], b[seen], groups)[3]
        errors[f"line-3({n})"] = rmse(line.predict(Z[test])[0], b[test])
        errors[f"auto({n})"] = rmse(chosen.model.predict(X[test])[0], b[test])
    return errors


# -- Farthing's prior --------------------------------------------------------------------------------------------------


def prior_of(held: Task, others: Sequence[Task]) -> CostModel:
    """What `ft.CostPrior` makes of studies of the other tasks, for a task like the held-out one.

    The studies are real ones, told the costs that were measured. A study shows one prediction per proposal; to ask for
    many at once, the model behind it is made here as a policy makes it.
    """
    from farthing.policies.cost_models import task_features
    from farthing.surrogates.cost import transfer

    studies = ft.CostPrior.from_studies(_told(task) for task in others).studies
    U, costs = (np.concatenate([getattr(study, part) for study in studies]) for part in ("U", "costs"))
    which = np.repeat(np.arange(len(studies)), [len(study.costs) for study in studies])
    M = task_features([*(study.task for study in studies), held.described])
    space = held.space
    return transfer.fit(space.features(U), np.log(costs), which, space.groups, space.ratios, M[:-1], M[-1])


def _told(task: Task) -> ft.Study:
    """A study that evaluated all configurations of a task."""
    budget = ft.Budget(cost=1e12)
    study = ft.Study(task.space, budget, policy="random", seed=0, start=task.configs, task=task.described)
    for cost in np.exp(task.log_cost).tolist():
        study.tell(study.ask(), value=0.0, cost=cost)
    return study


def prior_errors(held: Task, prior: CostModel, order: Rows) -> dict[str, float]:
    """The prior alone, and corrected by the first n evaluations."""
    b, X, test = held.log_cost, held.X, order[max(ONLINE_SIZES) :]
    errors, state = {"prior(0)": rmse(prior.predict(X[test])[0], b[test])}, None
    for n in range(1, max(PRIOR_SIZES) + 1):
        seen = order[:n]
        chosen = cost_choice.choose(X[seen], b[seen], held.space.groups, held.space.ratios, state, prior=prior)
        state = chosen.state
        if n in PRIOR_SIZES:
            errors[f"prior({n})"] = rmse(chosen.model.predict(X[test])[0], b[test])
    return errors


# -- all of them -------------------------------------------------------------------------------------------------------


def task_errors(child: Child, held: Task, others: Sequence[Task], repetitions: int) -> dict[str, list[float]]:
    """By method, one error per repetition."""
    offline = offline_predictions(child, held, others)
    drawn = hashlib.sha256(b"".join(task.log_cost.tobytes() + task.X.tobytes() for task in (held, *others))).hexdigest()

    def errors() -> dict[str, list[float]]:
        prior, found = prior_of(held, others), []
        for r in range(repetitions):
            order = np.random.default_rng([2, r]).permutation(len(held.configs))
            test = order[max(ONLINE_SIZES) :]
            one = {name: rmse(predicted[test], held.log_cost[test]) for name, predicted in offline.items()}
            found.append({**one, **online_errors(held, order), **prior_errors(held, prior, order)})
        return {name: [one[name] for one in found] for name in found[0]}

    code = code_hash([module_file("cost_transfer.fits")]) + farthing_code()
    key = [held.name, repetitions, drawn, code, list(offline)]
    stored: dict[str, list[float]] = once(f"costs-transfer-{held.name.replace(' ', '_')}", key, errors)
    return stored


def family_errors(tasks: Sequence[Task], repetitions: int) -> dict[str, dict[str, list[float]]]:
    """By task and method; each task is held out once. One line on the screen per task."""
    found: dict[str, dict[str, list[float]]] = {}
    with Child("costs", OFFLINE_PEER) as child:
        for i, held in enumerate(tasks, start=1):
            others = [task for task in tasks if task is not held]
            found[held.name] = task_errors(child, held, others, repetitions)
            shown = ", ".join(f"{name} {np.mean(found[held.name][name]):.2f}" for name in ("xgboost", "auto(10)"))
            print(f"{i}/{len(tasks)} {held.name} held out: {shown}", flush=True)
    return found
