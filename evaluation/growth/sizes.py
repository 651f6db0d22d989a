"""What a store grows by: bytes of each row, the vector index, and what pages and jobs take, from small to large."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from evaluation.growth import bounds
from evaluation.growth.agents import at_work
from evaluation.growth.comparing import power, sums, usual
from evaluation.growth.stand import Filled, filled, inside, parameters, started
from evaluation.growth.watch import watching
from evaluation.report import Cell, Figure, Progress, Report, Table
from evaluation.running import wait_until

AGENTS: Final = 8
MB: Final = 2**20
PATIENCE_SECONDS: Final = 1800.0
#: Tables that grow with lessons, and those that grow with work.
OF_LESSONS: Final = ("lesson", "lesson_embedding", "lesson_standing")
#: Tables whose rows are removed by themselves, or do not come from work.
PASSING: Final = frozenset({"idempotency_record", "job_run", "django_session", "django_celery_beat_periodictask"})
WAITING: Final[LiteralString] = (
    "SELECT (SELECT count(*) FROM outcome WHERE credited_at IS NULL) "
    "+ (SELECT count(*) FROM lesson_distillation WHERE state IN ('pending', 'claimed', 'retryable'))"
)
TRANSACTIONS: Final[LiteralString] = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
LOG: Final[LiteralString] = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
STEEP: Final = 1.3  # above this power of the size, ten times the lessons take twenty times as long

HOW: Final = """
Stores of synthetic lessons from small to large, each lesson handed out five times. Bytes are what PostgreSQL says of
each table, its long values and each index, after a VACUUM, divided by the rows; those of work are what the database
grew by in loops that agents made over HTTP. The vector index is built anew, once with about half of the memory that it
needs and once with an eighth of the machine's. Pages are looked at five times and give
the median, jobs are run twice and give the second run; a power says how a time grows from the second largest store to
the largest: 0 does not, 1 grows as the store does.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "Texts are synthetic, 10 to 32 words; longer lessons, tasks and answers take more.",
    "Everything was in memory. A store that is larger than memory waits for the disk, which no slope here shows.",
)
Sizes = Mapping[int, Mapping[str, Any]]


