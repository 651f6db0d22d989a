"""Who calls: an immutable value made from the credential, once a request, and passed down."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The scope and authority of one request or command."""

    account_id: UUID  # every read and write is confined to this account
    source: str  # who judged, when this caller reports an outcome
    actor: str  # how journals name the caller: api_key:<prefix>, user:<id> or system
    key_id: UUID | None = None  # the API key, where one was used
    user_id: int | None = None  # the person, where one is logged in
