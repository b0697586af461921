"""Cost-aware Bayesian Optimization (CArBO; Lee, Perrone, Archambeau and Seeger 2020), number by number.

`CArBO.paper()` is checked against the printed text: on a grid of 144 configurations every candidate is scored by a
Gaussian process of numpy.linalg (`oracles.dense_gp`) under the hyperparameters of the proposal, and the algorithms are
transcribed line by line. Equation 3 is printed twice, the second time as Eq. 4 in appendix B. Section 6, on models of
cost, is in test_carbo_cost_models.py; here c(x) is either known or what the policy's own model says.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest

import farthing as ft
from farthing.acquisitions.improvement import MeanLogEI
from farthing.history import History, units, values
from farthing.policies.cost_models import named_cost_model
from farthing.surrogates import gp
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.gp import Hyperparameters
from oracles.dense_gp import NU, DenseGP, kernel, least_squares_mean
from oracles.fantasies import Recorded, log_ei_of, with_joint_sample, with_sample

GRID = ft.Space(x=ft.Integer(0, 11), size=ft.Ordered([1, 3, 10, 30, 100, 300], log=True), kind=ft.Choice(["a", "b"]))
TAU = 2_000.0
CArBO, EI, EIpu = ft.policies.CArBO, ft.policies.EI, ft.policies.EIpu
Config = dict[str, Any]


ROUGH = dict(zip(map(GRID.key, GRID.enumerate()), np.random.default_rng(0).normal(0.0, 15.0, 144), strict=True))


def value(config: Config) -> float:
    """Better with a larger size, which costs more; rough, so that EI is never negligible; in units far from 1."""
    smooth = 700.0 * (config["x"] / 11.0 - 0.6) ** 2 + 100.0 / config["size"] ** 0.5
    return smooth + (30.0 if config["kind"] == "b" else 0.0) + float(ROUGH[GRID.key(config)])


def cost(config: Config) -> float:
    return (2.0 + config["size"] ** 0.7) * (1.0 + 0.03 * config["x"]) * (1.3 if config["kind"] == "a" else 1.0)


def told(study: ft.Study, proposals: list[ft.Proposal]) -> None:
    for proposal in proposals:
        study.tell(proposal, value=value(proposal.config), cost=cost(proposal.config))


def spent(policy: Any, share: float, seed: int, batch: int = 1, **options: Any) -> ft.Study:
    """A study that has used at least this share of its budget."""
    study = ft.Study(GRID, ft.Budget(cost=TAU), policy=policy, seed=seed, **options)
    while study.ledger.fraction < share:
        told(study, study.ask(batch))
    return study


def proposed(policy: Any, study: ft.Study, n: int = 1, rng: np.random.Generator | None = None) -> list[ft.Proposal]:
    """What a policy proposes at the state of a study."""
    return policy.propose(GRID, study._history, study.ledger, n, rng or np.random.default_rng(0))


def fresh(study: ft.Study) -> list[Config]:
    tried = {GRID.key(trial.config) for trial in study.trials}
    return [config for config in GRID.enumerate() if GRID.key(config) not in tried]


def features(configs: list[Config]) -> np.ndarray:
    return GRID.features(GRID.encode_many(configs))


def modelled_cost(history: History, configs: list[Config]) -> np.ndarray:
    """c(x) = exp(gamma(x)), gamma the mean of a Gaussian process on log cost: below Eq. 3."""
    model, _ = named_cost_model("gp")(GRID, history)
    return np.exp(model.mean_at(features(configs)))


def process_of(history: History, fits: dict[str, Any]) -> DenseGP:
    """The process under stored hyperparameters. Its values are only standardised: EI is that of the objective, divided
    by their standard deviation."""
    complete = history.complete
    X, y = GRID.features(units(complete, len(GRID))), values(complete)
    found = Hyperparameters.from_json(fits["value"])
    scales, eta = np.exp(np.array(found.log_scales))[GRID.groups], float(np.exp(found.log_noise))
    z = (y - y.mean()) / y.std()
    K = kernel(X, X, scales) + eta * np.eye(len(y))
    mean = least_squares_mean(K, z)
    variance = ((z - mean) @ np.linalg.solve(K, z - mean) + NU) / (len(z) + NU)
    return DenseGP(X, z, mean, float(variance), scales, eta)


def assert_best(study: ft.Study, proposal: ft.Proposal, alpha: float, known: bool = True) -> None:
    """The proposal is the argmax of EI / c^alpha over every configuration that was not tried."""
    configs, history = fresh(study), study._history
    process = process_of(history, proposal.fits)
    c = np.array([cost(config) for config in configs]) if known else modelled_cost(history, configs)
    utility = log_ei_of(process, features(configs)) - alpha * np.log(c)
    assert utility[configs.index(proposal.config)] >= utility.max() - 1e-4
    assert len(np.flatnonzero(utility >= utility.max() - 1e-4)) < 5


# -- sections 1 and 2 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("seed", range(2))
class TestEquation1:
    """EIpu(x) = EI(x) / c(x), and EI of section 1; nothing changes near the end of a budget."""

    def test_eipu_proposes_its_argmax(self, seed, share):
        study = spent(EIpu.paper(), share, seed)
        assert_best(study, proposed(EIpu.paper(), study)[0], alpha=1.0, known=False)

    def test_ei_proposes_its_argmax_whatever_it_costs(self, seed, share):
        study = spent(EI.paper(), share, seed)
        assert_best(study, proposed(EI.paper(), study)[0], alpha=0.0)


# -- section 3, the design ---------------------------------------------------------------------------------------------


def fill(design: np.ndarray, omega: np.ndarray) -> float:
    """sup over omega of the distance to the design: the objective of Eq. 2."""
    return float(np.linalg.norm(omega[:, None] - design[None], axis=2).min(axis=1).max())


class TestEquation2:
    """The design of least fill(X) with sum c(x_i) < tau_init, approximated greedily."""

    @pytest.mark.parametrize("seed", range(5))
    def test_where_all_costs_are_equal_it_is_within_twice_the_least_fill(self, seed):
        """Section 3: Algorithm 1 "reduces to the greedy approach described in Pronzato & Mueller (2012) given a
        constant cost function", whose worst case is a factor of 2. Brute force: all 12,650 designs of four points."""
        square = ft.Space(x=ft.Integer(0, 4), y=ft.Integer(0, 4))
        study = ft.Study(square, ft.Budget(cost=32.0), policy=CArBO.paper(), seed=seed, known_cost=lambda config: 1.0)
        for _ in range(4):
            study.tell(study.ask(), value=0.0, cost=1.0)
        omega = square.encode_many(square.enumerate())
        design = square.encode_many(trial.config for trial in study.trials)
        distance = np.linalg.norm(omega[:, None] - omega[None], axis=2)
        best = min(distance[list(chosen)].min(axis=0).max() for chosen in combinations(range(len(omega)), 4))
        assert fill(design, omega) <= 2.0 * best + 1e-12

    def test_it_covers_more_than_a_grid_of_the_same_cost(self):
        """Figure 4: fifteen points and more instead of a grid of four, closer to most of the square. Not closer to all
        of it: the largest empty sphere is where it is expensive, because the point that is left is never one of the
        more expensive half."""
        square = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1))

        def hill(config: Config) -> float:
            return 0.05 + float(np.exp(-40.0 * ((config["x"] - 0.7) ** 2 + (config["y"] - 0.7) ** 2)))

        grid = np.array([[a, b] for a in (0.25, 0.75) for b in (0.25, 0.75)])
        total = sum(hill({"x": x, "y": y}) for x, y in grid)
        study = ft.Study(square, ft.Budget(cost=8.0 * total), policy=CArBO.paper(), seed=0, known_cost=hill)
        while study.ledger.spent < total:
            proposal = study.ask()
            study.tell(proposal, value=0.0, cost=hill(proposal.config))
        design = square.encode_many(trial.config for trial in study.trials)
        omega = np.random.default_rng(1).random((4_000, 2))
        assert len(design) >= 15
        near = [np.linalg.norm(omega[:, None] - points[None], axis=2).min(axis=1) for points in (design, grid)]
        assert np.median(near[0]) < 0.7 * np.median(near[1])


