"""From settings to a distiller and a summariser."""

from typing import Any

from memory.conf import Conf
from memory.distillers.base import Distiller, DistillerUnavailable, Summariser
from memory.distillers.extractive import ExtractiveDistiller
from memory.rules.summary import summarise


def distiller_from(settings: Conf) -> Distiller | None:
    """The configured distiller; None if distillation is off. Nothing is asked yet.

    `auto` is `chat` where an address is set, else `extractive`. Raises DistillerUnavailable naming the missing setting.
    """
    kind = settings.distiller
    if kind == "auto":
        kind = "chat" if settings.distiller_url else "extractive"
    if kind == "off":
        return None
    return _chat(settings) if kind == "chat" else ExtractiveDistiller()


def summariser_from(settings: Conf) -> Summariser:
    """The configured summariser. Nothing is asked yet. Raises DistillerUnavailable naming the missing setting."""
    kind = settings.summariser
    if kind == "auto":
        kind = "chat" if settings.distiller_url else "extractive"
    if kind == "extractive":
        return summarise
    from memory.distillers.chat import ChatSummariser

    return ChatSummariser(**_server(settings, "summariser"))


def _chat(settings: Conf) -> Distiller:
    # Imported here: the client takes a third of a second to load, and not every installation has a model.
    from memory.distillers.chat import ChatDistiller

    return ChatDistiller(**_server(settings, "distiller"))


def _server(settings: Conf, whose: str) -> dict[str, Any]:
    """Where the model is and how to ask it."""
    if not settings.distiller_url or not settings.distiller_model:
        missing = "SONDER_DISTILLER_MODEL" if settings.distiller_url else "SONDER_DISTILLER_URL"
        raise DistillerUnavailable(f"The {whose} `chat` needs {missing}.")
    return {
        "base_url": settings.distiller_url,
        "model": settings.distiller_model,
        "api_key": settings.distiller_key or None,
        "timeout": settings.distill_timeout_seconds,
    }
