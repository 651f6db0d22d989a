"""A replay as a report: agreement first, then what would have been otherwise, lesson by lesson."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from evaluation.replay.result import Course, Decision, ReplayResult, Servings
from evaluation.report import Cell, Figure, Report, Table

MOST_LESSONS: Final = 200  # rows of the table: a page is to be read

HOW: Final = (
    "The log was gone through once, in the order in which outcomes were credited, with corrections and people's "
    "decisions where they happened. The sums were kept as they stood at each moment, and each lesson was judged on "
    "every occasion on which the store judged it, by the product's own rules with the constants named here. What "
    "people decided, and what the clock lifted, was taken as it was. Two decisions are the same if they moved the same "
    "lesson the same way after the same credited interaction. Servings are those of the log: each was asked whether "
    "the replayed policy, as it then stood, would have handed the lesson out."
)
LIMITS: Final = (
    "The log was made under the policy that was in force. A serving that did not happen has no outcome, and one that "
    "would not have happened has an outcome that the replayed policy would never have seen: the longer the two "
    "disagree, the less the rest of the replay tells.",
    "Which lesson would have taken the place of one that is held back, and what would have come of it, is not known.",
    "Work that was erased is gone, and rows that a merge moved are told as if they had always been the kept lesson's.",
    "The store's own constants are taken to have been the same for the whole of the log.",
    "Where servings are counted, the small sample that probation would let through is left out of account; the samples "
    "that it did let through count as such.",
    "Band rates that the store measures (SONDER_LIVE_BANDS) are taken as they are today.",
)


def report(found: Sequence[ReplayResult], *, command: str, made_at: str, took_s: float) -> Report:
    """One report of all scopes that were replayed; there is at least one."""
    first = found[0]
    courses = {lesson: course for result in found for lesson, course in result.courses.items()}
    since = first.scope.since
    return Report(
        name="replay",
        title="The log again, under other rules",
        question="What would this policy with these constants have decided over this store's own log, and when?",
        answer=_answer(first, courses),
        command=command,
        made_at=made_at,
        took_s=took_s,
        parameters={
            "policy": first.policy,
            **first.constants,
            "in force": "yes" if first.is_own else "no",
            "since": since.date().isoformat() if since else "the beginning",
            "credited interactions": sum(result.credits for result in found),
            "corrections": sum(result.corrections for result in found),
            "lessons with evidence": sum(result.lessons for result in found),
            "decisions of people and the clock": sum(result.given for result in found),
            "merges": sum(result.merges for result in found),
        },
        figures=_figures(first, courses),
        how=HOW,
        limits=LIMITS,
        tables=_tables(courses),
    )


def _answer(first: ReplayResult, courses: dict[UUID, Course]) -> str:
    same, decided, replayed = _agreement(courses)
    if first.is_own:
        if same == decided == replayed:
            return f"This is what is in force, and the replay reproduces all {decided} decisions of the store's policy."
        return (
            f"This is what is in force, and the replay reproduces {same} of {decided} decisions and makes "
            f"{replayed - same} others: constants were changed meanwhile, or rows were erased or merged."
        )
    only, spared = _n(courses, False, True), _n(courses, True, False)
    earlier, later = _sooner(courses)
    withheld = _total(course.withheld for course in courses.values())
    return (
        f"It would have quarantined {_count(only, 'lesson')} that the store's policy never did, spared {spared} that "
        f"it did, and quarantined {earlier} earlier and {later} later. Of the servings that happened it would have "
        f"held back {withheld.n:,}, {withheld.lost} of them lost and {withheld.won} won."
    )


def _figures(first: ReplayResult, courses: dict[UUID, Course]) -> tuple[Figure, ...]:
    same, decided, replayed = _agreement(courses)
    earlier, later = _sooner(courses)
    withheld = _total(course.withheld for course in courses.values())
    served = _total(course.served for course in courses.values())
    met = same == decided == replayed if first.is_own else None
    bar = "" if met is None else f"all {decided}, and no other"
    return (
        Figure(key="same", label="decisions that both make at the same moment", value=same, bar=bar, met=met),
        Figure(key="decided", label="decisions of the store's policy", value=decided),
        Figure(key="replayed", label="decisions of the replayed policy", value=replayed),
        Figure(key="both", label="lessons that both quarantine at some time", value=_n(courses, True, True)),
        Figure(key="earlier", label="of these, first by the replayed policy", value=earlier),
        Figure(key="later", label="of these, first by the store's policy", value=later),
        Figure(key="only_decided", label="lessons that only the store's policy did", value=_n(courses, True, False)),
        Figure(key="only_replayed", label="lessons that only the replayed one does", value=_n(courses, False, True)),
        Figure(key="withheld", label="servings that the replayed policy would have held back", value=withheld.n),
        Figure(key="withheld_lost", label="of these, lost", value=withheld.lost),
        Figure(key="withheld_won", label="of these, won", value=withheld.won),
        Figure(key="served", label="servings held back that it would have handed out", value=served.n),
    )


def _agreement(courses: dict[UUID, Course]) -> tuple[int, int, int]:
    """Decisions that both make, that the store's policy made, and that the replayed one makes."""
    same = sum(len(set(course.decided) & set(course.replayed)) for course in courses.values())
    decided = sum(len(course.decided) for course in courses.values())
    return same, decided, sum(len(course.replayed) for course in courses.values())


