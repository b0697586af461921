"""The network of training curves in NumPy: PyTorch's answers, what must hold for any study, and its file."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import NetworkUnavailable
from farthing.surrogates.curves import network, tokens
from farthing.surrogates.curves.network import EDGES, CurveOutlook, expected_gain, mean_and_variance, unsquashed
from farthing.surrogates.curves.tokens import BUCKETS, HIGH, SLOTS, Scale

ROOT = Path(__file__).parents[3]
ANSWERS = Path(__file__).parent / "network_answers.npz"
COLUMNS, T = 4, 50
ALONE = np.arange(COLUMNS)  # every column is a parameter of its own


def study(m: int = 12, seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    """Features (m, COLUMNS) of trainings that were begun, and what they reported: falling, noisy, of any length."""
    rng = np.random.default_rng(seed)
    X, n = rng.random((m, COLUMNS)), rng.integers(1, T, m)
    curves = [
        0.2 + (x[0] - 0.4) ** 2 + np.exp(-np.arange(1, k + 1) / 8.0) + 0.01 * rng.standard_normal(k)
        for x, k in zip(X, n, strict=True)
    ]
    return X, curves


def outlook(X: np.ndarray, curves: list[np.ndarray], steps: int = T, groups: np.ndarray = ALONE) -> CurveOutlook:
    return CurveOutlook.of(X, curves, steps, groups, network.weights())


def all_answers(of: CurveOutlook, X_new: np.ndarray, step: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (m, 1, BUCKETS) and (k, 1, BUCKETS) of begun and new trainings at their last step, or at one."""
    m, last = len(of.h), float(of.T if step is None else step)
    return of.begun(np.arange(m), np.full((m, 1), last)), of.new(X_new, np.full((len(X_new), 1), last))


X_NEW = np.random.default_rng(99).random((5, COLUMNS))


@pytest.mark.parametrize("i", range(3), ids=["3 steps", "50 steps", "300 steps"])
def test_it_gives_the_answers_of_pytorch(i: int) -> None:
    """From the same half-precision weights (training/curves/fixture.py), begun and new; only rounding differs."""
    with np.load(ANSWERS) as stored:
        X, groups, known, y, steps, p = (stored[f"{name}{i}"] for name in ("X", "groups", "known", "y", "steps", "p"))
        found = _answered(X.astype(float), groups, known, y.astype(float), int(stored[f"T{i}"]), steps.astype(float))
    assert (known == 0).any()
    assert (known > 0).any()
    np.testing.assert_allclose(found, p, atol=1e-4)


def _answered(X: Any, groups: Any, known: Any, y: Any, T: int, steps: Any) -> np.ndarray:
    m = int((known > 0).sum())  # the begun ones come first
    of = CurveOutlook.of(X[:m], np.split(y, np.cumsum(known[:m])[:-1]), T, groups, network.weights())
    return np.concatenate([of.begun(np.arange(m), steps[:m]), of.new(X[m:], steps[m:])])


