"""The demo store: what it shows is what the services made of it, however often it was begun, and all of it can go."""

import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone

from memory.errors import Conflict
from memory.models import (
    Account,
    Adjudication,
    ApiKey,
    EmbeddingSpace,
    ErasureRecord,
    ImportRun,
    Interaction,
    Lesson,
    LessonStanding,
    LessonUsage,
    Membership,
    Outcome,
    Preference,
    PrunePlan,
    RefinementHistory,
    ReviewItem,
    TrustEvent,
    WriteRefusal,
)
from memory.models.vocabulary import Origin
from memory.rules.signals import SIGNALS
from memory.services import erasure, pruning
from memory.services.credit import credit
from memory.services.demo import people, play, stage, story
from memory.services.doctor import examine
from memory.services.keys import create_key
from memory.services.lesson import NewLesson, store
from memory.services.planned import changes, clusters_of
from memory.services.rejection import supersede
from memory.services.setup import first_start
from memory.services.standing import differences
from tests.conftest import Agent
from tests.http.calls import report, start

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("space")]


def run() -> stage.Stage:
    place = stage.set_up()
    for _ in (*play.store_lessons(place), *play.play(place), *people.review(place)):
        pass
    return place


def counts() -> dict[str, int]:
    """Rows of every table of the store, and of the people's."""
    models = [*apps.get_app_config("memory").get_models(), *apps.get_app_config("review").get_models()]
    return {model._meta.db_table: model._default_manager.count() for model in (*models, get_user_model())}


def contents() -> dict[str, list[Any]]:
    """Every row of every table, but for the proof that something was erased, and the generation that this begins."""
    models = [*apps.get_app_config("memory").get_models(), get_user_model()]
    return {
        model._meta.db_table: sorted(model._default_manager.values_list(*kept(model)), key=repr)
        for model in models
        if model is not ErasureRecord
    }


def kept(model: Any) -> list[str]:
    """The columns that a demo leaves as they were."""
    return [field.attname for field in model._meta.concrete_fields if field.name != "generation"]


def remove() -> None:
    account = story.account()
    assert account is not None
    erasure.erase("demo", account.pk, account_id=None, actor="system")


