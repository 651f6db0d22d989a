"""Tasks: every change is an event, nothing starts before what it waits for, and no other account takes part."""

import threading
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.http import HttpResponse

from memory.errors import Conflict
from memory.models import EmbeddingSpace, Project, Task, TaskDependency, TaskEvent
from memory.models.vocabulary import TaskStatus
from memory.services import agent_task
from memory.services.erasure import erase
from tests.conftest import Agent
from tests.http.calls import MISSING, nothing_changes, refused

pytestmark = pytest.mark.django_db

TASKS = "/api/v1/tasks/"


def add(agent: Agent, title: str = "Build", **fields: object) -> str:
    """The id of a new task."""
    response = agent.client.post(TASKS, {"title": title, **fields}, format="json")
    assert response.status_code == 201, response.content
    return str(response.json()["id"])


def change(agent: Agent, task: str, **fields: object) -> HttpResponse:
    return agent.client.patch(f"{TASKS}{task}/", fields, format="json")


def wait(agent: Agent, task: str, on: str) -> HttpResponse:
    return agent.client.post(f"{TASKS}{task}/dependencies/", {"depends_on": on}, format="json")


def read(agent: Agent, task: str) -> dict[str, Any]:
    return dict(agent.client.get(f"{TASKS}{task}/").json())


def events(agent: Agent, task: str) -> list[tuple[str, str]]:
    """What happened, oldest first."""
    rows = agent.client.get(f"{TASKS}{task}/events/").json()["results"]
    return [(row["event"], row["note"]) for row in reversed(rows)]


def listed(agent: Agent, **params: object) -> list[str]:
    return [row["title"] for row in agent.client.get(TASKS, params).json()["results"]]


