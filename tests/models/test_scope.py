"""Accounts, projects, members and keys as PostgreSQL keeps them."""

import pytest

from memory.models import Account, ApiKey
from tests.models.refusals import Checks, Tables, Uniques
from tests.models.rows import new, word
from tests.models.rules import Unique, digests, links, not_empty, refused, shape, words

SLUGS = ["a", "7", "a" * 63, "rocket_lab.fuel-2"]
NO_SLUGS = ["", "-a", ".a", "Rockets", "a b", "a/b", "é", "a\n", "a\nb"]


class TestScope(Tables, Checks, Uniques):
    tables = {
        "account": {},
        "project": links("account_id"),
        "membership": links("account_id", "user_id"),
        "api_key": links("account_id"),
    }
    checks = [
        words("account", "review_policy", "auto", "gated"),
        shape("account", "slug", SLUGS, NO_SLUGS),
        shape("project", "slug", SLUGS, NO_SLUGS),
        words("membership", "role", "viewer", "judge", "reviewer", "maintainer"),
        words("api_key", "outcome_source", "caller", "machine", "attributed", "self_curriculum", "unknown"),
        digests("api_key", "hashed_key"),
        not_empty("api_key", "prefix"),
    ]
    uniques = [
        Unique(name="account_slug_key", table="account", key=("slug",), passes=[{"slug": word}]),
        Unique(
            name="project_account_slug_unique",
            table="project",
            key=("account_id", "slug"),
            passes=[{"account_id": new("account")}, {"slug": word}],
        ),
        Unique(
            name="membership_account_user_unique",
            table="membership",
            key=("account_id", "user_id"),
            passes=[{"account_id": new("account")}, {"user_id": new("auth_user")}],
        ),
        Unique(name="api_key_prefix_key", table="api_key", key=("prefix",), passes=[{"prefix": word}]),
    ]


@pytest.mark.django_db
def test_an_account_without_a_review_policy_is_refused_through_the_orm_too() -> None:
    with refused(by="account_review_policy_vocabulary"):
        Account.objects.create(slug="acme", name="Acme")


@pytest.mark.django_db
@pytest.mark.parametrize("source", [{}, {"outcome_source": ""}, {"outcome_source": "invented"}])
def test_a_key_that_does_not_say_who_judged_is_refused_through_the_orm_too(source: dict[str, str]) -> None:
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    with refused(by="api_key_outcome_source_vocabulary"):
        ApiKey.objects.create(account=account, name="agent", prefix="p", hashed_key="0" * 64, **source)
