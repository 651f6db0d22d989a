"""The demo store: what it shows is what the services made of it, however often it was begun."""

import json
from collections.abc import Callable
from io import StringIO
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.test import override_settings

from memory.errors import Conflict
from memory.models import (
    Account,
    ApiKey,
    EmbeddingSpace,
    Interaction,
    Lesson,
    LessonUsage,
    Outcome,
    ReviewItem,
    TrustEvent,
    WriteRefusal,
)
from memory.rules.signals import SIGNALS
from memory.services import demo
from memory.services.credit import credit
from memory.services.importing import read_lines
from memory.services.keys import create_key
from memory.services.standing import differences

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("space")]


def run() -> demo.Stage:
    stage = demo.set_up()
    for _ in (*demo.store_lessons(stage), *demo.play(stage)):
        pass
    return stage


def counts() -> dict[str, int]:
    """Rows of every table."""
    models = apps.get_app_config("memory").get_models()
    return {model._meta.db_table: model._default_manager.count() for model in models}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Leaves of the script what begins with one of some keys."""

    def shorten(*keys: str) -> None:
        steps = [step for step in demo.read_steps() if step.key.startswith(keys)]
        monkeypatch.setattr(demo, "read_steps", lambda: steps)

    return shorten


@pytest.fixture
def same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ids in every run: the coin of a trial is a hash of the lesson's and the interaction's."""
    numbers = count(1)
    for model in (Lesson, Interaction):
        monkeypatch.setattr(model._meta.get_field("id"), "_get_default", lambda: UUID(int=(7 << 76) + next(numbers)))


class TestTheScript:
    def test_has_60_lessons_of_different_names_and_words(self) -> None:
        lines = list(read_lines(demo.LESSONS))
        assert len(lines) == len({line.ref for line in lines}) == len({line.text for line in lines}) == 60

    def test_speaks_of_known_lessons_judges_and_signals_and_of_work_that_was_begun(self) -> None:
        known = {line.ref for line in read_lines(demo.LESSONS)} | {""}
        begun: set[str] = set()
        for step in demo.read_steps():
            assert step.fails_with in known
            assert {word.source for word in step.says} <= set(demo.SOURCES)
            assert {word.signal for word in step.says} <= set(SIGNALS)
            assert (step.key in begun) is not bool(step.task)
            begun.add(step.key)


class TestTheStore:
    def test_shows_wins_losses_corrections_and_work_without_an_outcome(self) -> None:
        told = demo.summary(run())
        assert told["interactions"] == Interaction.objects.count() == 80
        assert (told["embedded"], told["not_judged"], told["retracted"]) == (60, 4, 1)
        assert told["wins"] + told["losses"] + told["retracted"] == told["outcomes"] == Outcome.objects.count()
        assert told["losses"] >= 15
        assert told["corrected"] >= 2
        assert (len(told["quarantined"]), len(told["rehabilitated"])) == (1, 1)
        assert differences() == []

    def test_has_lessons_that_pass_every_gate(self, script: Callable[..., None]) -> None:
        script("open-04")
        run()
        assert Lesson.objects.filter(origin="seeded").count() == 60
        assert not WriteRefusal.objects.exists()
        assert not ReviewItem.objects.filter(kind="vague").exists()

    def test_quarantines_the_advice_that_harms_and_logs_what_is_held_back(self, script: Callable[..., None]) -> None:
        script("thumbnail")
        run()
        bad = Lesson.objects.get(state="quarantined")
        assert bad.source_ref == "square-thumbnail"
        held = LessonUsage.objects.filter(exposure="withheld_quarantine")
        assert list(held.values_list("lesson", "outcome_signal")) == [(bad.pk, "accepted")] * 4

    def test_forgives_the_advice_that_was_blamed_by_mistake(self, script: Callable[..., None]) -> None:
        script("calendar")
        run()
        lesson = Lesson.objects.get(source_ref="calendar-zone")
        assert lesson.state == "active"
        kinds = TrustEvent.objects.filter(lesson=lesson.pk).order_by("id").values_list("kind", flat=True)
        assert list(kinds) == ["quarantined", "rehabilitated"]

    @pytest.mark.usefixtures("same_ids")
    @override_settings(SONDER_TRUST_POLICY="trial")
    def test_shows_the_same_under_the_policy_of_the_coin(self, script: Callable[..., None]) -> None:
        script("thumbnail", "calendar")
        told = demo.summary(run())
        assert [text[:14] for text in told["quarantined"]] == ["Shrink a photo"]
        assert [text[:14] for text in told["rehabilitated"]] == ["Write the star"]
        assert LessonUsage.objects.filter(exposure="withheld_trial").exists()

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_keeps_its_lessons_to_its_account_where_lessons_belong_to_accounts(
        self, script: Callable[..., None]
    ) -> None:
        script("thumbnail")
        stage = run()
        assert set(Lesson.objects.values_list("account", flat=True)) == {stage.account.pk}
        assert len(demo.summary(stage)["quarantined"]) == 1

    def test_answers_with_its_preferences_and_facts(self, client: Any) -> None:
        secret = create_key(demo.set_up().account, name="mine", source="caller", scopes=["loop"]).secret
        answer = client.post(
            "/api/v1/interactions/",
            {"task": "Shrink each photo to a thumbnail", "project": "api"},
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        ).json()
        assert {row["text"] for row in answer["preferences"]} == {text for _, _, text in demo.PREFERENCES}
        assert {row["text"] for row in answer["facts"]} == {text for _, text in demo.FACTS}


