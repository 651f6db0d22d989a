"""The retrieval playground: what would be handed out and why, and that looking hands out nothing."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.errors import EmbeddingUnavailable
from memory.models import (
    Account,
    EmbeddingSpace,
    Interaction,
    Lesson,
    LessonEmbedding,
    LessonStanding,
    LessonUsage,
    TrustEvent,
)
from memory.search import embed_query, query
from memory.services.retrieval import look_up
from review.queries.retrieval import Asked, ask
from tests.models.rows import insert
from tests.services.people import member

pytestmark = pytest.mark.django_db
PAGE = "/review/retrieval/"
TASK = "Resize the uploaded photo with Image.thumbnail for the gallery"
FITS = "Resize an uploaded photo for the gallery with `Image.thumbnail`, which keeps its proportions."
ALSO = "Rotate an uploaded photo for the gallery with `ImageOps.exif_transpose` before you resize it."
FAR = "Close every `socket.socket` in a `finally` block."
HOSTILE = "<script>alert(1)</script> \u202eאבג 😀 " + "x" * 1900
QUERIES = 18  # of an answer of two lessons or more

Make = Callable[..., Lesson]


@pytest.fixture
def page(client: Client, account: Account) -> Client:
    client.force_login(get_user_model().objects.get(pk=member(account, "viewer", "vic").user_id))
    return client


def body(client: Client, **asked: Any) -> str:
    answer = client.get(PAGE, asked)
    assert answer.status_code == 200
    return answer.content.decode()


def quarantine(lesson: Lesson, hours: float = 48.0) -> None:
    since = timezone.now() - timedelta(hours=hours)
    Lesson.objects.filter(pk=lesson.pk).update(state="quarantined")
    LessonStanding.objects.create(
        lesson=lesson, policy="reference", wins=0, losses=6, on_trial=False, version=1, quarantined_at=since,
        last_loss_at=since,
    )  # fmt: skip


class TestTheAnswer:
    def test_is_what_retrieval_would_hand_out(self, lesson: Make, account: Account) -> None:
        for text in (FITS, ALSO, FAR):
            lesson(text)
        found = look_up(account, embed_query(TASK), 5)
        answer = ask(Asked(text=TASK, account=account, now=timezone.now()))
        assert [hit.lesson.text for hit in answer.hits] == [f.ranked.candidate.text for f in found.chosen]
        assert answer.hits[0].lesson.text == FITS

    def test_has_parts_that_add_up_to_each_score(self, lesson: Make, account: Account) -> None:
        kept = lesson(FITS)
        lesson(ALSO)
        insert("lesson_source_sum", lesson_id=kept.pk, source="caller", n=10, losses=2, reward=6)
        Lesson.objects.filter(pk=kept.pk).update(created_at=timezone.now() - timedelta(days=400))
        for hit in ask(Asked(text=TASK, account=account, now=timezone.now())).hits:
            assert sum(part.value for part in hit.parts) == pytest.approx(hit.score, abs=0.00005)
        (old,) = [h for h in ask(Asked(text=TASK, account=account, now=timezone.now())).hits if h.lesson.text == FITS]
        assert {part.name.split(" ")[0] for part in old.parts} >= {"Meaning", "Words", "Past"}

    def test_is_shown_with_rank_bar_numbers_and_link(self, page: Client, lesson: Make) -> None:
        found = lesson(FITS)
        text = body(page, q=TASK)
        assert reverse("review:lesson", args=[found.pk]) in text
        assert "1 handed out" in text
        assert "chart-score" in text
        assert "Similarity (cosine)" in text
        assert 'data-key="i"' in text
        assert "Not counted as servings" in text

    def test_has_at_most_k(self, page: Client, lesson: Make) -> None:
        lesson(FITS)
        lesson(ALSO)
        assert "1 handed out" in body(page, q=TASK, k=1)

    def test_is_of_a_day(self, lesson: Make, account: Account) -> None:
        lesson(FITS)
        now = timezone.now()
        today, later = (ask(Asked(text=TASK, account=account, now=now + timedelta(days=d))) for d in (0, 4000))
        assert later.hits[0].score < today.hits[0].score

    def test_has_an_address_that_brings_it_back(self, page: Client, lesson: Make) -> None:
        lesson(FITS)
        text = body(page, q=TASK, k=3, quarantined="on", date="2026-12-24")
        assert f'value="{TASK}"' in text
        assert 'value="2026-12-24"' in text
        assert 'id="quarantined" name="quarantined" checked' in text
        (link,) = re.findall(r'data-copy="([^"]+)"', text)
        assert page.get(link.replace("&amp;", "&")).content.decode().count("handed out") == text.count("handed out")


class TestWhatIsLeftOut:
    def test_says_where_a_quarantined_lesson_would_rank(self, page: Client, lesson: Make) -> None:
        quarantine(lesson(FITS))
        lesson(ALSO)
        text = body(page, q=TASK)
        assert "Would rank 1, quarantined." in text
        assert "1 quarantined" in text

    def test_lets_quarantined_lessons_in_where_that_is_asked(self, page: Client, lesson: Make) -> None:
        quarantine(lesson(FITS))
        text = body(page, q=TASK, quarantined="on")
        assert "let through for this look only" in text
        assert "Would rank" not in text

    def test_lets_lessons_in_whose_probation_has_begun(self, lesson: Make, account: Account) -> None:
        waited, fresh = lesson(FITS), lesson(ALSO)
        quarantine(waited)
        quarantine(fresh, hours=1)
        answer = ask(Asked(text=TASK, account=account, now=timezone.now(), probation=True))
        assert [hit.lesson.text for hit in answer.hits] == [FITS]

    def test_says_which_cut_removed_the_nearest(self, page: Client, lesson: Make, space: EmbeddingSpace) -> None:
        lesson(FITS)
        text = body(page, q="Bake bread of photo grain")
        assert "Nothing fits" in text
        assert re.search(rf"Similarity \d\.\d\d(; at least {space.min_similarity:.2f} is needed| with)", text)

    def test_says_when_a_contradiction_keeps_a_lesson_out(self, page: Client, lesson: Make) -> None:
        one, two = lesson(FITS), lesson(ALSO)
        insert("contradiction", first=one.pk, second=two.pk, account_id=None)
        assert "Contradicts a lesson of the answer" in body(page, q=TASK)

    def test_of_a_store_that_knows_no_word_of_it_is_nothing(self, page: Client) -> None:
        text = body(page, q="Bake bread")
        assert "No lesson shares its meaning or a word with the task." in text
        assert "Left out" not in text


class TestTrouble:
    def test_without_embeddings_words_decide_and_the_page_says_so(
        self, page: Client, lesson: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def down() -> None:
            raise EmbeddingUnavailable("The embedding service does not answer.")

        lesson(FITS)
        monkeypatch.setattr(query, "usable_space", down)
        text = body(page, q=TASK)
        assert "By words alone." in text
        assert "The embedding service does not answer." in text
        assert "1 handed out" in text

    def test_lessons_without_a_vector_are_counted_with_their_age(self, page: Client, lesson: Make) -> None:
        lesson(FITS)
        late = lesson(ALSO)
        LessonEmbedding.objects.filter(lesson=late).delete()
        Lesson.objects.filter(pk=late.pk).update(created_at=timezone.now() - timedelta(minutes=9))
        text = body(page, q=TASK).replace("\xa0", " ")
        assert "1 lesson has no vector yet" in text
        assert "9 minutes ago" in text

    @pytest.mark.parametrize("wrong", [{"q": ""}, {"k": "0"}, {"k": "51"}, {"k": "x"}, {"date": "someday"}])
    def test_what_cannot_be_asked_is_told_and_kept(self, page: Client, wrong: dict[str, str]) -> None:
        answer = page.get(PAGE, {"q": "Bake bread", **wrong})
        assert answer.status_code == 422
        assert 'role="alert"' in answer.content.decode()
        assert "q" in wrong or 'value="Bake bread"' in answer.content.decode()

    def test_a_task_is_cut_off_nowhere(self, page: Client) -> None:
        assert page.get(PAGE, {"q": "x" * 4001}).status_code == 422

    def test_nul_is_refused(self, page: Client) -> None:
        assert page.get(PAGE, {"q": "a\x00b"}).status_code == 422


class TestScope:
    def test_another_account_is_not_there(self, page: Client, rival_account: Account) -> None:
        assert page.get(PAGE, {"q": TASK, "account": "rival"}).status_code == 404

    def test_a_gated_account_is_shown_what_was_reviewed(self, page: Client, lesson: Make, account: Account) -> None:
        lesson(FITS)
        Account.objects.filter(pk=account.pk).update(review_policy="gated")
        assert "Nothing fits" in body(page, q=TASK)

    def test_lessons_of_an_account_stay_its_own(
        self, page: Client, lesson: Make, rival_account: Account, settings: Any
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        lesson(FITS, account_id=rival_account.pk)
        assert FITS not in body(page, q=TASK)

    def test_an_operator_without_an_account_is_told_how_to_make_one(self, client: Client, operator: Any) -> None:
        client.force_login(operator)
        assert "No account yet" in body(client)

    def test_a_stranger_logs_in_first(self, client: Client) -> None:
        assert client.get(PAGE).status_code == 302


class TestThePage:
    def test_begins_with_a_form(self, page: Client) -> None:
        assert "Try a task" in body(page)

    def test_writes_nothing(self, page: Client, lesson: Make) -> None:
        quarantine(lesson(FITS))
        page.get(PAGE, {"q": TASK, "quarantined": "on"})
        models = (Interaction, LessonUsage, TrustEvent)
        assert [model._default_manager.count() for model in models] == [0, 0, 0]
        assert page.post(PAGE, {"q": TASK}).status_code == 405

    @pytest.mark.parametrize("n", [2, 12])
    def test_takes_the_same_queries_for_any_number(
        self, page: Client, lesson: Make, n: int, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        for i in range(n):
            lesson(f"Resize an uploaded photo number {i} for the gallery with `Image.thumbnail_{i}` in one step.")
        page.get(PAGE, {"q": TASK})
        with django_assert_num_queries(QUERIES):
            page.get(PAGE, {"q": TASK})

    def test_escapes_task_and_lessons(self, page: Client, lesson: Make) -> None:
        found = lesson(FITS)
        Lesson.objects.filter(pk=found.pk).update(text=f"{FITS} {HOSTILE}")
        text = body(page, q=f"{TASK} {HOSTILE}")
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt; \u202eאבג 😀" in text
