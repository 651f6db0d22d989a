"""The colours of the stylesheet, measured: every text and mark can be read, and states differ for every kind of eye."""

import itertools
import re
from pathlib import Path
from typing import Final

import pytest
from django.contrib.staticfiles import finders

STATES: Final = ("active", "probation", "quarantined", "pending", "contradiction", "retired")
CHARTS: Final = ("lesson", "loss", "base", "second")
SCHEMES: Final = ("light", "dark")
#: Linear RGB as it reaches somebody without one kind of cone. Source: Machado, Oliveira and Fernandes, A
#: physiologically-based model for simulation of color vision deficiency, IEEE TVCG 15, 2009, severity 1.
EYES: Final = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
APART: Final = {"light": 22, "dark": 25}  # CIE76 units; what the palette was chosen for
Colour = tuple[float, float, float]


def stylesheet() -> str:
    path = finders.find("review/tokens.css")
    assert isinstance(path, str)
    return Path(path).read_text(encoding="utf-8")


def tokens(scheme: str) -> dict[str, str]:
    """The custom properties of a scheme, by name without their dashes."""
    start = {"light": r":root \{", "dark": r':root\[data-theme="dark"\] \{', "asked": r":root:not\([^{]*\{"}
    block = re.search(start[scheme] + r"(.*?)\}", stylesheet(), re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block.group(1)))


def linear(colour: str) -> Colour:
    """Linear sRGB in [0, 1] of `#rrggbb`."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's ratio, in [1, 21]."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(seen: Colour) -> Colour:
    """CIELAB under D65 of a linear sRGB colour."""
    rows = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    xyz = (sum(weight * part for weight, part in zip(row, seen, strict=True)) for row in rows)
    scaled = [value / white for value, white in zip(xyz, (0.95047, 1.0, 1.08883), strict=True)]
    x, y, z = (v ** (1 / 3) if v > (6 / 29) ** 3 else v / (3 * (6 / 29) ** 2) + 4 / 29 for v in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str, eye: str) -> float:
    """CIE76 difference of two colours as this eye sees them."""

    def seen(colour: str) -> Colour:
        parts = linear(colour)
        mixed = (sum(weight * part for weight, part in zip(row, parts, strict=True)) for row in EYES[eye])
        red, green, blue = (min(1.0, max(0.0, value)) for value in mixed)
        return lab((red, green, blue))

    return float(sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5)


def test_the_formulas_are_the_published_ones() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert distance("#ffffff", "#000000", "normal") == pytest.approx(100, abs=0.01)
    assert distance("#ff0000", "#ff0000", "deutan") == 0
    assert distance("#ff0000", "#00ff00", "normal") == pytest.approx(170.6, abs=0.1)


def test_dark_is_the_same_whether_it_is_chosen_or_the_system_asks_for_it() -> None:
    assert tokens("dark") == tokens("asked")
    assert set(tokens("dark")) == set(tokens("light"))


@pytest.mark.parametrize("scheme", SCHEMES)
class TestContrast:
    def test_text_is_readable_on_every_ground(self, scheme: str) -> None:
        found = tokens(scheme)
        pairs = [(ink, ground) for ink in ("text", "muted", "accent") for ground in ("bg", "surface", "raised")]
        pairs += [("text", "ins-bg"), ("text", "del-bg"), ("on-accent", "accent"), ("danger", "raised")]
        pairs += [("danger", "danger-bg"), ("bg", "text")]  # the last are the toasts
        low = {pair: contrast(found[pair[0]], found[pair[1]]) for pair in pairs}
        assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}

    @pytest.mark.parametrize("state", STATES)
    def test_a_state_is_readable_on_its_own_ground(self, scheme: str, state: str) -> None:
        found = tokens(scheme)
        assert contrast(found[f"{state}-fg"], found[f"{state}-bg"]) >= 4.5

    def test_the_edges_of_controls_and_the_focus_ring_are_seen(self, scheme: str) -> None:
        found = tokens(scheme)
        for mark, ground in itertools.product(("border", "accent"), ("bg", "surface", "raised")):
            assert contrast(found[mark], found[ground]) >= 3, (mark, ground)

    @pytest.mark.parametrize("series", CHARTS)
    def test_the_marks_of_charts_are_seen(self, scheme: str, series: str) -> None:
        found = tokens(scheme)
        for ground in ("bg", "surface", "raised"):
            assert contrast(found[f"chart-{series}"], found[ground]) >= 3, ground


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("eye", EYES)
def test_the_six_states_stay_apart(scheme: str, eye: str) -> None:
    found = tokens(scheme)
    pairs = itertools.combinations(STATES, 2)
    apart = {(a, b): distance(found[f"{a}-fg"], found[f"{b}-fg"], eye) for a, b in pairs}
    assert {pair: round(units, 1) for pair, units in apart.items() if units < APART[scheme]} == {}
