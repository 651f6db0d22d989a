"""What was rejected stays rejected, whoever says it again and however; and only a reviewer brings it back."""

import json
import threading
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.forms.models import model_to_dict
from django.test import override_settings
from django.utils import timezone

from memory.embedding.active import provider
from memory.errors import Conflict, NotFound
from memory.models import (
    EmbeddingSpace,
    Lesson,
    LessonEmbedding,
    LessonTombstone,
    ReviewItem,
    TrustEvent,
    WriteRefusal,
)
from memory.models.base import new_id
from memory.models.vocabulary import LessonState, Origin, TombstoneReason
from memory.search import Scope, embed_query, find
from memory.services import applying, idempotency, pruning, rejection, tombstone
from memory.services import space as spaces
from memory.services.credit import sweep
from memory.services.gates import Meaning
from memory.services.importing import import_lines, read_lines, start_run
from memory.services.lesson import NewLesson, Written, store
from tests.services.near import place, state_of
from tests.services.play import make_callers, say, serve

A = "Retry `upload()` three times when the bucket answers 503, and wait twice as long before each attempt."
B = "Put `upload()` on a queue when the bucket answers 503, so that nobody waits for a retry."
NEIGHBOUR = "Compress a file with `zstd` before `upload()` sends it to the bucket."
PARAPHRASE = "When the bucket answers 503, retry `upload()` three times and wait twice as long before each attempt."
UNRELATED = "Retry the bucket of questions three times before each exam, and wait for an answer."


@pytest.fixture
def reviewer(operator) -> int:
    return int(operator.pk)


def tell(text: str, space: EmbeddingSpace, *, strict: bool = True) -> Written:
    """As an automatic path does: with its meaning, and with every gate."""
    meaning = Meaning(vector=provider().embed([text])[0], space=space)
    new = NewLesson(text=text, origin=Origin.DISTILLED, path="distillation", actor="system", meaning=meaning)
    return store(new, strict=strict)


def refusal(text: str, space: EmbeddingSpace) -> str:
    return tell(text, space).verdict.refusal


def stored(written: Written) -> Lesson:
    assert written.lesson is not None, written.verdict
    return written.lesson


def recalled(task: str) -> list[str]:
    found = find(embed_query(task), Scope(account_id=None, reviewed_only=False), 5, timezone.now())
    return [f.ranked.candidate.text for f in found.chosen]


@pytest.mark.django_db
class TestWhatATombstoneHolds:
    def test_nothing_of_it_can_be_read(self, lesson, space) -> None:
        tombstone.write(lesson(A).pk, TombstoneReason.REJECTED_BY_REVIEWER)
        held = json.dumps(model_to_dict(LessonTombstone.objects.get()), default=str).lower()
        assert [word for word in ("upload", "retry", "bucket", "three") if word in held] == []

    def test_its_anchors_are_keyed_so_that_they_cannot_be_guessed(self, lesson, space) -> None:
        tombstone.write(lesson(A).pk, TombstoneReason.REJECTED_BY_REVIEWER)
        with override_settings(SECRET_KEY="another installation"):
            assert tombstone.anchor_macs({"identifier": ["upload"]}) != LessonTombstone.objects.get().anchor_macs
        assert (
            LessonTombstone.objects.get().anchor_macs["identifier"]
            == tombstone.anchor_macs({"identifier": ["upload"]})["identifier"]
        )

    def test_what_was_only_quarantined_gives_way_to_a_persons_decision(self, lesson) -> None:
        bad, better = lesson(A), lesson(B)
        tombstone.write(bad.pk, TombstoneReason.QUARANTINED)
        tombstone.write(bad.pk, TombstoneReason.REJECTED_BY_REVIEWER, better.pk)
        assert tombstone.lift(bad.pk, TombstoneReason.QUARANTINED) == 0
        buried = LessonTombstone.objects.get()
        assert (buried.reason, buried.successor_lesson) == ("rejected_by_reviewer", better.pk)

    def test_a_persons_decision_does_not_give_way_to_a_quarantine(self, lesson) -> None:
        bad = lesson(A)
        tombstone.write(bad.pk, TombstoneReason.SUPERSEDED)
        tombstone.write(bad.pk, TombstoneReason.QUARANTINED)
        assert LessonTombstone.objects.get().reason == "superseded"


