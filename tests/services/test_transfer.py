"""An account leaves in one file and arrives as it was, in another installation or in the one that it came from."""

import json
import stat
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from memory.distillers import active as distillers
from memory.models import (
    Account,
    ApiKey,
    Comment,
    Interaction,
    Lesson,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Membership,
    Outcome,
    ReviewItem,
    TrustEvent,
    WriteRefusal,
)
from memory.models.base import new_id
from memory.models.sql import fetch
from memory.rules.text import digest
from memory.services import rejection, tombstone
from memory.services.credit import credit, sweep
from memory.services.erasure import erase
from memory.services.importing import refresh_statistics
from memory.services.standing import SUMS, differences, rebuild_standings
from memory.services.transfer.kinds import KIND_OF, KINDS, Owner
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, TIMEOUT, TIMEOUT_AGAIN, TIMEOUT_TASK
from tests.conftest import Agent, make_agent
from tests.http.calls import report, start
from tests.models.rows import insert
from tests.services.files import Lines, arrived, counted, elsewhere, exported, imported, stayed_out, to_file
from tests.services.whole import whole_account

pytestmark = pytest.mark.django_db

#: What does not leave with an account: each is said in docs/moving-in.md.
STAYS = {
    "membership", "session_turn_claim", "idempotency_record", "job_run", "calibration", "erasure_record", "band_rate",
    "operator_act",
    "prune_plan", "prune_archive", "alert_acknowledgement", "webhook_endpoint", "webhook_delivery", *SUMS,
}  # fmt: skip
#: What is another in another installation: the secrets of keys, and under which number people are known.
OTHERWISE = {"revoked_at", "actor", "priority_parts", *(
    name for kind in KINDS.values() for name, target in kind.references.items() if target == "person"
)}  # fmt: skip


@pytest.fixture(autouse=True)
def own_ledger(settings: Any, tmp_path: Path) -> None:
    settings.SONDER_VAR = str(tmp_path / "var")


@pytest.fixture(autouse=True)
def fresh_process() -> None:
    acts.forget_caches()
    distillers.wake()


def test_every_table_leaves_with_an_account_or_is_known_to_stay() -> None:
    tables = {model._meta.db_table for model in apps.get_app_config("memory").get_models()}
    leaving = {*KINDS, "embedding_space"}
    assert tables - leaving - STAYS == set()
    assert leaving & STAYS == set()


def test_every_reference_is_to_a_kind_that_is_in_the_file_too() -> None:
    targets = {target for kind in KINDS.values() for target in kind.references.values()}
    assert targets <= set(KIND_OF.values())


def rows(kind: str, account: Account) -> list[tuple[Any, ...]]:
    """All rows of a kind as text, without what is another elsewhere."""
    own = KINDS[kind]
    columns = ", ".join(f"{name}::text" for name in own.fields if name not in OTHERWISE)
    ids = [str(pk) for pk in own.rows(Owner(account=account.pk, scope=None)).values_list("pk", flat=True)]
    return sorted(fetch(f"SELECT {columns} FROM {kind} WHERE {own.model._meta.pk.column}::text = ANY(%s)", [ids]))


def state(account: Account) -> dict[str, Any]:
    """Everything that an account holds, and what is computed from it."""
    standings = LessonStanding.objects.order_by("lesson").values_list(
        "lesson", "policy", "wins", "losses", "s", "d", "on_trial", "quarantined_at", "last_win_at", "evidence"
    )
    sums = {table: sorted(fetch(f"SELECT {', '.join((*key, *values))} FROM {table}")) for table, (key, values, _)
            in SUMS.items()}  # fmt: skip
    return {**{kind: rows(kind, account) for kind in KINDS}, "standings": list(standings), "sums": sums}


def answers(account: Account, *tasks: str) -> list[Any]:
    """What retrieval hands out for tasks, with the numbers that do not change while a clock ticks."""
    refresh_statistics()
    reader = make_agent(account, "unknown", ["loop"])
    found = [acts.looked_up(reader, task)["lessons"] for task in tasks]
    reader.key.delete()
    return [[{name: told[name] for name in told if name != "score"} for told in lessons] for lessons in found]


