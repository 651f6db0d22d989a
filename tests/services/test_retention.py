"""Old texts go when they are told to; what trust rests on never does."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from memory.models import Credit, Interaction, JobRun, LessonUsage, Outcome, WriteRefusal
from memory.services.credit import credit
from memory.services.retention import apply_retention
from memory.services.standing import differences
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db


def test_old_answers_are_emptied_and_their_evidence_stays(account) -> None:
    caller, lessons = make_callers(account)["caller"], make_lessons(2)
    works = [serve(account, f"task {n}", lessons) for n in range(2)]
    for work in works:
        say(caller, work.pk, "used")
        credit(work.pk)
    Interaction.objects.update(response="an answer", retrieved_context="a context")
    Interaction.objects.filter(pk=works[0].pk).update(created_at=timezone.now() - timedelta(days=91))
    assert apply_retention(timezone.now()).get("texts") is None, "kept for ever unless told otherwise"
    with override_settings(SONDER_RETAIN_TEXTS_DAYS=90):
        assert apply_retention(timezone.now())["texts"] == 1
        assert apply_retention(timezone.now())["texts"] == 0
    old, young = Interaction.objects.order_by("id")
    assert (old.response, old.retrieved_context, old.task) == (None, "", "task 0")
    assert (young.response, young.retrieved_context) == ("an answer", "a context")
    assert Outcome.objects.count() == Credit.objects.count() == 2
    assert LessonUsage.objects.count() == 4
    assert differences() == []


@pytest.mark.parametrize(("days", "left"), [(179, 1), (181, 0)])
def test_refusals_are_listed_for_half_a_year(days: int, left: int) -> None:
    WriteRefusal.objects.create(path="import", reason="private", actor="system")
    WriteRefusal.objects.update(created_at=timezone.now() - timedelta(days=days))
    apply_retention(timezone.now())
    assert WriteRefusal.objects.count() == left


@pytest.mark.parametrize(("days", "left"), [(29, 1), (31, 0)])
def test_runs_of_jobs_are_listed_for_a_month(days: int, left: int) -> None:
    JobRun.objects.create(job="daily", started_at=timezone.now() - timedelta(days=days))
    apply_retention(timezone.now())
    assert JobRun.objects.count() == left
