"""What a column of an old file may hold is taken as it was meant, and nothing is guessed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.text import clean
from memory.services.sonder import values
from memory.services.sonder.values import Skipped
from tests.services.old_store import vector

NOW = datetime(2026, 8, 1, tzinfo=UTC)
ANYTHING = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=40), st.binary(max_size=64))


def outcome(read: Callable[..., Any], *written: object) -> Any:
    """What is read, or as a text why it is not."""
    try:
        return read(*written)
    except Skipped as why:
        return why.reason


@pytest.mark.parametrize("written", ["2026-07-01 10:00:00", "2026-07-01T12:00:00+02:00", " 2026-07-01T10:00:00Z "])
def test_a_time_is_read_as_sqlite_and_as_iso_8601_write_it(written: str) -> None:
    assert values.moment(written, NOW) == datetime(2026, 7, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [None, 0, 1782900000.0, b"2026-07-01", "", "yesterday", "2026-13-01", "1969-01-01", "0001-01-01T00:00:00+14:00"],
)
def test_a_time_that_cannot_be_read_is_refused(written: object) -> None:
    with pytest.raises(Skipped, match="bad_timestamp"):
        values.moment(written, NOW)


def test_a_time_that_is_further_ahead_than_clocks_differ_is_refused() -> None:
    assert values.moment("2026-08-01T23:00:00", NOW) > NOW
    with pytest.raises(Skipped, match="bad_timestamp"):
        values.moment((NOW + timedelta(days=2)).astimezone(timezone(timedelta(hours=-12))).isoformat(), NOW)


@given(blob=ANYTHING, dimension=ANYTHING)
def test_of_any_bytes_comes_a_unit_vector_of_the_length_that_was_told_or_a_reason(
    blob: object, dimension: object
) -> None:
    found = outcome(values.vector, blob, dimension)
    if isinstance(found, str):
        assert found in ("corrupt", "dimension_lies", "zero", "too_many_dimensions")
    else:
        assert len(found) == dimension
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)


@given(numbers=st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1, max_size=9).filter(any))
def test_a_sound_vector_keeps_its_direction(numbers: list[float]) -> None:
    blob = vector(*numbers, dimension=9)
    found = values.vector(blob, 9)
    raw = np.frombuffer(blob, dtype="<f4").astype(np.float64)
    assert found @ raw == pytest.approx(np.linalg.norm(raw), rel=1e-5)


@pytest.mark.parametrize(
    ("blob", "dimension", "reason"),
    [
        (b"", 0, "corrupt"),
        (vector(1.0)[:-1], 8, "corrupt"),
        ("text", 1, "corrupt"),
        (vector(1.0), 7, "dimension_lies"),
        (vector(1.0), None, "dimension_lies"),
        (vector(1.0), 8.0, "dimension_lies"),
        (vector(float("nan")), 8, "corrupt"),
        (vector(float("inf")), 8, "corrupt"),
        (vector(0.0), 8, "zero"),
        (vector(1.0, dimension=4001), 4001, "too_many_dimensions"),
    ],
)
def test_what_is_wrong_with_a_vector_has_a_name(blob: object, dimension: object, reason: str) -> None:
    with pytest.raises(Skipped, match=reason):
        values.vector(blob, dimension)


@given(value=ANYTHING)
def test_an_id_is_a_text_that_a_column_holds_or_is_refused(value: object) -> None:
    is_sound = isinstance(value, str) and 0 < len(value) <= 200 and clean(value) == value
    found = outcome(lambda given: [values.ident(given)], value)
    assert found == [value] if is_sound else found in ("no_id", "bad_id")


class TestProjects:
    def test_a_name_that_is_a_slug_stays(self) -> None:
        assert values.project_slug("api") == "api"

    @pytest.mark.parametrize("name", ["My API", "C:/code/api", "API", "äöü", "...", "x" * 80])
    def test_another_name_becomes_a_slug_of_its_own(self, name: str) -> None:
        slug = values.project_slug(name)
        assert values._SLUG.fullmatch(slug)
        assert slug != values.project_slug(f"{name} ")

    @given(name=st.text(min_size=1, max_size=100))
    def test_every_name_has_a_slug_that_an_account_can_have(self, name: str) -> None:
        assert values._SLUG.fullmatch(values.project_slug(name))


def test_a_rejected_value_is_known_by_the_old_digest_whatever_its_case_and_white_space() -> None:
    assert values.old_digest(" Pin\n the  PARSER ") == values.old_digest("pin the parser")
    assert values.old_digest("pin the parser.") != values.old_digest("pin the parser")
    assert values.old_digest(" \n") is None
