"""Roles: who gives and takes them, what is never taken, and that each change is written down."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model

from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import Account, Membership
from memory.models.vocabulary import Role
from memory.services import people
from memory.services.authority import Person, person
from memory.services.people import Change
from tests.services.people import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def mia(account: Account) -> Person:
    return member(account, "maintainer", "mia")


@pytest.fixture
def nina(db: None) -> Any:
    return get_user_model().objects.create_user("nina")


def role(account: Account, user: int) -> str | None:
    return Membership.objects.filter(account=account, user_id=user).values_list("role", flat=True).first()


def journal() -> list[tuple[str, str, str, int]]:
    rows = [(json.loads(row.change_message), row.user_id) for row in LogEntry.objects.order_by("pk")]
    return [(message["action"], message["role"], message["person"], user) for message, user in rows]


class TestAMaintainer:
    def test_gives_changes_and_takes_away_a_role_and_each_is_journalled(
        self, account: Account, mia: Person, nina: Any
    ) -> None:
        people.grant(mia, account.pk, "nina", "viewer")
        assert role(account, nina.pk) == "viewer"
        asked = Change(by=mia, account_id=account.pk, user_id=nina.pk, role=Role.REVIEWER, expected="viewer")
        assert people.change(asked) == Membership.objects.get(user=nina)
        assert role(account, nina.pk) == "reviewer"
        gone = Change(by=mia, account_id=account.pk, user_id=nina.pk, role=None, expected="reviewer")
        assert people.change(gone) is None
        assert role(account, nina.pk) is None
        assert journal() == [
            ("role_granted", "viewer", "nina", mia.user_id),
            ("role_changed", "viewer to reviewer", "nina", mia.user_id),
            ("role_removed", "reviewer", "nina", mia.user_id),
        ]

    def test_may_hand_over_and_leave_but_not_be_the_last_to_leave(
        self, account: Account, mia: Person, nina: Any
    ) -> None:
        for wanted in (None, Role.VIEWER):
            with pytest.raises(Conflict, match="without a maintainer"):
                people.change(
                    Change(by=mia, account_id=account.pk, user_id=mia.user_id, role=wanted, expected="maintainer")
                )
        people.grant(mia, account.pk, "nina", "maintainer")
        people.change(Change(by=mia, account_id=account.pk, user_id=mia.user_id, role=None, expected="maintainer"))
        assert role(account, nina.pk) == "maintainer"
        assert role(account, mia.user_id) is None

    def test_who_cannot_log_in_is_no_other_maintainer(self, account: Account, mia: Person, nina: Any) -> None:
        people.grant(mia, account.pk, "nina", "maintainer")
        nina.is_active = False
        nina.save()
        with pytest.raises(Conflict, match="without a maintainer"):
            people.change(Change(by=mia, account_id=account.pk, user_id=mia.user_id, role=None, expected="maintainer"))

    def test_of_one_account_has_no_say_in_another(self, mia: Person, rival_account: Account, nina: Any) -> None:
        with pytest.raises(Forbidden):
            people.grant(mia, rival_account.pk, "nina", "viewer")
        assert role(rival_account, nina.pk) is None
        assert journal() == []


@pytest.mark.parametrize("has", ["viewer", "judge", "reviewer"])
def test_nobody_below_a_maintainer_gives_roles(account: Account, nina: Any, has: str) -> None:
    who = member(account, has, "vic")
    with pytest.raises(Forbidden):
        people.grant(who, account.pk, "nina", "viewer")
    with pytest.raises(Forbidden):
        people.change(Change(by=who, account_id=account.pk, user_id=who.user_id, role=Role.MAINTAINER, expected=has))
    assert role(account, who.user_id) == has


def test_an_operator_gives_roles_everywhere(account: Account, rival_account: Account, operator: Any, nina: Any) -> None:
    olive = person(operator.pk, "olive", superuser=True)
    for each in (account, rival_account):
        people.grant(olive, each.pk, "nina", "maintainer")
        assert role(each, nina.pk) == "maintainer"


class TestARefusal:
    def test_names_a_person_who_is_not_there(self, account: Account, mia: Person) -> None:
        with pytest.raises(Invalid) as refusal:
            people.grant(mia, account.pk, "nobody", "viewer")
        assert list(refusal.value.errors) == ["username"]

    def test_names_a_role_that_is_none(self, account: Account, mia: Person, nina: Any) -> None:
        with pytest.raises(Invalid) as refusal:
            people.grant(mia, account.pk, "nina", "king")
        assert list(refusal.value.errors) == ["role"]

    def test_comes_where_the_role_is_not_the_one_that_was_seen(self, account: Account, mia: Person, nina: Any) -> None:
        people.grant(mia, account.pk, "nina", "viewer")
        with pytest.raises(Conflict, match="it is viewer now"):
            people.grant(mia, account.pk, "nina", "reviewer")
        with pytest.raises(Conflict, match="changed meanwhile"):
            people.change(Change(by=mia, account_id=account.pk, user_id=nina.pk, role=None, expected="judge"))
        assert role(account, nina.pk) == "viewer"

    def test_comes_where_there_is_nothing_to_take_away(self, account: Account, mia: Person, nina: Any) -> None:
        with pytest.raises(NotFound):
            people.change(Change(by=mia, account_id=account.pk, user_id=nina.pk, role=None))


def test_the_same_role_again_is_no_change(account: Account, mia: Person, nina: Any) -> None:
    people.grant(mia, account.pk, "nina", "viewer")
    people.change(Change(by=mia, account_id=account.pk, user_id=nina.pk, role=Role.VIEWER, expected="viewer"))
    assert len(journal()) == 1
