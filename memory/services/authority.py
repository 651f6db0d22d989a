"""Who may decide what in the browser. The membership says it, and nothing that a request sends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from memory.errors import Forbidden
from memory.models import Membership
from memory.models.vocabulary import Role

#: From the least to the most: each may do what those before it may.
RANKS: Final = (Role.VIEWER, Role.JUDGE, Role.REVIEWER, Role.MAINTAINER)


@dataclass(frozen=True, kw_only=True)
class Person:
    """A logged-in person with their roles, read once a request."""

    user_id: int
    name: str
    roles: Mapping[UUID, Role] = field(default_factory=dict)  # by account
    everywhere: bool = False  # a superuser is maintainer of every account

    @property
    def actor(self) -> str:
        """As journals name them."""
        return f"user:{self.user_id}"

    def role_in(self, account_id: UUID | None) -> Role | None:
        """Their role in an account. What is global belongs to all accounts: there the highest role they have counts."""
        if self.everywhere:
            return Role.MAINTAINER
        if account_id is not None:
            return self.roles.get(account_id)
        return max(self.roles.values(), key=RANKS.index, default=None)

    def may(self, role: Role, account_id: UUID | None) -> bool:
        """Whether their role there is at least this one."""
        has = self.role_in(account_id)
        return has is not None and RANKS.index(has) >= RANKS.index(role)

    def need(self, role: Role, account_id: UUID | None) -> None:
        """Raises Forbidden, saying which role is needed and who can give it."""
        if not self.may(role, account_id):
            has = self.role_in(account_id)
            raise Forbidden(
                f"This needs the role {role.value}; you are {has.value if has else 'no member'} here. "
                "A maintainer of the account or an operator can change your role."
            )

    def accounts(self, role: Role = Role.VIEWER) -> list[UUID] | None:
        """The accounts in which they have at least this role; None means every account."""
        if self.everywhere:
            return None
        return [account for account in self.roles if self.may(role, account)]


def person(user_id: int, name: str, *, superuser: bool = False) -> Person:
    """The person with their memberships."""
    rows = Membership.objects.filter(user_id=user_id).values_list("account_id", "role")
    return Person(
        user_id=user_id, name=name, roles={account: Role(role) for account, role in rows}, everywhere=superuser
    )
