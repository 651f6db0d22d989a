"""How the store is, as a chip: a glyph, a word and a colour, of which the first two say it alone."""

from typing import Final

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

CHECK, STOP = "M2 6.5 5 9.5 10 3", "M2 2h8v8H2z"
RING, WARN = "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z", "M6 1.5v6M6 10v.5"
#: Of each state of health, and each standing of a job: the word, the colour of a chip, the glyph in a box of 12 by 12.
STANDINGS: Final = {
    "healthy": ("Healthy", "active", CHECK),
    "building": ("Building", "pending", RING),
    "watch": ("Watch", "probation", WARN),
    "attention": ("Needs attention", "quarantined", STOP),
    "on_time": ("On time", "active", CHECK),
    "waiting": ("Waiting", "pending", RING),
    "failed": ("Failed", "quarantined", STOP),
    "late": ("Late", "probation", WARN),
    "never_ran": ("Never ran", "probation", WARN),
    "fine": ("As expected", "active", CHECK),
    "few": ("Too few", "pending", RING),
    "far": ("Improbable", "quarantined", STOP),
}


@register.simple_tag
def standing(name: str) -> SafeString:
    """The chip of a state."""
    word, colour, path = STANDINGS[name]
    return format_html(
        '<span class="chip {}"><svg viewBox="0 0 12 12" aria-hidden="true"><path d="{}" fill="none" '
        'stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/></svg>{}</span>',
        colour, path, word,
    )  # fmt: skip