def _lessons(courses: dict[UUID, Course], *, decided: bool, replayed: bool) -> list[UUID]:
    """Lessons that were ever quarantined by exactly these."""
    return [
        lesson for lesson, c in courses.items() if (c.entered(c.decided), c.entered(c.replayed)) == (decided, replayed)
    ]


def _sooner(courses: dict[UUID, Course]) -> tuple[int, int]:
    """Lessons that both quarantine: how many the replayed policy did at an earlier credit, and how many at a later."""
    firsts = [
        tuple(next(d.credit_seq for d in part if d.kind == "entered") for part in (course.replayed, course.decided))
        for course in courses.values()
        if course.entered(course.decided) and course.entered(course.replayed)
    ]
    return sum(new < old for new, old in firsts), sum(new > old for new, old in firsts)


def _n(courses: dict[UUID, Course], decided: bool, replayed: bool) -> int:
    return len(_lessons(courses, decided=decided, replayed=replayed))


def _total(parts: Iterator[Servings]) -> Servings:
    total = Servings()
    for part in parts:
        total.won += part.won
        total.lost += part.lost
        total.unjudged += part.unjudged
    return total


def _tables(courses: dict[UUID, Course]) -> tuple[Table, ...]:
    """The lessons about which the two differ most come first."""
    told = {lesson: course for lesson, course in courses.items() if course.decided or course.replayed}
    order = sorted(told, key=lambda lesson: (told[lesson].agrees, -told[lesson].withheld.n, lesson))
    rows = tuple(_row(lesson, told[lesson]) for lesson in order[:MOST_LESSONS])
    left = len(order) - len(rows)
    return (
        Table(
            title="Lesson by lesson",
            columns=("lesson", "decided", "replayed", "held back", "of these lost", "won", "handed out instead"),
            rows=rows,
            note="When it went in and came out, with the number of the interaction that had been credited last. Held "
            "back: servings that happened. Handed out instead: servings that were held back."
            + (f" {_count(left, 'lesson')} more are not shown; --since narrows the replay." if left else ""),
        ),
    )


def _row(lesson: UUID, course: Course) -> tuple[Cell, ...]:
    held = course.withheld
    return (str(lesson), _told(course.decided), _told(course.replayed), held.n, held.lost, held.won, course.served.n)


def _told(decisions: Sequence[Decision]) -> str:
    words = {"entered": "in", "left": "out"}
    parts = [f"{words[d.kind]} {d.at.date().isoformat()} (#{d.credit_seq:,})" for d in decisions]
    return ", ".join(parts) or "never in"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what if n == 1 else what + 's'}"