@pytest.mark.django_db
class TestAChangeOfModel:
    def test_a_tombstone_whose_lesson_stands_follows_and_the_others_are_counted(self, lesson, space) -> None:
        stays, goes = lesson(A), lesson(B)
        for bad in (stays, goes):
            tombstone.write(bad.pk, TombstoneReason.REJECTED_BY_REVIEWER)
        goes.lessonembedding_set.all().delete()
        goes.delete()
        fields = {f.attname: getattr(space, f.attname) for f in space._meta.fields}
        other = EmbeddingSpace.objects.create(**{**fields, "id": new_id(), "revision": "2", "is_active": False})
        LessonEmbedding.objects.create(lesson=stays, space=other, embedding=[1.0] + [0.0] * 383)
        assert tombstone.left_behind(other) == 2
        assert tombstone.follow(other) == 1
        assert tombstone.follow(other) == 0
        assert tombstone.left_behind(other) == 1
        moved = LessonTombstone.objects.get(source_lesson=stays.pk)
        assert (moved.space_id, list(moved.embedding)[:2]) == (other.pk, [1.0, 0.0])

    def test_what_was_buried_before_it_was_embedded_is_completed(self, lesson, space) -> None:
        bad = lesson(A)
        bad.lessonembedding_set.all().delete()
        tombstone.write(bad.pk, TombstoneReason.REJECTED_BY_REVIEWER)
        assert tombstone.left_behind(space) == 1
        assert refusal(PARAPHRASE, space) == ""
        Lesson.objects.exclude(pk=bad.pk).delete()
        spaces.embed([bad], space)
        assert tombstone.follow(space) == 1
        assert refusal(PARAPHRASE, space) == "rejected_value"


