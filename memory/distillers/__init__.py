"""From a finished interaction to one sentence that may become a lesson, behind one Protocol.

``chat`` asks any server with /v1/chat/completions; ``extractive`` works without a model. Whatever a distiller proposes
is untrusted text: only the gates decide whether it becomes a lesson.
"""

from memory.distillers.base import Distiller, DistillerUnavailable, Material, Summariser, UnusableAnswer

__all__ = ["Distiller", "DistillerUnavailable", "Material", "Summariser", "UnusableAnswer"]