class TestARoundTrip:
    def test_something_of_every_kind_arrives_as_it_was_and_a_second_time_nothing_more(
        self, space: Any, tmp_path: Path
    ) -> None:
        account = whole_account()
        before = {kind: rows(kind, account) for kind in KINDS}
        assert [kind for kind in KINDS if not before[kind]] == []
        path = to_file(tmp_path, exported(account))
        elsewhere()
        insert("auth_user", username="somebody")
        report = imported(path)
        assert stayed_out(report) == {}
        after = {kind: rows(kind, account) for kind in KINDS}
        computed = {
            "lesson_embedding",
            "lesson_standing",
            "lesson_tombstone",
        }  # vectors, figures and signatures of here
        assert {kind for kind in KINDS if before[kind] != after[kind]} <= computed
        assert [set(before[kind]) - set(after[kind]) for kind in ("lesson_embedding", "lesson_standing")] == [
            set(),
            set(),
        ]
        buried = LessonTombstone.objects.get()
        assert (str(buried.embedding[0]), buried.mac_key_id) == ("1.0", tombstone.mac_key_id())
        rita = get_user_model().objects.get(username="rita")
        assert [user.pk for user in get_user_model().objects.filter(is_active=False)] == [rita.pk]
        assert TrustEvent.objects.get().actor == f"user:{rita.pk}"
        assert ReviewItem.objects.get().priority_parts["skipped_by"] == [rita.pk]
        assert Membership.objects.count() == 0
        assert arrived(imported(path)) == {}
        assert {kind for kind in KINDS if after[kind] != rows(kind, account)} == set()

    def test_no_secret_leaves(self, agent: Agent, account: Account) -> None:
        rita = get_user_model().objects.create_user("rita", password="open sesame")
        Comment.objects.create(subject=acts.learn(agent, TIMEOUT), author=rita, text="Seen.")
        told = json.dumps(exported(account))
        assert agent.key.prefix in told
        assert "rita" in told
        for secret in (agent.token, agent.token[7:], agent.key.hashed_key, rita.password):
            assert secret not in told

    def test_answers_sums_and_standings_are_the_same(self, agent: Agent, tmp_path: Path, settings: Any) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        learned(agent, TIMEOUT, CLOCK)
        for n in range(1000):  # what it is handed out for is lost, and what a coin keeps it from is won
            if Lesson.objects.get(text=TIMEOUT).state == "quarantined":
                break
            work = start(agent.client, f"{TIMEOUT_TASK} number {n}")
            report(agent.client, work["id"], "failed" if work["lessons"] else "accepted")
            credit(work["id"])
        for n in range(3):
            served(agent, f"{CLOCK_TASK} number {n % 2}", "accepted" if n else "failed")
        account, tasks = agent.account, (TIMEOUT_TASK, CLOCK_TASK)
        sweep()
        list(rebuild_standings())  # the evidence in a standing is as old as its last evaluation
        before, told = state(account), answers(account, *tasks)
        assert Lesson.objects.get(text=TIMEOUT).state == "quarantined"
        assert [len(lessons) for lessons in told] == [0, 1]
        path = to_file(tmp_path, exported(account))
        elsewhere()
        imported(path)
        after = state(account)
        assert {name for name in before if before[name] != after[name]} == set()
        assert answers(account, *tasks) == told
        assert differences() == []
        assert acts.command("doctor")["clean"]
        assert ApiKey.objects.filter(revoked_at=None).count() == 0


def learned(agent: Agent, *texts: str) -> list[str]:
    """Interactions from which lessons were learned."""
    return [acts.learn(agent, text, task=f"task {n}") for n, text in enumerate(texts)]


def served(agent: Agent, task: str, signal: str) -> str:
    """Work that was handed what fits, and judged."""
    interaction = str(start(agent.client, task)["id"])
    assert report(agent.client, interaction, signal).status_code == 201
    credit(interaction)
    return interaction