class TestAnswers:
    def test_they_are_probabilities(self) -> None:
        for p in all_answers(outlook(*study()), X_NEW):
            assert np.all(p >= 0.0)
            np.testing.assert_allclose(p.sum(axis=-1), 1.0)

    def test_a_begun_training_never_gets_worse_than_it_is(self) -> None:
        """No probability above the bucket in which it is; one that is new can come out anywhere."""
        of = outlook(*study())
        begun, new = all_answers(of, X_NEW)
        here = np.searchsorted(EDGES, of.reached + 1e-6, side="right") - 1
        above = np.arange(BUCKETS) > here[:, None]
        assert above.any(axis=1).all()
        assert np.all(begun[:, 0][above] == 0.0)
        assert np.all(new > 0.0)

    def test_later_is_better(self) -> None:
        """The median of the running best falls with the steps, in the mean over trainings."""
        of = outlook(*study())
        rows, (soon, late) = np.flatnonzero(of.share < 0.5), (30.0, 50.0)
        medians = [of.quantile(of.begun(rows, np.full((len(rows), 1), step)), 0.5) for step in (soon, late)]
        assert np.mean(medians[1]) < np.mean(medians[0])

    def test_it_has_learned_what_curves_do(self) -> None:
        """Clean exponential curves, known to their half: the ends are predicted to a quarter of what is left to
        fall, in the mean, though nothing was fitted."""
        rng, t = np.random.default_rng(5), np.arange(1, T + 1)
        X = rng.random((20, COLUMNS))
        whole = [0.1 + 0.4 * x[0] + np.exp(-t / (5.0 + 15.0 * x[1])) for x in X]
        half = [curve[: T // 2] for curve in whole]
        of = outlook(X, half)
        median = of.quantile(all_answers(of, X_NEW)[0], 0.5)[:, 0]
        error, left = np.abs(median - [c[-1] for c in whole]), [c[T // 2 - 1] - c[-1] for c in whole]
        assert error.mean() < 0.25 * np.mean(left)

    def test_the_order_of_trainings_does_not_matter(self) -> None:
        X, curves = study()
        order = np.random.default_rng(1).permutation(len(X))
        (begun, new), (begun2, new2) = (
            all_answers(of, X_NEW) for of in (outlook(X, curves), outlook(X[order], [curves[i] for i in order]))
        )
        np.testing.assert_allclose(begun2, begun[order], atol=1e-5)
        np.testing.assert_allclose(new2, new, atol=1e-5)

    @pytest.mark.parametrize(("factor", "shift"), [(1e6, 0.0), (1e-6, 0.0), (3.0, 1e3), (0.25, -7.0)])
    def test_the_unit_of_values_changes_nothing_but_the_scale(self, factor: float, shift: float) -> None:
        X, curves = study()
        plain, other = outlook(X, curves), outlook(X, [factor * curve + shift for curve in curves])
        for p, q in zip(all_answers(plain, X_NEW), all_answers(other, X_NEW), strict=True):
            np.testing.assert_allclose(q, p, atol=1e-4)
            rest = 1e-3 * factor * plain.scale.spread
            np.testing.assert_allclose(other.quantile(q, 0.3), factor * plain.quantile(p, 0.3) + shift, atol=rest)
            np.testing.assert_allclose(expected_gain(q), expected_gain(p), atol=1e-3)

    def test_quantiles_are_those_of_the_distribution(self) -> None:
        """Against draws: as many of them lie below as the level says, to four standard errors."""
        of = outlook(*study())
        p = all_answers(of, X_NEW)[1][:, 0]
        for level in (0.05, 0.5, 0.9):
            below = np.mean(draws(of, p) <= of.quantile(p, level)[:, None], axis=1)
            assert np.all(np.abs(below - level) < 4.0 * np.sqrt(level * (1.0 - level) / DRAWS))

    def test_the_expected_gain_is_the_mean_of_what_draws_improve(self) -> None:
        of = outlook(*study())
        for p in (answer[:, 0] for answer in all_answers(of, X_NEW)):
            gain = np.maximum(-of.scale.u(draws(of, p)), 0.0)
            error = gain.std(axis=1) / np.sqrt(DRAWS) + 1e-4
            assert np.all(np.abs(expected_gain(p) - gain.mean(axis=1)) < 4.0 * error)

    def test_mean_and_variance_are_those_of_draws(self) -> None:
        """To four standard errors, and the variance inside a bucket, which the draws have and the buckets do not."""
        of = outlook(*study())
        for p in (answer[:, 0] for answer in all_answers(of, X_NEW)):
            u = of.scale.u(draws(of, p))
            mean, variance = mean_and_variance(p)
            width = EDGES[1] - EDGES[0]
            assert np.all(np.abs(mean - u.mean(axis=1)) < 4.0 * u.std(axis=1) / np.sqrt(DRAWS) + 1e-4)
            spread = np.square(u - u.mean(axis=1, keepdims=True))
            error = spread.std(axis=1) / np.sqrt(DRAWS) + width**2 / 12
            assert np.all(np.abs(variance - spread.mean(axis=1)) < 4.0 * error)


DRAWS = 20_000


def draws(of: CurveOutlook, p: np.ndarray) -> np.ndarray:
    """Values (r, DRAWS) with probabilities p (r, BUCKETS), uniform in u within a bucket."""
    rng = np.random.default_rng(3)
    i = np.array([rng.choice(BUCKETS, DRAWS, p=row) for row in p])
    u = EDGES[i] + rng.random(i.shape) * (EDGES[1] - EDGES[0])
    return of.scale.best + of.scale.spread * unsquashed(u)


class TestSmallAndStrangeStudies:
    def holds(self, of: CurveOutlook, X_new: np.ndarray = X_NEW) -> None:
        """Answers are probabilities, and quantiles and gains are numbers."""
        for p in all_answers(of, X_new):
            assert np.isfinite(p).all()
            np.testing.assert_allclose(p.sum(axis=-1), 1.0)
            assert np.isfinite(of.quantile(p, 0.5)).all()
            assert np.isfinite(expected_gain(p)).all()
            assert np.all(expected_gain(p) >= 0.0)

    @pytest.mark.parametrize("steps", [1, 3, 50, 1000])
    def test_one_training_of_one_step(self, steps: int) -> None:
        self.holds(outlook(X_NEW[:1], [np.array([0.7])], steps))

    def test_curves_of_one_step(self) -> None:
        self.holds(outlook(X_NEW, [np.array([value]) for value in (0.3, 0.1, 0.4, 0.1, 0.5)]))

    @pytest.mark.parametrize("value", [0.0, 1.0, -3e9, 1e-300])
    def test_all_values_equal(self, value: float) -> None:
        self.holds(outlook(X_NEW, [np.full(k, value) for k in (1, 2, 9, 30, 50)]))

    @pytest.mark.parametrize("size", [1e200, 1.7e308])
    def test_huge_values(self, size: float) -> None:
        X, curves = study()
        self.holds(outlook(X, [size * np.clip(curve - 1.0, -1.0, 1.0) for curve in curves]))
        self.holds(outlook(X, [curves[0], size * np.ones(7), *curves[2:]]))
        self.holds(outlook(X, [curves[0], -size * np.ones(7), *curves[2:]]))

    def test_a_training_that_diverged_says_nothing_else_of_the_others(self) -> None:
        """Beyond the scale it is as bad as can be: 1e30 and 1e200 are the same, wherever it stands in the list."""
        X, curves = study()
        answers = []
        for size, first in ((1e30, True), (1e200, True), (1e200, False)):
            bad = [np.full(20, size)]
            of = (
                outlook(np.vstack([X_NEW[:1], X]), bad + curves)
                if first
                else outlook(np.vstack([X, X_NEW[:1]]), curves + bad)
            )
            answers.append(all_answers(of, X_NEW)[1])
        np.testing.assert_allclose(answers[1], answers[0], atol=1e-6)
        np.testing.assert_allclose(answers[2], answers[0], atol=1e-5)

    def test_three_hundred_trainings_of_a_thousand_steps(self) -> None:
        rng = np.random.default_rng(0)
        curves = [0.2 + 1.0 / np.arange(2.0, k + 2.0) for k in rng.integers(1, 1001, 300)]
        self.holds(outlook(rng.random((300, COLUMNS)), curves, 1000))

    def test_a_choice_has_columns_and_may_be_absent(self) -> None:
        """Its options are as far apart as in training; an absent one is where an absent one was in training, at 0."""
        space = ft.Space(
            kind=ft.Choice(["a", "b", "c"]), rate=ft.Real(0, 1), depth=ft.Choice([1, 2, 3, 4], when={"kind": "a"})
        )
        configs = [{"kind": "a", "rate": 0.5, "depth": 2}, {"kind": "b", "rate": 0.25}]
        X = space.features(space.encode_many(configs))
        x = tokens.slots(X, space.groups)
        s = np.sqrt(2.0)
        third, quarter = s / 3.0, s / 4.0
        expected = np.zeros((2, SLOTS))
        expected[0, :8] = [s - third, -third, -third, 0.0, -quarter, s - quarter, -quarter, -quarter]
        expected[1, :8] = [-third, s - third, -third, -0.5, 0.0, 0.0, 0.0, 0.0]
        np.testing.assert_allclose(x, expected, atol=1e-12)
        self.holds(outlook(X, [np.array([0.4, 0.3]), np.array([0.5])], T, space.groups), X)

    @pytest.mark.parametrize("columns", [17, 40, 200])
    def test_more_columns_than_slots(self, columns: int) -> None:
        """Every column counts, and a study of them is answered."""
        rng, groups = np.random.default_rng(2), np.arange(columns)
        X = rng.random((6, columns))
        x = tokens.slots(X, groups)
        assert x.shape == (6, SLOTS)
        assert np.abs(x).max() < 8.0
        for column in range(columns):
            changed = X.copy()
            changed[:, column] = 1.0 - X[:, column]
            assert np.all(np.abs(tokens.slots(changed, groups) - x).max(axis=1) > 1e-4)
        self.holds(outlook(X, [np.linspace(1.0, 0.5, k) for k in (1, 2, 5, 9, 20, 50)], T, groups), X)

    def test_a_choice_of_thousands_of_options(self) -> None:
        space = ft.Space(kind=ft.Choice(range(3000)), rate=ft.Real(0, 1))
        X = space.features(np.random.default_rng(0).random((6, 2)))
        self.holds(outlook(X, [np.linspace(1.0, 0.5, k) for k in (1, 2, 5, 9, 20, 50)], T, space.groups), X)


def test_the_scale_is_the_distance_from_the_best_to_the_lower_median() -> None:
    """And a tenth of the fall of first values where all have come equally far."""
    scale = Scale.of([np.array([3.0, 1.0]), np.array([5.0]), np.array([9.0, 2.0, 4.0]), np.array([8.0])])
    assert (scale.best, scale.spread) == (1.0, 1.0)
    assert scale.u(np.array([1.0, 2.0, 1e300])).tolist() == [0.0, 1.0, HIGH]
    level = Scale.of([np.array([3.0, 1.0]), np.array([5.0, 1.0]), np.array([9.0, 1.0])])
    assert level.spread == pytest.approx(0.1 * (5.0 - 1.0))


class TestFile:
    @pytest.fixture(autouse=True)
    def _forget(self) -> Iterator[None]:
        """What was read before, and what these tests read."""
        network.weights.cache_clear()
        yield
        network.weights.cache_clear()

    @pytest.fixture
    def copy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder with the network's file, which is read instead of the package's."""
        (tmp_path / network.FILE).write_bytes(network._here().joinpath(network.FILE).read_bytes())
        monkeypatch.setattr(network, "_here", lambda: tmp_path)
        return tmp_path

    def test_it_is_half_precision_of_at_most_8_MB_and_has_its_checksum(self, copy: Path) -> None:
        data = (copy / network.FILE).read_bytes()
        assert len(data) <= 8e6
        assert network.weights().checksum == hashlib.sha256(data).hexdigest() == network.CHECKSUM
        with np.load(io.BytesIO(data)) as stored:
            assert {stored[name].dtype for name in stored.files} == {np.dtype(np.float16)}

    @pytest.mark.parametrize("at", [0, 1000, 3_500_000, -1])
    def test_one_changed_byte_is_noticed(self, copy: Path, at: int) -> None:
        data = bytearray((copy / network.FILE).read_bytes())
        data[at] ^= 1
        (copy / network.FILE).write_bytes(data)
        with pytest.raises(NetworkUnavailable, match=r"network\.npz is damaged: its checksum is"):
            network.weights()

    @pytest.mark.parametrize("kept", [0, 100, 7_000_000])
    def test_a_truncated_file_is_noticed(self, copy: Path, kept: int) -> None:
        os.truncate(copy / network.FILE, kept)
        with pytest.raises(NetworkUnavailable, match=r"network\.npz is damaged"):
            network.weights()

    def test_a_missing_file_is_named(self, copy: Path) -> None:
        (copy / network.FILE).unlink()
        with pytest.raises(NetworkUnavailable, match=r"missing: .*network\.npz"):
            network.weights()

    def test_it_cannot_run_code(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not even one whose checksum was written for it: pickled objects are refused, not loaded."""
        ran = copy / "ran"
        buffer = io.BytesIO()
        np.savez(buffer, **{"norm.weight": np.array([_Touches(ran)], dtype=object)})
        self.written(copy, buffer.getvalue(), monkeypatch)
        with pytest.raises(NetworkUnavailable, match=r"network\.npz holds something else than plain arrays"):
            network.weights()
        assert not ran.exists()
        with np.load(copy / network.FILE, allow_pickle=True) as stored:
            assert stored["norm.weight"].shape == (1,)
        assert ran.exists(), "what it would have done"

    def test_a_single_pickle_is_refused(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import pickle

        ran = copy / "ran"
        self.written(copy, pickle.dumps(_Touches(ran)), monkeypatch)
        with pytest.raises(NetworkUnavailable, match=r"network\.npz holds something else than plain arrays"):
            network.weights()
        assert not ran.exists()

    def written(self, folder: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        """As if this version had that file."""
        (folder / network.FILE).write_bytes(data)
        monkeypatch.setattr(network, "CHECKSUM", hashlib.sha256(data).hexdigest())

    def test_a_study_without_it_is_told_so_when_it_asks_for_the_policy(self, copy: Path) -> None:
        """And every other policy works."""
        (copy / network.FILE).unlink()
        space = ft.Space(x=ft.Real(0, 1))
        with pytest.raises(NetworkUnavailable, match=r"network\.npz"):
            ft.Study(space, "10 evaluations", policy="thaw")
        assert ft.Study(space, "10 evaluations", policy="bapi", max_steps=3).ask()


class _Touches:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_the_wheel_has_the_file() -> None:
    """A wheel holds what lies in its packages and is not ignored by git."""
    folder = "src/farthing/surrogates/curves"
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/farthing"]}, "nothing is left out"
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    path = f"{folder}/{network.FILE}"
    assert (ROOT / path).is_file()
    parts = [*path.split("/"), path]
    assert not [pattern for pattern in ignored if any(fnmatch.fnmatch(part, pattern) for part in parts)]
