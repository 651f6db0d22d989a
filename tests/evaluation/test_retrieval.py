"""Retrieval is measured by the product's own search, in a store of the measurement's own."""

import json
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from evaluation.catalogue import COMMITTED, read
from evaluation.report import Report
from evaluation.retrieval.answers import answer
from evaluation.retrieval.baselines import Baselines
from evaluation.retrieval.run import evaluate
from evaluation.retrieval.scores import bootstrap, found_within, reciprocal_rank, share
from evaluation.retrieval.sets import GLOBAL, of_files
from evaluation.retrieval.shelf import shelf
from memory.errors import Invalid
from memory.models import EmbeddingSpace, Interaction, Lesson, LessonEmbedding, LessonUsage
from memory.rules.calibration import FALSE_RATE, FOLDS, LOST
from memory.search import embed_query, find
from memory.services.everyday import EVERYDAY
from memory.services.labelled import Asked
from tests.services.play import make_callers
from tests.services.test_calibration import THINGS, taught

pytestmark = pytest.mark.django_db
REAL = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def lines(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path, space: EmbeddingSpace) -> dict[str, Any]:
    """Lessons about many things, a task for each, and questions of everyday life."""
    things = THINGS[:15]
    texts = [f"Release the `{thing}` in a `finally` block, once the {thing} has no owner." for thing in things]
    tasks = [f"release the {thing} once its {thing} owner has gone" for thing in things]
    return {
        "lessons": lines(tmp_path / "lessons.jsonl", [{"id": str(i), "text": t} for i, t in enumerate(texts)]),
        "queries": lines(
            tmp_path / "queries.jsonl", [{"query": task, "lesson_id": str(i)} for i, task in enumerate(tasks)]
        ),
        "off_domain": lines(tmp_path / "off_domain.jsonl", [{"query": text} for text in EVERYDAY[:15]]),
        "intents": lines(tmp_path / "intents.jsonl", [{"query": "release the socket"}, {"query": "bake plums"}]),
        "called": "a small set",
        "divisions": 1,
    }


def quiet(done: int, total: int, what: str) -> None:
    """Nobody watches."""


def values(report: Report) -> dict[str, float | None]:
    return {figure.key: figure.value for figure in report.figures}


class TestShelf:
    def test_is_searched_by_the_products_own_retrieval(self, space: EmbeddingSpace) -> None:
        with shelf({"a": "Close the `cursor` before you fork.", "b": "Prefer `pathlib` over `os.path`."}) as made:
            query = embed_query("close the cursor before you fork")
            found = find(
                query.__class__(text=query.text, space=made.space, vector=query.vector), GLOBAL, 5, timezone.now()
            )
        assert [each.ranked.candidate.lesson_id for each in found.chosen] == [made.ids["a"]]

    def test_hides_the_store_and_leaves_it_as_it_was(self, lesson: Any, account: Any) -> None:
        kept = lesson("Close the `cursor` before you fork.")
        before = (self.counts(), self.statistics())
        with shelf({"a": "Prefer `pathlib` over `os.path`."}) as made:
            assert list(Lesson.objects.values_list("pk", flat=True)) == [made.ids["a"]]
            assert made.ids["a"] == uuid5(NAMESPACE_URL, "a"), "the same lessons give the same figures"
            assert LessonEmbedding.objects.get().lesson_id == made.ids["a"]
        assert list(Lesson.objects.values_list("pk", flat=True)) == [kept.pk]
        assert (self.counts(), self.statistics()) == before
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()")
            assert cursor.fetchone() == (0,)

    def test_leaves_the_store_as_it_was_when_something_fails(self, lesson: Any) -> None:
        lesson("Close the `cursor` before you fork.")
        before = self.counts()
        with pytest.raises(RuntimeError, match="on the way"), shelf({"a": "Prefer `pathlib` over `os.path`."}):
            raise RuntimeError("on the way")
        assert self.counts() == before

    def counts(self) -> list[int]:
        return [model.objects.count() for model in (Lesson, LessonEmbedding, LessonUsage, Interaction, EmbeddingSpace)]

    def statistics(self) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'lesson%' ORDER BY 1")
            return cursor.fetchall()


