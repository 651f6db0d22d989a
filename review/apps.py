"""Start-up of the human surface."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_out


class ReviewConfig(AppConfig):
    name = "review"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        user_logged_out.connect(let_go, dispatch_uid="review.let_go")


def let_go(sender: Any, user: Any = None, **_: Any) -> None:
    """Who logs out holds no question any more."""
    from memory.services.review_queue import release_all  # models exist only once all apps are loaded

    if user is not None:
        release_all(user.pk)
