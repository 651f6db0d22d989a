"""Facts as PostgreSQL keeps them: one belief at a time about one key."""

import pytest

from tests.models.refusals import Checks, Tables
from tests.models.rows import EARLIER, LATER, VECTOR, insert, new, row, run, store, the
from tests.models.rules import Check, links, not_empty, proves, refused, together

BY = "fact_one_at_a_time"
MAY, JUNE, JULY, AUGUST = (f"2026-0{month}-01T00:00:00Z" for month in (5, 6, 7, 8))
Period = tuple[str | None, str | None]
OVERLAPS: dict[str, tuple[Period, Period]] = {
    "the same": ((MAY, JULY), (MAY, JULY)),
    "the end": ((MAY, JULY), (JUNE, AUGUST)),
    "the start": ((JUNE, AUGUST), (MAY, JULY)),
    "inside": ((MAY, AUGUST), (JUNE, JULY)),
    "around": ((JUNE, JULY), (MAY, AUGUST)),
    "open end": ((MAY, None), (JULY, AUGUST)),
    "open start": ((None, JULY), (MAY, JUNE)),
    "always, then a while": ((None, None), (JUNE, JULY)),
    "a while, then always": ((JUNE, JULY), (None, None)),
    "always twice": ((None, None), (None, None)),
    "two open ends": ((MAY, None), (JULY, None)),
}
APART: dict[str, tuple[Period, Period]] = {
    "after": ((MAY, JUNE), (JULY, AUGUST)),
    "before": ((JULY, AUGUST), (MAY, JUNE)),
    "right after: the end is not in the period": ((MAY, JUNE), (JUNE, JULY)),
    "right before": ((JUNE, JULY), (MAY, JUNE)),
    "open end, before": ((JUNE, None), (MAY, JUNE)),
    "open start, after": ((None, JUNE), (JUNE, None)),
}


class TestFact(Tables, Checks):
    tables = {"fact": {**links("account_id", "project_id"), "space_id": {"embedding": VECTOR}}}
    checks = [
        not_empty("fact", "text"),
        Check(
            name="fact_valid_order",
            table="fact",
            passes=[
                {"valid_from": EARLIER, "valid_until": LATER},
                {"valid_from": EARLIER},
                {"valid_until": EARLIER},
            ],
            refused=[
                {"valid_from": LATER, "valid_until": EARLIER},
                {"valid_from": EARLIER, "valid_until": EARLIER},
                {"valid_from": LATER, "valid_until": EARLIER, "key": "tank"},
            ],
        ),
        together("fact", "embedding", {"embedding": VECTOR, "space_id": the("embedding_space")}),
    ]


def believe(period: Period, **changes: object) -> dict[str, object]:
    """Store a fact about the tank in a period."""
    return insert("fact", **{"key": "tank", "valid_from": period[0], "valid_until": period[1], **changes})


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
@pytest.mark.parametrize(("first", "second"), OVERLAPS.values(), ids=list(OVERLAPS))
def test_two_beliefs_about_one_key_at_one_time_are_refused(first: Period, second: Period) -> None:
    believe(first)
    with refused(by=BY):
        believe(second)


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
@pytest.mark.parametrize(("first", "second"), APART.values(), ids=list(APART))
def test_beliefs_about_one_key_at_different_times_are_stored(first: Period, second: Period) -> None:
    believe(first)
    believe(second)
    assert run("SELECT count(*) FROM fact WHERE retracted_at IS NULL") == [(2,)]


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
@pytest.mark.parametrize(
    "change",
    [{"key": "pump"}, {"key": None}, {"project_id": new("project")}, {"retracted_at": LATER}],
    ids=["another key", "no key", "another project", "already retracted"],
)
def test_what_is_no_second_belief_about_the_key_is_stored(change: dict[str, object]) -> None:
    believe((MAY, JULY))
    believe((MAY, JULY), **change)
    assert run("SELECT count(*) FROM fact") == [(2,)]


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
def test_a_correction_retracts_and_records() -> None:
    old = believe((MAY, None))
    run("UPDATE fact SET retracted_at = now() WHERE id = %s", old["id"])
    new_belief = believe((MAY, None), supersedes=old["id"])
    assert run("SELECT id FROM fact WHERE retracted_at IS NULL") == [(new_belief["id"],)]


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
@pytest.mark.parametrize(
    ("change", "value"),
    [("retracted_at", None), ("key", "tank"), ("valid_from", MAY)],
    ids=["believed again", "moved to the key", "true from earlier on"],
)
def test_an_update_cannot_make_a_second_belief_either(change: str, value: object) -> None:
    believe((MAY, JULY))
    other: dict[str, dict[str, object]] = {
        "retracted_at": {"retracted_at": LATER},
        "key": {"key": "pump"},
        "valid_from": {"valid_from": JULY, "valid_until": AUGUST},
    }
    quiet = believe((MAY, JULY), **other[change])
    with refused(by=BY):
        run(f"UPDATE fact SET {change} = %s WHERE id = %s", value, quiet["id"])


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
def test_an_update_that_leaves_the_only_belief_is_let_through() -> None:
    believe((MAY, JULY))
    run("UPDATE fact SET valid_until = %s, text = 'The tank holds 6 t.'", AUGUST)
    assert run("SELECT text FROM fact") == [("The tank holds 6 t.",)]


@pytest.mark.usefixtures("database")
@proves("fact_no_overlap")
def test_one_statement_cannot_store_two_beliefs_at_one_time() -> None:
    columns = row("fact", key="tank")
    names, places = ", ".join(columns), ", ".join(["%s"] * len(columns))
    twins = [*columns.values(), *row("fact", key="tank", project_id=columns["project_id"]).values()]
    with refused(by=BY):
        run(f"INSERT INTO fact ({names}) VALUES ({places}), ({places})", *twins)


@pytest.mark.usefixtures("database")
def test_a_fact_is_recorded_at_the_databases_own_time() -> None:
    stored = store("fact", row("fact"))
    assert run("SELECT now() - recorded_at < interval '1 minute' FROM fact") == [(True,)]
    assert stored["retracted_at"] is None
