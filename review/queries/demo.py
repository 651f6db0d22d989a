"""What of the demo store is there to try, as far as nobody has changed it yet."""

from memory.models import Contradiction, Lesson, LessonStanding, Preference, PrunePlan, ReviewItem
from memory.models.vocabulary import LessonState, Origin, ReviewKind, ReviewStatus
from memory.services.demo import story


def quarantined() -> Lesson | None:
    """The quarantined lesson that was handed out most often."""
    kept_out = LessonStanding.objects.filter(lesson__origin=Origin.SEEDED, lesson__state=LessonState.QUARANTINED)
    standing = kept_out.select_related("lesson").order_by("-losses", "pk").first()
    return standing.lesson if standing else None


def on_trial() -> Lesson | None:
    """The lesson that a coin is deciding about."""
    tested = LessonStanding.objects.filter(lesson__origin=Origin.SEEDED, on_trial=True)
    standing = tested.select_related("lesson").order_by("pk").first()
    return standing.lesson if standing else None


def questions() -> dict[str, int]:
    """How many questions of each kind are open, in the whole store."""
    kinds = list(ReviewItem.objects.filter(status=ReviewStatus.OPEN.value).values_list("kind", flat=True))
    return {kind: kinds.count(kind) for kind in ReviewKind.values}


def contradiction() -> Contradiction | None:
    """A pair that nobody has decided."""
    seeded = Lesson.objects.filter(origin=Origin.SEEDED).values("pk")
    return Contradiction.objects.filter(verdict__isnull=True, first__in=seeded).order_by("pk").first()


def plan() -> PrunePlan | None:
    """The latest plan that was not applied."""
    return PrunePlan.objects.filter(applied_at__isnull=True).order_by("-pk").first()


def preference() -> Preference | None:
    """The preference with a history."""
    mine = Preference.objects.filter(account__slug=story.ACCOUNT, key=story.PREFERENCES[0][1])
    return mine.filter(revision__gt=1).first()
