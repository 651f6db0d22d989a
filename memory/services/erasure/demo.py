"""Taking the demo store back: everything that it made and that was made from it, and nothing else."""

from collections import Counter
from uuid import UUID

from django.contrib.auth import get_user_model

from memory.models import (
    ApiKey,
    Fact,
    Interaction,
    Lesson,
    Membership,
    Preference,
    Project,
    ReviewItem,
    Session,
    Task,
)
from memory.models.vocabulary import Origin
from memory.services.demo import story
from memory.services.erasure.account import erase_account, erase_project
from memory.services.erasure.archive import archived_lessons
from memory.services.erasure.companions import evaluate
from memory.services.erasure.fact import erase_facts
from memory.services.erasure.interaction import erase_interactions
from memory.services.erasure.lesson import erase_lessons
from memory.services.erasure.preference import erase_preferences
from memory.services.erasure.rows import delete


def erase_demo(subject: UUID, counts: Counter[str]) -> None:
    """What `seed_demo` put into this account, with what people and agents made of it since.

    The account itself goes too, unless somebody has a key or a role in it.
    """
    work = Interaction.objects.filter(account=subject, idempotency_key__startswith=story.MARK)
    erase_interactions(list(work.values_list("pk", flat=True)), counts)
    lessons = list(Lesson.objects.filter(origin=Origin.SEEDED.value).values_list("pk", flat=True))
    merged = archived_lessons("origin", [Origin.SEEDED.value])
    evaluate(erase_lessons([*lessons, *merged], counts))
    delete(counts, "write_refusal", "path = ANY(%s)", [story.PATH])
    delete(counts, "import_run", "name = ANY(%s)", [story.RUN])
    _forget_person(counts)
    others = Membership.objects.filter(account=subject).exists()
    if not others and not ApiKey.objects.filter(account=subject).exclude(name__startswith=story.KEY).exists():
        erase_account(subject, counts)
    else:
        _clear(subject, counts)


def _forget_person(counts: Counter[str]) -> None:
    """Her decisions went with what they were about; somebody may have given her other questions."""
    ana = get_user_model().objects.filter(username=story.PERSON)
    ReviewItem.objects.filter(assigned_to__in=ana).update(assigned_to=None)
    ReviewItem.objects.filter(claimed_by__in=ana).update(claimed_by=None, claim_expires_at=None)
    for model, n in ana.delete()[1].items():
        counts[model] += n


def _clear(account: UUID, counts: Counter[str]) -> None:
    """What the story put beside its work, where others use it not."""
    preferences = Preference.objects.filter(account=account, key__in=[key for _, key, _ in story.PREFERENCES])
    erase_preferences(list(preferences.values_list("pk", flat=True)), counts)
    facts = Fact.objects.filter(account=account, key__in=[key for key, _ in story.FACTS])
    erase_facts(list(facts.values_list("pk", flat=True)), counts)
    sessions = Session.objects.filter(account=account, external_id__in={s.session for s in story.read_steps()} - {None})
    idle = list(sessions.filter(interaction__isnull=True).values_list("pk", flat=True))
    for table in ("session_turn_claim", "session_project_summary"):
        delete(counts, table, "session_id = ANY(%s)", idle)
    delete(counts, "session", "id = ANY(%s)", idle)
    for project in Project.objects.filter(account=account, slug__in=story.PROJECTS):
        if not any(model.objects.filter(project=project).exists() for model in (Interaction, Fact, Task, Session)):
            erase_project(project.pk, counts)
    keys = ApiKey.objects.filter(account=account, name__startswith=story.KEY, interaction__isnull=True)
    delete(counts, "api_key", "id = ANY(%s)", list(keys.values_list("pk", flat=True)))
