"""Binds the services' announcements to Celery: services know no Celery, and Celery's tasks know only services."""

from uuid import UUID

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class AdminConfig(admin.AdminConfig):
    """Django's admin on this project's site."""

    default = False
    default_site = "sonder_site.admin_site.SonderAdminSite"


class SiteConfig(AppConfig):
    name = "sonder_site"

    def ready(self) -> None:
        from memory.services import nudge
        from sonder_site import celery, tracing  # celery makes this project's the current Celery application

        tracing.start()
        assert celery.app is not None
        nudge.bind(announce)


def announce(name: str, subject: UUID) -> None:
    """Puts a message for the task that does this work on the broker; a broker that is away loses nothing."""
    from memory.tasks import TASK_OF
    from sonder_site.celery import publish

    publish(TASK_OF[name], str(subject))
