"""The statements of some work, run again by psycopg alone: what the database takes, without what Python adds."""

from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from memory.models.base import new_id

Statement = tuple[str, Any]
PLACE: Final = "credit_seq"  # a credit's place in the order: one more than the newest, which is read right before


class Replay:
    """Work recorded once, and run again with ids of its own where rows were made; ids ascend with time."""

    def __init__(self, work: Sequence[Callable[[], object]], since: UUID) -> None:
        """Does each piece of work, of which every one is one transaction, and notes its statements.

        Ids that are later than `since` are those of rows that the work makes.
        """
        self._since = since
        self._place: int | None = None  # of the credit that the work made
        self._recorded: list[list[Statement]] = []
        for piece in work:
            self._recorded.append([])
            with connection.execute_wrapper(self._note):
                piece()

    def _note(self, execute: Any, statement: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        self._recorded[-1].append((statement, params))
        if self._place is None and 'INSERT INTO "credit" ' in statement:
            self._place = next(int(value) for value in reversed(params) if isinstance(value, int))
        return execute(statement, params, many, context)

    def __call__(self) -> None:
        """Every piece of work anew, each committed."""
        fresh: dict[Any, Any] = {}
        connection.ensure_connection()  # a request gives its connection back
        driver = connection.connection
        for statements in self._recorded:
            with transaction.atomic(), driver.cursor() as cursor:
                for statement, params in statements:
                    cursor.execute(statement, self._renewed(params, fresh))
                    if cursor.description is not None:
                        rows = cursor.fetchall()
                        if [column.name for column in cursor.description] == [PLACE]:
                            fresh[self._place] = rows[0][0] + 1

    def _renewed(self, params: Any, fresh: dict[Any, Any]) -> Any:
        """The parameters with a new id for each that the recorded work made, and the credit's new place."""
        if isinstance(params, dict):
            return {name: self._renewed(value, fresh) for name, value in params.items()}
        if isinstance(params, list | tuple):
            return type(params)(self._renewed(value, fresh) for value in params)
        if isinstance(params, UUID) and params > self._since:
            return fresh.setdefault(params, new_id())
        if self._place is not None and isinstance(params, int) and params == self._place:
            return type(params)(fresh[self._place])
        return params