class TestScores:
    def test_a_rank_counts_from_one_and_only_the_first_that_fits_counts(self) -> None:
        a, b, c = (uuid4() for _ in range(3))
        assert [found_within([a, b, c], {b, c}, k) for k in (1, 2)] == [0.0, 1.0]
        assert reciprocal_rank([a, b, c], {b, c}) == 0.5
        assert reciprocal_rank([a], {b}) == 0.0

    def test_a_bootstrap_covers_its_mean_and_gives_the_same_twice(self) -> None:
        found = bootstrap([1.0] * 70 + [0.0] * 8)
        assert found == bootstrap([1.0] * 70 + [0.0] * 8)
        assert found.value == pytest.approx(70 / 78)
        assert 0.8 < found.low < found.value < found.high < 0.97
        with pytest.raises(ValueError, match="No questions"):
            bootstrap([])

    def test_nothing_among_few_is_not_nothing_for_sure(self) -> None:
        assert share(0, 48).high == pytest.approx(0.0741, abs=1e-4)
        assert share(0, 0).value == 0.0

    def test_the_baselines_rank_by_meaning_by_words_and_by_both(self) -> None:
        texts = {"a": "Close the cursor, close the pool.", "b": "Close the file.", "c": "Prefer `pathlib` to strings."}
        with shelf(texts) as made:
            found = Baselines(made.space, GLOBAL).rank(Asked(text="closing cursors", scope=GLOBAL))
            assert Baselines.affordable(GLOBAL)
        assert found.words == (made.ids["a"], made.ids["b"])
        assert set(found.semantic) == set(made.ids.values())
        assert found.fused[0] == found.semantic[0] == made.ids["a"]


class TestReport:
    def test_says_what_is_found_before_and_behind_the_gate(self, files: dict[str, Any]) -> None:
        report = evaluate(files, quiet)
        found = values(report)
        assert found["before.recall5"] == found["after.recall5"] == 100.0
        assert found["after.noise"] == found["in_force.noise"] == 0.0
        assert found["intents"] == 1
        met = {figure.key: figure.met for figure in report.figures if figure.met is not None}
        assert met == {
            "before.recall5": True, "before.mrr": True, "after.recall5": True, "after.noise": True, "intents": False,
        }  # fmt: skip
        assert report.question.startswith("On a small set:")
        assert str(files["lessons"].parent) not in json.dumps(report.to_json())
        self.has_its_tables_and_pictures(report)

    def has_its_tables_and_pictures(self, report: Report) -> None:
        tables = {table.title: table for table in report.tables}
        assert [row[0] for row in tables["Beside simpler searches"].rows][:3] == [
            "meaning alone", "words alone (BM25)", "both, plainly fused",
        ]  # fmt: skip
        assert all(len(row) == len(table.columns) for table in report.tables for row in table.rows)
        assert [row[1] for row in tables["Intents, and the first lesson each is handed"].rows][1] == ""
        (plot,) = report.plots
        assert plot.kind == "steps"
        assert {name for _, name in plot.marks} == {"enough alone", "with two shared words"}
        assert all(sum(series.y) == pytest.approx(100) for series in plot.series)

    def test_a_question_is_answered_behind_gates_that_were_fitted_without_it(self, files: dict[str, Any]) -> None:
        opened = of_files(files["lessons"], files["queries"], files["off_domain"], None)
        with opened as given:
            found = answer(given.evidence, given.space, 2, lambda done, total: None)
        assert len(found.gates) == 2 * FOLDS
        assert all(len(each.fitted) == 2 for each in (*found.tasks, *found.off_domain))

    def test_of_the_store_itself_records_nothing_and_quotes_nobody(
        self, space: EmbeddingSpace, lesson: Any, account: Any
    ) -> None:
        make_callers(account)
        for thing in THINGS[:12]:
            taught(lesson, account, thing)
        before = (LessonUsage.objects.count(), Interaction.objects.count(), Lesson.objects.count())
        report = evaluate(
            {"lessons": None, "queries": None, "off_domain": None, "intents": None, "called": "", "divisions": 1}, quiet
        )
        assert before == (LessonUsage.objects.count(), Interaction.objects.count(), Lesson.objects.count())
        assert values(report)["after.recall5"] == 100.0
        assert "release the" not in json.dumps(report.to_json()).lower()
        assert all(figure.met is None for figure in report.figures)

    @pytest.mark.parametrize("name", ["lessons", "queries", "off_domain"])
    def test_wants_a_whole_set(self, files: dict[str, Any], name: str) -> None:
        with pytest.raises(Invalid, match="A labelled set has"):
            evaluate({**files, name: None}, quiet)

    def test_names_the_line_that_it_cannot_use(self, files: dict[str, Any], tmp_path: Path) -> None:
        strange = lines(tmp_path / "strange.jsonl", [{"query": "x", "lesson_id": "nobody"}])
        with pytest.raises(Invalid, match=r"strange.jsonl, line 1: lessons.jsonl has no lesson nobody"):
            evaluate({**files, "queries": strange}, quiet)
        twice = lines(tmp_path / "twice.jsonl", [{"id": str(n), "text": "Close it."} for n in range(2)])
        with pytest.raises(Invalid, match=r"twice.jsonl, line 2: the lesson is there already"):
            evaluate({**files, "lessons": twice}, quiet)

    def test_of_an_empty_store_is_refused_in_a_sentence(self, space: EmbeddingSpace) -> None:
        with pytest.raises(CommandError, match="Too little to measure with"):
            call_command("evaluate", "retrieval", stdout=StringIO())


