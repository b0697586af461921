"""What may be spent, and what was."""

from __future__ import annotations

import json
import math
import pickle
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.budget import ACCOUNTS, Budget, Ledger, amount_text
from farthing.errors import FarthingError, InvalidBudget

quick = settings(max_examples=100, deadline=None)


class TestReading:
    """A budget as people write it becomes the limits they mean."""

    @pytest.mark.parametrize(
        ("text", "limits"),
        [
            ("90s", {"seconds": 90.0}),
            ("10m", {"seconds": 600.0}),
            ("1h30m", {"seconds": 5400.0}),
            ("1h 30m 15s", {"seconds": 5415.0}),
            ("1.5h", {"seconds": 5400.0}),
            ("0.5s", {"seconds": 0.5}),
            ("2d", {"seconds": 172_800.0}),
            ("2 hours", {"seconds": 7200.0}),
            ("1 hour", {"seconds": 3600.0}),
            ("5 min", {"seconds": 300.0}),
            ("5 minutes", {"seconds": 300.0}),
            ("1 hour 5 minutes", {"seconds": 3900.0}),
            ("30 sec", {"seconds": 30.0}),
            ("30 seconds", {"seconds": 30.0}),
            ("3 days", {"seconds": 259_200.0}),
            ("  10M ", {"seconds": 600.0}),
            ("$5", {"usd": 5.0}),
            ("$ 0.25", {"usd": 0.25}),
            ("5 usd", {"usd": 5.0}),
            ("5 dollars", {"usd": 5.0}),
            ("1e6 joules", {"joules": 1e6}),
            ("100 evaluations", {"evaluations": 100.0}),
            ("1 evaluation", {"evaluations": 1.0}),
            ("20 trials", {"evaluations": 20.0}),
            ("10m, 50 evaluations", {"seconds": 600.0, "evaluations": 50.0}),
            ("$5,1h30m,20 trials", {"usd": 5.0, "seconds": 5400.0, "evaluations": 20.0}),
        ],
    )
    def test_text_is_read_as_the_limits_it_names(self, text, limits):
        assert Budget.of(text).limits == limits

    def test_a_budget_is_kept_as_it_is(self):
        budget = Budget(cost=3.0, usd_per_hour=2.0)
        assert Budget.of(budget) is budget

    def test_a_timedelta_is_a_number_of_seconds(self):
        assert Budget.of(timedelta(minutes=2, milliseconds=500)) == Budget(seconds=120.5)

    def test_evaluations_read_from_text_are_a_whole_number(self):
        assert repr(Budget.of("20 trials")) == "Budget(evaluations=20)"

    @quick
    @given(st.integers(0, 400), st.integers(0, 59), st.integers(1, 59))
    def test_hours_minutes_and_seconds_add_up(self, hours, minutes, seconds):
        assert Budget.of(f"{hours}h{minutes}m{seconds}s").seconds == 3600 * hours + 60 * minutes + seconds

    @quick
    @given(st.integers(60, 10**6))
    def test_a_duration_as_shown_is_read_back_as_itself(self, seconds):
        budget = Budget(seconds=seconds)
        assert Budget.of(str(budget)) == budget