class TestATask:
    def test_is_pending_in_the_middle_and_nobodys_unless_said(self, agent: Agent) -> None:
        pk = add(agent)
        shown = read(agent, pk)
        assert shown == {
            "id": pk,
            "title": "Build",
            "detail": "",
            "status": "pending",
            "priority": 5,
            "project": None,
            "owner": "",
            "parent": None,
            "depends_on": [],
            "created_at": shown["created_at"],
        }

    def test_has_everything_that_was_said(self, agent: Agent) -> None:
        parent = add(agent, "Release")
        said = {
            "title": "Build",
            "detail": "with all extras",
            "status": "blocked",
            "priority": 0,
            "project": "api",
            "owner": "ci",
            "parent": parent,
        }
        shown = read(agent, add(agent, **said))
        assert {name: shown[name] for name in said} == said
        assert Project.objects.filter(account=agent.account, slug="api").count() == 1

    def test_changes_in_the_named_fields_alone(self, agent: Agent) -> None:
        pk = add(agent, detail="with all extras", owner="ci", project="api")
        before = read(agent, pk)
        after = change(agent, pk, status="in_progress", project=None).json()
        assert after == {**before, "status": "in_progress", "project": None} == read(agent, pk)

    @pytest.mark.parametrize("status", TaskStatus.values)
    def test_takes_every_status_of_the_vocabulary(self, agent: Agent, status: str) -> None:
        pk = add(agent)
        assert change(agent, pk, status=status).json()["status"] == status
        assert read(agent, add(agent, status=status))["status"] == status

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("title", ""),
            ("title", " "),
            ("title", None),
            ("title", 7),
            ("title", "x" * 301),
            ("title", "a\0b"),
            ("detail", None),
            ("detail", "x" * 10_001),
            ("status", "open"),
            ("status", None),
            ("status", ["done"]),
            ("priority", -1),
            ("priority", 10),
            ("priority", "5"),
            ("priority", 1.5),
            ("priority", True),
            ("project", "No Slug"),
            ("owner", "x" * 201),
            ("parent", "first"),
            ("depends_on", []),
            ("account", "rival"),
            ("created_at", "2020-01-01T00:00:00Z"),
        ],
    )
    def test_that_is_said_wrongly_names_the_field_and_changes_nothing(
        self, agent: Agent, field: str, value: object
    ) -> None:
        pk = add(agent)
        with nothing_changes():
            refused(agent.client.post(TASKS, {"title": "Build", field: value}, format="json"), 400, field)
            refused(change(agent, pk, **{field: value}), 400, field)

    def test_without_a_title_or_a_change_is_refused(self, agent: Agent) -> None:
        pk = add(agent)
        with nothing_changes():
            for body in ({"detail": "x"}, {}):
                refused(agent.client.post(TASKS, body, format="json"), 400, "title")
            refused(change(agent, pk), 400, "body")

    def test_that_changes_nothing_is_no_body_by_the_schema_either(self, agent: Agent) -> None:
        schemas = agent.client.get("/api/v1/schema/?format=json").json()["components"]["schemas"]
        changing = next(schema for name, schema in schemas.items() if "ChangeTask" in name)
        assert changing["minProperties"] == 1

    def test_loses_its_detail_owner_project_and_parent_but_never_its_title(self, agent: Agent) -> None:
        pk = add(agent, detail="with all extras", owner="ci", project="api", parent=add(agent, "Release"))
        cleared = {"detail": "", "owner": "", "project": None, "parent": None}
        for field, nothing in cleared.items():
            assert change(agent, pk, **{field: nothing}).json()[field] == nothing
        assert read(agent, pk) == {**read(agent, pk), **cleared, "title": "Build"}
        with nothing_changes():
            refused(change(agent, pk, title="", detail="kept out with it"), 400, "title")

    def test_is_made_once_by_one_request_however_often_it_is_sent(self, agent: Agent) -> None:
        parent, key = add(agent, "Release"), {"Idempotency-Key": "task-1"}
        body = {"title": "Build", "project": "api", "parent": parent}
        first, again = (agent.client.post(TASKS, body, format="json", headers=key) for _ in range(2))
        assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, first.json())
        assert Task.objects.count() == 2
        other = agent.client.post(TASKS, {"title": "Test"}, format="json", headers=key)
        refused(other, 409, "Idempotency-Key")

    def test_that_does_not_exist_is_404(self, agent: Agent) -> None:
        for response in (
            agent.client.get(f"{TASKS}{MISSING}/"),
            change(agent, MISSING, title="x"),
            agent.client.get(f"{TASKS}{MISSING}/events/"),
            agent.client.post(f"{TASKS}{MISSING}/events/", {"note": "x"}, format="json"),
        ):
            refused(response, 404)

    def test_needs_a_key_of_the_loop_to_be_written(self, agent: Agent, reader: Agent) -> None:
        pk = add(agent)
        refused(reader.client.post(TASKS, {"title": "Build"}, format="json"), 403)
        refused(change(reader, pk, title="x"), 403)
        refused(reader.client.post(f"{TASKS}{pk}/events/", {"note": "x"}, format="json"), 403)
        refused(wait(reader, pk, MISSING), 403)
        refused(reader.client.delete(f"{TASKS}{pk}/dependencies/{MISSING}/"), 403)
        assert read(reader, pk)["title"] == "Build"


class TestTheList:
    def test_is_newest_first_and_filtered(self, agent: Agent) -> None:
        release = add(agent, "Release", project="api", owner="ana")
        add(agent, "Build", status="done", parent=release)
        add(agent, "Test", status="blocked", owner="ana")
        assert listed(agent) == ["Test", "Build", "Release"]
        assert listed(agent, status="done") == ["Build"]
        assert listed(agent, project="api") == ["Release"]
        assert listed(agent, owner="ana") == ["Test", "Release"]
        assert listed(agent, parent=release) == ["Build"]

    def test_tells_what_can_be_taken_up_now(self, agent: Agent) -> None:
        build, test, _ = add(agent, "Build"), add(agent, "Test"), add(agent, "Rest", status="in_progress")
        wait(agent, test, build)
        assert listed(agent, ready="true") == ["Build"]
        assert listed(agent, ready="false") == ["Rest", "Test"]
        change(agent, build, status="done")
        assert listed(agent, ready="true") == ["Test"]

    @pytest.mark.parametrize(
        ("name", "value"), [("status", "open"), ("parent", "first"), ("ready", "maybe"), ("q", "x")]
    )
    def test_refuses_what_it_does_not_understand(self, agent: Agent, name: str, value: str) -> None:
        refused(agent.client.get(TASKS, {name: value}), 400, name)

    def test_takes_three_queries_however_long(self, agent: Agent, django_assert_num_queries: Any) -> None:
        ids = [add(agent, f"Step {n}", project="api") for n in range(4)]
        for task, on in pairwise(ids):
            wait(agent, task, on)
        with django_assert_num_queries(3):
            agent.client.get(TASKS)


