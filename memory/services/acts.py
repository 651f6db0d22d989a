"""What operators do by hand goes into a journal of its own: to keys, to distillations, to vectors."""

from uuid import UUID

from memory.models import OperatorAct
from memory.models.vocabulary import OperatorAction


def note(
    action: OperatorAction, subject: UUID, *, account_id: UUID | None, actor: str, detail: str = ""
) -> OperatorAct:
    """Writes the entry, in the transaction of what was done. `detail` holds codes and no text of anybody's."""
    return OperatorAct.objects.create(
        action=action.value, subject=subject, account=account_id, actor=actor, detail=detail
    )