@pytest.fixture
def own_ledger(settings: Any, tmp_path: Any) -> None:
    """What a test erases is not remembered by another."""
    settings.SONDER_VAR = str(tmp_path)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Leaves of the script what begins with one of some keys, and nothing of what people do."""

    def nobody(place: stage.Stage) -> Iterator[tuple[int, int]]:
        return iter(())

    def shorten(*keys: str) -> None:
        steps = [step for step in story.read_steps() if step.key.startswith(keys)]
        monkeypatch.setattr(play, "read_steps", lambda: steps)
        monkeypatch.setattr(people, "review", nobody)

    return shorten


class TestTheScript:
    def test_has_60_lessons_of_different_names_and_words(self) -> None:
        told = story.read_lessons()
        assert len(told) == len({each.ref for each in told}) == len({each.text for each in told}) == 60

    def test_speaks_of_known_lessons_judges_and_signals_and_of_work_that_was_begun(self) -> None:
        known = {told.ref for told in story.read_lessons()}
        begun: set[str] = set()
        for step in story.read_steps():
            about = step.about
            assert about is None or (about.lesson in known and about.exposure in ("served", "withheld", "probation"))
            words = [*step.says, *filter(None, (about.with_it, about.without_it) if about else ())]
            assert {word.source for word in words} <= set(story.SOURCES)
            assert {word.signal for word in words} <= set(SIGNALS)
            assert (step.key in begun) is not bool(step.task)
            begun.add(step.key)
        assert {told.learned_from for told in story.read_lessons()} <= begun | {""}

    def test_is_told_in_the_order_in_which_it_happened(self) -> None:
        ago = [step.ago for step in story.read_steps()]
        assert ago == sorted(ago, reverse=True)
        assert 0 < ago[-1] < ago[0] < story.BEGUN


class TestTheStory:
    @override_settings(SONDER_TRUST_POLICY="trial")
    def test_has_something_for_every_page_and_the_store_is_sound(self, space: EmbeddingSpace) -> None:
        """With the thresholds of a model that hashes words, to which opposites lie further apart."""
        EmbeddingSpace.objects.filter(pk=space.pk).update(contradiction_similarity=0.6)
        place = run()
        told = stage.summary(place)
        assert (told["lessons"], told["embedded"], told["interactions"]) == (60, 60, Interaction.objects.count())
        assert told["wins"] + told["losses"] + told["retracted"] == told["outcomes"] == Outcome.objects.count()
        assert (told["retracted"], told["losses"] >= 30) == (1, True)
        assert [text[:14] for text in told["on_trial"]] == ["Store invoice "]
        assert {text[:14] for text in told["quarantined"]} == {"Shrink a photo", "Wrap the body "}
        assert [text[:14] for text in told["rehabilitated"]] == ["Write the star"]
        assert set(told["questions"]) == {
            "contradiction", "near_duplicate", "new_lesson", "outcome_conflict", "outcome_needed", "quarantine",
            "second_opinion", "stale", "vague",
        }  # fmt: skip
        assert told["questions"]["contradiction"] == 2
        assert [finding.detail for finding in examine() if not finding.ok] == []

        self.shows_what_the_lesson_does_with_and_without_it()
        self.has_a_plan_that_is_stale(place)
        self.has_a_preference_that_an_agent_and_a_person_changed(place)
        assert Adjudication.objects.filter(reviewer_id=place.ana.user_id).count() == 3
        assert ReviewItem.objects.filter(status="snoozed", kind="new_lesson").count() == 1
        assert Interaction.objects.filter(outcome__isnull=True).exclude(response=None).count() == told["not_judged"]

    @staticmethod
    def shows_what_the_lesson_does_with_and_without_it() -> None:
        evidence = LessonStanding.objects.get(lesson__source_ref="square-thumbnail").evidence
        with_it, coin, kept_out = (
            evidence["with_it"],
            *(evidence["without_it"][why] for why in ("coin", "quarantine")),
        )
        assert with_it["lost"] >= max(10, 2 * with_it["expected"])
        assert (coin["n"] >= 3, kept_out["n"] >= 8) == (True, True)
        assert 0 < coin["lost"] + kept_out["lost"] < 0.3 * (coin["n"] + kept_out["n"])
        assert LessonUsage.objects.filter(lesson__source_ref="square-thumbnail", exposure="probation").exists()

    @staticmethod
    def has_a_plan_that_is_stale(place: stage.Stage) -> None:
        plan = PrunePlan.objects.get()
        assert set(changes(plan, pruning.scope(place.scope), clusters_of(plan)).values()) == {"not_active"}

    @staticmethod
    def has_a_preference_that_an_agent_and_a_person_changed(place: stage.Stage) -> None:
        preference = Preference.objects.get(key="answer-language")
        actors = RefinementHistory.objects.filter(preference=preference).values_list("actor", flat=True)
        assert (preference.revision, set(actors)) == (5, {place.ana.actor, place.callers["caller"].actor})

    def test_is_dated_back_and_ids_are_in_the_order_of_time(self, script: Callable[..., None]) -> None:
        script("thumbnail")
        place = run()
        work = list(Interaction.objects.order_by("id"))
        assert [each.created_at for each in work] == sorted(each.created_at for each in work)
        assert 26 >= (place.run.created_at - work[0].created_at).days >= 20
        (event,) = TrustEvent.objects.filter(kind="quarantined")
        held_back = LessonUsage.objects.filter(exposure="withheld_quarantine").order_by("created_at").first()
        assert held_back is not None
        assert work[0].created_at < event.created_at < held_back.created_at < timezone.now()

    @override_settings(SONDER_PROBATION_SHARE=0.0)
    def test_quarantines_the_advice_that_harms_under_the_policy_that_knows_no_coin(
        self, script: Callable[..., None]
    ) -> None:
        script("thumbnail")
        run()
        bad = Lesson.objects.get(state="quarantined")
        assert bad.source_ref == "square-thumbnail"
        assert LessonUsage.objects.filter(lesson=bad, exposure="withheld_quarantine").count() >= 5

    @override_settings(SONDER_PROBATION_SHARE=0.0)
    def test_forgives_the_advice_that_was_blamed_by_mistake(self, script: Callable[..., None]) -> None:
        script("calendar")
        run()
        lesson = Lesson.objects.get(source_ref="calendar-zone")
        assert lesson.state == "active"
        kinds = TrustEvent.objects.filter(lesson=lesson.pk).order_by("id").values_list("kind", flat=True)
        assert list(kinds) == ["quarantined", "rehabilitated"]

    def test_has_lessons_that_pass_every_gate(self, script: Callable[..., None]) -> None:
        script("open-04")
        run()
        assert Lesson.objects.filter(origin="seeded").count() == len([t for t in story.read_lessons() if t.ago == 90.0])
        assert not WriteRefusal.objects.exists()
        assert not ReviewItem.objects.filter(kind="vague").exists()
        assert differences() == []

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_keeps_its_lessons_to_its_account_where_lessons_belong_to_accounts(
        self, script: Callable[..., None]
    ) -> None:
        script("thumbnail")
        place = run()
        assert set(Lesson.objects.values_list("account", flat=True)) == {place.account.pk}
        assert len(stage.summary(place)["quarantined"]) == 1

    def test_answers_with_its_preferences_and_facts(self, client: Any) -> None:
        secret = create_key(stage.set_up().account, name="mine", source="caller", scopes=["loop"]).secret
        answer = client.post(
            "/api/v1/interactions/",
            {"task": "Shrink each photo to a thumbnail", "project": "api"},
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        ).json()
        assert {row["text"] for row in answer["preferences"]} == {text for _, _, text in story.PREFERENCES}
        assert {row["text"] for row in answer["facts"]} == {text for _, text in story.FACTS}


class TestTwice:
    def test_is_once(self) -> None:
        run()
        before = counts()
        run()
        assert counts() == before

    @override_settings(SONDER_PROBATION_SHARE=0.0)  # which tasks are samples hangs on the lesson's id
    @pytest.mark.parametrize("calls", [1, 4, 12])
    def test_goes_on_where_it_was_interrupted(
        self, script: Callable[..., None], monkeypatch: pytest.MonkeyPatch, calls: int
    ) -> None:
        """A process may end between a report and its credit: the whole step is told again."""
        script("pickle", "day", "calendar")
        left = iter(range(calls))

        def interrupted(work: UUID) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return credit(work)

        with monkeypatch.context() as patch:
            patch.setattr("memory.services.demo.play.credit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run()
        assert not Outcome.objects.filter(credited_at__isnull=True).exists()
        told = stage.summary(run())
        assert (told["interactions"], told["not_judged"], told["retracted"]) == (13, 0, 1)
        assert (told["corrected"], len(told["rehabilitated"])) == (4, 1)

    def test_uses_the_account_and_keys_that_are_there(self) -> None:
        account = Account.objects.create(slug="demo", name="Mine", review_policy="auto")
        for source in story.SOURCES:
            create_key(account, name="mine", source=source, scopes=["loop"])
        stage.set_up()
        assert set(ApiKey.objects.values_list("name", flat=True)) == {"mine"}

    def test_makes_a_key_in_place_of_a_revoked_one(self) -> None:
        stage.set_up()
        ApiKey.objects.update(revoked_at="2026-01-01T00:00:00Z")
        stage.set_up()
        assert sorted(ApiKey.objects.filter(revoked_at=None).values_list("outcome_source", flat=True)) == [
            "caller",
            "machine",
        ]

    def test_refuses_an_account_that_is_handed_reviewed_lessons_only(self) -> None:
        Account.objects.create(slug="demo", name="Mine", review_policy="gated")
        with pytest.raises(Conflict, match="review policy"):
            stage.set_up()
        assert not story.is_there(), "nothing was begun"


@pytest.mark.usefixtures("own_ledger")
class TestRemoving:
    def test_leaves_every_row_as_it_was_before(self, agent: Agent, lesson: Callable[..., Lesson]) -> None:
        """Somebody's own lesson with its evidence stands beside it, and the account of the first start."""
        first_start()
        lesson("Close every `psycopg` cursor before the commit.")
        work = start(agent.client, "close the psycopg cursor before the commit")
        report(agent.client, str(work["id"]), "failed")
        credit(UUID(str(work["id"])))
        before = contents()
        run()
        assert contents() != before
        remove()
        after = contents()
        assert {table for table in before if before[table] != after[table]} == set()
        assert ErasureRecord.objects.get().kind == "demo"
        assert [finding.detail for finding in examine() if not finding.ok] == []

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_does_so_where_lessons_belong_to_accounts(self, script: Callable[..., None]) -> None:
        before = contents()
        script("thumbnail")
        run()
        remove()
        assert contents() == before

    def test_keeps_the_account_of_the_first_start_with_its_keys_and_people(self, script: Callable[..., None]) -> None:
        assert first_start() is not None
        script("cache", "csv")
        run()
        remove()
        assert set(Account.objects.values_list("slug", flat=True)) == {"demo"}
        assert (ApiKey.objects.count(), Membership.objects.count()) == (2, 1)
        assert not story.is_there()

    def test_takes_what_people_and_agents_made_of_it_since(
        self, script: Callable[..., None], agent: Agent, operator: Any
    ) -> None:
        """A wording by a person, a decision about it, a serving to another account, an assigned question."""
        script("cache", "csv")
        place = run()
        handed = start(agent.client, "Cache the expensive price computation of the Quote class")
        cached = stage.lessons_of(place)["lru-cache-method"]
        own = store(
            NewLesson(text="Keep `ids` in one column.", origin=Origin.IMPORTED, path="test", actor="system")
        ).lesson
        assert own is not None
        item = ReviewItem.objects.create(kind="vague", subject=own.pk, priority=0.2, status="open")
        ReviewItem.objects.filter(pk=item.pk).update(assigned_to=place.ana.user_id)
        text = "Move a cached computation out of its class with `functools.cache`."
        assert supersede(cached, text, reviewer=operator.pk).lesson is not None
        remove()
        assert list(Lesson.objects.values_list("pk", flat=True)) == [own.pk]
        assert not Adjudication.objects.exists()
        assert Interaction.objects.get().retrieved_context == "" != handed["context"]
        item.refresh_from_db()
        assert (item.assigned_to_id, item.status) == (None, "open")

    @override_settings(SONDER_TRUST_POLICY="trial")
    def test_can_be_told_again_and_is_the_same_story_to_the_last_coin(self) -> None:
        """Other ids, and yet the coins fall alike: the evidence is that of every demo store."""
        told = []
        for _ in range(2):
            run()
            rows = LessonUsage.objects.order_by("interaction__idempotency_key", "lesson__source_ref")
            exposures = list(rows.values_list("lesson__source_ref", "exposure", "outcome_signal"))
            standings = LessonStanding.objects.order_by("lesson__source_ref")
            numbers = [(row.s, row.evidence["with_it"], row.evidence["without_it"]) for row in standings]
            told.append((exposures, numbers))
            remove()
            assert counts()["lesson"] == 0
        assert told[0] == told[1]


