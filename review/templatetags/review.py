"""Chips, keys and times: what the pages show in the same way everywhere."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from memory.rules.reasons import reason_in_words
from review.keys import key_of

register = template.Library()

#: Of each state the word, and the glyph as a path in a box of 12 by 12: they carry the meaning, colour helps.
CHIPS = {
    "active": ("Active", "M2 6.5 5 9.5 10 3"),
    "trial": ("On trial", "M6 1.5a4.5 4.5 0 1 0 0 9zM6 1.5a4.5 4.5 0 0 1 0 9"),
    "probation": ("Probation", "M6 1.5a4.5 4.5 0 1 0 0 9zM6 1.5a4.5 4.5 0 0 1 0 9"),
    "quarantined": ("Quarantined", "M2 2h8v8H2z"),
    "candidate": ("Pending", "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z"),
    "contradiction": ("Contradiction", "M1 4h9M7.5 1.5 10 4 7.5 6.5M11 8H2M4.5 5.5 2 8l2.5 2.5"),
    "rejected": ("Rejected", "M2.5 2.5l7 7M9.5 2.5l-7 7"),
    "superseded": ("Replaced", "M2.5 2.5l7 7M9.5 2.5l-7 7"),
    "retired": ("Pruned", "M2.5 2.5l7 7M9.5 2.5l-7 7"),
}
FILLED = {"quarantined"}
ORIGINS = {
    "distilled": "Agent",
    "edited": "Person",
    "imported": "Imported",
    "seeded": "Demo",
    "rule": "Rule",
}


@register.simple_tag
def chip(state: str, note: str = "") -> SafeString:
    """A state as glyph, word and colour; `note` follows the word."""
    word, path = CHIPS[state]
    fill = "currentColor" if state in FILLED else "none"
    return format_html(
        '<span class="chip {}"><svg viewBox="0 0 12 12" aria-hidden="true"><path d="{}" fill="{}" '
        'stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"/></svg>{}{}</span>',
        state, path, fill, word, f" {note}" if note else "",
    )  # fmt: skip


@register.simple_tag
def state_chip(lesson: Any, standing: Any = None) -> SafeString:
    """A lesson's state; a lesson in service that a coin decides about is on trial."""
    if lesson.state == "active" and getattr(standing, "on_trial", False):  # a template hands over "" for none
        return chip("trial")
    return chip(lesson.state)


@register.simple_tag
def origin(lesson: Any) -> SafeString:
    """Where a lesson comes from, by border and word, with its date."""
    word = ORIGINS[lesson.origin]
    return format_html(
        '<span class="origin {}">{} <time datetime="{}">{}</time></span>',
        lesson.origin, word, lesson.created_at.isoformat(), f"{lesson.created_at:%-d %b %Y}",
    )  # fmt: skip


@register.simple_tag
def ago(moment: datetime | None) -> SafeString:
    """A moment as how long ago (or until when), with the exact time in the element."""
    if moment is None:
        return mark_safe("never")
    now = timezone.now()
    if abs((now - moment).total_seconds()) < 60:
        words = "just now" if moment <= now else "in a moment"
    else:
        words = f"{timesince(moment, now, depth=1)} ago" if moment <= now else f"in {timesince(now, moment, depth=1)}"
    exact = f"{moment:%Y-%m-%d %H:%M} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, words)


@register.simple_tag
def key_attrs(scope: str, action: str) -> SafeString:
    """The attributes that bind a button or link to its key."""
    key = key_of(scope, action)
    return format_html('data-key="{}" data-scope="{}" aria-keyshortcuts="{}"', key.key, scope, _spoken(key.key))


@register.simple_tag
def kbd(scope: str, action: str) -> SafeString:
    """The key, as its button shows it."""
    shown = {"Escape": "Esc"}.get(key_of(scope, action).key, key_of(scope, action).key)
    return format_html('<kbd aria-hidden="true">{}</kbd>', shown)


def _spoken(key: str) -> str:
    """As aria-keyshortcuts writes it: capitals are Shift and the letter."""
    return f"Shift+{key}" if len(key) == 1 and key.isupper() else key


@register.simple_tag
def dialog() -> SafeString:
    """The attributes of a link whose page opens as a dialog; without JavaScript it is a page."""
    return mark_safe(
        'data-dialog hx-boost="true" hx-target="#dialog-body" hx-select="#dialog-content" hx-swap="innerHTML" '
        'hx-push-url="false" hx-select-oob="unset"'
    )


@register.simple_tag
def idempotency() -> SafeString:
    """A hidden field that makes one form one decision, however often it is sent."""
    return format_html('<input type="hidden" name="idempotency_key" value="{}">', uuid4().hex)


@register.filter
def marked(text: str) -> SafeString:
    """A text with what stands between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one without its partner is only a character
        parts[-2:] = ["`".join(parts[-2:])]
    pieces = [format_html("<code>{}</code>", part) if n % 2 else part for n, part in enumerate(parts)]
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.filter
def reason(code: str) -> str:
    """A reason code in words."""
    return reason_in_words(code)


@register.filter
def percent(share: float | None) -> str:
    """A share in [0, 1] as a whole percentage."""
    return "no data" if share is None else f"{100 * share:.0f}%"
