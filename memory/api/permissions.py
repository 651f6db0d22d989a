"""What a key may do: each view names the scope that each method needs."""

from typing import TYPE_CHECKING

from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memory.models import ApiKey

if TYPE_CHECKING:  # DRF's settings load this module while its views are half loaded
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """Refuses without a key, and without the scope that the view declares for this method."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not isinstance(request.auth, ApiKey):
            raise NotAuthenticated("Send an API key as 'Authorization: Bearer <key>'.")
        needed = scope_of(view, request.method or "GET")
        if needed not in request.auth.scopes:
            scopes = ", ".join(request.auth.scopes)
            raise PermissionDenied(f"This needs a key with the scope '{needed}'; yours has {scopes}.")
        return True


def scope_of(view: "APIView", method: str) -> str:
    """The scope that a method of a view needs; HEAD, and a method that the view has not, need no more than another."""
    scopes: dict[str, str] = getattr(view, "scopes", {})
    return scopes.get(method) or scopes.get("GET") or next(iter(scopes.values()), "admin")