class TestRefusing:
    """Nonsense is refused, and the message says what would be accepted."""

    @pytest.mark.parametrize(
        "text",
        [
            "", " ", "10", "ten minutes", "10 parsecs", "10m 3 parsecs", "-10m", "- $5", "$", "$-5", "$5m",
            "m", "10m,", "1h30", "nan s", "inf evaluations", "1_000 trials", "10;m", "usd 5",
        ],
    )  # fmt: skip
    def test_unreadable_text_is_refused_and_the_error_says_what_is_accepted(self, text):
        with pytest.raises(InvalidBudget) as refused:
            Budget.of(text)
        assert repr(text) in str(refused.value)
        for accepted in ('"90s"', '"10m"', '"1h30m"', '"$5"', '"100 evaluations"', "Budget(...)"):
            assert accepted in str(refused.value)

    @pytest.mark.parametrize("bare", [10, 0, 1.5, math.nan, True, None, [600], {"seconds": 5}])
    def test_a_bare_object_has_no_unit_and_the_error_says_what_is_accepted(self, bare):
        with pytest.raises(InvalidBudget, match="expected text with a unit") as refused:
            Budget.of(bare)
        assert repr(bare) in str(refused.value)
        assert '"10m"' in str(refused.value)

    @pytest.mark.parametrize(
        "text",
        [
            "0s",
            "0m",
            "$0",
            "0 evaluations",
            "1e400 usd",
            "1e400 trials",
            pytest.param("9" * 400 + "s", id="nines"),
        ],
    )
    def test_readable_text_of_nothing_or_of_infinity_is_refused(self, text):
        with pytest.raises(InvalidBudget, match="above 0"):
            Budget.of(text)

    @pytest.mark.parametrize("name", [*Budget.UNITS, "evaluations", "usd_per_hour"])
    @pytest.mark.parametrize(
        "amount",
        [
            0,
            0.0,
            -1,
            -0.5,
            math.nan,
            math.inf,
            -math.inf,
            True,
            False,
            "5",
            [5],
            pytest.param(10**400, id="huge"),
        ],
    )
    def test_a_limit_that_is_not_finite_and_positive_is_refused_by_name(self, name, amount):
        others = {"seconds": 1.0} if name == "usd_per_hour" else {}
        with pytest.raises(InvalidBudget, match=name) as refused:
            Budget(**others, **{name: amount})
        assert "finite number above 0" in str(refused.value)
        assert repr(amount)[:20] in str(refused.value)

    @pytest.mark.parametrize("given", ["1.5 trials", Budget])
    def test_half_an_evaluation_is_refused(self, given):
        with pytest.raises(InvalidBudget, match=r"whole number, got 1\.5"):
            Budget(evaluations=1.5) if given is Budget else Budget.of(given)

    @pytest.mark.parametrize("limits", [{}, {"usd_per_hour": 3.0}])
    def test_a_budget_that_limits_nothing_is_refused_with_the_names_of_the_limits(self, limits):
        with pytest.raises(InvalidBudget, match="nothing is limited") as refused:
            Budget(**limits)
        for name in (*Budget.UNITS, "evaluations"):
            assert name in str(refused.value)

    @pytest.mark.parametrize("text", ["$5, 3 usd", "1h, 30m", "5 trials, 5 evaluations"])
    def test_one_unit_given_twice_is_refused(self, text):
        with pytest.raises(InvalidBudget, match="twice"):
            Budget.of(text)

    def test_a_misspelt_unit_is_a_mistake_of_the_caller(self):
        with pytest.raises(TypeError, match="minutes"):
            Budget(minutes=5)

    def test_refusals_are_value_errors_and_farthing_errors(self):
        with pytest.raises(ValueError) as refused:
            Budget()
        assert isinstance(refused.value, FarthingError)

    def test_a_budget_cannot_be_altered(self):
        with pytest.raises(AttributeError):
            Budget(seconds=1.0).seconds = 2.0


class TestUnits:
    """One unit is what evaluations are counted in."""

    def test_the_first_limited_of_cost_usd_joules_compute_seconds_seconds_is_the_unit(self):
        order = ["cost", "usd", "joules", "compute_seconds", "seconds"]
        for first, unit in enumerate(order):
            limits = dict.fromkeys(reversed(order[first:]), 7.0)
            assert Budget(evaluations=3, **limits).unit == unit

    def test_evaluations_alone_leave_seconds_as_the_unit(self):
        budget = Budget(evaluations=3)
        assert budget.unit == "seconds"
        assert budget.limits == {"evaluations": 3.0}

    def test_a_rate_limits_nothing(self):
        budget = Budget(seconds=10, usd_per_hour=36)
        assert budget.limits == {"seconds": 10.0}
        assert budget.unit == "seconds"

    def test_time_is_priced_by_the_hour(self):
        assert Budget(usd=1, usd_per_hour=36).priced(50.0) == {"seconds": 50.0, "usd": 0.5}

    def test_without_a_rate_time_has_no_price(self):
        assert Budget(usd=1).priced(50.0) == {"seconds": 50.0}

    @pytest.mark.parametrize(
        ("unit", "amount", "text"),
        [
            ("seconds", 0.0123, "0.0123s"),
            ("seconds", 59.0, "59s"),
            ("seconds", 60.0, "1m"),
            ("seconds", 3661.0, "1h1m1s"),
            ("seconds", 7200.4, "2h"),
            ("compute_seconds", 90.0, "1m30s of compute"),
            ("usd", 0.0, "$0.00"),
            ("usd", 12.345, "$12.35"),
            ("usd", 0.0123, "$0.012"),
            ("evaluations", 7.0, "7 evaluations"),
            ("joules", 1234.5, "1234 joules"),
            ("cost", 0.5, "0.5 cost"),
            ("cost", math.inf, "no limit"),
        ],
    )
    def test_amounts_are_shown_as_people_write_them(self, unit, amount, text):
        assert amount_text(unit, amount) == text


