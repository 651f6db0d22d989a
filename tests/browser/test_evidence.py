"""Evidence as it is read: the numbers that were computed by hand, and no record that leaves a page blank or broken."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from playwright.sync_api import Page

from memory.models import LessonStanding
from memory.services.policies import policy
from review.queries import lesson as queries
from tests.browser.conftest import Visitor
from tests.browser.scene import Scene

Enter = Callable[..., Visitor]
GOLDEN = (14, 40, 0.18)
#: Losses, judged servings, and the share that similar work loses without the lesson.
RECORDS = [
    (0, 0, 0.18), (3, 5, 0.18), (0, 40, 0.18), (40, 40, 0.18), (0, 40, 0.0), (5, 40, 0.0), (40, 40, 1.0), (39, 40, 1.0),
    (30, 10_000_000, 0.000001), (9_999_970, 10_000_000, 0.999999),
]  # fmt: skip
BROKEN = """main => {
  const bad = /\\b(NaN|nan|None(?!\\.)|null|undefined|Infinity|inf)\\b/;
  const attributes = [...main.querySelectorAll("svg *")].flatMap((e) => [...e.attributes].map((a) => a.value));
  const shown = [...main.querySelectorAll("svg")].filter((e) => e.checkVisibility());
  return [
    ...(bad.test(main.innerText) ? [main.innerText.match(new RegExp(".{0,60}" + bad.source + ".{0,30}", "s"))[0]] : []),
    ...attributes.filter((value) => /\\b(nan|infinity|inf)\\b/i.test(value)),
    ...shown.filter((e) => !e.closest("button, a, .chip, summary") && e.getBoundingClientRect().height < 10)
      .map((e) => "an empty picture: " + e.outerHTML.slice(0, 120)),
    ...[...main.querySelectorAll("p:not([hidden]), td, th, li, dd, h2")]
      .filter((e) => e.checkVisibility() && !e.textContent.trim() && !e.children.length && e.matches("p, dd, h2, li"))
      .map((e) => "empty: " + e.outerHTML),
  ];
}"""


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, scene: Scene) -> Callable[..., None]:
    """Sets what the harmful lesson's record is, under either policy."""
    real = queries.evidence_of
    now: dict[str, tuple[int, int, float]] = {}

    def evidence_of(*asked: Any) -> dict[str, Any]:
        found = real(*asked)
        return {**found, **_figures(found, *now["record"])}

    def put(losses: int, n: int, rate: float) -> None:
        now["record"] = (losses, n, rate)
        standing = LessonStanding.objects.get(pk=scene.lessons["harmful"].pk)
        changed = {**standing.evidence, **_figures(standing.evidence, losses, n, rate)}
        LessonStanding.objects.filter(pk=standing.pk).update(wins=n - losses, losses=losses, evidence=changed)

    monkeypatch.setattr(queries, "evidence_of", evidence_of)
    return put


def _figures(found: Mapping[str, Any], losses: int, n: int, rate: float) -> dict[str, Any]:
    changed: dict[str, Any] = {"losses": losses, "wins": n - losses}
    if found.get("policy") == "reference":
        return changed | {"band": {**found["band"], "rate": rate}}
    shown = {"lost": losses, "n": n, "expected": n * rate}
    return changed | {"with_it": shown, "without_it": {"coin": shown, "quarantine": {"lost": 0, "n": 0, "expected": 0}}}


def table(page: Page, name: str) -> str:
    """The text of a chart's table, opened."""
    figure = page.locator("figure", has=page.locator("figcaption", has_text=name)).first
    figure.locator("summary").click()
    return " ".join(figure.locator("table").inner_text().split())


@pytest.mark.parametrize("name", ["reference", "trial"])
def test_no_record_leaves_a_page_blank_or_broken(
    visitor: Enter, scene: Scene, record: Callable[..., None], settings: Any, name: str
) -> None:
    settings.SONDER_TRUST_POLICY = name
    assert policy().name == name
    lesson, ana = scene.lessons["harmful"], visitor("ana")
    found = {}
    for losses, n, rate in RECORDS:
        record(losses, n, rate)
        for path in (f"/review/lessons/{lesson.pk}/", "/review/quarantine/")[: 2 if name == "reference" else 1]:
            page = ana.visit(path)
            if broken := page.locator("#main").evaluate(BROKEN):
                found[path, losses, n, rate] = broken
    assert found == {}


def test_the_numbers_on_the_page_are_those_that_were_computed(
    visitor: Enter, scene: Scene, record: Callable[..., None], settings: Any
) -> None:
    lesson, ana = scene.lessons["harmful"], visitor("ana")
    record(*GOLDEN)
    page = ana.visit(f"/review/lessons/{lesson.pk}/")
    said = page.locator(".verdict").inner_text()
    assert "Served 40 times, 14 losses." in said
    assert "lose about 7 in 40" in said
    assert "about 1 time in 128 (exact binomial, p = 0.0078)" in said
    assert "Plausible loss rate with it: 22% to 51% (95% Wilson)." in said
    ana.visit("/review/quarantine/")
    row = page.locator("tr", has=page.locator(f"a[href$='{lesson.pk}/']"))
    assert "14 / 40" in row.inner_text()
    assert "22% to 51%" in row.locator("svg.chart").inner_html()

    settings.SONDER_TRUST_POLICY = "trial"
    page = ana.visit(f"/review/lessons/{lesson.pk}/")
    assert "With this lesson 14 of 40 were lost where 7.2 were expected" in page.locator("#main").inner_text()
    assert "With it 14 40 35% 22% to 51% 18%" in table(page, "With it and without it")
    assert "for harm, against doing nothing; free at 50 : 1 or below" in page.locator("#main").inner_text()
    assert page.locator(".decisions .primary").count() == 0, "the page recommends no decision"

    record(3, 5, 0.18)
    said = ana.visit(f"/review/lessons/{lesson.pk}/").locator(".verdict").inner_text()
    assert "Too few servings" in said
    assert "p =" not in said
