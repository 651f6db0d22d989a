"""When two similar lessons may contradict each other, and which of them is handed out while nobody has decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memory.rules.claim import ClaimSignature, same_claim
from memory.rules.fusion import usage_boost

#: Classes of evidence that may speak for or against a lesson, strongest first. Matched back or unknown says nothing.
CLASSES: Final = ("caller", "machine", "self_curriculum")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one class of judges made of a lesson."""

    n: int = 0  # interactions
    reward: float = 0.0  # total of their rewards, each in [-1, 1]

    @property
    def mean(self) -> float:
        """In [-1, 1]; 0 without any."""
        return self.reward / self.n if self.n else 0.0


def basis(
    a: ClaimSignature, b: ClaimSignature, evidence_a: Mapping[str, Judged], evidence_b: Mapping[str, Judged]
) -> str:
    """Why two similar lessons may contradict each other; empty if nothing says so. At most 40 characters.

    * `polarity:<axis>`: their directives differ in sign on an axis.
    * `polarity_only:<axis>`: the same, and no class of judges has seen both, so that no evidence was compared.
    * `evidence:<class>`: the strongest class that judged both has a mean reward above 0 for one, below 0 for the other.
    * `both:<axis>,<class>`: the first and the third.
    """
    kind, _, axis = same_claim(a, b).reason.partition(":")
    common = next((c for c in CLASSES if evidence_a.get(c, Judged()).n and evidence_b.get(c, Judged()).n), None)
    opposite = common is not None and evidence_a[common].mean * evidence_b[common].mean < 0
    if kind == "polarity":
        if opposite:
            return f"both:{axis},{common}"
        return f"polarity:{axis}" if common else f"polarity_only:{axis}"
    return f"evidence:{common}" if opposite else ""


def standing_in_answer(caller: Judged) -> float:
    """How well callers speak for a lesson: their mean reward, drawn towards 0 where they are few, as in ranking.

    The higher of two sides of an open contradiction is handed out; a lesson that no caller judged stands at 0, before
    one that callers turned down.
    """
    return usage_boost(mean_reward=caller.mean, n=caller.n)