class TestTheCommand:
    @pytest.fixture
    def command(self, script: Callable[..., None]) -> Callable[..., str]:
        """Runs it with a short script."""
        script("cache", "csv")

        def run_command(*options: str) -> str:
            out = StringIO()
            call_command("seed_demo", *options, stdout=out)
            return out.getvalue()

        return run_command

    def test_says_what_there_is_and_how_to_go_on(self, command: Callable[..., str]) -> None:
        said = command()
        assert "53 lessons and 5 interactions" in said
        assert "manage.py create_api_key demo" in said
        assert "seed_demo --remove" in said

    def test_tells_programs_the_same(self, command: Callable[..., str]) -> None:
        told = json.loads(command("--json"))
        assert (told["account"], told["lessons"], told["interactions"]) == ("demo", 53, 5)

    @pytest.mark.usefixtures("own_ledger")
    def test_takes_all_of_it_back(self, command: Callable[..., str]) -> None:
        before = contents()
        command()
        assert "rows of demo data" in command("--remove")
        assert contents() == before
        with pytest.raises(CommandError, match="no demo data"):
            command("--remove")

    @pytest.mark.usefixtures("own_ledger")
    def test_tells_programs_what_went(self, command: Callable[..., str]) -> None:
        command()
        assert json.loads(command("--remove", "--json"))["counts"]["lesson"] == 53

    def test_works_by_words_alone_while_the_model_is_away(
        self, command: Callable[..., str], space: EmbeddingSpace
    ) -> None:
        EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=False)
        other = {
            f.attname: getattr(space, f.attname) for f in EmbeddingSpace._meta.fields if f.name not in ("id", "model")
        }
        EmbeddingSpace.objects.create(**{**other, "model": "another", "is_active": True})
        told = json.loads(command("--json"))
        assert (told["embedded"], told["interactions"]) == (0, 5)
        assert "another" in told["note"]
        assert LessonUsage.objects.exists()

    def test_refuses_with_a_sentence(self, command: Callable[..., str]) -> None:
        Account.objects.create(slug="demo", name="Mine", review_policy="gated")
        with pytest.raises(CommandError, match="Set its review policy to auto first"):
            command()

    def test_says_that_it_can_go_on_when_it_is_interrupted(
        self, command: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(work: UUID) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("memory.services.demo.play.credit", interrupted)
        with pytest.raises(CommandError, match="Run it again") as ended:
            command()
        assert ended.value.returncode == 130


def test_no_demo_is_there_before_one_is_made() -> None:
    assert (story.is_there(), story.account(), ImportRun.objects.count()) == (False, None, 0)
