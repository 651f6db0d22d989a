"""The one refusal of the embedded store."""

from django.db.utils import OperationalError


class EmbeddedError(OperationalError):
    """The embedded database cannot be used; the message says why and what to do about it.

    It is an OperationalError because that is what an unreachable database is to Django and to callers.
    """