def algorithm_1(configs: list[Config], log_cost: np.ndarray, design: np.ndarray) -> int:
    """Lines 5 to 8 as printed, one exclusion after the other; of equal ones, what the other line would exclude."""
    near = np.linalg.norm(features(configs)[:, None] - design[None], axis=2).min(axis=1).round(9)
    left = list(range(len(configs)))
    while len(left) > 1:
        left.remove(max(left, key=lambda i: (log_cost[i], -near[i])))  # line 6
        if len(left) > 1:
            left.remove(min(left, key=lambda i: (near[i], -log_cost[i])))  # line 7
    return left[0]


def is_design(proposal: ft.Proposal) -> bool:
    return proposal.reason == "initial design: cheap and far from earlier trials"


@pytest.mark.parametrize("batch", [1, 3])
class TestAlgorithm1:
    """The cost-effective design. The printed lines exclude points from the candidates for good, which leaves none for
    the second point; we take all of them again for every point. X_init is empty at first, where no point is closest to
    it; we take the five points of the warm-up into it. Line 4 counts their cost too."""

    def test_each_point_is_the_last_candidate(self, batch):
        """In a batch the inner loop runs b times (section 3), and each point it leaves joins X_init."""
        study = spent(CArBO.paper(), 1e-9, seed=0, batch=5)
        points, everywhere = 0, list(GRID.enumerate())
        while study.ledger.spent < TAU / 8:
            c = dict(zip(map(GRID.key, everywhere), modelled_cost(study._history, everywhere), strict=True))
            left, design = fresh(study), [trial.config for trial in study.trials]
            asked = study.ask(batch)
            for proposal in asked:
                log_cost = np.log([c[GRID.key(config)] for config in left])
                last = left.pop(algorithm_1(left, log_cost, features(design)))
                assert proposal.config == last
                design.append(last)
            points += len(asked)
            told(study, asked)  # line 9; line 10 updates the cost surrogate
        assert points >= 6

    def test_it_goes_on_until_tau_init_is_exceeded(self, batch):
        """Line 4, ct < tau_init = tau / 8: no sooner, no later, and the last batch may pass it."""
        study = spent(CArBO.paper(), 1e-9, seed=1, batch=5)
        while study.ledger.fraction < 0.3:
            ct = study.ledger.spent
            asked = study.ask(batch)
            assert {is_design(proposal) for proposal in asked} == {ct < TAU / 8}
            told(study, asked)