@pytest.mark.django_db
class TestAReviewer:
    def test_rejecting_takes_a_lesson_out_buries_it_and_says_who(self, lesson, space, reviewer) -> None:
        bad = lesson(A)
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        assert (state_of(bad.pk), LessonTombstone.objects.get().reason) == ("rejected", "rejected_by_reviewer")
        event = TrustEvent.objects.get(lesson=bad.pk)
        assert (event.kind, event.actor) == ("rejected_by_reviewer", f"user:{reviewer}")
        assert event.evidence == {"reason": "wrong", "before": "active", "successor": None}
        assert recalled("the bucket answers 503 to upload") == []

    @pytest.mark.parametrize("state", ["candidate", "active", "quarantined"])
    def test_whatever_is_not_out_of_service_can_be_rejected(self, lesson, reviewer, state) -> None:
        bad = lesson(A)
        Lesson.objects.filter(pk=bad.pk).update(state=state)
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        assert state_of(bad.pk) == "rejected"
        with pytest.raises(Conflict, match="is rejected by now"):
            rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")

    def test_a_rejected_quarantine_is_no_longer_lifted_by_evidence(self, lesson, account, reviewer) -> None:
        callers, bad = make_callers(account), lesson(A)
        for n in range(6):
            work = serve(account, f"task {n}", [bad])
            say(callers["caller"], work.pk, "failed")
            sweep()
        assert state_of(bad.pk) == "quarantined"
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        say(callers["caller"], work.pk, "tests_passed")
        sweep()
        assert (state_of(bad.pk), LessonTombstone.objects.get().reason) == ("rejected", "rejected_by_reviewer")

    def test_questions_about_what_is_gone_are_withdrawn(self, lesson, reviewer) -> None:
        bad = lesson(A)
        for status in ("open", "resolved"):
            ReviewItem.objects.create(kind="vague", subject=bad.pk, priority=1, status=status)
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        assert sorted(ReviewItem.objects.values_list("status", "version")) == [("obsolete", 2), ("resolved", 1)]

    def test_a_new_wording_takes_the_place_of_the_old_without_its_evidence(self, lesson, space, reviewer) -> None:
        old = lesson(A)
        written = rejection.supersede(old.pk, B, reviewer=reviewer, reason="outdated")
        new = Lesson.objects.get(pk=stored(written).pk)
        assert (new.text, new.state, new.origin, new.supersedes) == (B, "active", "edited", old.pk)
        assert (new.reviewed_by_id, state_of(old.pk)) == (reviewer, "superseded")
        buried = LessonTombstone.objects.get()
        assert (buried.reason, buried.source_lesson, buried.successor_lesson) == ("superseded", old.pk, new.pk)
        kinds = {event.lesson: event.kind for event in TrustEvent.objects.all()}
        assert kinds == {old.pk: "edited", new.pk: "edited"}
        assert recalled("the bucket answers 503 to upload") == [B]

    def test_a_wording_may_be_mended_again_and_again(self, lesson, space, reviewer) -> None:
        """Each is near what was buried before it, and makes the same claim."""
        pk = lesson(A).pk
        for word in ("times, no more,", "times (three)", "times in all"):
            written = rejection.supersede(pk, A.replace("times", word), reviewer=reviewer)
            assert written.verdict.flags == ()
            pk = stored(written).pk
        assert set(LessonTombstone.objects.values_list("successor_lesson", flat=True)) == {pk}

    def test_a_wording_that_a_hard_gate_refuses_changes_nothing(self, lesson, space, reviewer) -> None:
        old, bad = lesson(A), lesson(B)
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        for text, reason in [(B, "rejected_value"), (A.upper(), "exact_duplicate"), ("...", "empty")]:
            written = rejection.supersede(old.pk, text, reviewer=reviewer)
            assert (written.lesson, written.verdict.refusal) == (None, reason)
        assert state_of(old.pk) == "active"
        refused = WriteRefusal.objects.values_list("path", "reason", "actor")
        assert set(refused) == {
            ("edit", reason, f"user:{reviewer}") for reason in ("rejected_value", "exact_duplicate", "empty")
        }

    def test_a_paraphrase_of_what_another_lesson_was_rejected_for_is_no_new_wording(
        self, lesson, space, reviewer
    ) -> None:
        bad, old = lesson(A), lesson(NEIGHBOUR)
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        assert rejection.supersede(old.pk, PARAPHRASE, reviewer=reviewer).verdict.refusal == "rejected_value"

    @pytest.mark.parametrize("how", ["reject", "supersede"])
    def test_restoring_brings_it_back_and_lifts_the_tombstone(self, lesson, space, reviewer, how) -> None:
        bad = lesson(A)
        if how == "reject":
            rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        else:
            rejection.supersede(bad.pk, B, reviewer=reviewer)
        rejection.restore(bad.pk, reviewer=reviewer, reason="it was right")
        assert (state_of(bad.pk), LessonTombstone.objects.count()) == ("active", 0)
        event = TrustEvent.objects.filter(lesson=bad.pk).latest("id")
        assert (event.kind, event.actor) == ("restored_by_reviewer", f"user:{reviewer}")
        assert event.evidence["tombstones_lifted"] == 1
        assert A in recalled("the bucket answers 503 to upload")
        with pytest.raises(Conflict, match="is active by now"):
            rejection.restore(bad.pk, reviewer=reviewer, reason="again")

    def test_what_was_restored_answers_for_its_evidence_at_once(self, lesson, account, reviewer) -> None:
        callers, bad = make_callers(account), lesson(A)
        rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        for n in range(6):
            say(callers["caller"], serve(account, f"task {n}", [bad]).pk, "failed")
        sweep()
        assert state_of(bad.pk) == "rejected"
        rejection.restore(bad.pk, reviewer=reviewer, reason="it was right")
        assert state_of(bad.pk) == "quarantined"
        assert LessonTombstone.objects.get().reason == "quarantined"

    def test_nobody_decides_about_what_does_not_exist(self, space, reviewer) -> None:
        for decide in (rejection.reject, rejection.restore):
            with pytest.raises(NotFound):
                decide(UUID(int=1), reviewer=reviewer, reason="wrong")


