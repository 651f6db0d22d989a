"""Pages on a phone, at 400% and for who has asked for fewer colours or no motion."""

from collections.abc import Callable

from tests.browser.conftest import Visitor
from tests.browser.everywhere import FILES, addresses, furnish
from tests.browser.scene import Scene

Enter = Callable[..., Visitor]
#: What is too small for a thumb. A link inside a sentence is as high as its line, which WCAG 2.5.5 allows.
SMALL = """() => {
  const inline = (e) => e.matches("a:not(.button)") && getComputedStyle(e).display === "inline";
  const target = (e) => e.matches("[type=checkbox], [type=radio]") ? e.closest("label") ?? e : e;
  return [...document.querySelectorAll("button, a[href], select, textarea, summary, input:not([type=hidden])")]
    .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !inline(e) && !e.closest("svg, .skip"))
    .map((e) => [e, target(e).getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.height < 43.5 || box.width < 23.5))
    .map(([e, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${e.outerHTML.slice(0, 130)}`);
}"""
#: What lies under the bar of decisions while it has the focus.
COVERED = """async () => {
  const bar = document.querySelector(".decisions");
  if (!bar) return [];
  const found = [];
  const names = ["a[href]", "button", "input", "select", "textarea", "summary", "[tabindex='0']"];
  for (const each of document.querySelectorAll(`#main :is(${names})`)) {
    if (!each.checkVisibility() || bar.contains(each) || each.matches("[type=hidden], :disabled")) continue;
    window.scrollTo(0, 0);
    each.focus();
    const [box, over] = [each.getBoundingClientRect(), bar.getBoundingClientRect()];
    if (document.activeElement !== each || over.top >= innerHeight) continue;
    const room = innerHeight - over.height;
    const hidden = Math.min(box.bottom, over.bottom) - Math.max(box.top, over.top);
    const allowed = box.height > room / 2 ? box.height - 24 : 1; // of what is too high to be seen as a whole
    if (hidden > allowed) found.push(`${hidden} px of ${each.outerHTML.slice(0, 130)}`);
  }
  return found;
}"""


def test_every_target_has_room_for_a_thumb_and_none_in_focus_lies_under_the_bar(visitor: Enter, scene: Scene) -> None:
    store = furnish(scene)
    mia = visitor("mia", narrow=True, is_mobile=True)
    found = {}
    for address in addresses(store, *FILES, ways=1):
        page = mia.visit(address)
        assert page.evaluate("matchMedia('(pointer: coarse)').matches")
        if wrong := [*page.evaluate(SMALL), *page.evaluate(COVERED)]:
            found[address] = wrong
    assert found == {}


def test_none_in_focus_lies_under_the_bar_at_a_desk_or_at_400_percent(visitor: Enter, scene: Scene) -> None:
    store, ana = furnish(scene), visitor("mia")
    lesson, pair = scene.lessons["harmful"].pk, scene.contradiction.pk
    for path in (f"lessons/{lesson}/", f"contradictions/{pair}/", f"prune/{store.plan.digest}/", "inbox/", "outcomes/"):
        page = ana.visit(f"/review/{path}")
        for size in ({"width": 1280, "height": 800}, {"width": 320, "height": 400}):
            page.set_viewport_size(size)
            assert page.evaluate(COVERED) == [], (path, size)


#: What would be lost where the system chooses the colours: a shape that its colour alone sets apart from the ground.
LOST = """() => {
  const ground = getComputedStyle(document.body).backgroundColor;
  const seen = (name) => [...document.querySelectorAll(name)].filter((e) => e.checkVisibility());
  const bare = (e) => ["Top", "Left"].some((side) => {
    const style = getComputedStyle(e);
    return style[`border${side}Style`] === "none" || style[`border${side}Width`] === "0px" ||
      style[`border${side}Color`] === style.backgroundColor;
  });
  const gone = (e) => {
    const { fill, stroke } = getComputedStyle(e);
    return [fill, stroke].every((ink) => ["none", ground, "rgba(0, 0, 0, 0)"].includes(ink));
  };
  return [
    ...(matchMedia("(forced-colors: active)").matches ? [] : ["colours are not forced"]),
    ...seen(".chip, .panel, .decisions, .button:not(.plain), button:not(.plain)").filter(bare),
    ...seen(".chart :is(.point, .whisker, .line, .tick, .expected, rect)").filter(gone),
    ...seen(".chip:not(:has(svg))").filter((e) => !e.innerText.trim()),
  ].map((e) => e.outerHTML?.slice(0, 160) ?? e);
}"""
MOVING = """() => [...document.querySelectorAll("*")].filter((e) => {
  const style = getComputedStyle(e);
  return style.animationName !== "none" || style.transitionDuration !== "0s" || style.scrollBehavior !== "auto";
}).map((e) => e.outerHTML.slice(0, 120))"""


def test_borders_glyphs_and_shapes_carry_it_where_the_system_chooses_the_colours_and_nothing_moves(
    visitor: Enter, scene: Scene
) -> None:
    store, mia = furnish(scene), visitor("mia", forced_colors="active", reduced_motion="reduce")
    lesson, pair = scene.lessons["harmful"].pk, scene.contradiction.pk
    found = {}
    for path in (
        "", f"lessons/{lesson}/", "inbox/", "quarantine/", f"contradictions/{pair}/", f"prune/{store.plan.digest}/",
        "health/", "retrieval/?q=call+the+payment+service&quarantined=on", f"preferences/{scene.preference.pk}/",
    ):  # fmt: skip
        page = mia.visit(f"/review/{path}")
        if wrong := [*page.evaluate(LOST), *page.evaluate(MOVING)]:
            found[path] = wrong
    assert found == {}
    mia.visit(f"/review/lessons/{scene.lessons['good'].pk}/")
    mia.press("t")
    assert mia.page.locator("dialog[open] :focus").evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    assert mia.page.evaluate(MOVING) == []
