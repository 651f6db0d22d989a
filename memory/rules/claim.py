"""What a lesson claims, so that lessons with near vectors and opposite directives are told apart.

A signature holds the sign of a directive on a closed list of axes, and its anchors. It holds no wording: a tombstone
keeps the signs and keyed digests of the anchors when the text is gone. The grammar is English; a sentence in another
language counts as a plain directive, and its anchors decide.

Every doubt is resolved towards "not the same claim". That leaves two similar lessons for a person to look at, where
the other mistake would delete or refuse the wrong one unseen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from memory.rules.anchors import KINDS, anchors, by_kind
from memory.rules.directive import Directive

__all__ = ["AXES", "SIGNATURE_VERSION", "ClaimSignature", "Comparison", "anchors", "same_claim", "signature"]

#: To be raised with any change that gives some text another signature.
SIGNATURE_VERSION: Final = 1

Axis = Literal["prohibition", "inclusion", "direction", "order", "preference"]
AXES: Final[tuple[Axis, ...]] = get_args(Axis)


@dataclass(frozen=True, kw_only=True)
class ClaimSignature:
    """The claim of a text without its wording."""

    polarity: Mapping[str, int]  # axis -> 1 or -1; an axis that the text does not touch is absent
    anchors: Mapping[str, frozenset[str]]  # kind -> normalised anchors of the directive; no kind is empty

    def to_json(self) -> dict[str, dict[str, int] | dict[str, list[str]]]:
        """`{"polarity": {axis: sign}, "anchors": {kind: sorted list}}`."""
        return {
            "polarity": dict(self.polarity),
            "anchors": {kind: sorted(values) for kind, values in self.anchors.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Mapping[str, int] | Mapping[str, list[str]]]) -> "ClaimSignature":
        """The inverse of `to_json`. Raises KeyError or ValueError for anything that it cannot have written."""
        signs = {str(axis): sign for axis, sign in data["polarity"].items() if isinstance(sign, int)}
        found = {str(kind): frozenset(values) for kind, values in data["anchors"].items() if isinstance(values, list)}
        if len(signs) < len(data["polarity"]) or not signs.keys() <= set(AXES) or not set(signs.values()) <= {1, -1}:
            raise ValueError("Not a polarity: it maps known axes to 1 or -1.")
        if len(found) < len(data["anchors"]) or not found.keys() <= set(KINDS):
            raise ValueError("No anchors: they map known kinds to lists.")
        return cls(polarity=signs, anchors=found)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Whether two texts make the same claim."""

    same: bool
    reason: str  # `polarity:<axis>` or `anchor:<kind>` for what keeps them apart; empty if same


def same_claim(a: ClaimSignature, b: ClaimSignature) -> Comparison:
    """The same claim, unless they differ in sign on an axis, or share no anchor of a kind, that both carry.

    An axis or a kind that only one of them carries decides nothing.
    """
    for axis in AXES:
        if a.polarity.get(axis, 0) * b.polarity.get(axis, 0) < 0:
            return Comparison(same=False, reason=f"polarity:{axis}")
    for kind in KINDS:
        if kind in a.anchors and kind in b.anchors and a.anchors[kind].isdisjoint(b.anchors[kind]):
            return Comparison(same=False, reason=f"anchor:{kind}")
    return Comparison(same=True, reason="")


def signature(text: str) -> ClaimSignature:
    """The signature of a lesson. Prohibition is always carried: a directive says do unless it says do not.

    Two negations cancel: "never hold a lock without a timeout" demands the timeout, and "never use A instead of B"
    prefers B. Reasons, purposes and rejected alternatives carry no sign and, if the directive has any, no anchors.
    """
    directive = Directive(text)
    contrast, prohibition = directive.contrast, directive.prohibition
    inclusion, preference = directive.inclusion(), directive.preference()
    rejected = contrast.rejected if contrast else None
    if prohibition < 0 and contrast:
        prohibition, preference, rejected = 1, -preference, contrast.chosen
    elif prohibition < 0 and inclusion < 0:
        prohibition = inclusion = 1
    signs: dict[Axis, int] = {
        "prohibition": prohibition,
        "inclusion": inclusion,
        "direction": directive.direction(),
        "order": directive.order(),
        "preference": preference,
    }
    polarity = {str(axis): sign for axis, sign in signs.items() if sign}
    return ClaimSignature(polarity=polarity, anchors=by_kind(directive.claimed_anchors(rejected)))
