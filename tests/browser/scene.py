"""What the browser tests look at, made through the services that agents and jobs use."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from memory.models import Account, Contradiction, Fact, Lesson, Membership, Preference, Project
from memory.models.vocabulary import LessonState, Origin, ReviewKind
from memory.services import quarantine
from memory.services.credit import sweep
from memory.services.lesson import NewLesson, flag, store
from memory.services.space import embed, usable_space
from tests.services.play import make_callers, say, serve

PEOPLE = {"vic": "viewer", "jo": "judge", "ana": "reviewer", "ben": "reviewer", "mia": "maintainer"}
HARMFUL = "Always retry `requests.post()` without a limit when a call fails."
TESTED = "Cache every `SELECT` for `3600s` in the `users` service."
GOOD = "Pass `timeout=10` to every `requests.get()` call."
OPPOSITE = "Never pass `timeout=10` to a `requests.get()` call."
WAITING = "Use `pathlib.Path.read_text(encoding='utf-8')` to read a text file."
VAGUE = "Handle errors properly and be careful with input."


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Names for what is there."""

    account: Account
    lessons: dict[str, Lesson]
    work: dict[str, Any]  # interactions
    contradiction: Contradiction
    preference: Preference


def build(account: Account) -> Scene:
    """The whole scene; about forty interactions."""
    people(account)
    callers = make_callers(account)
    texts = {
        "harmful": HARMFUL,
        "tested": TESTED,
        "good": GOOD,
        "opposite": OPPOSITE,
        "waiting": WAITING,
        "vague": VAGUE,
    }
    lessons = {name: _lesson(text) for name, text in texts.items()}
    work: dict[str, Any] = {}
    for n in range(12):
        done = serve(account, f"call the payment service, case {n}", [lessons["harmful"], lessons["good"]])
        say(callers["caller"], done.pk, "failed")
        work[f"lost {n}"] = done
    for n in range(20):
        done = serve(account, f"read the settings file, case {n}", [lessons["good"]])
        say(callers["caller"], done.pk, "accepted")
    for n in range(4):
        done = serve(account, f"speed up the user page, case {n}", [lessons["tested"]])
        say(callers["caller"], done.pk, "failed")
    work["unjudged"] = serve(account, "Write the retry loop of the importer.", [lessons["tested"], lessons["good"]])
    sweep()
    _force(lessons)
    quarantine.move(lessons["waiting"].pk, LessonState.ACTIVE, LessonState.CANDIDATE)
    flag(lessons["waiting"], ReviewKind.NEW_LESSON)
    return Scene(
        account=account,
        lessons=lessons,
        work=work,
        contradiction=_pair(lessons["good"], lessons["opposite"]),
        preference=_beside(account),
    )


def people(account: Account) -> None:
    """Everybody of PEOPLE, and a superuser; the password of each is their name."""
    for name, role in PEOPLE.items():
        user = get_user_model().objects.create_user(name, password=name)
        Membership.objects.create(account=account, user=user, role=role)
    get_user_model().objects.create_superuser("olive", password="olive")


def _lesson(text: str) -> Lesson:
    made = store(NewLesson(text=text, origin=Origin.DISTILLED, path="test", actor="system")).lesson
    assert made is not None, text
    embed([made], usable_space())
    return made


def _force(lessons: dict[str, Lesson]) -> None:
    """The policy quarantined what it should; a test of the pages must not hang on which policy that is."""
    for lesson in lessons.values():
        lesson.refresh_from_db()
    assert lessons["harmful"].state == "quarantined", "twelve losses of twelve quarantine under every policy"


def _pair(one: Lesson, other: Lesson) -> Contradiction:
    first, second = sorted([one, other], key=lambda lesson: lesson.text_sha256)
    made = Contradiction.objects.create(
        first=first.pk,
        second=second.pk,
        first_digest=first.text_sha256,
        second_digest=second.text_sha256,
        similarity=0.91,
        basis="polarity",
    )
    from memory.services import questions  # the question that the detector would ask

    questions.ask(
        [
            questions.Question(
                kind=ReviewKind.CONTRADICTION,
                subject=made.pk,
                account_id=None,
                severity=0.6,
                since=timezone.now() - timedelta(hours=1),
            )
        ]
    )
    return made


def _beside(account: Account) -> Preference:
    project = Project.objects.create(account=account, slug="api", name="API")
    Fact.objects.create(account=account, project=project, key="database", text="It runs on PostgreSQL 18.")
    return Preference.objects.create(
        account=account, scope="global", key="answer-language", text="I prefer short answers in plain English.",
        confidence=0.5, evidence_count=1, enabled=True, revision=1,
    )  # fmt: skip