def test_the_committed_report_was_made_with_these_constants_and_meets_its_bars() -> None:
    report = read("retrieval", COMMITTED)
    assert report is not None
    parameters = report.parameters
    assert (parameters["false rate"], parameters["lost"], parameters["folds"]) == (FALSE_RATE, LOST, FOLDS)
    assert (parameters["lessons"], parameters["tasks"], parameters["off-domain questions"]) == (604, 78, 48)
    assert [figure.label for figure in report.figures if figure.met is False] == []
    assert sum(figure.met is True for figure in report.figures) == 5
    assert "604 real lessons" in report.question
    assert "/" not in report.command.replace("manage.py", "")


@pytest.mark.skipif(not REAL.is_dir(), reason="the real lessons lie beside the checkout in CI, and not here")
def test_a_part_of_the_real_lessons_is_found_by_the_bundled_model(
    settings: Any, space: EmbeddingSpace, tmp_path: Path
) -> None:
    """Every other task with its lesson, among others: enough for a fit, and for the support of a task to be known."""
    settings.SONDER_EMBEDDING = "local"
    queries = [json.loads(line) for line in (REAL / "queries.jsonl").read_text().splitlines()][::2]
    wanted = {row["lesson_id"] for row in queries}
    lessons = [json.loads(line) for line in (REAL / "lessons.jsonl").read_text().splitlines()]
    some = [row for i, row in enumerate(lessons) if row["id"] in wanted or i % 4 == 0]
    report = evaluate(
        {
            "lessons": lines(tmp_path / "lessons.jsonl", [{"id": row["id"], "text": row["text"]} for row in some]),
            "queries": lines(tmp_path / "queries.jsonl", queries),
            "off_domain": REAL / "off_domain.jsonl",
            "intents": None,
            "called": "",
            "divisions": 1,
        },
        quiet,
    )
    found = values(report)
    assert len(report.plots) == 2, "with the support of tasks"
    assert found["before.recall5"] is not None
    assert found["before.recall5"] >= 90
    assert found["after.recall5"] is not None
    assert found["after.recall5"] >= 85
    assert found["after.noise"] == 0.0
