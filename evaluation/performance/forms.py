"""What a reader fills into the forms of a review page."""

import html
import re
from collections.abc import Sequence


def fields(page: str, verdict: str) -> dict[str, str]:
    """What the form that gives this verdict at once sends, without its token. Raises LookupError if there is none."""
    forms: Sequence[str] = re.findall(r"<form[^>]*action=\"/review/decide/\".*?</form>", page, re.DOTALL)
    form = next((form for form in forms if f'name="decision" value="{verdict}"' in form), None)
    if form is None:
        raise LookupError(f"the page offers no `{verdict}`")
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}
