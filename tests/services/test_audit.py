"""Are the stored lessons fit to be there? What slipped in is told and asked about, and nothing is changed."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import override_settings

from memory.models import EmbeddingSpace, Lesson, ReviewItem
from memory.models.sql import execute
from memory.models.vocabulary import TombstoneReason
from memory.rules.text import digest
from memory.services import audit, tombstone
from memory.services.audit import Finding
from tests.services.near import place

pytestmark = pytest.mark.django_db

GOOD = "Close the `cursor` before the connection goes back to the pool."
TWIN = "Close each `cursor` before its connection goes back to the pool."
OPPOSITE = "Never close the `cursor` before the connection goes back to the pool."
VAGUE = "Always handle errors properly and use appropriate names where needed."
SECRET = "Send `token=ghp_abcdefghijklmnopqrstuvwxyz0123456789` with every call of the client."


def look() -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for step in audit.audit():
        assert step.done <= step.total
        for finding in step.findings:
            found.setdefault(finding.kind, []).append(finding)
    return found


def bypassing_the_gates(text: str) -> Lesson:
    return Lesson.objects.create(text=text, text_sha256=digest(text), origin="imported", state="active", identifiers="")


def test_a_store_of_good_lessons_has_nothing_to_tell(lesson, space) -> None:
    place(lesson(GOOD), space, 0.99)
    assert look() == {}


def test_vague_lessons_are_found_with_the_rules_reasons(lesson) -> None:
    vague = lesson(VAGUE)
    (finding,) = look()["vague"]
    assert (finding.lesson, finding.why) == (vague.pk, ("vague",))


def test_a_secret_that_bypassed_the_gates_is_found_and_not_repeated(space) -> None:
    leak = bypassing_the_gates(SECRET)
    (finding,) = look()["private"]
    assert finding.lesson == leak.pk
    assert set(finding.why) <= {"secret", "token"}
    assert "ghp_" not in str(finding)


def test_of_two_that_say_the_same_the_younger_is_asked_about(lesson, space) -> None:
    older, younger = place(lesson(GOOD), space, 0.99), place(lesson(TWIN), space, 0.99)
    (finding,) = look()["duplicate"]
    assert (finding.lesson, finding.why) == (younger.pk, (f"says what lesson {older.pk} says",))


def test_opposites_are_no_duplicates(lesson, space) -> None:
    place(lesson(GOOD), space, 0.99)
    place(lesson(OPPOSITE), space, 0.99)
    assert "duplicate" not in look()


def test_what_repeats_a_rejected_value_is_found(lesson, space) -> None:
    """Stored while no model was there to compare it."""
    bad = place(lesson(GOOD), space, 0.99)
    tombstone.write(bad.pk, TombstoneReason.REJECTED_BY_REVIEWER)
    Lesson.objects.filter(pk=bad.pk).update(state="rejected")
    again, opposite = place(lesson(TWIN), space, 0.99), place(lesson(OPPOSITE), space, 0.99)
    (finding,) = look()["rejected_value"]
    assert finding.lesson == again.pk != opposite.pk


def test_the_successor_does_not_repeat_what_it_replaced(lesson, space) -> None:
    bad, successor = place(lesson(GOOD), space, 0.99), place(lesson(TWIN), space, 0.99)
    tombstone.write(bad.pk, TombstoneReason.SUPERSEDED, successor.pk)
    Lesson.objects.filter(pk=bad.pk).update(state="superseded")
    assert "rejected_value" not in look()


def test_another_accounts_tombstone_is_no_reason(lesson, space, account, rival_account) -> None:
    bad = place(lesson(GOOD, account_id=account.pk), space, 0.99)
    tombstone.write(bad.pk, TombstoneReason.REJECTED_BY_REVIEWER)
    Lesson.objects.filter(pk=bad.pk).update(state="rejected")
    place(lesson(TWIN, account_id=rival_account.pk), space, 0.99)
    assert "rejected_value" not in look()


def test_what_is_out_of_service_is_nobodys_business(space) -> None:
    for state in ("rejected", "superseded"):
        made = bypassing_the_gates(f"{SECRET} Call it {state}.")
        Lesson.objects.filter(pk=made.pk).update(state=state)
    assert look() == {}


def test_without_a_space_the_texts_are_looked_at_all_the_same(lesson, space) -> None:
    lesson(VAGUE)
    EmbeddingSpace.objects.update(is_active=False)
    try:
        assert list(look()) == ["vague"]
    finally:
        EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)


def test_it_goes_through_the_lessons_in_batches(lesson, monkeypatch) -> None:
    monkeypatch.setattr(audit, "BATCH", 2)
    for n in range(5):
        lesson(f"{VAGUE} Number {n}.")
    assert len(look()["vague"]) == 5


class TestAsking:
    def test_each_finding_is_asked_about_once(self, lesson, space) -> None:
        lesson(VAGUE)
        ReviewItem.objects.all().delete()
        place(lesson(GOOD), space, 0.99)
        place(lesson(TWIN), space, 0.99)
        ReviewItem.objects.all().delete()
        bypassing_the_gates(SECRET)
        findings = [finding for found in look().values() for finding in found]
        assert audit.ask(findings) == 3
        assert audit.ask(findings) == 0
        assert set(ReviewItem.objects.values_list("kind", "priority")) == {
            ("vague", 0.2),
            ("near_duplicate", 0.4),
            ("new_lesson", 1.0),
        }
        assert ReviewItem.objects.get(kind="new_lesson").priority_parts == {"severity": 1.0, "private": 1.0}

    def test_a_question_that_is_open_becomes_more_urgent(self, space) -> None:
        leak = bypassing_the_gates(SECRET)
        ReviewItem.objects.create(kind="new_lesson", subject=leak.pk, priority=0.3, status="open")
        assert audit.ask(look()["private"]) == 0
        item = ReviewItem.objects.get()
        assert (item.priority, item.version) == (1.0, 2)

    def test_an_answer_is_not_asked_for_again(self, lesson) -> None:
        lesson(VAGUE)
        item = ReviewItem.objects.get()
        ReviewItem.objects.update(status="resolved", resolved_at=item.created_at)
        assert audit.ask(look()["vague"]) == 0
        assert ReviewItem.objects.count() == 1


@override_settings(SONDER_PRUNE_EXACT_LIMIT=0)
def test_in_a_large_scope_duplicates_are_found_through_the_index(lesson, space) -> None:
    execute("TRUNCATE lesson_embedding")  # until a VACUUM the index holds what other tests have rolled back
    place(lesson(GOOD), space, 0.99)
    place(lesson(TWIN), space, 0.99)
    assert len(look()["duplicate"]) == 1


class TestTheCommand:
    def run(self, *options: str) -> str:
        out = StringIO()
        call_command("audit", *options, stdout=out)
        return out.getvalue()

    def test_it_counts_tells_and_asks(self, lesson) -> None:
        vague = lesson(VAGUE)
        ReviewItem.objects.all().delete()
        told = self.run()
        assert f"vague  {vague.pk}  vague" in told
        assert told.endswith("1 findings, 1 new questions.\n")
        assert ReviewItem.objects.get().subject == vague.pk

    def test_report_only_asks_nothing(self, lesson) -> None:
        lesson(VAGUE)
        ReviewItem.objects.all().delete()
        assert self.run("--report-only").endswith("1 findings, 0 new questions.\n")
        assert not ReviewItem.objects.exists()

    def test_its_json_has_no_text(self, lesson) -> None:
        vague, leak = lesson(VAGUE), bypassing_the_gates(SECRET)
        told = self.run("--json")
        report = json.loads(told)
        assert report["counts"] == {"vague": 1, "private": 1}
        assert {finding["lesson"] for finding in report["findings"]} == {str(vague.pk), str(leak.pk)}
        assert [word for word in ("ghp_", "properly", "client") if word in told] == []
