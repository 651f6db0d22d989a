"""Cursors: constant time at any depth, and no row twice or missed while rows are written."""

from rest_framework.pagination import CursorPagination


class CreatedPagination(CursorPagination):
    """Newest first. Ids are UUIDv7, so their order is the order of creation and never ties."""

    ordering = "-id"
    page_size_query_param = "page_size"
    max_page_size = 200
