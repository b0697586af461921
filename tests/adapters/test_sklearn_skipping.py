"""Folds that are not seen: the rule, and what a search shows of them."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold, cross_validate
from sklearn.svm import SVC

import farthing as ft
from farthing.adapters.sklearn.skipping import Z, cannot_win, spread

X, y = load_digits(return_X_y=True)
X, y = X[:240], y[:240]
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-5, 1e-1)}


def search(**options):
    return ft.FarthingSearchCV(
        SVC(), SPACE, budget="24 evaluations", policy="sobol", cv=KFold(5, shuffle=True, random_state=0),
        random_state=0, **options,
    ).fit(X, y)  # fmt: skip


class TestTheRule:
    def test_a_candidate_as_good_as_the_best_is_hardly_ever_left(self):
        """Monte Carlo: fold by fold the true difference is noise alone, and five folds decide."""
        rng = np.random.default_rng(0)
        differences = rng.normal(0.0, np.sqrt(2) * 0.01, (20_000, 5))
        winners = differences[differences.mean(axis=1) > 0]
        left = [cannot_win(row[:m], 5, 0.01) for row in winners for m in (2, 3, 4)]
        assert np.mean(left) < 2e-4

    def test_a_candidate_far_behind_is_left_after_two_folds(self):
        rng = np.random.default_rng(1)
        differences = rng.normal(-0.2, np.sqrt(2) * 0.01, (2_000, 2))
        assert np.mean([cannot_win(row, 5, 0.01) for row in differences]) > 0.99

    def test_the_bound_is_that_of_the_page(self):
        s, m, K = np.sqrt(2) * 0.01, 3, 8
        edge = -Z * s * np.sqrt(1 / m - 1 / K)
        assert cannot_win(np.full(m, edge - 1e-9), K, 0.01)
        assert not cannot_win(np.full(m, edge + 1e-9), K, 0.01)

    def test_the_spread_is_that_of_what_means_do_not_explain(self):
        rng = np.random.default_rng(2)
        scores = rng.normal(size=(400, 1)) + rng.normal(size=5) + 0.03 * rng.normal(size=(400, 5))
        assert spread(scores) == pytest.approx(0.03, rel=0.05)


class TestASearch:
    def test_it_ends_with_the_same_best_for_fewer_fits(self):
        """Seen folds have their true scores, others NaN; a mean is the incumbent's plus the mean of the differences."""
        metrics = {"scoring": ["accuracy", "f1_macro"], "refit": "accuracy", "return_train_score": True}
        whole, skipping = search(**metrics), search(skip_folds=True, **metrics)
        assert skipping.cv_results_["params"] == whole.cv_results_["params"]
        assert skipping.best_params_ == whole.best_params_
        assert skipping.best_score_ == whole.best_score_
        for metric in ("accuracy", "f1_macro"):
            self.require_consistent(skipping, whole, metric)

    @staticmethod
    def require_consistent(skipping, whole, metric):
        def table(found, which):
            return np.stack([found.cv_results_[f"split{fold}_{which}_{metric}"] for fold in range(5)], axis=1)

        ours, theirs = table(skipping, "test"), table(whole, "test")
        seen = ~np.isnan(ours)
        np.testing.assert_array_equal(ours[seen], theirs[seen])
        np.testing.assert_array_equal(np.isnan(table(skipping, "train")), ~seen)
        counts = seen.sum(axis=1)
        assert counts[:5].tolist() == [5] * 5  # too few are known to judge by
        assert set(counts) == {2, 5}
        means, true = skipping.cv_results_[f"mean_test_{metric}"], theirs.mean(axis=1)
        judged = np.stack([whole.cv_results_[f"split{fold}_test_accuracy"] for fold in range(5)], axis=1).mean(axis=1)
        for n in np.flatnonzero(counts < 5):
            rival = max((k for k in range(n) if counts[k] == 5), key=lambda k: judged[k])
            lead = (theirs[n, :2] - theirs[rival, :2]).mean()
            assert means[n] == pytest.approx(true[rival] + lead)
            assert skipping.cv_results_[f"std_test_{metric}"][n] == pytest.approx(np.std(theirs[n, :2]))
        np.testing.assert_array_equal(means[counts == 5], true[counts == 5])
        ranks = skipping.cv_results_[f"rank_test_{metric}"]
        np.testing.assert_array_equal(ranks, 1 + np.sum(means[None, :] > means[:, None], axis=1))

    def test_it_goes_on_from_a_file_in_worker_processes(self, tmp_path):
        first = ft.FarthingSearchCV(
            SVC(), SPACE, budget="10 evaluations", policy="sobol", cv=KFold(5, shuffle=True, random_state=0),
            storage=tmp_path / "search.db", skip_folds=True,
        ).fit(X, y)  # fmt: skip
        more = first.set_params(budget="60s, 20 evaluations").fit(X, y)
        assert len(more.cv_results_["params"]) == 20
        skipped = np.isnan(more.cv_results_["split4_test_score"])
        assert skipped[10:].any()
        best = cross_validate(SVC(**more.best_params_), X, y, cv=KFold(5, shuffle=True, random_state=0))
        assert more.best_score_ == np.mean(best["test_score"])