@pytest.mark.django_db
class TestLaundering:
    """Rejected, replaced, said again by others, and spoken for: it stays out."""

    def test_a_rejected_value_stays_out_after_its_successor_did_well(self, lesson, space, account, reviewer) -> None:
        a, neighbour = lesson(A), lesson(NEIGHBOUR)
        b = stored(rejection.supersede(a.pk, B, reviewer=reviewer))
        callers = make_callers(account)
        for text in (A, A.upper() + "!!", PARAPHRASE):
            assert refusal(text, space) == "rejected_value"
        for n in range(5):  # corroborated: work that was handed the successor and the neighbour went well
            say(callers["caller"], serve(account, f"task {n}", [b, neighbour]).pk, "tests_passed")
        sweep()
        for text in (A, PARAPHRASE):
            assert refusal(text, space) == "rejected_value"
            assert tell(text, space, strict=False).verdict.refusal == "rejected_value"
        assert state_of(a.pk) == "superseded"
        assert set(recalled("upload a file to the bucket that answers 503")) == {B, NEIGHBOUR}

    def test_a_retracted_value_without_successor_stays_gone_when_its_source_is_read_again(
        self, lesson, space, reviewer
    ) -> None:
        rejection.reject(lesson(A).pk, reviewer=reviewer, reason="retracted")
        verdicts = {text: refusal(text, space) for text in (A, NEIGHBOUR)}
        assert verdicts == {A: "rejected_value", NEIGHBOUR: ""}
        assert recalled("upload a file to the bucket that answers 503") == [NEIGHBOUR]

    def test_it_is_refused_after_every_retention_and_pruning_pass(self, lesson, space, reviewer, account) -> None:
        a, old = lesson(A), lesson(NEIGHBOUR)
        rejection.reject(a.pk, reviewer=reviewer, reason="wrong")
        twins = [place(lesson(f"Log {word} request at debug level only."), space, 0.99) for word in ("each", "every")]
        past = timezone.now() - timedelta(days=3650)
        for model in (LessonTombstone, Lesson):
            model.objects.update(created_at=past)
        plan = pruning.current(None)
        (outcome,) = applying.apply(None, plan.digest)
        assert len(outcome.pruned) == 1
        idempotency.forget_expired()
        pruning.forget_old()
        with override_settings(SONDER_PRUNE_ARCHIVE_DAYS=1):
            pruning.forget_old()
        assert refusal(A, space) == refusal(PARAPHRASE, space) == "rejected_value"
        gone = next(twin for twin in twins if twin.pk in outcome.pruned)
        assert refusal(gone.text, space) == "rejected_value"
        assert NEIGHBOUR in recalled("compress a file before upload to the bucket")
        assert Lesson.objects.get(pk=old.pk).created_at == past


@pytest.mark.django_db
def test_a_file_does_not_bring_a_rejected_value_back_in_other_words(lesson, space, reviewer, tmp_path) -> None:
    rejection.reject(lesson(A).pk, reviewer=reviewer, reason="wrong")
    path = tmp_path / "lessons.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in (A, PARAPHRASE, NEIGHBOUR)))
    *_, (_, report) = import_lines(read_lines(path), start_run(path))
    assert (report.stored, report.embedded, report.refused) == (1, 1, {"rejected_value": 2})
    assert recalled("upload a file to the bucket that answers 503") == [NEIGHBOUR]


CYRILLIC = str.maketrans("aeopcxy", "\u0430\u0435\u043e\u0440\u0441\u0445\u0443")
DISGUISES = {
    "case": A.upper(),
    "white space": "  " + A.replace(" ", "\u00a0 \t"),
    "punctuation": A.rstrip(".") + " !!!",
    "full width": A.replace("Retry", "\uff32\uff45\uff54\uff52\uff59"),
    "cyrillic letters": A.translate(CYRILLIC),
    "mathematical letters": A.replace("wait", "\U0001d430\U0001d41a\U0001d422\U0001d42d"),
    "zero width": "\u200b".join(A),
    "bidi marks": "\u202e" + A + "\u202c",
    "soft hyphens": A.replace("attempt", "at\u00adtempt"),
}