def measure(tell: Progress) -> Report:
    """GROWTH_SIZES, and LOOPS of work."""
    began, sizes = time.monotonic(), bounds.numbers("GROWTH_SIZES")
    found: dict[int, dict[str, Any]] = {}
    for done, lessons in enumerate(sizes):
        tell(done, len(sizes) + 1, f"{lessons:,} lessons")
        with filled(lessons, agents=1) as store:
            found[lessons] = {name: inside(store.var, name) for name in ("sized", "costs", "back_up")}
    tell(len(sizes), len(sizes) + 1, "work")
    with filled(sizes[0], agents=AGENTS) as store:
        work = _work(store, bounds.number("LOOPS"))
    return Report(
        name="sizes",
        title=f"Sizes: {sizes[0]:,} to {sizes[-1]:,} lessons",
        question="What does a store grow by, and which pages and jobs take longer the larger it is?",
        answer=_answer(found, work),
        command="make growth ARGS=sizes",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - began, 1),
        parameters={"lessons": max(sizes), "loops of work": bounds.number("LOOPS"), **parameters(store.machine)},
        figures=tuple(_figures(found, work)),
        how=HOW,
        limits=LIMITS,
        tables=(_lessons(found), _of_work(work), _vectors(found), _costs(found), _upkeep(found)),
    )


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a loop adds."""

    tables: Mapping[str, Mapping[str, float]]  # by table: `rows`, bytes of the `table` and of its `indexes`
    transactions: float  # numbers that it takes from PostgreSQL's counter of transactions
    log_bytes: float  # of write-ahead log

    @property
    def bytes(self) -> float:
        """Of what stays."""
        kept = (table for name, table in self.tables.items() if name not in PASSING)
        return sum(table["table"] + table["indexes"] for table in kept)

    def each(self, name: str) -> float:
        """Bytes of one row of a table, with its indexes."""
        table = self.tables[name]
        return (table["table"] + table["indexes"]) / table["rows"]


def _work(store: Filled, loops: int) -> Work:
    """Lets agents work, waits until the worker has done its part, and looks at what came of it."""
    before = inside(store.var, "tables")
    with started(store) as stand, watching(stand.running, every=PATIENCE_SECONDS) as watch:
        began = [watch.ask(statement) for statement in (TRANSACTIONS, LOG)]
        agents = stand.agents(AGENTS)
        with at_work(agents):
            wait_until(lambda: sum(agent.loops for agent in agents) >= loops, PATIENCE_SECONDS)
        done = sum(agent.loops for agent in agents)
        wait_until(lambda: not watch.ask(WAITING), PATIENCE_SECONDS)
        ended = [watch.ask(statement) for statement in (TRANSACTIONS, LOG)]
    after = inside(store.var, "tables")
    transactions, log = ((new - old) / done for new, old in zip(ended, began, strict=True))
    return Work(tables=_added(before, after, done), transactions=transactions, log_bytes=log)


def _added(before: Mapping[str, Any], after: Mapping[str, Any], loops: int) -> dict[str, dict[str, float]]:
    return {
        name: {
            "rows": (table["rows"] - before.get(name, {"rows": 0})["rows"]) / loops,
            **{part: (size - sums(before.get(name, {}))[part]) / loops for part, size in sums(table).items()},
        }
        for name, table in after.items()
    }


def per_lesson(found: Sizes, name: str) -> dict[str, float]:
    """Bytes of each lesson in the largest store: of a table, and of each of its indexes."""
    lessons = max(found)
    table = found[lessons]["sized"]["tables"][name]
    parts = {"table": table["own"] + table["long"], **table["indexes"]}
    return {part: size / lessons for part, size in parts.items()}


def _figures(found: Sizes, work: Work) -> list[Figure]:
    lessons = max(found)
    half, much = found[lessons]["sized"]["vectors"]
    build = half["memory_mb"] * MB / half["spilled_after"] if half["spilled_after"] else None
    whole = {name: sum(per_lesson(found, name).values()) for name in OF_LESSONS if name in _tables(found)}
    steep = _steep(found)
    return [
        _figure("lesson_bytes", "a lesson with its words, vector, standing and indexes", sum(whole.values()), "bytes"),
        _figure("vector_bytes", "of it the vector index", much["bytes"] / much["lessons"], "bytes"),
        _figure("loop_bytes", "a loop: all that it adds and that stays", work.bytes, "bytes"),
        _figure("usage_bytes", "an exposure", work.each("lesson_usage"), "bytes"),
        _figure("interaction_bytes", "an interaction", work.each("interaction"), "bytes"),
        _figure("outcome_bytes", "an outcome", work.each("outcome"), "bytes"),
        _figure("usage_rows", "exposures of a loop", work.tables["lesson_usage"]["rows"], ""),
        _figure("transactions", "transactions of a loop that write", work.transactions, ""),
        _figure("log_bytes", "write-ahead log of a loop", work.log_bytes, "bytes"),
        _figure("build_bytes", "memory to build the vector index in, of each lesson", build, "bytes"),
        _figure("build_power", "power of the number of lessons that building it takes", _build_power(found), ""),
        _figure("build_us", f"building it, of each of {lessons:,} lessons", _build_us(found, lessons), "microseconds"),
        _figure("spilled_us", "the same with half of the memory", half["seconds"] / half["lessons"] * 1e6,
                "microseconds"),
        _figure("steep", f"pages and jobs that grow faster than the store: {', '.join(steep) or 'none'}",
                len(steep), ""),
    ]  # fmt: skip


def _figure(key: str, label: str, value: float | None, unit: str) -> Figure:
    return Figure(key=f"sizes.{key}", label=label, value=None if value is None else _digits(value), unit=unit)


def _build_us(found: Sizes, lessons: int) -> float:
    built = found[lessons]["sized"]["vectors"][-1]
    return float(built["seconds"] / built["lessons"] * 1e6)


def _build_power(found: Sizes) -> float:
    return power(list(found), [one["sized"]["vectors"][-1]["seconds"] for one in found.values()])


def _digits(value: float) -> float:
    """Three of them."""
    return float(f"{value:.3g}")


def _tables(found: Sizes) -> Mapping[str, Any]:
    tables: Mapping[str, Any] = found[max(found)]["sized"]["tables"]
    return tables


def _steep(found: Sizes) -> list[str]:
    """Pages and jobs that take a tenth of a second or more, and grow faster than the store."""
    sizes = list(found)
    times = {name: [usual(found[size]["costs"][name]) for size in sizes] for name in found[sizes[-1]]["costs"]}
    return [name for name, taken in times.items() if taken[-1] > 0.1 and power(sizes, taken) > STEEP]


def _answer(found: Sizes, work: Work) -> str:
    whole = sum(sum(per_lesson(found, name).values()) for name in OF_LESSONS if name in _tables(found))
    steep = _steep(found)
    return (
        f"A lesson takes {whole:,.0f} bytes, a loop {work.bytes:,.0f}; {len(steep)} of "
        f"{len(found[max(found)]['costs'])} pages and jobs grow faster than the store."
    )


def _lessons(found: Sizes) -> Table:
    lessons = max(found)
    rows: list[tuple[Cell, ...]] = []
    for name in OF_LESSONS:
        if name in _tables(found):
            rows += [(f"{name}: {part}", round(size)) for part, size in per_lesson(found, name).items()]
    return Table(title=f"Bytes of a lesson, at {lessons:,}", columns=("what", "bytes of each lesson"), rows=tuple(rows))


def _of_work(work: Work) -> Table:
    rows = sorted(work.tables.items(), key=lambda row: -row[1]["table"] - row[1]["indexes"])
    return Table(
        title="What a loop adds",
        columns=("table", "rows", "bytes of the table", "bytes of its indexes"),
        rows=tuple(
            (name, round(table["rows"], 2), round(table["table"]), round(table["indexes"]))
            for name, table in rows
            if table["rows"] > 0.01
        ),
        note="Idempotency records are kept for a day, job runs for a month; the other rows stay.",
    )


def _vectors(found: Sizes) -> Table:
    rows = [
        (lessons, each["memory_mb"], round(each["seconds"], 1), round(each["seconds"] / each["lessons"] * 1e6),
         round(each["bytes"] / each["lessons"]), each["spilled_after"] or "it did not")
        for lessons, one in found.items()
        for each in one["sized"]["vectors"]
    ]  # fmt: skip
    return Table(
        title="Building the vector index",
        columns=("lessons", "MB to build it in", "seconds", "microseconds a lesson", "bytes a lesson",
                 "outgrew its memory after"),
        rows=tuple(rows),
    )  # fmt: skip


def _costs(found: Sizes) -> Table:
    sizes = list(found)
    last = found[sizes[-1]]["costs"]
    rows = []
    for name in last:
        taken = [usual(found[size]["costs"][name]) for size in sizes]
        told = (round(each * 1000, 1) for each in taken)
        rows.append((name, *told, round(power(sizes, taken), 2), last[name]["statements"],
                     ", ".join(last[name]["scans"]) or "none"))  # fmt: skip
    return Table(
        title="Pages and jobs, ms",
        columns=("what", *(f"{size:,} lessons" for size in sizes), "power", "statements",
                 "large tables read from end to end, in the largest store"),
        rows=tuple(rows),
    )  # fmt: skip


def _upkeep(found: Sizes) -> Table:
    names = list(found[max(found)]["sized"]["upkeep"])
    return Table(
        title="Upkeep",
        columns=("lessons", *(f"VACUUM FREEZE of {name}, s" for name in names), "backup, s", "backup, MB",
                 "words with a known frequency", "share of lessons below which none has"),
        rows=tuple(
            (lessons, *(round(one["sized"]["upkeep"][name], 2) for name in names), round(one["back_up"]["seconds"], 1),
             round(one["back_up"]["bytes"] / MB, 1), one["sized"]["words"]["listed"],
             _digits(one["sized"]["words"]["rarest"]))
            for lessons, one in found.items()
        ),
    )  # fmt: skip
