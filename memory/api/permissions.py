"""What a key may do: each view names the scope that each method needs."""

from typing import ClassVar

from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from memory.models import ApiKey
from memory.services.caller import Caller
from memory.services.keys import caller_of


class HasScope(BasePermission):
    """Refuses without a key, and without the scope that the view declares for this method."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, ApiKey):
            raise NotAuthenticated("Send an API key as 'Authorization: Bearer <key>'.")
        needed = scope_of(view, request.method or "GET")
        if needed not in request.auth.scopes:
            raise PermissionDenied(f"This needs a key with the scope '{needed}'; yours has {request.auth.scopes}.")
        return True


class ScopedView(APIView):
    """Base of every view behind a key."""

    scopes: ClassVar[dict[str, str]] = {"GET": "read", "POST": "loop", "PATCH": "loop"}

    @property
    def caller(self) -> Caller:
        """The scope of this request; only to be asked for once the permission has been checked."""
        key = self.request.auth
        assert isinstance(key, ApiKey)
        return caller_of(key)


def scope_of(view: APIView, method: str) -> str:
    """The scope that a method of a view needs; HEAD and OPTIONS need what GET needs, or any write of the view."""
    scopes: dict[str, str] = getattr(view, "scopes", {})
    return scopes.get(method) or scopes.get("GET") or next(iter(scopes.values()), "admin")