# -- section 3, cost-cooling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.15, 0.5, 0.95])
class TestEquation3:
    """EI-cool(x) = EI(x) / c(x)^alpha with alpha = (tau - tau_k) / (tau - tau_init), printed again as Eq. 4. tau_init
    is tau / 8, the input of Algorithm 2; the design ends a little later, so that alpha begins a little below 1 (the
    text has "at k = 0, tau_k = tau_init")."""

    @pytest.mark.parametrize("known", [True, False])
    def test_the_argmax_is_proposed(self, share, known):
        study = spent(CArBO.paper(), share, seed=2, **({"known_cost": cost} if known else {}))
        alpha = (TAU - study.ledger.spent) / (TAU - TAU / 8)
        assert 0.0 < alpha < 1.0
        assert_best(study, proposed(CArBO.paper(), study)[0], alpha, known)

    def test_alpha_is_the_same_for_a_whole_batch(self, share):
        """Time is counted when a batch has ended: line 8 of Algorithm 2."""
        study = spent(CArBO.paper(), share, seed=2)
        assert len({proposal.reason for proposal in proposed(CArBO.paper(), study, n=3)}) == 1


class TestWarmUp:
    """ "Learning c(x) requires a warm-start, for which we use five points drawn from the search space uniformly at
    random." """

    @staticmethod
    def _first(policy: Any, count: int) -> np.ndarray:
        """x and y of the first five trials of many studies (count, 5, 2)."""
        square = ft.Space(x=ft.Real(1, 1e6, log=True), y=ft.Real(0, 1))
        studies = (ft.Study(square, ft.Budget(cost=1.0), policy=policy, seed=seed) for seed in range(count))
        return np.array([square.encode_many(p.config for p in study.ask(5)) for study in studies])

    def test_its_five_points_are_independent_and_uniform(self):
        """The first four points of a Sobol sequence lie in four different quarters of each coordinate, always; four
        independent ones with probability 4! / 4^4 = 0.094."""
        uniform, sobol = self._first(CArBO.paper(), 300), self._first(CArBO(), 300)
        different = [np.mean([len(set(row)) == 4 for row in np.floor(4 * U[:, :4, 0])]) for U in (uniform, sobol)]
        assert abs(different[0] - 24 / 256) < 4.0 * np.sqrt(24 / 256 * (1 - 24 / 256) / 300)
        assert different[1] == 1.0
        assert all(kstest(uniform[:, k, j], "uniform").pvalue > 1e-3 for k in range(5) for j in range(2))
        correlation = np.corrcoef(uniform.reshape(300, 10).T)
        assert np.abs(correlation - np.eye(10)).max() < 4.0 / np.sqrt(300)

    def test_they_are_five(self):
        study = spent(CArBO.paper(), 0.2, seed=0)
        drawn = [trial.reason == "initial design: drawn at random" for trial in study.trials]
        assert drawn == [True] * 5 + [False] * (len(drawn) - 5)


