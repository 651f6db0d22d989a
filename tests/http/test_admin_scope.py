"""What an operator sets up in the admin: keys, accounts and projects, and the thresholds of embedding spaces."""

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from memory.models import Account, ApiKey, Calibration, EmbeddingSpace, Project
from memory.models.base import new_id
from memory.services.keys import find_key
from tests.conftest import Agent
from tests.http.admin_pages import address, body
from tests.models.rows import insert

pytestmark = pytest.mark.django_db


class TestKeys:
    def add(self, pages: Client, **changes: Any) -> Any:
        account = Account.objects.get_or_create(slug="acme", name="Acme", review_policy="auto")[0]
        sent = {"account": account.pk, "name": "agent", "outcome_source": "machine", "scopes": ["loop"], **changes}
        given = {name: value for name, value in sent.items() if value is not None}
        return pages.post(address(ApiKey, "add"), given, follow=True)

    def test_are_made_by_the_service_and_shown_once(self, pages: Client) -> None:
        (secret,) = re.findall(r"sonder_[a-z0-9]{12}_[\w-]{43}", body(self.add(pages, scopes=["loop", "read"])))
        key = find_key(secret)
        assert key is not None
        assert (key.account.slug, key.outcome_source, key.scopes) == ("acme", "machine", ["loop", "read"])
        assert secret not in body(pages.get(address(ApiKey, "changelist")))

    def test_ignore_a_secret_that_somebody_types(self, pages: Client) -> None:
        typed = {"prefix": "mine", "hashed_key": "0" * 64, "secret": "mine", "revoked_at": "", "id": str(new_id())}
        self.add(pages, **typed)
        key = ApiKey.objects.get()
        assert (key.prefix, key.hashed_key, str(key.pk)) != ("mine", "0" * 64, typed["id"])
        assert key.hashed_key != "0" * 64
        assert key.prefix != "mine"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"outcome_source": None},
            {"outcome_source": ""},
            {"outcome_source": "the boss"},
            {"scopes": None},
            {"scopes": ["everything"]},
            {"account": None},
            {"name": ""},
            {"expires_at_0": "2020-01-01", "expires_at_1": "00:00"},
        ],
        ids=str,
    )
    def test_need_an_account_a_source_and_scopes(self, pages: Client, wrong: dict[str, Any]) -> None:
        answer = self.add(pages, **wrong)
        assert answer.context["adminform"].form.errors
        assert not ApiKey.objects.exists()

    def test_have_no_source_until_one_is_chosen(self, pages: Client) -> None:
        form = pages.get(address(ApiKey, "add")).context["adminform"].form
        assert form["outcome_source"].value() in (None, "")
        assert form["outcome_source"].field.choices[0][0] == ""

    def test_never_show_their_hash(self, pages: Client, agent: Agent) -> None:
        for page in (address(ApiKey, "changelist"), address(ApiKey, "change", agent.key.pk)):
            assert agent.key.hashed_key not in body(pages.get(page))

    def revoke(self, client: Client, key: ApiKey) -> Any:
        sent = {"action": "revoke", "_selected_action": [key.pk], "confirmed": "yes"}
        return client.post(address(ApiKey, "changelist"), sent, follow=True)

    def test_stop_working_when_they_are_revoked_and_keep_the_time(self, pages: Client, agent: Agent) -> None:
        self.revoke(pages, agent.key)
        agent.key.refresh_from_db()
        at = agent.key.revoked_at
        assert at is not None
        assert find_key(agent.token) is None
        assert "Revoked: 0 of 1." in body(self.revoke(pages, agent.key))
        agent.key.refresh_from_db()
        assert agent.key.revoked_at == at

    def test_are_not_revoked_by_a_clerk_who_may_only_read(self, agent: Agent) -> None:
        clerk = get_user_model().objects.create_user("clerk", is_staff=True)
        clerk.user_permissions.add(Permission.objects.get(codename="view_apikey"))
        client = Client()
        client.force_login(clerk)
        self.revoke(client, agent.key)
        assert find_key(agent.token) is not None

    @pytest.mark.parametrize("status", ["live", "revoked", "expired"])
    def test_are_listed_by_whether_they_work(self, pages: Client, status: str) -> None:
        pks = {
            "live": insert("api_key")["id"],
            "revoked": insert("api_key", revoked_at="2026-01-01T00:00:00Z")["id"],
            "expired": insert("api_key", expires_at="2026-01-01T00:00:00Z")["id"],
        }
        answer = pages.get(address(ApiKey, "changelist"), {"status": status})
        assert [key.pk for key in answer.context["cl"].queryset] == [pks[status]]
        assert f'<td class="field-status">{status}</td>' in body(answer)


