"""Every address of the review pages, with something at each."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.test import RequestFactory
from django.urls import URLPattern, reverse
from django.utils import timezone

from memory.models import PrunePlan, ReviewItem
from memory.models.vocabulary import ReviewKind, Verdict
from memory.services import questions, second_opinion
from memory.services.authority import Person, person
from review.urls import urlpatterns
from tests.browser.scene import Scene
from tests.browser.steps import planned, reword

#: What is no page: files, and a number for a script.
FILES = (
    "quarantine_export", "prune_export", "health_export", "audit_export", "measured_export", "preference_version",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Store:
    """Something at every address."""

    scene: Scene
    plan: PrunePlan
    item: ReviewItem
    mia: Person

    def queries(self, name: str) -> list[str]:
        """What to look at under an address beside the bare one."""
        good = self.scene.lessons["good"].pk
        asked = {
            "inbox": [f"tab={tab}" for tab in ("new", "second", "returned", "snoozed", "mine")]
            + [f"item={self.item.pk}", "q=pathlib&kind=new_lesson"],
            "ask": [f"subject={good}&expected_version=1&next=/review/"],
            "lessons": ["q=timeout", "state=quarantined"],
            "quarantine": ["by=project", "by=model", "by=week"],
            "contradictions": [f"item={ReviewItem.objects.get(kind='contradiction').pk}"],
            "outcomes": [f"judged={self.scene.work['lost 0'].pk}"],
            "interactions": [f"lesson={good}", "state=lost", "model=x"],
            "preferences": ["q=answers", "page=1"],
            "preference_compare": ["a=1&b=3", "a=3&b=1&view=side"],
            "prune_plan": ["simulate=1"],
            "retrieval": ["q=call+the+payment+service&quarantined=on&probation=on"],
            "health": ["account=acme&weeks=12"],
            "audit": ["action=approved", "actor=mia"],
            "snooze": ["next=/review/"],
        }
        return [*([] if name == "ask" else [""]), *asked.get(name, [])]

    def arguments(self, name: str) -> list[dict[str, Any]]:
        """What fills the places of an address."""
        places: dict[str, Any] = {
            "verdict": "reject",
            "lesson_id": self.scene.lessons["harmful"].pk,
            "item_id": self.item.pk,
            "contradiction_id": self.scene.contradiction.pk,
            "interaction_id": self.scene.work["unjudged"].pk,
            "preference_id": self.scene.preference.pk,
            "number": 1,
            "digest": self.plan.digest,
            "kind": "csv",
            "account_id": self.scene.account.pk,
            "user_id": self.mia.user_id,
        }
        needed = next(p for p in urlpatterns if p.name == name).pattern.converters
        first = {place: places[place] for place in needed}
        return [
            first | more for more in {"ask": VERDICTS, "prune_export": KINDS, "lesson": self.lessons()}.get(name, [{}])
        ]

    def lessons(self) -> list[dict[str, Any]]:
        return [{"lesson_id": lesson.pk} for lesson in self.scene.lessons.values()]


VERDICTS = [{"verdict": verdict} for verdict in ("reject", "edit", "release")]
KINDS = [{"kind": "csv"}, {"kind": "ndjson"}]


def furnish(scene: Scene) -> Store:
    """What the scene lacks: versions of the preference, a plan, a second opinion and work to judge."""
    reword(scene.preference, "I prefer long answers.", "I prefer tables.")
    ana = person(get_user_model().objects.get(username="ana").pk, "ana")
    second_opinion.request(scene.lessons["vague"].pk, ana, Verdict.REJECT)
    mia = person(get_user_model().objects.get(username="mia").pk, "mia")
    judged = {"account_id": scene.account.pk, "severity": 0.5, "since": timezone.now()}
    work = scene.work["unjudged"].pk
    questions.ask([questions.Question(kind=ReviewKind.OUTCOME_NEEDED, subject=work, **judged)])
    item = ReviewItem.objects.get(kind=ReviewKind.NEW_LESSON.value)
    return Store(scene=scene, plan=planned().plan, item=item, mia=mia)


def names() -> list[str]:
    """Of every address."""
    return [each.name for each in urlpatterns if isinstance(each, URLPattern) and each.name]


def answers_get(name: str) -> bool:
    """Whether an address is looked at; others are only sent to."""
    view = next(each.callback for each in urlpatterns if each.name == name)
    refusal = view(RequestFactory().trace("/"))  # by its decorator, which names what it would answer
    return "GET" in refusal.headers["Allow"]


def addresses(store: Store, *without: str, ways: int | None = None) -> list[str]:
    """The address of every page, in every way to look at it or in so many; `without` names pages to leave out."""
    looked_at = [name for name in names() if answers_get(name) and name not in without]
    return [
        f"{reverse(f'review:{name}', kwargs=kwargs)}{'?' if query else ''}{query}"
        for name in looked_at
        for kwargs in store.arguments(name)
        for query in store.queries(name)[-(ways or 0) :]
    ]