@pytest.mark.parametrize("batch", [1, 4])
def test_algorithm_2_design_then_ei_cool_until_the_budget_is_used(batch):
    """Lines 3 to 9 with b = 1 and 4, and line 10: the best configuration observed. With b = 4 the fifth point of the
    warm-up brings three more along, because the costs of its batch are not known yet."""
    study = ft.Study(GRID, ft.Budget(cost=TAU / 2), policy=CArBO.paper(), seed=3)
    phases = []
    while study.ended is None:
        asked = study.ask(batch)
        phases += [proposal.reason.split("^")[0] for proposal in asked]
        told(study, asked)
    drawn, designed, cooled = (phases.count(phase) for phase in dict.fromkeys(phases))
    assert drawn == {1: 5, 4: 8}[batch]
    assert phases == [
        *["initial design: drawn at random"] * drawn,
        *["initial design: cheap and far from earlier trials"] * designed,
        *["largest expected improvement per cost"] * cooled,
    ]
    assert study.ledger.spent - sum(trial.cost for trial in study.trials[-batch:]) < TAU / 2 <= study.ledger.spent
    assert study.best.value == min(value(trial.config) for trial in study.trials)


# -- appendix A --------------------------------------------------------------------------------------------------------


def algorithm_3(
    process: DenseGP, left: list[Config], c: np.ndarray, alpha: float, draws: list[np.ndarray]
) -> list[Config]:
    """The batch of EI / c^alpha from n_f fantasies; draws hold one normal number for each fantasy and point but the
    last. The index of x in line 7 is j - 1 and that of y in line 9 is the same: the printed ones slip."""
    left, c, batch = list(left), c.copy(), []
    fantasies = [process] * len(draws[0])  # lines 2 to 4
    for drawn in [*draws, None]:
        each = [log_ei_of(fantasy, features(left)) for fantasy in fantasies]
        utility = logsumexp(each, axis=0) - alpha * np.log(c)
        best = int(np.argmax(utility))  # lines 5 and 12
        batch.append(left.pop(best))
        c = np.delete(c, best)
        if drawn is not None:
            x = features(batch[-1:])
            fantasies = [with_sample(fantasy, x, z) for fantasy, z in zip(fantasies, drawn, strict=True)]
    return batch


FORMS = {"carbo": (CArBO.paper(), None), "ei": (EI.paper(), 0.0), "eipu": (EIpu.paper(), 1.0)}


