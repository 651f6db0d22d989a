"""Sessions: their titles, and the one live turn that each may have.

A turn is claimed with a new token and kept by signs of life. Every move is one conditional statement whose row count
says who won.
"""

from datetime import timedelta
from uuid import UUID, uuid4

from django.db.models.functions import Now

from memory import conf
from memory.errors import Conflict, NotFound
from memory.models import Session, SessionTurnClaim
from memory.models.sql import execute


def find(account_id: UUID, session_id: UUID) -> Session:
    """The account's session. Raises NotFound."""
    session = Session.objects.select_related("project").filter(pk=session_id, account_id=account_id).first()
    if session is None:
        raise NotFound("There is no such session in your account.")
    return session


def rename(account_id: UUID, session_id: UUID, title: str) -> Session:
    """Gives a session its title; an empty one takes it away. Raises NotFound."""
    session = find(account_id, session_id)
    session.title = title
    session.save(update_fields=["title"])
    return session


def claim_turn(account_id: UUID, session_id: UUID, owner: str) -> SessionTurnClaim:
    """Takes the session's turn if nobody holds it or its holder gave no sign of life in time; the token is new.

    Raises NotFound, or Conflict saying who holds it and until when.
    """
    find(account_id, session_id)
    token = uuid4()
    # clock_timestamp(), because a rival that this waited for may have taken the turn after the transaction began.
    taken = execute(
        """
        INSERT INTO session_turn_claim AS held (session_id, claim_token, owner, claimed_at, expires_at)
        VALUES (%(session)s, %(token)s, %(owner)s, clock_timestamp(), clock_timestamp() + %(lease)s)
        ON CONFLICT (session_id) DO UPDATE SET claim_token = excluded.claim_token, owner = excluded.owner,
            claimed_at = excluded.claimed_at, expires_at = excluded.expires_at
        WHERE held.expires_at <= clock_timestamp()
        """,
        {"session": session_id, "token": token, "owner": owner, "lease": _lease()},
    )
    if not taken:
        raise _held_by_another(session_id)
    return SessionTurnClaim.objects.get(pk=session_id, claim_token=token)


def heartbeat(account_id: UUID, session_id: UUID, token: UUID) -> SessionTurnClaim:
    """Keeps the turn for another lease. Raises NotFound, or Conflict if the token holds it no longer."""
    find(account_id, session_id)
    kept = execute(
        "UPDATE session_turn_claim SET expires_at = clock_timestamp() + %s WHERE session_id = %s AND claim_token = %s",
        [_lease(), session_id, token],
    )
    if not kept:
        raise _held_by_another(session_id)
    return SessionTurnClaim.objects.get(pk=session_id, claim_token=token)


def release_turn(account_id: UUID, session_id: UUID, token: UUID) -> None:
    """Gives the turn back. Raises NotFound, or Conflict if the token holds it no longer."""
    find(account_id, session_id)
    if not execute("DELETE FROM session_turn_claim WHERE session_id = %s AND claim_token = %s", [session_id, token]):
        raise _held_by_another(session_id)


def live_turn(session_id: UUID) -> SessionTurnClaim | None:
    """Who holds the turn now; None if nobody does."""
    return SessionTurnClaim.objects.filter(pk=session_id, expires_at__gt=Now()).first()


def _lease() -> timedelta:
    return timedelta(seconds=conf.current().turn_lease_seconds)


def _held_by_another(session_id: UUID) -> Conflict:
    held = live_turn(session_id)
    if held is None:
        return Conflict("Nobody holds this session's turn any more. Claim it.")
    return Conflict(
        f"{held.owner} holds this session's turn until {held.expires_at.isoformat()}. "
        "Claim it then, or after it was released."
    )