class TestTheJournal:
    def test_has_every_change_with_who_made_it(self, agent: Agent, machine: Agent) -> None:
        parent, pk = add(agent, "Release"), add(agent)
        change(machine, pk, status="in_progress", priority=1, project="api", parent=parent)
        change(agent, pk, title="Build it", detail="with all extras", owner="ci", parent=None)
        assert events(agent, pk) == [
            ("created", ""),
            ("status", "pending -> in_progress"),
            ("priority", "5 -> 1"),
            ("project", "nothing -> api"),
            ("parent", f"nothing -> {parent}"),
            ("title", "Build -> Build it"),
            ("detail", "nothing -> with all extras"),
            ("owner", "nothing -> ci"),
            ("parent", f"{parent} -> nothing"),
        ]
        actors = TaskEvent.objects.filter(task=pk).order_by("pk").values_list("actor", flat=True)
        mine, machines = f"api_key:{agent.key.prefix}", f"api_key:{machine.key.prefix}"
        assert list(actors) == [mine, *[machines] * 4, *[mine] * 4]

    def test_has_no_event_of_what_stayed_the_same(self, agent: Agent) -> None:
        pk = add(agent, priority=3)
        assert change(agent, pk, title="Build", priority=3, status="pending").status_code == 200
        assert events(agent, pk) == [("created", "")]

    def test_takes_notes(self, agent: Agent) -> None:
        pk = add(agent)
        response = agent.client.post(f"{TASKS}{pk}/events/", {"note": "Half of it is done."}, format="json")
        assert response.status_code == 201
        assert {k: v for k, v in response.json().items() if k not in ("id", "created_at")} == {
            "task": pk,
            "event": "note",
            "note": "Half of it is done.",
            "actor": f"api_key:{agent.key.prefix}",
        }
        assert response.json()["created_at"]
        assert events(agent, pk)[-1] == ("note", "Half of it is done.")

    @pytest.mark.parametrize(
        ("body", "field"), [({}, "note"), ({"note": ""}, "note"), ({"note": "x", "event": "done"}, "event")]
    )
    def test_takes_nothing_else(self, agent: Agent, body: dict[str, str], field: str) -> None:
        pk = add(agent)
        with nothing_changes():
            refused(agent.client.post(f"{TASKS}{pk}/events/", body, format="json"), 400, field)

    def test_takes_a_note_once_however_often_it_is_sent(self, agent: Agent) -> None:
        pk, key = add(agent), {"Idempotency-Key": "note-1"}
        for _ in range(2):
            agent.client.post(f"{TASKS}{pk}/events/", {"note": "Half."}, format="json", headers=key)
        assert events(agent, pk) == [("created", ""), ("note", "Half.")]


