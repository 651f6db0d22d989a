"""The report of speed and scale: its bars, its page, and how one run adds to another. Nothing here is timed."""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.performance.bars import ROWS, verdicts
from evaluation.performance.corpus import Tasks
from evaluation.performance.finding import Bar, Finding, compared
from evaluation.performance.machine import Machine
from evaluation.performance.peer import Near, Peer, varied
from evaluation.performance.record import Group, merged, read
from evaluation.performance.report import page, save
from evaluation.performance.steps import MEASUREMENTS, sizes
from evaluation.performance.timing import Estimate

MACHINE = Machine(
    cores=2, memory_gb=24.0, system="Linux", python="3.11.7", postgresql="18.4", pgvector="0.8.5",
    shared_buffers="256MB", fdatasync_ms=0.5,
)  # fmt: skip


def finding(key: str, value: float, bar: Bar | None, lessons: int = 10_000) -> Finding:
    exact = Estimate(value=value, low=value, high=value)
    return Finding(key=key, lessons=lessons, what=f"what {key} is", result=exact, unit="x", bar=bar)


def group(name: str, *findings: Finding, day: str = "2026-01-05") -> Group:
    return Group(
        name=name,
        lessons=findings[0].lessons,
        measured_at=f"{day}T10:00:00+00:00",
        took_s=2.0,
        machine=MACHINE,
        findings=findings,
    )


MET = finding("meaning.speed", 1.2, Bar(limit=1.3))
MISSED = finding("hybrid.fused", 3.6, Bar(limit=3.0), lessons=100_000)
WORSE = finding("hybrid.fused", 6.0, Bar(limit=4.0), lessons=1_000_000)
TOLD = finding("hybrid.find", 9.0, None)


def test_a_bar_is_met_only_where_every_size_meets_it() -> None:
    by_name = {verdict.row.name: verdict for verdict in verdicts([MET, MISSED, WORSE, TOLD])}
    assert by_name["meaning"].met is True
    assert by_name["hybrid"].met is False
    assert by_name["hybrid"].missed == (WORSE, MISSED)
    assert by_name["hybrid"].sizes == (100_000, 1_000_000)
    assert by_name["peers"].met is None


@pytest.mark.parametrize(
    ("bar", "value", "used"),
    [
        (Bar(limit=2.0), 1.0, 0.5),
        (Bar(limit=0.5, at_least=True), 1.0, 0.5),
        (Bar(limit=0.0), 0.0, 0.0),
        (Bar(limit=0.0), 3.0, float("inf")),
        (Bar(limit=0.5, at_least=True), 0.0, float("inf")),
    ],
)
def test_what_a_bar_allows_is_used_up_at_its_limit(bar: Bar, value: float, used: float) -> None:
    assert bar.used(value) == used
    assert bar.met(value) == (used <= 1)


