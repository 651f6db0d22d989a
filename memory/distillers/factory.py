"""From settings to a distiller."""

from memory.conf import Conf
from memory.distillers.base import Distiller, DistillerUnavailable
from memory.distillers.extractive import ExtractiveDistiller


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


def _chat(settings: Conf) -> Distiller:
    if not settings.distiller_url or not settings.distiller_model:
        missing = "SONDER_DISTILLER_MODEL" if settings.distiller_url else "SONDER_DISTILLER_URL"
        raise DistillerUnavailable(f"The distiller `chat` needs {missing}.")
    # Imported here: the client takes a third of a second to load, and not every installation has a model.
    from memory.distillers.chat import ChatDistiller

    return ChatDistiller(
        base_url=settings.distiller_url,
        model=settings.distiller_model,
        api_key=settings.distiller_key or None,
        timeout=settings.distill_timeout_seconds,
    )
