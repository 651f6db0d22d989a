"""The operators' pages: every row can be found and read; only what is an operator's to decide can be changed.

What is append-only, and what services alone may write, is shown and never saved. The files are named like the models'.
"""

from django.contrib import admin

from memory.admin import (
    credit,
    distillation,
    fact,
    interaction,
    key,
    lesson,
    operations,
    preference,
    review,
    scope,
    task,
    trust,
    webhook,
)

__all__ = [
    "credit",
    "distillation",
    "fact",
    "interaction",
    "key",
    "lesson",
    "operations",
    "preference",
    "review",
    "scope",
    "task",
    "trust",
    "webhook",
]

admin.site.site_header = "Sonder"
admin.site.site_title = "Sonder"
admin.site.index_title = "The store"