class TestWhatIsHere:
    def test_an_older_file_takes_nothing_back(self, agent: Agent, tmp_path: Path) -> None:
        learned(agent, TIMEOUT)
        work = served(agent, TIMEOUT_TASK, "accepted")
        path = to_file(tmp_path, exported(agent.account))
        report(agent.client, work, "failed")
        credit(work)
        reviewer = get_user_model().objects.create_user("rita")
        rejection.reject(Lesson.objects.get().pk, reviewer=reviewer.pk, reason="wrong")
        assert arrived(imported(path)) == {}
        assert LessonUsage.objects.get(interaction=work).outcome_signal == "failed"
        assert Lesson.objects.get().state == "rejected"
        assert differences() == []

    def test_what_a_restored_store_lacks_comes_from_a_newer_file(self, agent: Agent, tmp_path: Path) -> None:
        learned(agent, TIMEOUT)
        work = served(agent, TIMEOUT_TASK, "accepted")
        report(agent.client, work, "failed")
        credit(work)
        lines = exported(agent.account)
        late = [line for line in lines if line["kind"] == "outcome" and line["row"]["sequence"] == 2]
        elsewhere()
        older = json.loads(json.dumps([line for line in lines if line not in late]))
        for line in older:  # as the rows stood before the second word
            if line["kind"] in ("credit", "lesson_usage") and line["row"]["interaction_id"] == work:
                first = next(o["row"] for o in lines if o["kind"] == "outcome" and o["row"]["interaction_id"] == work)
                told = {"outcome_id": first["id"], "y": 0} if line["kind"] == "credit" else {
                    "credited_outcome_id": first["id"], "outcome_signal": "accepted", "reward": "0.80",
                    "outcome_at": first["created_at"]}  # fmt: skip
                line["row"].update(told)
        imported(to_file(tmp_path, counted(older)))
        assert differences() == []
        assert arrived(imported(to_file(tmp_path, lines))) == {"outcome": 1}
        sweep()
        assert LessonUsage.objects.get(interaction=work).outcome_signal == "failed"
        assert differences() == []

    def test_in_a_store_that_others_use_the_order_of_credits_goes_on(
        self, agent: Agent, rival: Agent, tmp_path: Path
    ) -> None:
        learned(agent, TIMEOUT)
        served(agent, TIMEOUT_TASK, "failed")
        path = to_file(tmp_path, exported(agent.account))
        elsewhere()
        there = make_agent(Account.objects.create(slug="other", name="O", review_policy="auto"), "caller", ["loop"])
        learned(there, CLOCK)
        served(there, CLOCK_TASK, "accepted")
        imported(path)
        assert differences() == []
        places = [seq for (seq,) in fetch("SELECT credit_seq FROM credit ORDER BY 1")]
        assert places == [1, 2]
        used = LessonUsage.objects.get(interaction__account=agent.account)
        ((place,),) = fetch("SELECT credit_seq FROM credit WHERE interaction_id = %s", [used.interaction_id])
        assert used.credit_seq == place == 2

    def test_another_accounts_rows_do_not_leave(self, agent: Agent, rival: Agent, account: Account) -> None:
        learned(agent, TIMEOUT)
        served(agent, TIMEOUT_TASK, "failed")
        foreign = served(rival, f"{TIMEOUT_TASK} of the rival's secret project", "failed")
        lines = exported(account)
        assert any(line["kind"] == "lesson" for line in lines)
        assert "rival" not in json.dumps(lines)
        assert foreign not in json.dumps(lines)

    def test_a_shared_lessons_journal_leaves_without_the_work_of_others(
        self, agent: Agent, rival: Agent, settings: Any
    ) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        learned(agent, TIMEOUT)
        for n in range(12):
            served(rival if n % 2 else agent, f"{TIMEOUT_TASK} number {n}", "failed")
        events = [line["row"] for line in exported(agent.account) if line["kind"] == "trust_event"]
        told = [row["account"] for event in events for row in event["evidence"].get("rows", [])]
        assert set(told) == {str(agent.account.pk)}


