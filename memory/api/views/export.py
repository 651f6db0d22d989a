"""The whole account in one answer, streamed."""

from collections.abc import Generator, Iterator
from typing import ClassVar

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views.base import ScopedView
from memory.models import Account
from memory.services.transfer.streaming import stream

NDJSON = "application/x-ndjson"


class Pieces:
    """An iterator that has begun, from its first piece on. Closed with its response, also of a reader that went."""

    def __init__(self, first: bytes, rest: Generator[bytes]) -> None:
        self._first, self._rest = first, rest

    def __iter__(self) -> Iterator[bytes]:
        yield self._first
        yield from self._rest

    def close(self) -> None:
        """Ends the transaction."""
        self._rest.close()


class ExportView(ScopedView):
    """Everything that the account holds."""

    scopes: ClassVar[dict[str, str]] = {"GET": "admin"}
    refuses: ClassVar[dict[int, str]] = {409: "An export of the account is under way"}

    @extend_schema(
        responses={
            (200, NDJSON): OpenApiResponse(
                OpenApiTypes.STR, description="A row a line, each `kind` and `row`: a header, the rows, a trailer."
            )
        }
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The account as lines of JSON, as of one moment, as `import_account` reads it. Without its end it is cut off.

        One export of an account at a time.
        """
        account = Account.objects.get(pk=self.caller.account_id)
        pieces = stream(account)
        first = next(pieces)  # what is refused is refused before the answer begins
        answer = StreamingHttpResponse(Pieces(first, pieces), content_type=NDJSON)
        answer["Content-Disposition"] = f'attachment; filename="{account.slug}.ndjson"'
        answer["Cache-Control"] = "no-store"
        return answer

    def head(self, request: Request) -> Response:
        """What a GET would say before its content; nothing is read."""
        return Response(headers={"Cache-Control": "no-store"}, content_type=NDJSON)
