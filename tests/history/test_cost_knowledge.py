"""What a study is told about cost: how it is checked, what it does to proposals, and that a file gives it back."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, NoTrial, StudyMismatch
from farthing.history.cost_knowledge import MOST_EARLIER, CostKnowledge
from farthing.policies.carbo import CArBO
from farthing.policies.cost_models import chosen_cost_model
from farthing.surrogates.cost import transfer
from stored_events import change

LINE = ft.Space(x=ft.Real(0, 1))
MIXED = ft.Space(
    size=ft.Integer(1, 1000, log=True),
    rate=ft.Real(1e-4, 1.0, log=True),
    kind=ft.Choice(["tree", "dart", "line"]),
    drop=ft.Real(0.0, 0.5, when={"kind": "dart"}),
    bins=ft.Ordered([16, 64, 256]),
)
WEIGHING = ["eipu", "ei_alpha", "ei_cool", "cei", "carbo"]


def value(config: dict[str, Any]) -> float:
    return (
        (math.log10(config["rate"]) + 2.0) ** 2
        + 3.0 / config["size"]
        + {"tree": 0.1, "dart": 0.0, "line": 0.5}[config["kind"]]
        + config.get("drop", 0.2)
    )


def seconds(config: dict[str, Any], rows: float = 1000.0) -> float:
    """What an evaluation of MIXED costs with that many rows."""
    return 1e-4 * rows * config["size"] ** 0.8 * {"tree": 1.0, "dart": 2.0, "line": 0.3}[config["kind"]]


def played(study: ft.Study, n: int, cost=seconds) -> list[ft.Proposal]:
    """n proposals one after another, each told the truth."""
    proposals = []
    for _ in range(n):
        proposals.append(study.ask())
        config = proposals[-1].config
        study.tell(proposals[-1], value=-value(config) if study.maximize else value(config), cost=cost(config))
    return proposals


def earlier(rows: float, n: int = 25, **options: Any) -> ft.Study:
    """A study of MIXED on other data."""
    noise = np.random.default_rng(int(rows))
    study = ft.Study(
        MIXED, f"{n} evaluations", **{"policy": "sobol", "seed": int(rows), "task": {"rows": rows}, **options}
    )
    played(study, n, lambda config: seconds(config, rows) * math.exp(0.05 * noise.standard_normal()))
    return study


@pytest.fixture(scope="module")
def prior() -> ft.CostPrior:
    return ft.CostPrior.from_studies([earlier(rows) for rows in (200, 800, 3000, 9000)])


def events(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT number, kind, body FROM events ORDER BY number").fetchall()


class TestArguments:
    @pytest.mark.parametrize("name", ["known_cost", "cost_features"])
    @pytest.mark.parametrize("given", [5.0, "rows", {"x": 1.0}])
    def test_what_is_no_function_is_refused_by_name(self, name, given):
        with pytest.raises(InvalidArgument, match=f"{name}: expected a function"):
            ft.Study(LINE, "5 evaluations", **{name: given})

    def test_a_known_cost_leaves_nothing_to_model(self, prior):
        for other in ({"cost_features": lambda c: 1.0}, {"cost_prior": prior}):
            with pytest.raises(InvalidArgument, match="known_cost: replaces every cost model"):
                ft.Study(MIXED, "5 evaluations", known_cost=seconds, **other)

    @pytest.mark.parametrize("given", ["study.db", 3, [1, 2], {"rows": 3}])
    def test_a_prior_is_one_made_by_from_studies(self, given):
        with pytest.raises(InvalidArgument, match=r"cost_prior: expected a farthing\.CostPrior"):
            ft.Study(LINE, "5 evaluations", cost_prior=given)

    def test_a_prior_of_another_space_is_refused_with_the_difference(self, prior):
        with pytest.raises(InvalidArgument, match=r"cost_prior: expected studies of the same space, but parameter 'x'"):
            ft.Study(LINE, "5 evaluations", cost_prior=prior)

    @pytest.mark.parametrize("task", [5, "rows", [("rows", 3)]])
    def test_a_task_is_a_dict(self, task):
        with pytest.raises(InvalidArgument, match="task: expected a dict"):
            ft.Study(LINE, "5 evaluations", task=task)

    @pytest.mark.parametrize(
        "bad", [None, math.nan, math.inf, [3], 1j, np.complex128(1), pytest.param(10**400, id="huge")]
    )
    def test_what_a_task_says_is_a_number_or_a_text(self, bad):
        with pytest.raises(InvalidArgument, match=r"task\['rows'\]: expected a finite number or a text, got"):
            ft.Study(LINE, "5 evaluations", task={"rows": bad})

    def test_a_task_is_kept_as_it_was_and_is_the_callers_to_alter(self):
        task = {"rows": np.int64(50), "gpu": "A100", "share": 0.5}
        study = ft.Study(LINE, "5 evaluations", task=task)
        task["rows"] = 1
        study.task["rows"] = 2
        assert study.task == {"rows": 50.0, "gpu": "A100", "share": 0.5}
        assert ft.Study(LINE, "5 evaluations").task == {}


BAD_COSTS = [
    None,
    "5",
    b"5",
    math.nan,
    math.inf,
    -1.0,
    [1.0, 2.0],
    1j,
    np.complex128(1),
    pytest.param(10**400, id="huge"),
]


class TestKnownCost:
    @pytest.mark.parametrize("policy", [*WEIGHING, "ei", "auto"])
    def test_what_is_predicted_is_what_is_known(self, policy):
        """Wherever a cost is predicted, and after the initial design it always is."""
        study = ft.Study(MIXED, ft.Budget(cost=1e4, evaluations=60), policy=policy, seed=3, known_cost=seconds)
        proposals = played(study, 9)
        predicted = [(p.predicted_cost, seconds(p.config)) for p in proposals]
        assert None not in [expected for expected, _ in predicted[7:]]
        for expected, truth in predicted:
            assert expected is None or expected == pytest.approx(truth, rel=1e-12)

    def test_side_by_side_too(self):
        study = ft.Study(MIXED, ft.Budget(cost=1e4), policy="cei", seed=0, known_cost=seconds)
        played(study, 6)
        for proposal in study.ask(3):
            assert proposal.predicted_cost == pytest.approx(seconds(proposal.config), rel=1e-12)
        assert study.ledger.committed == pytest.approx(sum(seconds(t.config) for t in study.trials[6:]))

    @pytest.mark.parametrize("policy", ["eipu", "cei"])
    def test_what_trials_were_told_to_cost_does_not_matter(self, policy):
        """Costs that were told are charged, but what is known is believed."""
        study = ft.Study(MIXED, "40 evaluations", policy=policy, seed=0, known_cost=seconds)
        proposals = played(study, 9, lambda config: 7.0)
        assert proposals[-1].predicted_cost == pytest.approx(seconds(proposals[-1].config), rel=1e-12)

    def test_no_cost_need_ever_be_told(self):
        study = ft.Study(MIXED, "40 evaluations", policy="eipu", seed=0, known_cost=seconds)
        for _ in range(8):
            proposal = study.ask()
            study.tell(proposal, value=value(proposal.config))
        assert study.ask().predicted_cost is not None

    @pytest.mark.parametrize("bad", BAD_COSTS)
    def test_a_cost_that_is_none_is_refused_at_once(self, bad, tmp_path):
        path = tmp_path / "study.db"
        with pytest.raises(
            InvalidArgument, match=r"known_cost: expected a finite number of at least 0 for \{'x': 0\.5\}"
        ):
            ft.Study(LINE, ft.Budget(cost=9), policy="carbo", known_cost=lambda config: bad, storage=path)
        assert not path.exists()

    @pytest.mark.parametrize("good", [3, np.float32(3), np.int64(3), Fraction(3), np.array(3.0)])
    def test_any_kind_of_number_is_a_cost(self, good):
        study = ft.Study(LINE, ft.Budget(cost=9), policy="carbo", seed=0, known_cost=lambda config: good)
        assert study.ask().predicted_cost == pytest.approx(3.0)

    @pytest.mark.parametrize("bad", ["raise", math.nan, -1.0])
    @pytest.mark.parametrize("policy", ["carbo", "eipu", "cei"])
    def test_an_error_on_the_way_names_the_config_and_loses_nothing(self, policy, bad, tmp_path):
        """Right where a study begins and wrong somewhere else: the ask fails, the study stays as it was."""
        broken = [False]

        def known(config: dict[str, Any]) -> float:
            if broken[0] and config["x"] > 0.8 and bad == "raise":
                raise ZeroDivisionError("no such size")
            return bad if broken[0] and config["x"] > 0.8 else 1.0 + config["x"]

        path = tmp_path / "study.db"
        with ft.Study(LINE, ft.Budget(cost=400), policy=policy, seed=0, known_cost=known, storage=path) as study:
            for _ in range(7):
                proposal = study.ask()
                study.tell(proposal, value=(proposal.config["x"] - 0.9) ** 2, cost=1.0 + proposal.config["x"])
            before, trials, ledger = events(path), study.trials, study.ledger
            broken[0] = True
            with pytest.raises(InvalidArgument, match=r"known_cost.*\{'x': (0\.[89]|1\.0)") as refused:
                study.ask()
            assert bad != "raise" or "no such size" in str(refused.value)
            assert (events(path), study.trials, study.ledger) == (before, trials, ledger)
            broken[0] = False
            assert study.ask().trial == len(trials)

    def test_the_config_is_a_copy(self):
        def greedy(config: dict[str, Any]) -> float:
            return 1.0 + config.pop("x")

        study = ft.Study(LINE, ft.Budget(cost=9), policy="carbo", seed=0, known_cost=greedy)
        assert "x" in study.ask().config

    @pytest.mark.parametrize("policy", [*WEIGHING, "ei"])
    def test_a_cost_of_nothing_works(self, policy):
        study = ft.Study(LINE, ft.Budget(cost=9, evaluations=30), policy=policy, seed=0, known_cost=lambda config: 0)
        for _ in range(8):
            proposal = study.ask()
            study.tell(proposal, value=(proposal.config["x"] - 0.3) ** 2, cost=0.0)
        assert study.best.value < 0.01
        assert study.ask().predicted_cost == pytest.approx(0.0, abs=1e-9)

    @pytest.mark.parametrize("tiny", [1e-15, 1e-200])
    def test_a_small_cost_is_not_rounded_up(self, tiny):
        study = ft.Study(LINE, ft.Budget(cost=9), policy="carbo", seed=0, known_cost=lambda c: tiny * (1 + c["x"]))
        proposal = study.ask()
        assert proposal.predicted_cost == pytest.approx(tiny * (1 + proposal.config["x"]))

    def test_the_expensive_corner_is_avoided(self):
        """Eight decades of cost along size, which hardly matters to the value: a blind policy pays for it."""
        space = ft.Space(x=ft.Real(0, 1), size=ft.Real(0, 1))

        def known(config: dict[str, Any]) -> float:
            return 10.0 ** (8.0 * config["size"])

        def dearest(policy: Any, seed: int) -> float:
            study = ft.Study(space, "30 evaluations", policy=policy, seed=seed, known_cost=known)
            for _ in range(18):
                proposal = study.ask()
                config = proposal.config
                study.tell(proposal, value=(config["x"] - 0.3) ** 2 + 0.02 * (1.0 - config["size"]), cost=known(config))
            return max(known(trial.config) for trial in study.trials[6:])

        eipu, carbo, blind = (
            np.array([dearest(policy, seed) for seed in range(6)])
            for policy in ("eipu", CArBO(design_share=1 / 8), "ei")
        )
        assert np.all(eipu * 1e4 < blind)
        assert np.all(carbo * 1e1 < blind)
        assert np.median(carbo) * 1e2 < np.median(blind)

    def test_maximising_is_minimising_the_opposite(self):
        up, down = (
            ft.Study(MIXED, "20 evaluations", policy="cei", seed=4, known_cost=seconds, maximize=maximize)
            for maximize in (True, False)
        )
        assert [p.config for p in played(up, 9)] == [p.config for p in played(down, 9)]

    @pytest.mark.parametrize("policy", [*WEIGHING, "ei"])
    def test_what_the_space_forbids_is_not_asked_about(self, policy):
        space = ft.Space(a=ft.Real(0, 1), b=ft.Real(0, 1), forbid=lambda c: c["a"] >= c["b"])

        def known(config: dict[str, Any]) -> float:
            assert config["a"] < config["b"]
            return math.sqrt(config["b"] - config["a"])

        study = ft.Study(space, ft.Budget(cost=50), policy=policy, seed=0, known_cost=known)
        for _ in range(8):
            proposal = study.ask()
            study.tell(proposal, value=proposal.config["a"], cost=known(proposal.config))

    def test_tune_takes_what_a_study_takes(self, prior):
        def objective(config: dict[str, Any]) -> dict[str, float]:
            return {"value": value(config), "cost": seconds(config)}

        known = ft.tune(
            objective, MIXED, ft.Budget(cost=1e6, evaluations=8), seed=0, known_cost=seconds, progress=False
        )
        for trial in known.trials:
            assert trial.predicted_cost is None or trial.predicted_cost == pytest.approx(trial.cost, rel=1e-12)
        told = ft.tune(
            objective, MIXED, ft.Budget(cost=1e6, evaluations=3), seed=0, progress=False,
            cost_prior=prior, cost_features=lambda c: c["size"], task={"rows": 1000},
        )  # fmt: skip
        assert told.task == {"rows": 1000.0}
        assert told.trials[0].predicted_cost == pytest.approx(told.trials[0].cost, rel=0.5)


class TestCostFeatures:
    """cost = prices x features with 5 % noise, the features no function that a line in the parameters could be."""

    SPACE = ft.Space(width=ft.Integer(8, 512, log=True), depth=ft.Integer(1, 8), rate=ft.Real(1e-4, 1, log=True))

    @staticmethod
    def counts(config: dict[str, Any]) -> dict[str, float]:
        return {"products": config["width"] ** 2 * (config["depth"] - 1.0), "inputs": 800.0 * config["width"]}

    @classmethod
    def cost(cls, config: dict[str, Any]) -> float:
        counts = cls.counts(config)
        return 1.0 + 2e-5 * counts["products"] + 1e-5 * counts["inputs"]

    def error(self, features, n: int, seed: int) -> float:
        """Median relative error, in logs, at configs never seen, after n costs."""
        study = ft.Study(self.SPACE, "99 evaluations", policy="sobol", seed=seed, cost_features=features)
        rng = np.random.default_rng(seed)
        for _ in range(n):
            proposal = study.ask()
            told = self.cost(proposal.config) * math.exp(0.05 * rng.standard_normal())
            study.tell(proposal, value=rng.random(), cost=told)
        model, _ = chosen_cost_model(self.SPACE, study._history)
        U = self.SPACE.snap(rng.random((150, 3)))
        truth = np.log([self.cost(config) for config in self.SPACE.decode_many(U)])
        return float(np.median(np.abs(model.predict(self.SPACE.features(U))[0] - truth)))

    def test_the_right_features_make_a_few_costs_enough(self):
        ours = [self.error(self.counts, 4, seed) for seed in range(8)]
        without = [self.error(None, 4, seed) for seed in range(8)]
        assert np.median(ours) < 0.15
        assert np.median(ours) < 0.6 * np.median(without)

    def test_features_that_mean_nothing_do_little_harm(self):
        def nonsense(config: dict[str, Any]) -> list[float]:
            return [1.0 + math.sin(1e4 * config["rate"]), 1.0 / config["width"]]

        ours = [self.error(nonsense, 14, seed) for seed in range(5)]
        without = [self.error(None, 14, seed) for seed in range(5)]
        assert np.mean(ours) < 1.25 * np.mean(without) + 0.02

    @pytest.mark.parametrize(
        "kind",
        [
            lambda counts: counts,
            lambda counts: list(counts.values()),
            lambda counts: tuple(counts.values()),
            lambda counts: np.array(list(counts.values())),
            lambda counts: np.array([list(counts.values())]),
            lambda counts: dict(reversed(counts.items())),
            lambda counts: {name: np.float64(count) for name, count in counts.items()},
        ],
    )
    def test_every_kind_of_result_says_the_same(self, kind):
        def shaped(config: dict[str, Any]) -> Any:
            return kind(self.counts(config))

        assert self.error(shaped, 6, 0) == pytest.approx(self.error(self.counts, 6, 0), rel=1e-6)

    def test_one_number_will_do(self):
        alone, listed = (self.error(shape, 6, 0) for shape in (self.cost, lambda config: [self.cost(config)]))
        assert alone == listed < 0.1

    def test_names_matter_and_their_order_does_not(self):
        """A dict whose order changes from config to config is still the same features."""
        turned = [False]

        def shuffled(config: dict[str, Any]) -> dict[str, float]:
            turned[0] = not turned[0]
            counts = self.counts(config)
            return dict(reversed(counts.items())) if turned[0] else counts

        assert self.error(shuffled, 6, 0) == pytest.approx(self.error(self.counts, 6, 0), rel=1e-6)

    @pytest.mark.parametrize(
        "bad",
        [None, "abc", -1.0, math.nan, math.inf, [], {}, [1.0, -2.0], {"a": None}, [1.0, [2.0, 3.0]], 1j, {1.0, 2.0}],
    )
    def test_what_does_not_count_is_refused_at_once(self, bad):
        with pytest.raises(
            InvalidArgument, match=r"cost_features: expected finite numbers of at least 0 for \{'x': 0\.5"
        ):
            ft.Study(LINE, "5 evaluations", cost_features=lambda config: bad)

    def test_a_function_that_raises_is_refused_at_once(self):
        with pytest.raises(InvalidArgument, match=r"cost_features raised KeyError\('width'\) for config \{'x': 0\.5\}"):
            ft.Study(LINE, "5 evaluations", cost_features=lambda config: config["width"])

    @pytest.mark.parametrize(
        ("here", "first", "there", "second"),
        [
            ([1.0, 2.0, 3.0], "3 numbers", [1.0, 2.0], "2 numbers"),
            ({"trees": 1.0}, "trees", {"layers": 2.0}, "layers"),
            ({"a": 1.0, "b": 1.0}, "a, b", {"a": 1.0}, "a"),
        ],
    )
    @pytest.mark.parametrize("border", [0.001, 0.5, 0.999])
    def test_every_config_must_be_counted_alike(self, here, first, there, second, border):
        """Wherever the border is: among what was evaluated, or only among what is looked at for the next."""
        study = ft.Study(
            LINE, "30 evaluations", policy="eipu", seed=0,
            cost_features=lambda config: here if config["x"] > border else there,
        )  # fmt: skip
        every = "for every config, got"
        either = f"cost_features: expected ({first} {every} {second}|{second} {every} {first}) for"

        def steps() -> None:
            for _ in range(12):
                proposal = study.ask()
                study.tell(proposal, value=proposal.config["x"], cost=1.0 + proposal.config["x"])

        with pytest.raises(InvalidArgument, match=either + r" \{'x': .*return 0 for work"):
            steps()

    def test_no_rows_are_rows_of_as_many_columns(self):
        knowledge = CostKnowledge(features=lambda config: [1.0, 2.0])
        assert knowledge.features_of([], (0, 1)).shape == (0, 2)

    def test_they_go_together_with_a_prior(self, prior):
        study = ft.Study(
            MIXED, ft.Budget(cost=1e6), seed=0, policy="eipu", cost_prior=prior, task={"rows": 1000},
            cost_features=lambda config: config["size"],
        )  # fmt: skip
        proposals = played(study, 8)
        assert proposals[-1].predicted_cost == pytest.approx(seconds(proposals[-1].config), rel=0.4)


class TestMakingPriors:
    def test_the_first_proposal_is_expected_to_cost_what_it_does(self, prior):
        """On data of sizes between and beyond those of the earlier studies, the better for knowing the size."""
        gaps = {}
        for task in (True, False):
            told = []
            for rows in (400, 2000, 20_000):
                study = ft.Study(
                    MIXED, ft.Budget(cost=1e9), seed=0, cost_prior=prior, task={"rows": rows} if task else None
                )
                proposal = study.ask()
                told.append(abs(math.log(proposal.predicted_cost / seconds(proposal.config, rows))))
            gaps[task] = told
        assert max(gaps[True]) < math.log(1.6)
        assert np.mean(gaps[True]) < 0.3 * np.mean(gaps[False])

    def test_texts_and_missing_words_are_understood(self):
        """Two machines, one of them ten times as fast; what only some of the studies say is left out."""
        studies = []
        for seed, gpu in enumerate(["old", "new", "old", "new", "old", "new"]):
            study = ft.Study(
                LINE, "12 evaluations", policy="sobol", seed=seed,
                task={"gpu": gpu, "rows": 100, **({"note": "x"} if seed else {})},
            )  # fmt: skip
            for _ in range(12):
                proposal = study.ask()
                cost = (10.0 if gpu == "old" else 1.0) * math.exp(proposal.config["x"])
                study.tell(proposal, value=0.0, cost=cost)
            studies.append(study)
        prior = ft.CostPrior.from_studies(studies)
        for task, level in (
            ({"gpu": "old", "rows": 100, "note": "y", "columns": 3}, 10.0),
            ({"gpu": "new", "rows": "many"}, 1.0),
            ({"gpu": "newest"}, math.sqrt(10.0)),
            ({}, math.sqrt(10.0)),
        ):
            study = ft.Study(LINE, ft.Budget(cost=1e4), seed=0, cost_prior=prior, task=task)
            proposal = study.ask()
            assert proposal.predicted_cost == pytest.approx(level * math.exp(proposal.config["x"]), rel=0.35)

    def test_a_fixed_prior_is_not_corrected(self):
        fixed = ft.CostPrior.from_studies([earlier(1000)], fixed=True)
        study = ft.Study(MIXED, ft.Budget(cost=1e9), policy="eipu", seed=0, cost_prior=fixed)
        proposals = played(study, 10, lambda config: 100.0 * seconds(config))
        ratios = [p.predicted_cost / seconds(p.config) for p in proposals if p.predicted_cost is not None]
        assert len(ratios) >= 5
        assert max(ratios) < 2.0

    def test_one_that_is_not_fixed_is(self):
        prior = ft.CostPrior.from_studies([earlier(1000)])
        study = ft.Study(MIXED, ft.Budget(cost=1e9), policy="eipu", seed=0, cost_prior=prior)
        proposals = played(study, 10, lambda config: 100.0 * seconds(config))
        assert proposals[-1].predicted_cost == pytest.approx(100.0 * seconds(proposals[-1].config), rel=0.3)

    def test_studies_of_several_spaces_are_refused(self):
        line = ft.Study(LINE, "4 evaluations", seed=0)
        line.tell(line.ask(), value=0.0, cost=1.0)
        with pytest.raises(InvalidArgument, match=r"studies: expected studies of one space, but .*size"):
            ft.CostPrior.from_studies([line, earlier(100, 3)])

    def test_no_studies_are_refused(self):
        with pytest.raises(InvalidArgument, match="studies: expected at least one study, got"):
            ft.CostPrior.from_studies([])

    @pytest.mark.parametrize("given", ["study.db", Path("study.db"), None, 5, ["study.db"], [None]])
    def test_what_is_no_study_is_refused_with_what_to_do(self, given):
        with pytest.raises(
            InvalidArgument, match=r"studies: expected studies \(open a file with Study\.resume.*, got "
        ):
            ft.CostPrior.from_studies(given)

    def test_studies_without_costs_say_nothing(self):
        silent = ft.Study(LINE, "4 evaluations", seed=0)
        silent.tell(silent.ask(), value=0.0)
        silent.ask()
        with pytest.raises(
            InvalidArgument, match="studies: expected a trial with a known cost in at least one of them"
        ):
            ft.CostPrior.from_studies([silent])
        loud = ft.Study(LINE, "4 evaluations", seed=0)
        loud.tell(loud.ask(), value=0.0, cost=2.0)
        assert len(ft.CostPrior.from_studies([silent, loud]).studies) == 1

    def test_one_study_and_a_generator_of_studies_will_do(self):
        one = earlier(100, 4)
        assert len(ft.CostPrior.from_studies(one).studies) == 1
        assert len(ft.CostPrior.from_studies(study for study in (one, one)).studies) == 2

    def test_failures_teach_and_interruptions_do_not(self):
        """A failed evaluation cost what it cost; an interrupted one would have cost more."""
        study = ft.Study(LINE, "9 evaluations", policy="sobol", seed=0)
        study.tell(study.ask(), value=0.0, cost=2.0)
        study.tell(study.ask(), failed="out of memory", cost=3.0)

        def objective(config: dict[str, Any]) -> float:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            study.run(objective, progress=False)
        assert study.trials[2].cost is not None
        assert ft.CostPrior.from_studies([study]).studies[0].costs.tolist() == [2.0, 3.0]

    def test_of_many_trials_an_even_part_is_kept(self):
        study = ft.Study(LINE, "1000 evaluations", policy="random", seed=0)
        for i in range(500):
            study.tell(study.ask(), value=0.0, cost=1.0 + i)
        few = ft.Study(LINE, "1000 evaluations", policy="random", seed=1)
        for i in range(7):
            few.tell(few.ask(), value=0.0, cost=1.0 + i)
        kept = ft.CostPrior.from_studies([study, few]).studies
        assert [len(part.costs) for part in kept] == [MOST_EARLIER // 2, 7]
        numbers = kept[0].costs - 1.0
        assert (numbers[0], numbers[-1]) == (0.0, 499.0)
        assert set(np.diff(numbers)) <= {4.0, 5.0}
        configs = [study.trials[int(number)].config for number in numbers]
        np.testing.assert_allclose(kept[0].U, LINE.encode_many(configs), atol=1e-9)

    def test_earlier_studies_are_read_once_and_not_for_every_ask(self, prior, monkeypatch):
        fits, fit = [], transfer.fit
        monkeypatch.setattr(transfer, "fit", lambda *given: fits.append(1) or fit(*given))
        study = ft.Study(MIXED, ft.Budget(cost=1e9), policy="eipu", seed=0, cost_prior=prior, task={"rows": 77})
        played(study, 7)
        assert len(fits) == 1

    def test_costs_of_nothing_among_the_earlier_ones_do_no_harm(self):
        study = ft.Study(LINE, "9 evaluations", policy="sobol", seed=0)
        for i in range(9):
            study.tell(study.ask(), value=0.0, cost=0.0 if i % 3 else 1.0)
        new = ft.Study(LINE, ft.Budget(cost=9), seed=0, cost_prior=ft.CostPrior.from_studies([study]))
        assert 0.05 < new.ask().predicted_cost < 2.0


class TestFiles:
    def begun(self, path: Path, **options: Any) -> None:
        with ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, storage=path, **{"policy": "eipu", **options}) as study:
            played(study, 7)

    @pytest.mark.parametrize("fixed", [False, True])
    def test_a_study_with_a_prior_and_a_task_goes_on_as_if_it_had_not_stopped(self, fixed, tmp_path):
        prior = ft.CostPrior.from_studies([earlier(500, 20), earlier(5000, 20)], fixed=fixed)
        paths = [tmp_path / "one.db", tmp_path / "two.db"]
        self.begun(paths[0], cost_prior=prior, task={"rows": 900})
        shutil.copy(*paths)
        with ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", cost_prior=prior, task={"rows": 900}) as whole:
            played(whole, 7)
            expected = [(p.config, p.predicted_cost) for p in played(whole, 2)]
        with ft.Study.resume(paths[0]) as resumed:
            assert resumed.task == {"rows": 900.0}
            assert [(p.config, p.predicted_cost) for p in played(resumed, 2)] == expected
        with ft.Study(
            MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", cost_prior=prior, task={"rows": 900}, storage=paths[1]
        ) as again:
            assert [(p.config, p.predicted_cost) for p in played(again, 2)] == expected

    def test_what_a_file_holds_need_not_be_given_again(self, prior, tmp_path):
        path = tmp_path / "study.db"
        self.begun(path, cost_prior=prior, task={"rows": 900})
        with ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", storage=path) as again:
            assert again.task == {"rows": 900.0}
            proposal = again.ask()
        with ft.Study.resume(path) as resumed:
            assert (resumed.pending[0].config, resumed.task) == (proposal.config, {"rows": 900.0})

    def test_options_of_every_kind_survive(self, tmp_path):
        space = ft.Space(
            k=ft.Choice([(1, 2), "b", None, math.inf]), o=ft.Ordered([("h", 2), "x"]),
            z=ft.Real(0, 1, when={"k": {"b", None}}), i=ft.Integer(1, 9, when={"o": "x"}), forbid=[{"i": {3, 4}}],
        )  # fmt: skip
        study = ft.Study(space, "12 evaluations", policy="sobol", seed=0)
        for _ in range(12):
            study.tell(study.ask(), value=0.0, cost=1.0)
        prior = ft.CostPrior.from_studies([study])
        for number in range(2):
            with ft.Study(space, ft.Budget(cost=9), seed=0, cost_prior=prior, storage=tmp_path / "s.db") as again:
                assert again.ask().trial == number

    @pytest.mark.parametrize(
        ("name", "function"), [("known_cost", seconds), ("cost_features", lambda config: config["size"])]
    )
    def test_functions_must_be_given_again(self, name, function, tmp_path):
        path = tmp_path / "study.db"
        self.begun(path, **{name: function})
        before = events(path)
        for reopen in (
            lambda: ft.Study.resume(path),
            lambda: ft.Study(MIXED, ft.Budget(cost=2e6), seed=5, policy="eipu", storage=path),
        ):
            with pytest.raises(StudyMismatch, match=f"begun with {name}=.*pass it again"):
                reopen()
        assert events(path) == before
        with ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", **{name: function}) as whole:
            played(whole, 7)
            expected = whole.ask()
        with ft.Study.resume(path, **{name: function}) as resumed:
            assert resumed.ask() == expected

    @pytest.mark.parametrize(
        ("name", "function"), [("known_cost", seconds), ("cost_features", lambda config: config["size"])]
    )
    def test_a_study_begun_without_a_function_is_not_continued_with_one(self, name, function, tmp_path):
        path = tmp_path / "study.db"
        self.begun(path)
        for reopen in (
            lambda: ft.Study.resume(path, **{name: function}),
            lambda: ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", storage=path, **{name: function}),
        ):
            with pytest.raises(StudyMismatch, match=f"begun without {name}"):
                reopen()

    def test_another_task_or_prior_is_refused_by_name(self, prior, tmp_path):
        path, bare = tmp_path / "study.db", tmp_path / "bare.db"
        self.begun(path, cost_prior=prior, task={"rows": 900})
        self.begun(bare)
        other = ft.CostPrior.from_studies([earlier(100, 5)])
        loosened = ft.CostPrior(prior.space, prior.studies, fixed=True)
        before = events(path)
        for file, given, said in (
            (path, {"task": {"rows": 901}}, r"task is \{'rows': 900\.0\} in the file and \{'rows': 901\.0\} here"),
            (path, {"cost_prior": other}, "cost_prior"),
            (path, {"cost_prior": loosened}, "cost_prior"),
            (bare, {"task": {"rows": 900}}, r"task is \{\} in the file"),
            (bare, {"cost_prior": prior}, "cost_prior"),
        ):
            with pytest.raises(StudyMismatch, match=said):
                ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", storage=file, **given)
        assert events(path) == before

    def test_files_from_before_there_was_knowledge_still_open(self, tmp_path):
        paths = [tmp_path / "one.db", tmp_path / "two.db"]
        self.begun(paths[0])
        with closing(sqlite3.connect(paths[0])) as connection:
            (body,) = connection.execute("SELECT body FROM events WHERE number = 1").fetchone()
            old = json.loads(body)
            assert old.pop("cost") == {"known": False, "features": False, "prior": None, "task": {}}
        change(paths[0], "UPDATE events SET body = ? WHERE number = 1", (json.dumps(old),))
        shutil.copy(*paths)
        with ft.Study.resume(paths[0]) as resumed:
            assert resumed.task == {}
            expected = resumed.ask().config
        with ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", storage=paths[1]) as again:
            assert again.ask().config == expected
        with pytest.raises(StudyMismatch, match="begun without known_cost"):
            ft.Study.resume(paths[0], known_cost=seconds)
        with pytest.raises(StudyMismatch, match=r"task is \{\} in the file"):
            ft.Study(MIXED, ft.Budget(cost=1e6), seed=5, policy="eipu", storage=paths[1], task={"rows": 1})

    def test_a_study_in_a_file_is_an_earlier_study(self, tmp_path):
        path = tmp_path / "study.db"
        self.begun(path, task={"rows": 1000})
        with ft.Study.resume(path) as study:
            prior = ft.CostPrior.from_studies([study])
        assert prior.studies[0].task == {"rows": 1000.0}
        assert len(prior.studies[0].costs) == 7


class TestFronts:
    SPACE = ft.Space(x=ft.Real(0, 1), size=ft.Integer(1, 100, log=True))

    @staticmethod
    def cost(config: dict[str, Any]) -> float:
        return 1.0 + 0.5 * config["size"]

    def played(self, costs: bool = False, policy: str = "cei", **knowledge: Any) -> ft.Study:
        study = ft.Study(self.SPACE, "30 evaluations", policy=policy, seed=0, **knowledge)
        for _ in range(8):
            proposal = study.ask()
            config = proposal.config
            cost = self.cost(config) if costs else None
            study.tell(proposal, value=(config["x"] - 0.6) ** 2 + 1.0 / config["size"], cost=cost)
        return study

    def test_costs_on_a_front_are_the_known_ones(self):
        study = self.played(known_cost=self.cost)
        for front in (study.pareto(), study.pareto(trial=6)):
            configs = self.SPACE.decode_many(front.U)
            np.testing.assert_allclose(front.log_cost, np.log([self.cost(config) for config in configs]), atol=1e-12)

    def test_a_prior_is_enough_for_a_front(self):
        study = self.played(cost_prior=ft.CostPrior.from_studies([self.played(costs=True, policy="sobol")]))
        for front in (study.pareto(), study.pareto(trial=6)):
            pick = front.picks["CEI"]
            assert pick.log_cost == pytest.approx(math.log(self.cost(self.SPACE.decode(pick.u))), abs=0.7)

    def test_features_alone_are_not(self):
        study = self.played(cost_features=self.cost)
        with pytest.raises(NoTrial, match="needs the cost of at least 1 trial"):
            study.pareto()