class TestGates:
    def arrive(self, agent: Agent, tmp_path: Path, *, before: Callable[[], None]) -> dict[str, Any]:
        """An account whose lesson was handed out arrives where something happened before."""
        learned(agent, TIMEOUT, CLOCK)
        served(agent, TIMEOUT_TASK, "accepted")
        served(agent, CLOCK_TASK, "accepted")
        path = to_file(tmp_path, exported(agent.account))
        elsewhere()
        before()
        return imported(path)

    def there(self, text: str) -> Lesson:
        """Another account's lesson, in the other installation."""
        other = Account.objects.filter(slug="other").first() or Account.objects.create(
            slug="other", name="O", review_policy="auto"
        )
        return acts.imported(other, text)

    @pytest.mark.parametrize("text", [TIMEOUT, TIMEOUT_AGAIN])
    def test_what_was_rejected_here_stays_out_also_in_other_words(
        self, agent: Agent, tmp_path: Path, text: str
    ) -> None:
        def reject() -> None:
            reviewer = get_user_model().objects.create_user("rita")
            rejection.reject(self.there(text).pk, reviewer=reviewer.pk, reason="wrong")

        report = self.arrive(agent, tmp_path, before=reject)
        assert stayed_out(report)["lesson"] == {"rejected_value": 1}
        assert stayed_out(report)["lesson_usage"] == {"rejected_value": 1}
        assert set(Lesson.objects.filter(state="active").values_list("text", flat=True)) == {CLOCK}
        assert LessonUsage.objects.filter(lesson__text=CLOCK).count() == 1
        assert WriteRefusal.objects.filter(path="import_account", reason="rejected_value").count() == 1
        assert differences() == []
        assert acts.command("doctor")["clean"]

    def test_a_value_that_is_here_gets_the_evidence(self, agent: Agent, tmp_path: Path) -> None:
        report = self.arrive(agent, tmp_path, before=lambda: self.there(TIMEOUT.upper()) and None)
        assert stayed_out(report)["lesson"] == {"exact_duplicate": 1}
        kept = Lesson.objects.get(text=TIMEOUT.upper())
        assert LessonStanding.objects.get(lesson=kept).wins == 1
        assert differences() == []
        assert acts.command("doctor")["clean"]

    def test_a_secret_that_somebody_wrote_into_the_file_stays_out(self, agent: Agent, tmp_path: Path) -> None:
        learned(agent, TIMEOUT)
        lines = exported(agent.account)
        row = next(line["row"] for line in lines if line["kind"] == "lesson")
        row["text"] = "Log in with `password = hunter2-XK39-qqLwm81` before you deploy."
        row["text_sha256"] = digest(row["text"])
        elsewhere()
        assert stayed_out(imported(to_file(tmp_path, lines)))["lesson"] == {"private": 1}
        assert Lesson.objects.count() == 0