def test_the_page_opens_with_one_line_for_each_bar_and_says_by_how_much_one_is_missed() -> None:
    text = page([group("meaning", MET), group("hybrid", MISSED)])
    opening = text.partition("## ")[0]
    assert "1 of 2 bars met" in opening
    lines = [line for line in opening.splitlines() if line.startswith("| ")][2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == [row.what for row in ROWS]
    hybrid = next(line for line in lines if "Both searches" in line)
    assert "**no**" in hybrid
    assert "3.6x, at most 3x" in hybrid
    assert "`make bench-peers` measures it" in text


def test_what_was_written_is_read_again_and_makes_the_same_page(tmp_path: Path) -> None:
    groups = [group("meaning", MET), group("hybrid", MISSED, TOLD)]
    told = save(groups, tmp_path)
    assert read(tmp_path) == groups
    assert page(read(tmp_path)) == told == (tmp_path / "performance.md").read_text(encoding="utf-8")


def test_where_nothing_was_measured_yet_there_are_no_groups(tmp_path: Path) -> None:
    assert read(tmp_path) == []


def test_a_run_replaces_what_it_measured_at_its_size_and_keeps_the_rest() -> None:
    kept = [group("meaning", MET), group("hybrid", MISSED)]
    million = group("hybrid", WORSE, day="2026-02-01")
    again = group("meaning", replace(MET, result=Estimate(value=1.1, low=1.0, high=1.2)), day="2026-02-01")
    assert merged(merged(kept, million), again) == [again, kept[1], million]


def test_a_page_of_two_machines_says_what_each_has_measured() -> None:
    faster = replace(group("hybrid", MISSED), machine=replace(MACHINE, cores=8, fdatasync_ms=0.1))
    text = page([group("meaning", MET), faster])
    assert "2 cores" in text
    assert "8 cores" in text
    assert "Measured here: 100,000 lessons." in text


def test_our_seconds_are_told_as_a_multiple_of_the_floor() -> None:
    told = compared(10, "meaning.speed", "this", ours=np.full(20, 0.003), floor=np.full(20, 0.002), against="that")
    assert told.result.value == pytest.approx(1.5)
    assert (told.floor_ms, told.ours_ms) == (pytest.approx(2.0), pytest.approx(3.0))
    assert told.met is None


def test_sizes_can_be_chosen_and_a_full_run_adds_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_FULL", raising=False)
    monkeypatch.setenv("BENCH_SIZES", "10000,1000")
    assert sizes() == [1_000, 10_000]
    assert MEASUREMENTS["credit"].shapes()[0].usage_rows == 1_000_000
    monkeypatch.setitem(os.environ, "BENCH_FULL", "1")
    assert sizes() == [1_000, 10_000, 1_000_000]
    assert MEASUREMENTS["credit"].shapes()[-1].usage_rows == 10_000_000


class Shelf(Peer):
    """A store of three lessons, one of which has no vector to give back."""

    name, effort, words = "shelf", 1, "an index"

    def __init__(self) -> None:
        self.tasks = Tasks(texts=["a task"], vectors=np.eye(1, 3, dtype=np.float32))
        self.min_similarity = 0.4
        self.written: list[list[str]] = []

    def near(self, name: str, cosine: float) -> Near:
        vector = np.array([cosine, (1 - cosine**2) ** 0.5, 0.0], dtype=np.float32)
        return Near(id=name, text=name, cosine=cosine, vector=vector)

    def candidates(self, i: int) -> list[Near]:
        return [self.near("first", 0.9), self.near("second", 0.6), self.near("far", 0.3)]

    def worded(self, i: int) -> list[str]:
        return ["second", "worded"]

    def get(self, i: int, ids: Collection[str]) -> list[Near]:
        return [self.near(name, 0.5) for name in ids]

    def record(self, task: str, chosen: Sequence[Near]) -> None:
        self.written.append([each.id for each in chosen])

    def fill(self, lessons: Any) -> None: ...
    def try_harder(self, effort: int) -> None: ...
    def nearest(self, i: int) -> list[str]:
        return []

    def filtered(self, i: int) -> list[str]:
        return []

    def close(self) -> None: ...


def test_the_work_of_a_peer_gates_and_fuses_and_writes_down_what_it_hands_out(settings: Any) -> None:
    settings.SONDER_LAMBDA_MMR = 1.0  # relevance alone
    shelf = Shelf()
    shelf.work(0, words=False)
    shelf.work(0, words=True)
    assert shelf.written == [["first", "second"], ["first", "second", "worded"]]


def test_an_answer_without_vectors_is_the_first_in_order() -> None:
    pool = [Near(id=str(n), text="", cosine=0.5, vector=None) for n in range(9)]
    assert [each.id for each in varied(pool)] == ["0", "1", "2", "3", "4"]


def test_the_peers_share_every_version_with_the_product_and_name_no_index() -> None:
    root = Path(__file__).parents[2]
    ours, theirs = (
        dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", (root / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "evaluation/performance/peers.lock")
    )
    assert {"chromadb", "langgraph-checkpoint-postgres"} <= theirs.keys() - ours.keys()
    assert {name: theirs[name] for name in ours.keys() & theirs.keys()} == {
        name: ours[name] for name in ours.keys() & theirs.keys()
    }
    assert "index-url" not in (root / "evaluation/performance/peers.lock").read_text(encoding="utf-8")
