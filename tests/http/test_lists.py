"""Lists: every row exactly once while others are written, filters that mean what they say, known parameters alone."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Interaction, Lesson
from memory.services.credit import sweep
from tests.conftest import Agent
from tests.http.calls import (
    INTERACTIONS,
    LESSONS,
    OPERATIONS,
    OUTCOMES,
    Operation,
    nothing_changes,
    raw,
    refused,
    report,
    start,
)

pytestmark = pytest.mark.django_db

LIST_QUERIES = 2  # the key, and the page with its projects and sessions
HISTORY_QUERIES = 3  # and the lesson, whose history it is

LISTS = {
    "interactions": (INTERACTIONS, ["project", "session", "created_after", "created_before"]),
    "outcomes": (OUTCOMES, ["interaction", "source", "signal", "credited"]),
    "lessons": (LESSONS, ["state", "origin", "q", "project", "reviewed", "has_contradiction", "ordering"]),
    "history": (LESSONS + "{lesson}/history/", []),
}
PAGES = {"one lesson": LESSONS + "{lesson}/", "evidence": LESSONS + "{lesson}/evidence/"}
every_list = pytest.mark.parametrize("name", LISTS)


@pytest.fixture
def page(agent: Agent, lesson: Callable[..., Any]) -> Callable[..., Any]:
    """Reads a list, whose lesson is there."""
    kept: Lesson = lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")

    def read(name: str, query: str) -> Any:
        path = LISTS[name][0] if name in LISTS else PAGES[name]
        return agent.client.get(f"{path.format(lesson=kept.pk)}?{query}")

    return read


class TestAParameter:
    @every_list
    def test_that_the_list_does_not_know_is_named_with_those_it_knows(
        self, page: Callable[..., Any], name: str
    ) -> None:
        assert page(name, "page_size=5").status_code == 200
        (sentence,) = refused(page(name, "stat=active"), 400, "stat")["errors"]["stat"]
        assert all(known in sentence for known in ["cursor", "page_size", *LISTS[name][1]])

    @pytest.mark.parametrize("name", PAGES)
    def test_is_refused_where_there_are_none(self, page: Callable[..., Any], name: str) -> None:
        assert page(name, "").status_code == 200
        refused(page(name, "verbose=1"), 400, "verbose")

    @pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
    def test_of_a_write_is_refused_since_fields_go_into_the_body(self, agent: Agent, operation: Operation) -> None:
        own = start(agent.client)["id"]
        with nothing_changes():
            url = f"{operation.url(own)}?k=3"
            response = raw(agent.client, operation.method, url, json.dumps(operation.body))
            refused(response, 400, "k")

    @every_list
    def test_that_is_empty_or_given_twice_is_named(self, page: Callable[..., Any], name: str) -> None:
        for known in ["page_size", *LISTS[name][1]]:
            refused(page(name, f"{known}="), 400, known)
            refused(page(name, f"{known}=1&{known}=1"), 400, known)

    @pytest.mark.parametrize(
        ("name", "query", "field"),
        [
            ("interactions", "project=%00", "project"),
            ("interactions", "session=a%00b", "session"),
            ("interactions", "created_after=yesterday", "created_after"),
            ("interactions", "created_before=2026-13-01", "created_before"),
            ("interactions", "created_before=1e400", "created_before"),
            ("interactions", "created_before=0001-01-01T00:00:00%2B14:00", "created_before"),
            ("interactions", "created_after=9999-12-31T23:59:59-14:00", "created_after"),
            ("outcomes", "interaction=5", "interaction"),
            ("outcomes", "interaction=%00", "interaction"),
            ("outcomes", "source=judge", "source"),
            ("outcomes", "signal=good", "signal"),
            ("outcomes", "credited=maybe", "credited"),
            ("lessons", "state=banned", "state"),
            ("lessons", "state=ACTIVE", "state"),
            ("lessons", "origin=nowhere", "origin"),
            ("lessons", "q=%00", "q"),
            ("lessons", f"q={'x' * 1001}", "q"),
            ("lessons", "reviewed=1", "reviewed"),
            ("lessons", "has_contradiction=True", "has_contradiction"),
            ("lessons", "ordering=text", "ordering"),
            ("lessons", "ordering=created_at,id", "ordering"),
        ],
    )
    def test_with_a_wrong_value_is_named(self, page: Callable[..., Any], name: str, query: str, field: str) -> None:
        refused(page(name, query), 400, field)

    @pytest.mark.parametrize(
        "time",
        ["0001-01-01T00:00:00-14:00", "9999-12-31T23:59:59%2B12:00", "2026-01-01", "2026-01-01T00:00:00%2B23:59"],
    )
    def test_with_a_time_at_the_edge_of_the_calendar_is_a_time(self, page: Callable[..., Any], time: str) -> None:
        assert page("interactions", f"created_after={time}").status_code == 200
        assert page("interactions", f"created_before={time}").status_code == 200

    @every_list
    @pytest.mark.parametrize("size", ["0", "-1", "201", "1.5", "ten", "٣", "%00", "9" * 5000, "+5", " 5"])
    def test_page_size_is_a_number_from_1_to_200(self, page: Callable[..., Any], name: str, size: str) -> None:
        refused(page(name, f"page_size={size}"), 400, "page_size")

    @every_list
    @pytest.mark.parametrize(
        "cursor",
        [
            "x",
            "%00",
            "ä",
            "cD1hYmM=",  # p=abc
            "cD0lMDA=",  # p=%00
            "cD0=",  # p=
            "bz14",  # o=x
            "bz0tMQ==",  # o=-1
            "cj14",  # r=x
            "cD0nOyBEUk9QIFRBQkxFIGxlc3Nvbg==",  # p='; DROP TABLE lesson
            "QUFB" * 2000,
        ],
    )
    def test_cursor_that_no_list_gave_out_is_refused(self, page: Callable[..., Any], name: str, cursor: str) -> None:
        refused(page(name, f"cursor={cursor}"), 400, "cursor")

    def test_in_hundreds_is_not_repeated_in_full(self, page: Callable[..., Any]) -> None:
        response = page("lessons", "&".join(f"a{i}=1" for i in range(900)))
        assert response.status_code == 400
        assert len(response.content) < 10_000


def interactions(agent: Agent, n: int) -> list[str]:
    """New interactions, oldest first."""
    return [str(start(agent.client, f"task {i}", retrieve=False)["id"]) for i in range(n)]


def walk(agent: Agent, url: str, **query: Any) -> Iterator[list[str]]:
    """The ids of each page, following `next`, which must come to an end."""
    page = agent.client.get(url, query).json()
    for _ in range(100):
        yield [row["id"] for row in page["results"]]
        if page["next"] is None:
            return
        page = agent.client.get(page["next"]).json()
    raise AssertionError("the list has no end")


class TestPages:
    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_hold_every_row_once_while_rows_are_added(self, agent: Agent, size: int) -> None:
        made = interactions(agent, 7)
        seen: list[str] = []
        for page in walk(agent, INTERACTIONS, page_size=size):
            assert len(page) <= size
            seen += page
            interactions(agent, 2)
        assert seen == made[::-1]

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_in_order_of_creation_hold_every_row_once_and_those_added_meanwhile(
        self, agent: Agent, lesson: Callable[..., Any], size: int
    ) -> None:
        made = [str(lesson(f"Sort list {i} with `sort_{i}()` before you read it.").pk) for i in range(6)]
        seen: list[str] = []
        for n, page in enumerate(walk(agent, LESSONS, page_size=size, ordering="created_at")):
            seen += page
            if n == 0:
                made.append(str(lesson("Close the file with `file.close()` before you rename it.").pk))
        assert seen == made

    def test_hold_every_other_row_once_while_rows_are_removed(self, agent: Agent) -> None:
        made = interactions(agent, 6)
        pages = walk(agent, INTERACTIONS, page_size=2)
        assert next(pages) == made[5:3:-1]
        Interaction.objects.filter(pk__in=[made[3], made[5]]).delete()
        assert [pk for page in pages for pk in page] == [made[2], made[1], made[0]]

    def test_lead_back_the_way_they_came(self, agent: Agent) -> None:
        made = interactions(agent, 5)[::-1]
        first = agent.client.get(INTERACTIONS, {"page_size": 2}).json()
        assert first["previous"] is None
        second = agent.client.get(first["next"]).json()
        third = agent.client.get(second["next"]).json()
        assert [row["id"] for row in third["results"]] == made[4:]
        interactions(agent, 1)
        back = agent.client.get(third["previous"]).json()
        assert [row["id"] for row in back["results"]] == made[2:4]
        again = agent.client.get(back["previous"]).json()
        assert [row["id"] for row in again["results"]] == made[:2]

    def test_keep_filters_and_size(self, agent: Agent) -> None:
        for i in range(6):
            start(agent.client, f"task {i}", project=f"p{i % 2}", retrieve=False)
        seen = [pk for page in walk(agent, INTERACTIONS, page_size=1, project="p1") for pk in page]
        assert len(seen) == 3
        assert set(Interaction.objects.filter(pk__in=seen).values_list("project__slug", flat=True)) == {"p1"}

    def test_are_of_50_rows_unless_another_size_is_asked_for(self, agent: Agent) -> None:
        start(agent.client, retrieve=False)
        made = Interaction.objects.get()
        Interaction.objects.bulk_create(
            Interaction(account=made.account, api_key=made.api_key, project_explicit=False, task="x")
            for _ in range(200)
        )
        assert [len(page) for page in walk(agent, INTERACTIONS)] == [50, 50, 50, 50, 1]
        assert [len(page) for page in walk(agent, INTERACTIONS, page_size=200)] == [200, 1]

    def test_of_an_empty_list_lead_nowhere(self, agent: Agent) -> None:
        assert agent.client.get(INTERACTIONS).json() == {"results": [], "next": None, "previous": None}


class TestFilters:
    def ids(self, agent: Agent, url: str, **query: Any) -> list[str]:
        response = agent.client.get(url, query)
        assert response.status_code == 200, response.content
        return [row["id"] for row in response.json()["results"]]

    def test_of_interactions_by_project_and_session(self, agent: Agent) -> None:
        a = start(agent.client, project="rockets", session="one", retrieve=False)["id"]
        b = start(agent.client, project="rockets", session="two", retrieve=False)["id"]
        c = start(agent.client, session="three", retrieve=False)["id"]
        assert self.ids(agent, INTERACTIONS, project="rockets") == [b, a]
        assert self.ids(agent, INTERACTIONS, session="three") == [c]
        assert self.ids(agent, INTERACTIONS, project="rockets", session="one") == [a]
        assert self.ids(agent, INTERACTIONS, project="boats") == []

    def test_of_interactions_by_time_include_the_first_moment_and_not_the_last(self, agent: Agent) -> None:
        (made,) = interactions(agent, 1)
        noon = datetime(2026, 3, 29, 12, tzinfo=UTC)
        Interaction.objects.filter(pk=made).update(created_at=noon)
        later = (noon + timedelta(microseconds=1)).isoformat()
        assert self.ids(agent, INTERACTIONS, created_after="2026-03-29T12:00:00Z") == [made]
        assert self.ids(agent, INTERACTIONS, created_after="2026-03-30T02:00:00+14:00") == [made]
        assert self.ids(agent, INTERACTIONS, created_after="2026-03-29T00:00:00-12:00") == [made]
        assert self.ids(agent, INTERACTIONS, created_after=later) == []
        assert self.ids(agent, INTERACTIONS, created_before="2026-03-29T12:00:00Z") == []
        assert self.ids(agent, INTERACTIONS, created_before=later) == [made]

    def test_of_outcomes_by_each_of_their_columns(self, agent: Agent, machine: Agent) -> None:
        a, b = interactions(agent, 2)
        one = report(agent.client, a, "accepted").json()["id"]
        sweep()
        two = report(machine.client, a, "failed").json()["id"]
        three = report(agent.client, b, "failed").json()["id"]
        assert self.ids(agent, OUTCOMES, interaction=a) == [two, one]
        assert self.ids(agent, OUTCOMES, source="machine") == [two]
        assert self.ids(agent, OUTCOMES, signal="failed", source="caller") == [three]
        assert self.ids(agent, OUTCOMES, credited="true") == [one]
        assert self.ids(agent, OUTCOMES, credited="false") == [three, two]


class TestWhatAListCosts:
    """The numbers are kept here on purpose: a change of one is a decision."""

    @pytest.mark.parametrize("n", [1, 20])
    @pytest.mark.parametrize("path", [INTERACTIONS, OUTCOMES, LESSONS])
    def test_is_the_same_for_one_row_and_for_twenty(
        self, agent: Agent, lesson: Callable[..., Any], path: str, n: int
    ) -> None:
        for i in range(n):
            made = start(agent.client, f"task {i}", project=f"p{i}", session=f"s{i}", retrieve=False)
            report(agent.client, made["id"], "accepted")
            lesson(f"Sort list {i} with `sort_{i}()` before you read it.")
        agent.client.get(path)
        with CaptureQueriesContext(connection) as queries:
            assert len(agent.client.get(path).json()["results"]) == n
        assert len(queries) == LIST_QUERIES, "\n".join(query["sql"][:150] for query in queries)

    def test_of_a_history_is_one_more_for_the_lesson(self, agent: Agent, page: Callable[..., Any]) -> None:
        page("history", "")
        with CaptureQueriesContext(connection) as queries:
            page("history", "")
        assert len(queries) == HISTORY_QUERIES

    def test_does_not_include_reading_vectors(self, agent: Agent) -> None:
        start(agent.client)
        with CaptureQueriesContext(connection) as queries:
            agent.client.get(INTERACTIONS)
        assert not [query for query in queries if "task_embedding" in query["sql"]]
