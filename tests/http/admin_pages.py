"""Where the pages of the admin are, and what they say."""

import html
from typing import Any

from django.db.models import Model
from django.urls import reverse


def address(model: type[Model], page: str, *args: object) -> str:
    """Of a model's page: `changelist`, `add`, or `change` or `delete` with the row's id."""
    return reverse(f"admin:memory_{model._meta.model_name}_{page}", args=args)


def body(response: Any) -> str:
    """The page with its entities resolved."""
    return html.unescape(response.content.decode())
