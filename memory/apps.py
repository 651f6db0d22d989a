"""Start-up of the memory app."""

from django.apps import AppConfig
from django.core.signals import setting_changed


class MemoryConfig(AppConfig):
    name = "memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memory import checks, conf

        checks.install()
        setting_changed.connect(conf.forget)
