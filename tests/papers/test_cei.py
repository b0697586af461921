"""CEI by number: Guinet, Perrone and Archambeau (2020), Pareto-efficient acquisition functions for cost-aware BO.

The paper's form (`EI.paper()`, `EIAlpha.paper(alpha=...)`, `CEI.paper(tradeoff=...)`, its lambda) is compared with
brute force over every configuration of a finite space. Figures 1, 5 and 7 and appendix B: test_cei_figures.py.

What the paper leaves open: how ties are broken (here by EI), and whether configurations that were tried count (here
they do not).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.policies import CEI, EI, EIAlpha, EIpu
from oracles.every_config import COST, EXACT, SPACE, Oracle, Search, cost, learned_cost, pick, search, value

BLIND = EI.paper(initial=5)


def violates_equation_2(oracle: Oracle, chosen: int, tradeoff: float, cost: np.ndarray = COST) -> bool:
    """Whether a choice is not the cheapest of those whose EI is at least (1 - lambda) of the largest."""
    ei = np.where(oracle.fresh, oracle.ei(), -1.0)
    enough = ei >= (1.0 - tradeoff) * ei.max() * (1.0 + EXACT)
    least = cost[enough & oracle.fresh].min(initial=np.inf)
    return ei[chosen] < (1.0 - tradeoff) * ei.max() * (1.0 - EXACT) or cost[chosen] > least * (1.0 + EXACT)


class TestSection2ExpectedImprovement:
    """EI(x) = E[max(0, f_min - f(x))], blind to cost, to the end of the budget and beyond what is affordable."""

    @pytest.mark.parametrize("policy", [BLIND, EI(initial=5, end="ignored", values="plain")])
    def test_every_ask_of_a_budget_is_the_argmax_over_all_configurations(self, policy):
        found = search(policy, budget=250.0, known=False)
        assert len(found.modelled()) >= 10
        for trial in found.modelled():
            oracle = Oracle.before(found, trial)
            if policy.target == "least":
                utility = oracle.log_utility(0.0)
            else:  # f_min is the least posterior mean at what was tried
                target = float(oracle.mean[~oracle.fresh].min())
                utility = np.log(np.where(oracle.fresh, np.maximum(oracle.ei(target), 1e-300), 1e-300))
            assert utility[pick(found.proposals[trial])] >= utility.max() - EXACT

    def test_some_of_them_cost_more_than_what_was_left(self):
        """Else the test above would say nothing about the end of a budget."""
        found = search(BLIND, budget=250.0, known=False)
        spent = np.cumsum([trial.cost for trial in found.study.trials])
        assert spent[-1] > 250.0

    def test_the_same_is_proposed_whatever_things_cost(self):
        """With costs half as high the same trials end in the middle of the budget: they are the same."""
        near, far = (search(BLIND, budget=250.0, known=False, scale=scale) for scale in (1.0, 0.5))
        shared = len(near.proposals)
        assert near.study.ledger.fraction >= 1.0
        assert len(far.proposals) > shared
        assert [p.config for p in near.proposals] == [p.config for p in far.proposals[:shared]]

    def test_the_same_is_proposed_if_what_was_expensive_is_cheap(self):
        found = search(BLIND, budget=250.0, known=False)
        turned = ft.Study(SPACE, ft.Budget(cost=250.0), policy=BLIND, seed=0)
        for expected in found.proposals:
            if turned.ended is None:
                proposal = turned.ask()
                assert proposal.config == expected.config
                turned.tell(proposal, value=value(proposal.config), cost=100.0 / (3.0 + cost(proposal.config)))
        assert turned.ledger.fraction > 0.7

    def test_our_default_is_not_blind_near_the_end(self):
        near, far = (search(EI(initial=5), budget=250.0, known=False, scale=scale) for scale in (1.0, 0.5))
        assert [p.config for p in near.proposals] != [p.config for p in far.proposals[: len(near.proposals)]]

    def test_the_front_of_such_a_study_does_not_know_the_end_either(self):
        found = search(BLIND, budget=250.0, known=False)
        trial = found.modelled()[-1]
        front = found.study.pareto(trial)
        assert SPACE.decode(front.picks["EI"].u) == found.proposals[trial].config
        oracle = Oracle.before(found, trial)
        spread = np.std([t.value for t in found.study.trials[:trial]])
        assert front.log_ei[-1] + np.log(spread) == pytest.approx(oracle.log_utility(0.0).max(), abs=EXACT)


class TestEquation1:
    """EI_alpha(x) = EI(x) / c(x)^alpha; alpha = 1 is EIpu (section 2)."""

    @pytest.mark.parametrize("policy", [EIAlpha.paper(alpha=0.2), EIAlpha.paper(alpha=2.0), EIpu.paper()])
    def test_every_ask_is_the_argmax_over_all_configurations_to_the_end_of_the_budget(self, policy):
        found = search(policy)
        assert len(found.modelled()) >= 10
        for trial in found.modelled():
            utility = Oracle.before(found, trial).log_utility(policy.alpha)
            assert utility[pick(found.proposals[trial])] >= utility.max() - EXACT

    def test_c_is_the_learned_line_where_costs_are_not_known(self):
        """And not the true cost, which would have led elsewhere at times."""
        policy = EIAlpha.paper(alpha=1.0)
        found, elsewhere = search(policy, seed=1, known=False), 0
        assert len(found.modelled()) >= 10
        for trial in found.modelled():
            oracle, learned = Oracle.before(found, trial), learned_cost(found, trial)
            chosen = pick(found.proposals[trial])
            utility, true = oracle.log_utility(policy.alpha, learned), oracle.log_utility(policy.alpha)
            assert utility[chosen] >= utility.max() - EXACT
            assert found.proposals[trial].predicted_cost == pytest.approx(learned[chosen], rel=EXACT)
            elsewhere += true[chosen] < true.max() - 1e-2
        assert elsewhere

    def test_alpha_0_is_ei(self):
        for trial, proposal in enumerate((found := search(EIAlpha.paper(alpha=0.0))).proposals):
            if "value" in proposal.fits:
                utility = Oracle.before(found, trial).log_utility(0.0)
                assert utility[pick(proposal)] >= utility.max() - EXACT


class TestEquation2:
    """CEI_lambda(x) = -c(x) where EI(x) >= (1 - lambda) max EI, else -inf."""

    @pytest.mark.parametrize("tradeoff", [0.0, 0.3, 0.65, 0.9])
    def test_every_ask_solves_the_constrained_problem_to_the_end_of_the_budget(self, tradeoff):
        found = search(CEI.paper(tradeoff=tradeoff), seed=1)
        assert len(found.modelled()) >= 10
        for trial in found.modelled():
            assert not violates_equation_2(Oracle.before(found, trial), pick(found.proposals[trial]), tradeoff)

    def test_c_is_the_learned_line_where_costs_are_not_known(self):
        """And not the true cost, which would have led elsewhere at times."""
        found, elsewhere = search(CEI.paper(tradeoff=0.65), seed=1, known=False), 0
        assert len(found.modelled()) >= 10
        for trial in found.modelled():
            oracle, learned = Oracle.before(found, trial), learned_cost(found, trial)
            chosen = pick(found.proposals[trial])
            assert not violates_equation_2(oracle, chosen, 0.65, learned)
            assert found.proposals[trial].predicted_cost == pytest.approx(learned[chosen], rel=EXACT)
            elsewhere += violates_equation_2(oracle, chosen, 0.65)
        assert elsewhere

    def test_lambda_1_is_the_cheapest_configuration(self):
        found = search(CEI.paper(tradeoff=1.0), budget=20.0)
        for trial in found.modelled():
            fresh = Oracle.before(found, trial).fresh
            assert COST[pick(found.proposals[trial])] == COST[fresh].min()

    def test_warped_values_have_another_threshold(self):
        """Our default: (1 - lambda) of the largest EI of warped values is no share of the improvement itself."""
        found = search(CEI.paper(tradeoff=0.65), seed=1)
        broken = 0
        for trial in found.modelled():
            state = found.study._session.record.before(trial)
            rng = np.random.default_rng([1, trial])
            chosen = CEI(end="ignored", target="least").propose(SPACE, state.history, state.ledger, 1, rng)[0]
            broken += violates_equation_2(Oracle.before(found, trial), pick(chosen), 0.65)
        assert broken >= 3


class TestSection31ParetoEfficiency:
    """The next point should be on the front of cost and EI: EI, EIpu, EI_alpha and CEI all are."""

    @pytest.mark.parametrize(
        "policy", [EIpu.paper(), EIAlpha.paper(alpha=0.2), CEI.paper(tradeoff=0.3), CEI.paper(tradeoff=0.65)]
    )
    def test_no_configuration_dominates_a_pick(self, policy):
        found = search(policy, seed=1)
        for trial in found.modelled():
            oracle, chosen = Oracle.before(found, trial), pick(found.proposals[trial])
            log_ei = oracle.log_utility(0.0)
            better = (COST[chosen] >= COST) & (log_ei > log_ei[chosen] + EXACT)
            cheaper = (COST[chosen] * (1 - EXACT) > COST) & (log_ei >= log_ei[chosen] - EXACT)
            assert not np.any(better | cheaper)


class TestSection3Problems:
    """The front of (best value, total cost) over searches, and the best value within a total cost."""

    STUDIES: ClassVar = {
        "EI": (BLIND, False),
        "EIpu": (EIpu.paper(), True),
        "CEI 0.3": (CEI.paper(tradeoff=0.3), True),
        "CEI 0.65": (CEI.paper(tradeoff=0.65), True),
    }  # fmt: skip

    def points(self, found: Search) -> list[tuple[float, float]]:
        """After each evaluation: the sum of costs and the least value."""
        trials = found.study.trials
        return [
            (sum(t.cost for t in trials[: n + 1]), min(t.value for t in trials[: n + 1])) for n in range(len(trials))
        ]

    def test_bi_optimisation(self):
        found = {name: search(*given[:1], known=given[1]) for name, given in self.STUDIES.items()}
        ends = {name: self.points(one)[-1] for name, one in found.items()}
        front = ft.value_cost_front({name: one.study for name, one in found.items()})
        expected = {
            name for name, (c, y) in ends.items()
            if not any(d <= c and z <= y and (d, z) != (c, y) for d, z in ends.values())
        }  # fmt: skip
        assert {point.study for point in front} == expected
        for point in front:
            assert (point.cost, point.value) == pytest.approx(ends[point.study])
            assert found[point.study].study.trials[point.trial].value == point.value

    def test_along_one_search_the_front_is_where_the_best_value_fell(self):
        found = search(CEI.paper(tradeoff=0.65), seed=1)
        points = self.points(found)
        expected = [p for n, p in enumerate(points) if n == 0 or p[1] < points[n - 1][1]]
        front = found.study.value_cost_front()
        np.testing.assert_allclose([(point.cost, point.value) for point in front], expected)

    def test_time_allocation(self):
        """inf y* such that the costs add up to at most tau: the last point of the whole front up to tau."""
        found = {name: search(*given[:1], known=given[1]) for name, given in self.STUDIES.items()}
        front = ft.value_cost_front({name: one.study for name, one in found.items()}, whole=True)
        for tau in (15.0, 40.0, 90.0):
            best = min(y for one in found.values() for c, y in self.points(one) if c <= tau)
            assert [point.value for point in front if point.cost <= tau][-1] == best


class TestSection32CostModels:
    """Costs are learned as lines in log features, of log cost. Their own tests are in tests/surrogates/cost."""

    def test_a_power_law_is_learned_from_few_evaluations(self):
        space = ft.Space(
            rounds=ft.Integer(1, 256, log=True), depth=ft.Integer(1, 16), rate=ft.Real(0.01, 1.0, log=True)
        )

        def errors(seed):
            """Of predicted log costs, once five were seen after the design."""
            study, found = ft.Study(space, "20 evaluations", policy=CEI.paper(), seed=seed), []
            while study.ended is None:
                proposal = study.ask()
                config = proposal.config
                true = 0.02 * config["rounds"] * config["depth"] ** 0.7
                if proposal.predicted_cost is not None:
                    found.append(abs(np.log(proposal.predicted_cost / true)))
                study.tell(proposal, value=abs(np.log(config["rate"]) + 2) + 1 / config["rounds"], cost=true)
            assert len(found) >= 12
            return found[5:]

        assert np.median(np.concatenate([errors(seed) for seed in range(5)])) < 0.1