class TestFiles:
    """Nothing is half done: what is wrong is named with its line, and the store is as it was."""

    @pytest.fixture
    def lines(self, space: Any) -> Lines:
        found = exported(whole_account())
        elsewhere()
        return found

    def refused(self, folder: Path, lines: Lines, told: str) -> None:
        path = to_file(folder, lines)
        with pytest.raises(CommandError, match=told) as refusal:
            imported(path)
        assert str(refusal.value).endswith("Nothing was imported.")
        assert (Account.objects.count(), Interaction.objects.count(), Lesson.objects.count()) == (0, 0, 0)

    def test_a_file_that_was_cut_off_is_noticed(self, lines: Lines, tmp_path: Path) -> None:
        self.refused(tmp_path, lines[:-1], "cut off")
        self.refused(tmp_path, [*lines[:5], *lines[6:]], "counts other rows|not in the file")
        path = to_file(tmp_path, lines)
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(CommandError, match=f"Line {len(lines)} is no row as JSON"):
            imported(path)

    @pytest.mark.parametrize(
        ("kind", "change", "told"),
        [
            ("outcome", {"reward": "1.00"}, "has a reward that is not its signal's"),
            ("lesson", {"text": "Something else."}, "has a digest that is not its text's"),
            ("lesson", {"state": None}, ", state: may not be null"),
            ("lesson", {"state": "famous"}, "is refused: .*lesson_state_vocabulary"),
            ("lesson", {"state": "x" * 13}, ", state: has over 12 characters"),
            ("lesson", {"id": "7"}, ", id: is no UUID"),
            ("lesson", {"created_at": "2026-01-01T00:00:00"}, ", created_at: is a time without a zone"),
            ("lesson", {"shoe": 43}, "has not the columns of a lesson: shoe"),
            ("interaction", {"task": "a\0b"}, ", task: is no text that a column holds"),
            ("interaction", {"project_explicit": 1}, ", project_explicit: is neither true nor false"),
            ("interaction", {"tokens_in": -1}, "is refused: .*interaction_tokens_in_at_least"),
            ("interaction", {"api_key_id": str(new_id())}, "refers to a api_key that is not in the file"),
            ("interaction", {"account_id": str(new_id())}, "refers to a account that is not in the file"),
            ("lesson_embedding", {"embedding": "AAAA"}, ", embedding: is no vector|lesson_embedding_dimension"),
            ("lesson_embedding", {"embedding": "no"}, ", embedding: is no vector"),
            ("credit", {"b": "1.5"}, "is refused: .*credit_b_range"),
            ("credit", {"weight": "NaN"}, ", weight: is no decimal"),
            ("account", {"id": str(new_id())}, "is another account than the header's"),
        ],
    )
    def test_a_line_that_is_not_sound_is_named(
        self, lines: Lines, tmp_path: Path, kind: str, change: dict[str, Any], told: str
    ) -> None:
        number = next(n for n, line in enumerate(lines, start=1) if line["kind"] == kind)
        lines[number - 1]["row"].update(change)
        self.refused(tmp_path, lines, f"Line {number}.*{told}|Line {number}{told}")

    def test_a_line_of_no_kind_out_of_order_or_twice_is_named(self, lines: Lines, tmp_path: Path) -> None:
        other = [*lines[:3], {"kind": "shoe", "row": {}}, *lines[3:]]
        self.refused(tmp_path, other, "Line 4 is of no kind")
        self.refused(tmp_path, counted([lines[0], lines[2], lines[1], *lines[3:]]), "Line 3 .* comes too late")
        self.refused(tmp_path, counted([*lines[:3], lines[2], *lines[3:]]), "Line 4 has the id of another line")
        self.refused(tmp_path, [*lines, lines[-1]], f"Line {len(lines) + 1} comes after the end")

    def test_a_file_of_another_format_or_version_is_refused(self, lines: Lines, tmp_path: Path) -> None:
        self.refused(tmp_path, lines[1:], "no export of an account")
        lines[0]["row"]["version"] = 2
        self.refused(tmp_path, lines, "Line 1 is of version 2, and this reads 1")

    def test_lessons_that_were_one_accounts_do_not_become_everybodys(self, lines: Lines, tmp_path: Path) -> None:
        lines[0]["row"]["lesson_scope"] = "account"
        self.refused(tmp_path, lines, "SONDER_LESSON_SCOPE is 'global'")

    def test_an_account_of_that_name_is_not_overwritten(self, lines: Lines, tmp_path: Path) -> None:
        here = Account.objects.create(slug="pumps", name="Other", review_policy="auto")
        with pytest.raises(CommandError, match="Another account is called 'pumps' here"):
            imported(to_file(tmp_path, lines))
        assert list(Account.objects.all()) == [here]

    def test_a_row_of_another_account_is_not_taken_for_the_files_own(self, lines: Lines, tmp_path: Path) -> None:
        imported(to_file(tmp_path, lines))
        account = Account.objects.get()
        other = Account.objects.create(slug="other", name="O", review_policy="auto")
        for line in lines:
            for name, value in line["row"].items():
                if value == str(account.pk):
                    line["row"][name] = str(other.pk)
        lines[0]["row"]["slug"] = lines[1]["row"]["slug"] = "other"
        with pytest.raises(CommandError, match="has the id of a api_key of another account"):
            imported(to_file(tmp_path, lines))
        assert Interaction.objects.filter(account=other).count() == 0

    def test_an_account_that_was_erased_here_is_refused(self, lines: Lines, tmp_path: Path) -> None:
        path = to_file(tmp_path, lines)
        imported(path)
        erase("account", Account.objects.get().pk, account_id=None, actor="system")
        with pytest.raises(CommandError, match="'pumps' was erased here on "):
            imported(path)
        assert Account.objects.count() == 0

    def test_the_command_makes_a_whole_file_that_only_its_owner_reads(self, agent: Agent, tmp_path: Path) -> None:
        learned(agent, TIMEOUT)
        path = tmp_path / "acme.ndjson"
        told = acts.command("export", "acme", "--output", str(path))
        out = StringIO()
        call_command("export", "acme", stdout=out)
        kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
        assert (kinds[0], kinds[-1], len(kinds)) == ("header", "trailer", sum(told["counts"].values()) + 2)
        assert kinds == [json.loads(line)["kind"] for line in out.getvalue().splitlines()]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir() if each.suffix == ".part"] == []
        with pytest.raises(CommandError, match="cannot be written"):
            call_command("export", "acme", "--output", str(tmp_path / "nowhere" / "file"))
        with pytest.raises(CommandError, match="Name a file"):
            call_command("export", "acme", "--json")


def test_judges_and_journals_keep_their_people(agent: Agent, tmp_path: Path) -> None:
    """People are known by their names: one who is here takes the place of the same name."""
    learned(agent, TIMEOUT)
    work = served(agent, TIMEOUT_TASK, "accepted")
    rita = get_user_model().objects.create_user("rita", password="open sesame")
    Outcome.objects.create(interaction_id=work, source="caller", sequence=2, signal="failed", reward=-1, judge=rita)
    path = to_file(tmp_path, exported(agent.account))
    elsewhere()
    get_user_model().objects.create_user("somebody")
    here = get_user_model().objects.create_user("rita", password="another")
    imported(path)
    assert Outcome.objects.get(sequence=2).judge == here
    assert here.pk != rita.pk
    assert get_user_model().objects.get(username="rita").check_password("another")