limits = st.fixed_dictionaries(
    {},
    optional={
        **{unit: st.floats(1e-6, 1e12) for unit in (*Budget.UNITS, "usd_per_hour")},
        "evaluations": st.integers(1, 10**9),
    },
).filter(lambda chosen: set(chosen) - {"usd_per_hour"})


class TestRoundTrip:
    @quick
    @given(limits)
    def test_a_budget_survives_json(self, chosen):
        budget = Budget(**chosen)
        back = Budget.from_json(json.loads(json.dumps(budget.as_json())))
        assert back == budget
        assert repr(back) == repr(budget)
        assert back.unit == budget.unit

    @quick
    @given(limits)
    def test_its_repr_is_an_expression_that_makes_it(self, chosen):
        budget = Budget(**chosen)
        assert eval(repr(budget), {"Budget": Budget}) == budget

    def test_a_budget_pickles_alike_before_and_after_it_was_asked_for_its_limits(self):
        """scikit-learn compares the parameters of an estimator before and after `fit` in this way."""
        budget = Budget(seconds=60, evaluations=5)
        before = pickle.dumps(budget)
        assert (budget.unit, budget.limits) == ("seconds", {"seconds": 60.0, "evaluations": 5.0})
        assert pickle.dumps(budget) == before
        assert pickle.loads(before).limits == budget.limits


def charge(account: str, **amounts: float) -> dict[str, dict[str, float]]:
    return {account: amounts}