class TestAccounts:
    @pytest.mark.parametrize("policy", [None, "", "whatever"])
    def test_need_a_review_policy(self, pages: Client, policy: str | None) -> None:
        sent = {"slug": "acme", "name": "Acme"} | ({} if policy is None else {"review_policy": policy})
        assert pages.post(address(Account, "add"), sent).context["adminform"].form.errors["review_policy"]
        assert not Account.objects.exists()

    def test_are_made_and_changed(self, pages: Client) -> None:
        sent = {"slug": "acme", "name": "Acme", "review_policy": "gated"}
        pages.post(address(Account, "add"), sent)
        made = Account.objects.get()
        pages.post(address(Account, "change", made.pk), {**sent, "name": "Acme Rockets", "review_policy": "auto"})
        made.refresh_from_db()
        assert (made.slug, made.name, made.review_policy) == ("acme", "Acme Rockets", "auto")

    def test_say_what_a_slug_is(self, pages: Client) -> None:
        sent = {"slug": "Not A Slug", "name": "Acme", "review_policy": "auto"}
        assert "lower-case letters" in body(pages.post(address(Account, "add"), sent))

    def test_keep_the_slug_of_a_project(self, pages: Client) -> None:
        pk = insert("project", slug="api")["id"]
        pages.post(address(Project, "change", pk), {"slug": "web", "name": "The API"})
        assert Project.objects.values_list("slug", "name").get() == ("api", "The API")

    def test_are_suggested_while_typing(self, pages: Client, account: Account, rival_account: Account) -> None:
        sent = {"term": "riv", "app_label": "memory", "model_name": "apikey", "field_name": "account"}
        found = pages.get(reverse("admin:autocomplete"), sent).json()["results"]
        assert [row["text"] for row in found] == ["rival"]


class TestSpaces:
    SENT = {
        "min_similarity": 0.3,
        "uncorroborated_min_similarity": 0.5,
        "duplicate_similarity": 0.9,
        "prune_similarity": 0.9,
        "tombstone_similarity": 0.9,
        "contradiction_similarity": 0.8,
    }

    def change(self, pages: Client, pk: object, **sent: object) -> Any:
        return pages.post(address(EmbeddingSpace, "change", pk), {**self.SENT, **sent})

    def test_take_thresholds_and_journal_who_set_them(self, pages: Client, operator: Any) -> None:
        pk = insert("embedding_space")["id"]
        assert self.change(pages, pk).status_code == 302
        assert EmbeddingSpace.objects.get(pk=pk).min_similarity == 0.3
        entry = Calibration.objects.get()
        assert (entry.before["min_similarity"], entry.after["min_similarity"]) == (0.4, 0.3)
        assert (entry.space_id, entry.actor) == (pk, f"user:{operator.pk}")

    def test_journal_nothing_where_nothing_changed(self, pages: Client) -> None:
        pk = insert("embedding_space", **self.SENT)["id"]
        assert self.change(pages, pk).status_code == 302
        assert not Calibration.objects.exists()

    def test_keep_their_identity(self, pages: Client) -> None:
        pk = insert("embedding_space")["id"]
        identity = ("model", "revision", "dimension", "is_active")
        before = EmbeddingSpace.objects.values(*identity).get(pk=pk)
        self.change(pages, pk, model="other", revision="9", dimension=5, is_active="on")
        assert EmbeddingSpace.objects.values(*identity).get(pk=pk) == before

    @pytest.mark.parametrize("wrong", [{"min_similarity": 0.6}, {"prune_similarity": 1.5}, {"prune_similarity": ""}])
    def test_refuse_thresholds_out_of_order_or_range(self, pages: Client, wrong: dict[str, object]) -> None:
        pk = insert("embedding_space")["id"]
        assert self.change(pages, pk, **wrong).context["adminform"].form.errors
        assert EmbeddingSpace.objects.get(pk=pk).min_similarity == 0.4
        assert not Calibration.objects.exists()