@pytest.mark.django_db
class TestDisguises:
    @pytest.mark.parametrize("text", DISGUISES.values(), ids=DISGUISES)
    def test_a_look_alike_of_a_rejected_value_is_refused(self, lesson, space, reviewer, text) -> None:
        rejection.reject(lesson(A).pk, reviewer=reviewer, reason="wrong")
        assert refusal(text, space) == "rejected_value"
        assert refusal(UNRELATED, space) == ""

    def test_a_near_paraphrase_falls_on_the_refused_side_and_a_far_one_does_not(self, lesson, space, reviewer) -> None:
        rejection.reject(lesson(A).pk, reviewer=reviewer, reason="wrong")
        far = "If `upload()` meets a 503, back off exponentially and give up after the third attempt."
        assert refusal(PARAPHRASE, space) == "rejected_value"
        assert refusal(far, space) == ""

    def test_the_opposite_of_a_rejected_value_is_stored(self, lesson, space, reviewer) -> None:
        rejection.reject(lesson(A).pk, reviewer=reviewer, reason="wrong")
        opposite = "Never r" + A[1:]
        assert refusal(opposite, space) == ""

    def test_different_texts_in_other_scripts_never_become_one(self, lesson, space, reviewer) -> None:
        texts = [
            "\u4e0a\u4f20\u524d\u5148\u538b\u7f29\u6587\u4ef6",
            "\u4e0a\u4f20\u540e\u5220\u9664\u6587\u4ef6",
            "\u0627\u0636\u063a\u0637 \u0627\u0644\u0645\u0644\u0641 \u0642\u0628\u0644 \u0627\u0644\u0631\u0641\u0639",
            "\u0627\u062d\u0630\u0641 \u0627\u0644\u0645\u0644\u0641 \u0628\u0639\u062f \u0627\u0644\u0631\u0641\u0639",
            "\U0001f512\U0001f4e6\U0001f680",
            "\U0001f513\U0001f4e6\U0001f680",
        ]
        rejection.reject(lesson(texts[0]).pk, reviewer=reviewer, reason="wrong")
        assert [refusal_of_text(text) for text in texts] == ["rejected_value", "", "", "", "", ""]


def refusal_of_text(text: str) -> str:
    """By the value alone: the test embedder sees no words in these scripts."""
    return store(NewLesson(text=text, origin=Origin.IMPORTED, path="import", actor="system")).verdict.refusal


@pytest.mark.django_db(transaction=True)
def test_of_a_writer_and_a_reviewer_at_the_same_time_the_rejected_value_never_wins(space, operator) -> None:
    """Whoever is first: a paraphrase is either there before the rejection, or refused by it."""
    for attempt in range(8):
        text, paraphrase = (said.replace("upload", f"upload_{attempt}") for said in (A, PARAPHRASE))
        bad = stored(tell(text, space, strict=False))
        start = threading.Barrier(2)
        verdicts: list[str] = []

        def write(said: str = paraphrase, gate: threading.Barrier = start, to: list[str] = verdicts) -> None:
            gate.wait()
            to.append(tell(said, space).verdict.refusal)
            connection.close()

        thread = threading.Thread(target=write)
        thread.start()
        start.wait()
        rejection.reject(bad.pk, reviewer=operator.pk, reason="wrong")
        thread.join()
        # Before: it repeats a lesson. After: it repeats a rejected value. There is no moment between.
        assert verdicts[0] in ("semantic_duplicate", "rejected_value")


@pytest.mark.django_db
def test_states_that_are_final_are_left_by_nothing_but_a_restore(lesson, reviewer) -> None:
    for state in (LessonState.REJECTED, LessonState.SUPERSEDED):
        Lesson.objects.filter(pk=lesson(f"Pin `pip` in stage {state.value} of the build.").pk).update(state=state)
    for bad in Lesson.objects.all():
        with pytest.raises(Conflict):
            rejection.reject(bad.pk, reviewer=reviewer, reason="wrong")
        with pytest.raises(Conflict):
            rejection.supersede(bad.pk, B, reviewer=reviewer)
