"""What happens behind the pages while somebody looks at them."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.models import Account, EmbeddingSpace, Lesson, Preference, PrunePlan, RefinementHistory
from memory.models.vocabulary import Origin, ReviewKind
from memory.services import pruning
from memory.services.lesson import NewLesson, flag, store
from memory.services.preference import Refinement, refine
from tests.browser.scene import people
from tests.services.near import place


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """The people, one lesson in service that somebody should look at, and one preference."""

    lesson: Lesson
    preference: Preference


def sparse(account: Account) -> Sparse:
    """What most tests of forms need, without the work that a whole scene is made of."""
    people(account)
    lesson = _lesson("Pass `timeout=10` to every `requests.get()` call.")
    flag(lesson, ReviewKind.NEW_LESSON)
    preference = Preference.objects.create(
        account=account, scope="global", key="answer-language", text="I prefer short answers in plain English.",
        confidence=0.5, evidence_count=1, enabled=True, revision=1,
    )  # fmt: skip
    return Sparse(lesson=lesson, preference=preference)


def reword(preference: Preference, *texts: str, actor: str = "api_key:abcd1234") -> list[RefinementHistory]:
    """An agent refines a preference to each of these texts in turn."""
    made = []
    for text in texts:
        preference.refresh_from_db()
        proposal = Refinement(
            expected_version=preference.revision,
            changes={"text": text},
            evidence=[{"kind": "note", "text": f"Because of “{text[:40]}”."}],
            expected_outcome="Fewer questions back.",
        )
        made.append(refine(preference.account_id, preference.pk, proposal, actor))
    preference.refresh_from_db()
    return made


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan of two groups, as it was made."""

    plan: PrunePlan
    kept: Sequence[Lesson]
    going: Sequence[Lesson]

    @property
    def path(self) -> str:
        return f"/review/prune/{self.plan.digest}/"


def planned() -> Planned:
    """Twice two lessons that say the same; of each two the longer text is kept."""
    space = EmbeddingSpace.objects.get(is_active=True)
    kept, going = [], []
    for axis in (0, 1):
        kept.append(_lesson(f"Close each `cursor_{axis}` before its connection goes back to the pool."))
        going.append(_lesson(f"Close `cursor_{axis}` before the connection goes to its pool."))
        place(kept[-1], space, 0.99, axis)
        place(going[-1], space, 0.985, axis)
    plan = pruning.current(None)
    assert {member["lesson"] for cluster in plan.clusters for member in cluster["members"]} == {
        str(lesson.pk) for lesson in going
    }
    return Planned(plan=plan, kept=kept, going=going)


def _lesson(text: str) -> Lesson:
    made = store(NewLesson(text=text, origin=Origin.IMPORTED, path="test", actor="system")).lesson
    assert made is not None, text
    return made
