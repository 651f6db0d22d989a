"""Texts that break pages: markup, right-to-left, emoji, 2,000 characters without a space. On every screen that there is
they are shown as they are, wrapped at every width, and run nothing."""

from collections.abc import Callable
from itertools import pairwise

from memory.models import ApiKey, Comment, Fact, Interaction, Lesson, Project
from memory.models.vocabulary import Verdict
from memory.rules.text import digest
from memory.services.adjudication import decide
from tests.browser.conftest import Visitor
from tests.browser.everywhere import FILES, Store, addresses, furnish
from tests.browser.scene import Scene
from tests.browser.steps import reword
from tests.services.people import decision

Enter = Callable[..., Visitor]
MARKUP = (
    """<script>window.hit = 1</script><img src=x onerror="window.hit=1">"><svg/onload=window.hit=1> & {{ 7|add:7 }}"""
)
REVERSED = "\u202eThis runs from right to left\u202c العربية: استخدم دائمًا المهلة עברית"
EMOJI = "👩‍👩‍👧‍👦🏳️‍🌈🎛️" + "e\u0301" * 40 + "\u200b" * 20
UNBROKEN = "x" * 2000
LONG = "One sentence of many words that goes on and on. " * 41
TEXTS = {
    "harmful": MARKUP,
    "tested": REVERSED,
    "good": UNBROKEN,
    "opposite": "y" + UNBROKEN[1:],
    "waiting": EMOJI + MARKUP,
    "vague": LONG,
}
WIDTHS = (1280, 360, 320)  # the last is 1280 px at 400%
STRANGE = """main => {
  const doubles = [...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, n, all) => all.indexOf(id) !== n);
  return [
    ...(window.hit ? ["a text ran"] : []),
    ...[...main.querySelectorAll("script, img, iframe, object, [onload], [onerror], [style]")].map((e) => e.outerHTML),
    ...doubles.map((id) => "two elements have the id " + id),
  ];
}"""
WIDER = """() => document.documentElement.scrollWidth <= window.innerWidth ? null
  : [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1
      && !e.closest(".scroll-x, .code, .rail ul, [tabindex]")).slice(0, 3).map((e) => e.outerHTML.slice(0, 160))"""


def spoil(store: Store) -> None:
    """Puts such a text wherever the pages show one that somebody has written."""
    for name, lesson in store.scene.lessons.items():
        Lesson.objects.filter(pk=lesson.pk).update(text=TEXTS[name], text_sha256=digest(TEXTS[name]))
    Interaction.objects.update(task=MARKUP + UNBROKEN, response=MARKUP + REVERSED + UNBROKEN, model=MARKUP[:90])
    Project.objects.update(name=MARKUP[:90])
    ApiKey.objects.update(name=MARKUP[:90])
    Fact.objects.update(text=MARKUP)
    reword(store.scene.preference, MARKUP, UNBROKEN[:1000], REVERSED + " " + EMOJI)
    for subject in (store.item.subject, store.scene.contradiction.pk, store.scene.work["unjudged"].pk):
        Comment.objects.create(subject=subject, author_id=store.mia.user_id, text=MARKUP + UNBROKEN)
    note = MARKUP + UNBROKEN[:1800]
    decide(decision(store.mia, Verdict.UPHOLD, store.scene.lessons["harmful"].pk, note=note))


def test_is_shown_as_it_is_and_wrapped_on_every_screen(visitor: Enter, scene: Scene) -> None:
    store = furnish(scene)
    spoil(store)
    mia = visitor("mia")
    found: dict[str, list[str]] = {}
    for address in addresses(store, *FILES, ways=1):
        mia.visit(address)
        if wrong := strange(mia):
            found[address] = wrong
    assert found == {}


def test_is_itself_when_it_is_read_and_compared(visitor: Enter, scene: Scene) -> None:
    store = furnish(scene)
    spoil(store)
    mia = visitor("mia")
    for name in ("harmful", "tested", "waiting"):
        page = mia.visit(f"/review/lessons/{scene.lessons[name].pk}/")
        assert page.locator("h1").evaluate("e => e.textContent").split() == TEXTS[name].split()

    for version, (before, after) in enumerate(pairwise([MARKUP, UNBROKEN[:1000], f"{REVERSED} {EMOJI}"]), start=4):
        path = f"/review/preferences/{scene.preference.pk}/compare/?a={version}&b={version + 1}"
        diff = mia.visit(path).locator(".diff")
        assert [diff.evaluate(WITHOUT, side).split() for side in ("ins", "del")] == [before.split(), after.split()]

    page = mia.visit(f"/review/contradictions/{scene.contradiction.pk}/")
    sides = [page.locator(f"section[aria-labelledby=side-{name}] .directive") for name in "AB"]
    assert {each.evaluate(WITHOUT, "none") for each in sides} == {TEXTS["good"], TEXTS["opposite"]}


def test_is_kept_as_it_is_where_it_met_another(visitor: Enter, scene: Scene) -> None:
    mia, mine = visitor("mia"), MARKUP + UNBROKEN[:800]
    page = mia.visit(f"/review/preferences/{scene.preference.pk}/edit/")
    page.fill("#text", mine)
    page.fill("#note", mine)
    page.fill("#expected_outcome", mine)
    reword(scene.preference, UNBROKEN[:800] + MARKUP)
    page.locator("#note").press("Control+Enter")
    panel = page.locator("section[aria-labelledby=mine] .diff")
    assert panel.evaluate(WITHOUT, "del").split() == mine.split()
    assert strange(mia) == []
    page.get_by_role("button", name="Edit").click()
    page.locator("#text").wait_for()
    assert [page.input_value(f"#{name}") for name in ("text", "note", "expected_outcome")] == [mine] * 3

    page = mia.visit(f"/review/lessons/{scene.lessons['good'].pk}/")
    mia.press("t")
    page.locator("#ask-note").fill(mine)
    page.locator("dialog form").evaluate("form => { form.elements.expected_version.value = '99'; }")
    page.locator("input[value=other]").check()
    page.locator("#ask-note").press("Control+Enter")
    page.get_by_role("heading", name="This changed since you looked").wait_for()
    assert mine in page.locator("#main").inner_text()
    assert strange(mia) == []


def strange(someone: Visitor) -> list[str]:
    """What is wrong with the page that is shown: what ran, what stands there twice, what is wider than the screen."""
    page = someone.page
    wrong: list[str] = page.locator("#main").evaluate(STRANGE)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        if wide := page.evaluate(WIDER):
            wrong.append(f"wider than {width}: {wide}")
    return wrong


#: What a diff says without one of its sides and without its words for screen readers.
WITHOUT = """(diff, side) => {
  const copy = diff.cloneNode(true);
  copy.querySelectorAll(side + ", .visually-hidden").forEach((e) => e.remove());
  return copy.textContent;
}"""