class TestLedger:
    """The ledger is the sum of its charges, and nothing else."""

    def example(self) -> Ledger:
        """Two evaluations of 30 s and 50 s, a failure of 10 s, one interruption of 4 s, 6 s of optimising."""
        return (
            Ledger(Budget(seconds=200, evaluations=5, usd_per_hour=36))
            .charged(charge("optimiser", seconds=4.0, usd=0.04))
            .charged(charge("evaluation", seconds=30.0, usd=0.3, evaluations=1.0))
            .charged(charge("interrupted", seconds=4.0, usd=0.04, evaluations=0.0))
            .charged(
                {
                    **charge("failed", seconds=10.0, usd=0.1, evaluations=1.0),
                    **charge("optimiser", seconds=2.0),
                }
            )
            .charged(charge("evaluation", seconds=50.0, usd=0.5, evaluations=1.0))
        )

    def test_the_example_adds_up_by_hand(self):
        ledger = self.example()
        assert ledger.unit == "seconds"
        assert ledger.spent == 30 + 50 + 10 + 4 + 6
        assert ledger.remaining == 100.0
        assert ledger.account("evaluation") == 80.0
        assert ledger.account("failed") == 10.0
        assert ledger.account("interrupted") == 4.0
        assert ledger.account("optimiser") == 6.0
        assert ledger.total("evaluations") == 3.0
        assert ledger.left("evaluations") == 2.0
        assert ledger.total("usd") == pytest.approx(0.98)
        assert ledger.account("evaluation", "usd") == pytest.approx(0.8)
        assert ledger.left("usd") == math.inf
        assert ledger.fraction == 3 / 5  # evaluations are further along than 100 s of 200 s
        assert ledger.reached is None

    def test_an_account_never_charged_holds_nothing(self):
        assert Ledger(Budget(cost=1)).account("failed") == 0.0
        assert self.example().account("failed", "joules") == 0.0

    def test_charging_returns_a_new_ledger_and_keeps_the_old(self):
        before = Ledger(Budget(cost=10)).charged(charge("evaluation", cost=1.0))
        given = charge("evaluation", cost=2.0)
        after = before.charged(given)
        given["evaluation"]["cost"] = 99.0
        assert (before.spent, after.spent) == (1.0, 3.0)

    def test_running_trials_are_committed_and_count_against_evaluations(self):
        ledger = Ledger(Budget(cost=10, evaluations=5)).charged(charge("evaluation", cost=4.0, evaluations=1.0))
        running = ledger.promised(2.5, 1).promised(0.5, 2)
        assert (running.committed, running.running) == (3.0, 3)
        assert (running.spent, running.remaining) == (4.0, 6.0), "a promise is not yet spent"
        assert running.promised(-2.5, -1).promised(-0.5, -2) == ledger

    def test_committed_cost_is_not_available_but_committed_time_is(self):
        assert Ledger(Budget(cost=10)).promised(4.0, 2).available == 6.0
        assert Ledger(Budget(compute_seconds=10)).promised(14.0, 2).available == 0.0
        assert Ledger(Budget(seconds=10)).promised(4.0, 2).available == 10.0
        assert Ledger(Budget(evaluations=3)).promised(4.0, 2).available == math.inf

    def test_overspending_leaves_nothing_and_uses_all(self):
        ledger = Ledger(Budget(cost=10)).charged(charge("evaluation", cost=25.0))
        assert (ledger.spent, ledger.remaining, ledger.fraction) == (25.0, 0.0, 1.0)

    @pytest.mark.parametrize(
        ("charges", "reached"),
        [
            (charge("evaluation", seconds=9.0, usd=0.9, evaluations=2.0), None),
            (charge("evaluation", seconds=10.0, usd=0.9, evaluations=2.0), "seconds"),
            (charge("optimiser", seconds=10.5), "seconds"),
            (charge("failed", seconds=1.0, usd=1.0), "usd"),
            (charge("interrupted", usd=1.5), "usd"),
            (charge("evaluation", seconds=1.0, evaluations=3.0), "evaluations"),
            (charge("evaluation", joules=1e9, cost=1e9), None),
        ],
    )
    def test_a_limit_is_reached_whichever_account_filled_it(self, charges, reached):
        assert Ledger(Budget(seconds=10, usd=1, evaluations=3)).charged(charges).reached == reached

    def test_it_shows_evaluation_optimiser_and_failed_apart(self):
        lines = str(self.example()).splitlines()
        shown = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
        assert shown == {
            "budget": "3m20s at $36/h, 5 evaluations",
            "evaluation": "1m20s, 2 evaluations",
            "failed": "10s, 1 evaluation",
            "interrupted": "4s",
            "optimiser": "6s",
            "remaining": "1m40s, 2 evaluations (60% used)",
        }

    def test_it_shows_what_is_committed(self):
        text = str(Ledger(Budget(cost=10)).promised(2.5, 2))
        assert "committed   2.5 cost in 2 running" in text

    def test_a_ledger_survives_pickling(self):
        """Results travel between processes."""
        ledger = self.example()
        assert pickle.loads(pickle.dumps(ledger)) == ledger

    def test_its_json_holds_all_accounts_and_promises(self):
        stored = json.loads(json.dumps(self.example().promised(7.0, 1).as_json()))
        assert stored["accounts"]["evaluation"] == {"seconds": 80.0, "usd": 0.8, "evaluations": 2.0}
        assert (stored["committed"], stored["running"]) == (7.0, 1)


# Sixteenths up to 2**30 add without rounding, so that equality can be exact.
amounts = st.dictionaries(
    st.sampled_from([*Budget.UNITS, "evaluations"]), st.integers(0, 2**30).map(lambda n: n / 16), max_size=4
)
charges = st.dictionaries(st.sampled_from(ACCOUNTS), amounts, max_size=4)


@quick
@given(st.lists(charges, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_charges_does_not_matter_and_the_totals_are_their_sums(entries, random):
    budget = Budget(cost=1e6, evaluations=10**6, seconds=1e7)
    ledger = Ledger(budget)
    for entry in entries:
        ledger = ledger.charged(entry)
    shuffled = entries.copy()
    random.shuffle(shuffled)
    again = Ledger(budget)
    for entry in shuffled:
        again = again.charged(entry)

    for unit in (*Budget.UNITS, "evaluations"):
        by_hand = sum(amounts.get(unit, 0) for entry in entries for amounts in entry.values())
        assert ledger.total(unit) == again.total(unit) == by_hand
        for account in ACCOUNTS:
            of_account = sum(entry.get(account, {}).get(unit, 0) for entry in entries)
            assert ledger.account(account, unit) == again.account(account, unit) == of_account
    assert ledger.spent == ledger.total("cost")
    assert ledger.remaining == max(1e6 - ledger.spent, 0.0)
    assert ledger.fraction == again.fraction
    assert 0.0 <= ledger.fraction <= 1.0
    assert (ledger.reached is not None) == (ledger.fraction == 1.0)