class TestAlgorithm3:
    """Batch fantasising, with n_f = 10; section 4 has batches of EI and EIpu too."""

    @pytest.mark.parametrize("policy", FORMS)
    @pytest.mark.parametrize("share", [0.3, 0.7])
    def test_the_batch_is_what_the_algorithm_gives(self, policy, share):
        form, alpha = FORMS[policy]
        study = spent(form, share, seed=4)
        if alpha is None:
            alpha = (TAU - study.ledger.spent) / (TAU - TAU / 8)
        rng = Recorded(5)
        batch = proposed(form, study, n=4, rng=rng)
        draws = [drawn[0] for drawn in rng.normals if drawn.shape == (1, 10)]
        assert len(draws) == 3
        left = fresh(study)
        process = process_of(study._history, batch[0].fits)
        c = np.ones(len(left)) if alpha == 0.0 else modelled_cost(study._history, left)
        assert [proposal.config for proposal in batch] == algorithm_3(process, left, c, alpha, draws)

    def test_the_first_of_a_batch_is_what_would_be_proposed_alone(self):
        """Line 5."""
        study = spent(CArBO.paper(), 0.4, seed=6)
        alone, batch = proposed(CArBO.paper(), study), proposed(CArBO.paper(), study, n=5)
        assert batch[0].config == alone[0].config
        assert len({GRID.key(proposal.config) for proposal in batch}) == 5

    def test_running_trials_are_a_batch_that_has_begun(self):
        """Many fantasies are the expectation over the joint posterior of what is running, by Monte Carlo."""
        study = spent(CArBO.paper(), 0.13, seed=6)
        process = process_of(study._history, proposed(CArBO.paper(), study)[0].fits)
        X = features(fresh(study))
        X = X[np.argsort(-log_ei_of(process, X))[:12]]  # where EI is large enough for samples of it to be alike
        running, X = X[[0, 3]], X[4:]
        rng, count = np.random.default_rng(7), 400
        each = [np.exp(log_ei_of(with_joint_sample(process, running, rng), X)) for _ in range(count)]
        fantasies = Fantasies.of(_fitted(process), float(process.y.min()), running, rng, count=4_000)
        error = np.std(each, axis=0) * np.sqrt(1 / count + 1 / 4_000)
        assert (np.abs(np.mean(each, axis=0) - np.exp(MeanLogEI(fantasies)(X))) < 4.5 * error).all()


def _fitted(process: DenseGP) -> gp.GP:
    """The same process as the policy has it."""
    first = [list(GRID.groups).index(group) for group in range(len(GRID))]
    found = Hyperparameters(tuple(np.log(process.scales[first]).tolist()), float(np.log(process.eta)))
    return gp.from_hyperparameters(process.X, process.y, found, GRID.groups)


# -- section 5 ---------------------------------------------------------------------------------------------------------


class TestSection5:
    """Other design budgets (Figure 7), and the ablation: EI or EIpu after the design (Figure 8)."""

    @pytest.mark.parametrize("share", [1 / 8, 4 / 8, 6 / 8])
    def test_the_design_takes_its_share_of_the_budget(self, share):
        study = spent(CArBO.paper(design_share=share), 1e-9, seed=0, batch=5)
        while is_design(asked := study.ask()):
            told(study, [asked])
            last = cost(asked.config)
        assert study.ledger.spent - last < share * TAU <= study.ledger.spent

    @pytest.mark.parametrize(("option", "rival", "alpha"), [("alpha", EI, 0.0), ("floor", EIpu, 1.0)])
    @pytest.mark.parametrize("share", [0.2, 0.6])
    def test_without_cooling_it_is_ei_or_eipu_after_the_design(self, option, rival, alpha, share):
        ablated = CArBO.paper(**{option: alpha})
        study = spent(ablated, share, seed=9)
        (ours,), (theirs,) = proposed(ablated, study), proposed(rival.paper(), study)
        assert ours.config == theirs.config
        assert_best(study, ours, alpha, known=False)
        assert any(is_design(trial) for trial in study.trials)


def test_the_papers_form_is_these_options():
    paper = {
        "values": "plain", "end": "ignored", "target": "least", "cost_model": "gp", "warm_up": "uniform",
        "hints": False, "initial": 5, "design_share": 1 / 8,
    }  # fmt: skip
    assert paper == CArBO.PAPER
    assert CArBO.paper() == CArBO(**paper, alpha=1.0, floor=0.0)
    with pytest.raises(ft.errors.InvalidArgument, match=r"carbo: floor: expected a number from 0 to 0\.5, got 0\.7"):
        CArBO(alpha=0.5, floor=0.7)