class TestWhatComesFirst:
    def test_is_told_with_the_task_and_in_its_journal(self, agent: Agent) -> None:
        build, test = add(agent, "Build"), add(agent, "Test")
        response = wait(agent, test, build)
        assert response.status_code == 201
        assert response.json()["depends_on"] == read(agent, test)["depends_on"] == [build]
        assert events(agent, test) == [("created", ""), ("dependency_added", build)]

    def test_said_again_changes_nothing(self, agent: Agent) -> None:
        build, test = add(agent, "Build"), add(agent, "Test")
        wait(agent, test, build)
        with nothing_changes():
            response = wait(agent, test, build)
        assert (response.status_code, response.json()["depends_on"]) == (200, [build])

    @pytest.mark.parametrize("status", ["in_progress", "done"])
    @pytest.mark.parametrize("first", ["pending", "in_progress", "blocked", "cancelled"])
    def test_holds_a_task_back_until_it_is_done(self, agent: Agent, status: str, first: str) -> None:
        build, test = add(agent, "Build", status=first), add(agent, "Test")
        wait(agent, test, build)
        with nothing_changes():
            document = refused(change(agent, test, status=status), 409, "status")
        assert document["errors"]["status"] == [f"it waits for 'Build' ({build}), which is {first}."]
        change(agent, build, status="done")
        assert change(agent, test, status=status).status_code == 200

    @pytest.mark.parametrize("status", ["blocked", "cancelled", "pending"])
    def test_holds_back_no_other_status(self, agent: Agent, status: str) -> None:
        build, test = add(agent, "Build"), add(agent, "Test")
        wait(agent, test, build)
        assert change(agent, test, status=status).status_code == 200

    def test_is_named_as_a_whole(self, agent: Agent) -> None:
        test = add(agent, "Test")
        first = [add(agent, title) for title in ("Build", "Install", "Configure")]
        for task in first:
            wait(agent, test, task)
        change(agent, first[1], status="done")
        sentences = refused(change(agent, test, status="done"), 409, "status")["errors"]["status"]
        assert [sentence.split("'")[1] for sentence in sentences] == ["Build", "Configure"]

    def test_lets_other_fields_change_and_a_started_task_go_on_when_it_is_taken_up_again(self, agent: Agent) -> None:
        build, test = add(agent, "Build", status="done"), add(agent, "Test")
        wait(agent, test, build)
        change(agent, test, status="in_progress")
        assert change(agent, build, status="pending").status_code == 200
        assert change(agent, test, title="Test it", status="in_progress").status_code == 200
        refused(change(agent, test, status="done"), 409, "status")

    @pytest.mark.parametrize("status", ["in_progress", "done"])
    def test_cannot_be_added_to_a_task_that_has_started(self, agent: Agent, status: str) -> None:
        build, test = add(agent, "Build"), add(agent, "Test", status=status)
        with nothing_changes():
            refused(wait(agent, test, build), 409, "depends_on")
        change(agent, build, status="done")
        assert wait(agent, test, build).status_code == 201

    def test_can_be_removed(self, agent: Agent) -> None:
        build, test = add(agent, "Build"), add(agent, "Test")
        wait(agent, test, build)
        response = agent.client.delete(f"{TASKS}{test}/dependencies/{build}/")
        assert (response.status_code, response.json()["depends_on"]) == (200, [])
        assert events(agent, test)[-1] == ("dependency_removed", build)
        assert change(agent, test, status="done").status_code == 200
        with nothing_changes():
            refused(agent.client.delete(f"{TASKS}{test}/dependencies/{build}/"), 404)

    @pytest.mark.parametrize("length", [1, 2, 3, 5])
    def test_cannot_be_the_task_itself_by_any_way(self, agent: Agent, length: int) -> None:
        titles = [f"Step {n}" for n in range(length)]
        ids = [add(agent, title) for title in titles]
        for task, on in pairwise(ids):
            wait(agent, task, on)
        with nothing_changes():
            document = refused(wait(agent, ids[-1], ids[0]), 409, "depends_on")
        named = " -> ".join(f"'{title}'" for title in [titles[-1], *titles])
        assert document["detail"] == f"The task would wait for itself: {named}."

    def test_may_be_the_same_by_two_ways(self, agent: Agent) -> None:
        top, left, right, bottom = (add(agent, title) for title in ("Top", "Left", "Right", "Bottom"))
        for task, on in ((top, left), (top, right), (left, bottom), (right, bottom), (top, bottom)):
            assert wait(agent, task, on).status_code == 201
        detail = refused(wait(agent, bottom, top), 409, "depends_on")["detail"]
        assert detail == "The task would wait for itself: 'Bottom' -> 'Top' -> 'Bottom'."

    def test_is_bounded(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(agent_task, "MAX_DEPENDENCIES", 2)
        task, *others = [add(agent, f"Step {n}") for n in range(4)]
        assert [wait(agent, task, on).status_code for on in others] == [201, 201, 400]

    @pytest.mark.parametrize(
        ("body", "field"), [({}, "depends_on"), ({"depends_on": "first"}, "depends_on"), ({"task": MISSING}, "task")]
    )
    def test_must_be_named(self, agent: Agent, body: dict[str, str], field: str) -> None:
        pk = add(agent)
        response = agent.client.post(f"{TASKS}{pk}/dependencies/", body, format="json")
        assert response.status_code == 400
        assert field in response.json()["errors"]


class TestParts:
    def test_cannot_contain_each_other(self, agent: Agent) -> None:
        ids = [add(agent, "Release")]
        for title in ("Build", "Compile"):
            ids.append(add(agent, title, parent=ids[-1]))
        with nothing_changes():
            document = refused(change(agent, ids[0], parent=ids[2]), 409, "parent")
            refused(change(agent, ids[0], parent=ids[0]), 409, "parent")
        assert document["detail"] == (
            "The task would be a part of itself: 'Release' -> 'Compile' -> 'Build' -> 'Release'."
        )
        assert change(agent, ids[2], parent=ids[0]).status_code == 200
        assert change(agent, ids[2], parent=None).status_code == 200


class TestAnotherAccount:
    def test_sees_and_changes_none_of_it(self, agent: Agent, rival: Agent) -> None:
        build, test = add(agent, "Build"), add(agent, "Test", project="api")
        wait(agent, test, build)
        assert listed(rival) == listed(rival, project="api") == []
        with nothing_changes():
            for response in (
                rival.client.get(f"{TASKS}{test}/"),
                change(rival, test, title="Mine"),
                rival.client.get(f"{TASKS}{test}/events/"),
                rival.client.post(f"{TASKS}{test}/events/", {"note": "x"}, format="json"),
                wait(rival, test, test),
                rival.client.delete(f"{TASKS}{test}/dependencies/{build}/"),
            ):
                refused(response, 404)
        assert read(agent, test)["depends_on"] == [build]

    def test_cannot_be_waited_for_nor_contain_a_task(self, agent: Agent, rival: Agent) -> None:
        theirs, own = add(rival, "Secret"), add(agent)
        with nothing_changes():
            for response, field in (
                (wait(agent, own, theirs), "depends_on"),
                (change(agent, own, parent=theirs), "parent"),
                (agent.client.post(TASKS, {"title": "Build", "parent": theirs}, format="json"), "parent"),
            ):
                assert refused(response, 404, field)["errors"] == {field: ["There is no such task in your account."]}

    def test_has_projects_of_its_own(self, agent: Agent, rival: Agent) -> None:
        add(agent, project="api")
        add(rival, project="api")
        assert Project.objects.filter(slug="api").count() == 2


def test_an_erased_project_leaves_no_text_of_its_tasks_in_answers_that_are_kept(agent: Agent) -> None:
    body, key = {"title": "Mend the parser", "project": "api"}, {"Idempotency-Key": "task-1"}
    pk = agent.client.post(TASKS, body, format="json", headers=key).json()["id"]
    note = {"note": "The parser is half mended."}
    agent.client.post(f"{TASKS}{pk}/events/", note, format="json", headers={"Idempotency-Key": "note-1"})
    project = Project.objects.get(slug="api")
    erase("project", project.pk, account_id=agent.account.pk, actor="system")
    assert not Task.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM idempotency_record WHERE response::text LIKE '%parser%'")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
class TestTwoWritersAtOnce:
    def race(self, *moves: Any) -> list[str]:
        """Runs the moves at the same time; what became of each."""
        results = [""] * len(moves)
        begin = threading.Barrier(len(moves))

        def run(n: int) -> None:
            try:
                begin.wait(timeout=30)
                moves[n]()
                results[n] = "done"
            except Conflict:
                results[n] = "conflict"
            finally:
                connection.close()

        threads = [threading.Thread(target=run, args=(n,)) for n in range(len(moves))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        return results

    def test_cannot_close_a_cycle_together(self, space: EmbeddingSpace, agent: Agent) -> None:
        a, b = UUID(add(agent, "A")), UUID(add(agent, "B"))
        account = agent.account.pk
        results = self.race(
            lambda: agent_task.depend(account, a, b, "system"),
            lambda: agent_task.depend(account, b, a, "system"),
        )
        assert sorted(results) == ["conflict", "done"]
        assert TaskDependency.objects.count() == 1

    def test_cannot_start_a_task_and_make_it_wait(self, space: EmbeddingSpace, agent: Agent) -> None:
        a, b = UUID(add(agent, "A")), UUID(add(agent, "B"))
        account = agent.account.pk
        results = self.race(
            lambda: agent_task.depend(account, a, b, "system"),
            lambda: agent_task.change(account, a, {"status": "in_progress"}, "system"),
        )
        assert sorted(results) == ["conflict", "done"]
        started = Task.objects.get(pk=a).status == "in_progress"
        assert TaskDependency.objects.exists() != started
