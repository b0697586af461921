"""Networks whose cost follows from their layers: studies of them, and what each cost model says, from formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

import farthing as ft
from farthing.policies import EIpu
from farthing.surrogates.cost import flops
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.cost.log_cost import CostModel
from oracles.dense_gp import kernel, least_squares_mean

# Five parameters of a network of two hidden layers; a size on a linear scale enters as its log.
SPACE = ft.Space(
    first=ft.Integer(8, 128, log=True),
    second=ft.Integer(8, 128),
    rate=ft.Real(1e-4, 1.0, log=True),
    dropout=ft.Real(0.0, 0.9),
    kind=ft.Choice(["relu", "tanh"]),
)
LAYERS = (64, 10)  # inputs and outputs


def counts(config: dict[str, Any]) -> dict[str, float]:
    layers = [LAYERS[0], config["first"], config["second"], LAYERS[1]]
    return {"quad": ft.flops.phi_quad(layers), "linear": ft.flops.phi_linear(layers)}


def cost_of(config: dict[str, Any], trial: int = 0) -> float:
    """Prices times counts, 30 % more for one kind, and a few percent of noise."""
    quad, linear = counts(config).values()
    noise = np.random.default_rng([trial, 1]).standard_normal()
    return float(
        (1e-3 * quad + 5e-3 * linear + 0.5) * (1.3 if config["kind"] == "tanh" else 1.0) * np.exp(0.05 * noise)
    )


def value_of(config: dict[str, Any]) -> float:
    return abs(np.log10(config["rate"]) + 2.0) + abs(config["dropout"] - 0.3) + 16.0 / config["first"]


def played(policy: Any, n: int, **options: Any) -> ft.Study:
    """A study of n evaluations."""
    study = ft.Study(SPACE, ft.Budget(cost=1e9), policy=policy, seed=3, cost_features=counts, **options)
    return more(study, n)


def more(study: ft.Study, n: int) -> ft.Study:
    for _ in range(n):
        proposal = study.ask()
        study.tell(proposal, value=value_of(proposal.config), cost=cost_of(proposal.config, proposal.trial))
    return study


def before(study: ft.Study, proposal: ft.Proposal) -> list[ft.Trial]:
    """The trials that a proposal was made from."""
    return [trial for trial in study.trials if trial.number < proposal.trial]


def data(trials: list[ft.Trial]) -> tuple[np.ndarray, np.ndarray]:
    """Z (n, f): parameters in the unit cube, sizes as logs, options as columns; and log costs (n,)."""
    X = SPACE.features(SPACE.encode_many(trial.config for trial in trials))
    return log_features(X), np.log([trial.cost for trial in trials])


def counted(trials: list[ft.Trial]) -> np.ndarray:
    """(n, 3): the counts, and one."""
    return np.array([[*counts(trial.config).values(), 1.0] for trial in trials])


def log_features(X: np.ndarray) -> np.ndarray:
    """The second layer is the only size on a linear scale: each integer has a cell, from 7.5 to 128.5 in all."""
    Z = X.copy()
    Z[:, 1] = np.log((7.5 + 121.0 * X[:, 1]) / 7.5) / np.log(128.5 / 7.5)
    return Z


def at(config: dict[str, Any]) -> np.ndarray:
    return log_features(SPACE.features(SPACE.encode(config)[None, :]))


def process_mean(Z: np.ndarray, y: np.ndarray, z: np.ndarray, stored: dict[str, Any], groups: np.ndarray) -> float:
    """The posterior mean at z of a Gaussian process with stored hyperparameters, from its formulas."""
    scales = np.exp(np.array(stored["log_scales"]))[groups]
    K = kernel(Z, Z, scales) + np.exp(stored["log_noise"]) * np.eye(len(Z))
    mean = least_squares_mean(K, y)
    return mean + float(kernel(z, Z, scales)[0] @ np.linalg.solve(K, y - mean))


def asked(name: CostModelName, n: int = 12) -> tuple[ft.Study, ft.Proposal, dict[str, Any]]:
    """A study of EIpu with that model after n evaluations, its next proposal, and the fit stored with it."""
    study = played(EIpu(cost_model=name), n)
    proposal = study.ask()
    return study, proposal, proposal.fits["cost"]


class Counting(CostModel):
    """The counts of configurations as a model of their features, fitted to some of them."""

    def __init__(self, X: np.ndarray, Phi: np.ndarray, b: np.ndarray, rows: np.ndarray) -> None:
        self.of_row = {x.tobytes(): phi for x, phi in zip(X, Phi, strict=True)}
        self.fitted = flops.fit(Phi[rows], np.exp(b[rows]))

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.fitted.predict(np.array([self.of_row[x.tobytes()] for x in X]))

    def log_densities(self) -> np.ndarray:
        return self.fitted.log_densities()


MLP = ft.Space({f"n_{i}": ft.Integer(10, 300) for i in range(1, 5)})  # k = 4 layers, as in section 6


def networks(n: int, seed: int, left_out: float = 0.2) -> tuple[np.ndarray, np.ndarray, Any]:
    """Features, log costs and models of counts: cost is what is counted, up to 20 % more or less, and 3 % of noise."""
    rng = np.random.default_rng(seed)
    configs = MLP.decode_many(rng.random((n, 4)))
    layers = np.array([list(config.values()) for config in configs], dtype=float)
    Phi = np.array([[ft.flops.phi_quad(row), ft.flops.phi_linear(row)] for row in layers.tolist()])
    error = left_out * np.sin(layers[:, 0] / 50.0) + 0.03 * rng.standard_normal(n)
    X, b = MLP.features(MLP.encode_many(configs)), np.log(Phi @ [2e-5, 1e-3] + 0.4) + error
    return X, b, lambda rows: Counting(X, Phi, b, rows)