class TestTwice:
    def test_is_once(self, script: Callable[..., None]) -> None:
        script("pickle", "day", "calendar", "thumbnail", "open")
        run()
        before = counts()
        run()
        assert counts() == before

    @pytest.mark.parametrize("calls", [1, 4, 12])
    def test_goes_on_where_it_was_interrupted(
        self, script: Callable[..., None], monkeypatch: pytest.MonkeyPatch, calls: int
    ) -> None:
        """A process may end between a report and its credit."""
        script("pickle", "day", "calendar", "open")
        left = iter(range(calls))

        def interrupted(work: UUID) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return credit(work)

        with monkeypatch.context() as patch:
            patch.setattr("memory.services.demo.credit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run()
        assert Outcome.objects.filter(credited_at__isnull=True).count() == 1
        told = demo.summary(run())
        assert not Outcome.objects.filter(credited_at__isnull=True).exists()
        assert (told["interactions"], told["not_judged"], told["retracted"]) == (12, 4, 1)
        assert (told["outcomes"], told["corrected"], len(told["rehabilitated"])) == (15, 4, 1)

    def test_uses_the_account_and_keys_that_are_there(self) -> None:
        account = Account.objects.create(slug="demo", name="Mine", review_policy="auto")
        for source in demo.SOURCES:
            create_key(account, name="mine", source=source, scopes=["loop"])
        demo.set_up()
        assert set(ApiKey.objects.values_list("name", flat=True)) == {"mine"}

    def test_makes_a_key_in_place_of_a_revoked_one(self) -> None:
        demo.set_up()
        ApiKey.objects.update(revoked_at="2026-01-01T00:00:00Z")
        demo.set_up()
        assert sorted(ApiKey.objects.filter(revoked_at=None).values_list("outcome_source", flat=True)) == [
            "caller",
            "machine",
        ]

    def test_refuses_an_account_that_is_handed_reviewed_lessons_only(self) -> None:
        Account.objects.create(slug="demo", name="Mine", review_policy="gated")
        with pytest.raises(Conflict, match="review policy"):
            demo.set_up()


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
        assert "60 lessons and 5 interactions" in said
        assert "manage.py create_api_key demo" in said

    def test_tells_programs_the_same(self, command: Callable[..., str]) -> None:
        told = json.loads(command("--json"))
        assert (told["account"], told["lessons"], told["interactions"]) == ("demo", 60, 5)

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

        monkeypatch.setattr("memory.services.demo.credit", interrupted)
        with pytest.raises(CommandError, match="Run it again") as ended:
            command()
        assert ended.value.returncode == 130
