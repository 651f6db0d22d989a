"""Intervals against published figures, and every limit of the store's state from both sides."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.health import (
    DEFAULTS,
    MOVING,
    STATES,
    Interval,
    Job,
    Judgement,
    Record,
    Signs,
    age,
    judge,
    review_state,
    standing_of_job,
    wilson,
)

GOOD = Signs(
    judged={"caller": Record(wins=40, losses=10), "machine": Record(wins=90, losses=10)},
    in_service=20,
    settled=200,
    unjudged=40,
    uncredited_hours=0.0,
    distillation_hours=0.0,
    failed_distillations=0,
    review_hours=0.0,
    upheld=9,
    overturned=1,
    exposures=1000,
    kept_out=20,
    lessons=25,
    without_vector=0,
    unlike_space=0,
    jobs=(Job(name="daily", every_hours=24.0, age_hours=12.0, ran=True, failed=False),),
)


def states(signs: Signs) -> dict[str, str]:
    """Code of each reason -> its state."""
    return {reason.code: reason.state for reason in judge(signs).reasons}


class TestWilson:
    @pytest.mark.parametrize(
        ("successes", "n", "low", "high"),
        [
            # Newcombe 1998, Two-sided confidence intervals for the single proportion: comparison of seven methods,
            # Statistics in Medicine 17:857-872, table I, method 3.
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0000, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ],
    )
    def test_agrees_with_the_published_intervals(self, successes: int, n: int, low: float, high: float) -> None:
        interval = wilson(successes, n)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)

    def test_of_nothing_says_nothing(self) -> None:
        assert wilson(0, 0) == Interval(low=0.0, high=1.0)

    @pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3), (0, -1)])
    def test_of_what_cannot_be_is_refused(self, successes: int, n: int) -> None:
        with pytest.raises(ValueError, match=f"{successes} of {n} cannot be"):
            wilson(successes, n)

    @given(st.integers(1, 10_000), st.data())
    def test_lies_around_the_rate_within_0_and_1_and_mirrors(self, n: int, data: st.DataObject) -> None:
        successes = data.draw(st.integers(0, n))
        interval, mirrored = wilson(successes, n), wilson(n - successes, n)
        assert 0 <= interval.low <= successes / n <= interval.high <= 1
        assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)


class TestAStore:
    def test_that_learns_is_healthy_and_has_no_reason(self) -> None:
        assert judge(GOOD) == Judgement(state="healthy", reasons=())

    def test_is_in_the_worst_state_that_a_reason_speaks_for_and_names_all_of_them_worst_first(self) -> None:
        judged = judge(replace(GOOD, in_service=0, failed_distillations=1, review_hours=28 * 24.0))
        assert judged.state == "attention"
        assert [reason.code for reason in judged.reasons] == ["unreviewed", "failed_distillations", "no_lessons"]

    def test_that_is_young_and_in_trouble_is_in_trouble(self) -> None:
        assert judge(replace(GOOD, judged={}, failed_distillations=1)).state == "watch"

    @given(
        st.builds(
            lambda **kind: replace(GOOD, **kind),
            judged=st.dictionaries(
                st.sampled_from([*MOVING, "attributed", "unknown"]),
                st.builds(Record, wins=st.integers(0, 99), losses=st.integers(0, 99)),
            ),
            in_service=st.integers(0, 3),
            uncredited_hours=st.floats(0, 100),
            without_vector=st.integers(0, 25),
            overturned=st.integers(0, 20),
        )
    )
    def test_is_never_better_than_one_of_its_reasons(self, signs: Signs) -> None:
        judged = judge(signs)
        found = [STATES.index(reason.state) for reason in judged.reasons]
        assert STATES.index(judged.state) == max(found, default=0)
        assert found == sorted(found, reverse=True)
        assert 0 not in found


class TestTooLittleEvidence:
    def test_is_building_until_one_class_alone_has_thirty(self) -> None:
        two = {"caller": Record(wins=20, losses=9), "machine": Record(wins=15, losses=14)}
        assert states(replace(GOOD, judged=two)) == {"few_judged": "building"}
        two["caller"] = Record(wins=20, losses=10)
        assert states(replace(GOOD, judged=two)) == {}

    def test_says_how_much_is_missing(self) -> None:
        (reason,) = judge(replace(GOOD, judged={"caller": Record(wins=1, losses=0)})).reasons
        assert reason.words == (
            "1 interaction was judged by one kind of judge; 29 more are needed before rates say much."
        )

    @pytest.mark.parametrize("source", ["attributed", "unknown"])
    def test_is_not_made_up_for_by_what_moves_no_lesson(self, source: str) -> None:
        judged = {"caller": Record(wins=5, losses=5), source: Record(wins=500, losses=0)}
        assert states(replace(GOOD, judged=judged)) == {"few_judged": "building"}

    def test_is_a_store_without_a_lesson_in_service(self) -> None:
        assert states(replace(GOOD, in_service=0)) == {"no_lessons": "building"}
        assert states(replace(GOOD, in_service=1)) == {}


class TestWhoJudges:
    @pytest.mark.parametrize("source", ["machine", "self_curriculum", "attributed", "unknown"])
    def test_a_store_that_no_caller_judged_is_told_that_it_grades_itself(self, source: str) -> None:
        alone = states(replace(GOOD, judged={source: Record(wins=1, losses=0)}))
        assert alone["self_graded"] == "watch"
        callers = {source: Record(wins=1, losses=0), "caller": Record(wins=0, losses=1)}
        assert "self_graded" not in states(replace(GOOD, judged=callers))

    def test_the_warning_stands_however_well_the_store_does(self) -> None:
        judged = judge(replace(GOOD, judged={"machine": Record(wins=10_000, losses=0)}))
        assert judged.state == "watch"
        assert "grades itself" in judged.reasons[0].words

    def test_a_store_that_nobody_judged_is_not_one_that_grades_itself(self) -> None:
        assert states(replace(GOOD, judged={})) == {"few_judged": "building"}

    def test_one_callers_word_in_ten_is_enough(self) -> None:
        judged = {"caller": Record(wins=9, losses=1), "machine": Record(wins=80, losses=10)}
        assert states(replace(GOOD, judged=judged)) == {}
        judged["machine"] = Record(wins=81, losses=10)
        assert states(replace(GOOD, judged=judged)) == {"few_callers": "watch"}

    @pytest.mark.parametrize("source", MOVING)
    def test_each_class_loses_by_itself_and_only_beyond_chance(self, source: str) -> None:
        judged = {**GOOD.judged, source: Record(wins=40, losses=60)}  # 95% interval up to 0.498
        assert states(replace(GOOD, judged=judged)) == {f"losing_{source}": "watch"}
        judged[source] = Record(wins=41, losses=59)  # up to 0.508
        assert states(replace(GOOD, judged=judged)) == {}

    def test_a_few_losses_say_nothing_yet(self) -> None:
        few = {**GOOD.judged, "caller": Record(wins=0, losses=29)}
        assert "losing_caller" not in states(replace(GOOD, judged=few))
        few["caller"] = Record(wins=0, losses=30)
        assert "losing_caller" in states(replace(GOOD, judged=few))


class TestUnjudgedWork:
    @pytest.mark.parametrize(
        ("unjudged", "state"), [(99, None), (100, "watch"), (179, "watch"), (180, "attention"), (200, "attention")]
    )
    def test_is_minded_from_half_and_from_nine_in_ten(self, unjudged: int, state: str | None) -> None:
        assert states(replace(GOOD, settled=200, unjudged=unjudged)).get("unjudged") == state

    def test_is_not_minded_among_fewer_than_thirty(self) -> None:
        assert states(replace(GOOD, settled=29, unjudged=29)) == {}
        assert states(replace(GOOD, settled=30, unjudged=30)) == {"unjudged": "attention"}


LITTLE = 1e-6


class TestQueues:
    @pytest.mark.parametrize(
        ("field", "code", "watch", "attention"),
        [
            ("uncredited_hours", "uncredited", 5 / 60, 1.0),
            ("distillation_hours", "undistilled", 1.0, 24.0),
            ("review_hours", "unreviewed", 7 * 24.0, 28 * 24.0),
        ],
    )
    def test_are_minded_by_the_age_of_what_has_waited_longest(
        self, field: str, code: str, watch: float, attention: float
    ) -> None:
        expected = {
            0.0: None,
            watch - LITTLE: None,
            watch: "watch",
            attention - LITTLE: "watch",
            attention: "attention",
        }
        assert {hours: states(replace(GOOD, **{field: hours})).get(code) for hours in expected} == expected

    def test_say_how_long(self) -> None:
        assert judge(replace(GOOD, uncredited_hours=0.2)).reasons[0].words == (
            "An outcome has waited 12 minutes to be credited."
        )

    def test_one_failed_distillation_waits_for_an_operator(self) -> None:
        assert states(replace(GOOD, failed_distillations=1)) == {"failed_distillations": "watch"}


class TestQuarantines:
    @pytest.mark.parametrize(
        ("overturned", "decided", "state"),
        [
            (0, 0, None),
            (1, 1, "watch"),  # low 0.207
            (6, 15, None),  # 0.198
            (7, 18, "watch"),  # 0.203
            (7, 10, "watch"),  # 0.397
            (8, 10, "attention"),  # 0.490
            (21, 38, "watch"),  # 0.397
            (22, 38, "attention"),  # 0.422
        ],
    )
    def test_that_people_lift_are_minded_beyond_chance(self, overturned: int, decided: int, state: str | None) -> None:
        signs = replace(GOOD, overturned=overturned, upheld=decided - overturned)
        assert states(signs).get("overturned") == state

    @pytest.mark.parametrize(("kept_out", "state"), [(63, None), (64, "watch"), (224, "watch"), (225, "attention")])
    def test_that_keep_much_out_are_minded_beyond_chance(self, kept_out: int, state: str | None) -> None:
        assert states(replace(GOOD, kept_out=kept_out)).get("kept_out") == state


class TestVectors:
    @pytest.mark.parametrize(("missing", "state"), [(0, None), (1, "watch"), (9, "watch"), (10, "attention")])
    def test_that_are_missing_are_minded_from_one_and_from_a_tenth(self, missing: int, state: str | None) -> None:
        assert states(replace(GOOD, lessons=100, without_vector=missing)).get("without_vector") == state

    def test_of_tombstones_that_were_left_behind_are_minded(self) -> None:
        assert states(replace(GOOD, unlike_space=1)) == {"tombstones": "watch"}


def job(age_hours: float, *, every: float = 24.0, ran: bool = True, failed: bool = False) -> Job:
    return Job(name="daily", every_hours=every, age_hours=age_hours, ran=ran, failed=failed)


class TestJobs:
    SLACK = 10 / 60  # hours

    @pytest.mark.parametrize("every", [30 / 3600, 1.0, 24.0])
    def test_are_late_after_three_missed_runs_and_need_somebody_after_ten(self, every: float) -> None:
        late, very_late = 3 * every + self.SLACK, 10 * every + self.SLACK
        expected = {0.0: {}, late - LITTLE: {}, late: "watch", very_late - LITTLE: "watch", very_late: "attention"}
        for hours, state in expected.items():
            found = states(replace(GOOD, jobs=(job(hours, every=every),)))
            assert found == ({"job_late": state} if state else {}), hours

    def test_that_never_ran_are_named_once_they_had_time_to(self) -> None:
        assert standing_of_job(job(1.0, ran=False)) == "waiting"
        assert states(replace(GOOD, jobs=(job(1.0, ran=False),))) == {}
        (reason,) = judge(replace(GOOD, jobs=(job(400.0, ran=False),))).reasons
        assert (reason.code, reason.state) == ("job_never_ran", "attention")
        assert reason.words == "The job daily has never run well; it is due every 1 day."

    def test_that_failed_last_are_named(self) -> None:
        assert states(replace(GOOD, jobs=(job(1.0, failed=True),))) == {"job_failed": "watch"}
        assert states(replace(GOOD, jobs=(job(100.0, failed=True),))) == {"job_late": "watch"}

    def test_are_each_named(self) -> None:
        late = (job(100.0), replace(job(200.0), name="weekly"), job(1.0))
        assert [reason.words for reason in judge(replace(GOOD, jobs=late)).reasons] == [
            "The job daily last ran well 4 days ago; it is due every 1 day.",
            "The job weekly last ran well 8 days ago; it is due every 1 day.",
        ]

    def test_that_are_on_time_say_so(self) -> None:
        assert standing_of_job(job(1.0)) == "on_time"


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (0.0, "0 seconds"),
        (30 / 3600, "30 seconds"),
        (1 / 60, "1 minute"),
        (119 / 3600, "1 minute"),
        (1.0, "1 hour"),
        (23.9, "23 hours"),
        (24.0, "1 day"),
        (30 * 24.0, "30 days"),
    ],
)
def test_an_age_is_said_in_the_unit_that_says_most(hours: float, words: str) -> None:
    assert age(hours) == words


def test_the_limits_are_in_order() -> None:
    pairs = [value for value in vars(DEFAULTS).values() if isinstance(value, tuple)]
    assert len(pairs) == 8
    assert all(0 < watch < attention for watch, attention in pairs)


class TestThePage:
    PAGE = (Path(__file__).resolve().parents[2] / "docs" / "health.md").read_text(encoding="utf-8")

    def test_explains_every_reason_and_no_other(self) -> None:
        few = {source: Record(wins=0, losses=29) for source in MOVING}
        many = {source: Record(wins=0, losses=30) for source in MOVING}
        jobs = (job(400.0), job(400.0, ran=False), job(1.0, failed=True))
        bad = replace(
            GOOD, judged=few, in_service=0, unjudged=200, uncredited_hours=99.0, distillation_hours=99.0,
            failed_distillations=1, review_hours=999.0, upheld=0, overturned=20, kept_out=999, without_vector=25,
            unlike_space=1, jobs=jobs, webhook_hours=99.0, webhooks_disabled=1, webhooks_failed=1,
        )  # fmt: skip
        alone = replace(GOOD, judged={"machine": Record(wins=9, losses=0)})
        some = replace(GOOD, judged={**GOOD.judged, "caller": Record(wins=1, losses=0)})
        found = set().union(*map(states, (bad, alone, some, replace(GOOD, judged=many))))
        table = self.PAGE.split("## The state")[1].split("## What to do")[0]
        told = {code for line in table.splitlines() if line.startswith("| `") for code in codes_of(line.split("|")[1])}
        assert told == found | set(STATES)

    @pytest.mark.parametrize(
        ("code", "sentences"),
        [
            ("uncredited", ("5 minutes", "1 hour")),
            ("undistilled", ("1 hour", "24 hours")),
            ("unreviewed", ("7 days", "28 days")),
            ("unjudged", ("half", "nine in ten")),
            ("overturned", ("a fifth", "two fifths")),
            ("kept_out", ("5%", "20%")),
        ],
    )
    def test_has_the_limits_of_the_rule(self, code: str, sentences: tuple[str, str]) -> None:
        limits = {
            "uncredited": DEFAULTS.uncredited_hours,
            "undistilled": DEFAULTS.distillation_hours,
            "unreviewed": DEFAULTS.review_hours,
            "unjudged": DEFAULTS.unjudged,
            "overturned": DEFAULTS.overturned,
            "kept_out": DEFAULTS.kept_out,
        }
        values = {
            "5 minutes": 5 / 60, "1 hour": 1.0, "24 hours": 24.0, "7 days": 168.0, "28 days": 672.0, "half": 0.5,
            "nine in ten": 0.9, "a fifth": 0.2, "two fifths": 0.4, "5%": 0.05, "20%": 0.2,
        }  # fmt: skip
        (line,) = [line for line in self.PAGE.splitlines() if line.startswith(f"| `{code}` ")]
        watch, attention = line.split(" | ")[1:3]
        assert sentences[0] in watch
        assert sentences[1] in attention
        assert limits[code] == tuple(values[sentence] for sentence in sentences)


def codes_of(cell: str) -> list[str]:
    return [word.strip(" `") for word in cell.split(",")]


class TestWebhooks:
    def test_an_endpoint_that_takes_nothing_is_minded_after_an_hour_and_needs_somebody_after_a_day(self) -> None:
        states_at = {hours: states(replace(GOOD, webhook_hours=hours)) for hours in (0.99, 1.0, 23.9, 24.0)}
        assert [found.get("webhook_failing") for found in states_at.values()] == [None, "watch", "watch", "attention"]

    def test_what_was_lost_is_told(self) -> None:
        assert states(replace(GOOD, webhooks_disabled=1)) == {"webhook_disabled": "attention"}
        assert states(replace(GOOD, webhooks_failed=1)) == {"webhooks_failed": "watch"}


def test_the_age_of_the_review_queue_has_the_limits_of_the_report() -> None:
    ages = (0.0, 7 * 24.0 - 0.1, 7 * 24.0, 28 * 24.0)
    assert [review_state(hours) for hours in ages] == ["healthy", "healthy", "watch", "attention"]
