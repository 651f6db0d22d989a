"""Cursors: constant time at any depth, and no row twice or missed while newer rows are written."""

import re
from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from memory.errors import Invalid


class CreatedPagination(CursorPagination):
    """Newest first. Ids are UUIDv7, so their order is the order of creation and never ties."""

    ordering: Any = "-id"
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int | None:
        """Raises Invalid: a page size that is not understood must not become another one in silence."""
        raw = request.query_params.get("page_size")
        if raw is None:
            return self.page_size
        if not re.fullmatch("[1-9][0-9]{0,2}", raw) or int(raw) > self.max_page_size:
            raise Invalid.field("page_size", f"use a whole number from 1 to {self.max_page_size}.")
        return int(raw)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Raises Invalid for a cursor that no list gave out."""
        try:
            cursor = super().decode_cursor(request)
            if cursor is not None:
                UUID(str(cursor.position))  # ids never tie, so that a list's own cursor always has one
        except (NotFound, ValueError):
            raise Invalid.field("cursor", "is not one of this list. Follow `next` and `previous`.") from None
        return cursor

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """DRF's parameters with the bounds of the page size."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        bounds = {"minimum": 1, "maximum": self.max_page_size, "default": self.page_size}
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"].update(bounds)
        return parameters
