"""Is the store sound? Each finding says what is wrong and what to do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from memory.embedding.active import usable_space
from memory.errors import EmbeddingUnavailable
from memory.models import EmbeddingSpace, JobRun, LessonTombstone, Outcome
from memory.models.sql import fetch
from memory.rules.claim import SIGNATURE_VERSION
from memory.services import schema, tombstone
from memory.services.repair import unjudged, unsearchable
from memory.services.space import INDEXED_STATES, index_name, parked, unembedded
from memory.services.standing import differences
from memory.services.tombstone import mac_key_id

LATE = timedelta(minutes=5)
SHOWN = 5  # ids that a finding names


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: str
    ok: bool
    detail: str  # what was found
    remedy: str = ""  # what to do, if anything


def _migrations() -> Finding:
    executor = MigrationExecutor(connection)
    waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    return Finding(
        check="migrations",
        ok=not waiting,
        detail=f"{waiting} not applied" if waiting else "all applied",
        remedy="Run 'manage.py migrate'." if waiting else "",
    )


def _schema() -> Finding:
    missing = schema.missing()
    return Finding(
        check="schema",
        ok=not missing,
        detail=f"not as the migrations made it: {'; '.join(missing)}" if missing else "as the migrations made it",
        remedy="Restore from a whole dump: rules of the store are not enforced." if missing else "",
    )


def _embedding() -> Finding:
    try:
        space = usable_space()
    except EmbeddingUnavailable as refusal:
        return Finding(
            check="embedding", ok=False, detail=refusal.detail, remedy="Retrieval uses words alone until then."
        )
    return Finding(check="embedding", ok=True, detail=f"{space} is active")


def _indexes() -> Finding:
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    names = [index_name(space, state) for state in INDEXED_STATES] if space else []
    valid = {name for (name,) in fetch("SELECT indexrelid::regclass::text FROM pg_index WHERE indisvalid")}
    broken = [name for name in names if name not in valid]
    return Finding(
        check="vector indexes",
        ok=not broken,
        detail=f"missing or invalid: {', '.join(broken)}" if broken else f"{len(names)} valid",
        remedy="Run 'manage.py reembed'." if broken else "",
    )


def _vectors() -> Finding:
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    missing = set(unembedded(space).values_list("pk", flat=True)) if space else set()
    refused = sorted(str(pk) for pk in missing & parked(space)) if space and missing else []
    detail, remedy = f"{len(missing)} lessons have no vector in the active space", ""
    if missing:
        remedy = "A worker embeds them in the background; 'manage.py reembed' does it now."
    if refused:
        shown = ", ".join(refused[:SHOWN]) + (", ..." if len(refused) > SHOWN else "")
        detail += f", {len(refused)} of them because the model refused their text: {shown}"
        remedy += " What is refused is tried again every hour; the model server's log has the reason."
    return Finding(
        check="vectors", ok=not missing, detail=detail if missing else "every lesson has its vector", remedy=remedy
    )


def _search_columns() -> Finding:
    wrong = sum(map(len, unsearchable()))
    return Finding(
        check="search columns",
        ok=not wrong,
        detail=f"{wrong} lessons cannot be found by the code they name"
        if wrong
        else "every lesson is found by its words",
        remedy="Run 'manage.py doctor --repair'." if wrong else "",
    )


def _standings() -> Finding:
    missing = unjudged()
    return Finding(
        check="standings",
        ok=not missing,
        detail=f"{missing} lessons with evidence have no standing" if missing else "every lesson with evidence has one",
        remedy="Run 'manage.py rebuild_standing'." if missing else "",
    )


def _uncredited() -> Finding:
    late = Outcome.objects.filter(credited_at__isnull=True, created_at__lt=timezone.now() - LATE).count()
    return Finding(
        check="credit",
        ok=not late,
        detail=f"{late} outcomes have waited for more than 5 minutes" if late else "no outcome waits",
        remedy="Start a Celery worker and beat; the sweep credits them." if late else "",
    )


def _sums() -> Finding:
    found = differences()
    return Finding(
        check="sums",
        ok=not found,
        detail=f"{len(found)} sums differ from their rows" if found else "every running sum equals its rebuild",
        remedy="Run 'manage.py rebuild_standing'." if found else "",
    )


def _tombstones() -> Finding:
    foreign = LessonTombstone.objects.exclude(mac_key_id=mac_key_id()).count()
    old = LessonTombstone.objects.filter(mac_key_id=mac_key_id()).exclude(signature_version=SIGNATURE_VERSION).count()
    details, remedies = [], []
    if foreign:
        details.append(f"{foreign} are signed by another key and refuse on similarity alone")
        remedies.append("Restore the SECRET_KEY that they were written with.")
    if old:
        details.append(f"{old} have a signature of another version and refuse on similarity alone")
        remedies.append("They refuse too much rather than too little; nothing is lost.")
    return Finding(
        check="tombstones", ok=not details, detail="; ".join(details) or "all readable", remedy=" ".join(remedies)
    )


def _tombstone_vectors() -> Finding:
    """What cannot be mended, because the lesson is gone, is told and is no trouble: nobody can do anything about it."""
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    left = tombstone.left_behind(space) if space else 0
    mendable = tombstone.that_can_follow(space) if space else 0
    detail = "all have a vector in the active space"
    if left:
        detail = f"{left} have no vector in the active space and refuse their very words only, no paraphrase"
    return Finding(
        check="tombstone vectors",
        ok=not mendable,
        detail=f"{detail}; {mendable} of them can get theirs" if mendable else detail,
        remedy="Run 'manage.py doctor --repair'." if mendable else "",
    )


def _states() -> Finding:
    """A quarantined lesson has its tombstone, and no other lesson has one of that reason."""
    ((wrong,),) = fetch(
        """
        SELECT count(*) FROM lesson l
        WHERE (l.state = 'quarantined') <> EXISTS (
            SELECT 1 FROM lesson_tombstone t
            WHERE t.text_sha256 = l.text_sha256 AND t.account_id IS NOT DISTINCT FROM l.account_id
                AND (t.reason = 'quarantined' OR l.state = 'quarantined')
        )
        """
    )
    return Finding(
        check="quarantine",
        ok=not wrong,
        detail=f"{wrong} lessons disagree with their tombstones" if wrong else "states and tombstones agree",
        remedy="Report this: no supported path leads here." if wrong else "",
    )


def _jobs() -> Finding:
    failed = JobRun.objects.filter(outcome="failed", started_at__gt=timezone.now() - timedelta(days=1))
    names = sorted(set(failed.values_list("job", flat=True)))
    return Finding(
        check="scheduled jobs",
        ok=not names,
        detail=f"failed in the last day: {', '.join(names)}" if names else "none failed in the last day",
        remedy="The worker's log has the error." if names else "",
    )


CHECKS: tuple[Callable[[], Finding], ...] = (
    _migrations,
    _schema,
    _embedding,
    _indexes,
    _vectors,
    _search_columns,
    _uncredited,
    _sums,
    _standings,
    _states,
    _tombstones,
    _tombstone_vectors,
    _jobs,
)


def examine() -> Iterator[Finding]:
    """Runs every check; stops after the first if the schema itself is not there."""
    for check in CHECKS:
        finding = check()
        yield finding
        if finding.check == "migrations" and not finding.ok:
            return
