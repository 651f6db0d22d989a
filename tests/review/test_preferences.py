"""Preferences in the browser: every version readable, any two comparable, and each change previewed and reversible."""

import json
import re
import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Account, IdempotencyRecord, Interaction, Outcome, Preference, RefinementHistory
from memory.services import preference_history
from memory.services.authority import Person
from memory.services.credit import sweep
from memory.services.preference import Refinement, digest_of, refine, state_of
from tests.services.people import member
from tests.services.play import make_callers, say, serve

FIRST = "I prefer tabs over spaces."
ODD = '<b onclick="x()">bold</b> \u202eright to left\u202c 🎛 ' + "x" * 500
pytestmark = pytest.mark.django_db


def make(account: Account, *texts: str, scope: str = "global", key: str = "tabs") -> Preference:
    """A preference that said each of these in turn."""
    made = Preference.objects.create(
        account=account, scope=scope, key=key, text=texts[0], confidence=0.5, evidence_count=1, enabled=True, revision=1
    )
    for version, text in enumerate(texts[1:], start=1):
        change(made, version, text=text)
    made.refresh_from_db()
    return made


def change(preference: Preference, version: int, actor: str = "api_key:abcd1234", **changes: Any) -> RefinementHistory:
    proposal = Refinement(
        expected_version=version,
        changes=changes,
        evidence=[{"kind": "note", "text": f"Because of {version}."}],
        expected_outcome=f"Hope {version}.",
    )
    return refine(preference.account_id, preference.pk, proposal, actor)


@pytest.fixture
def mia(account: Account) -> Person:
    return member(account, "maintainer", "mia")


@pytest.fixture
def page(client: Client, mia: Person) -> Client:
    """A maintainer's browser."""
    client.force_login(get_user_model().objects.get(pk=mia.user_id))
    return client


@pytest.fixture
def log_in(client: Client, account: Account) -> Callable[[str], Client]:
    def as_role(role: str) -> Client:
        client.force_login(get_user_model().objects.get(pk=member(account, role, role).user_id))
        return client

    return as_role


def url(preference: Preference, *parts: object) -> str:
    return "/".join(["/review/preferences", str(preference.pk), *map(str, parts), ""])


def reason(version: int, **more: Any) -> dict[str, Any]:
    return {"expected_version": version, "reason_code": "worse", "idempotency_key": uuid4().hex, **more}


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


class TestTheList:
    def test_shows_what_changed_last_and_by_whom(self, page: Client, account: Account, mia: Person) -> None:
        found = make(account, FIRST)
        change(found, 1, mia.actor, text="I prefer four spaces.")
        shown = text_of(page.get("/review/preferences/").content.decode())
        assert "I prefer four spaces." in shown
        assert re.search(r"version 2 · mia changed it just now : Hope 1\.", shown)

    def test_says_what_preferences_are_where_there_are_none(self, page: Client) -> None:
        assert "No preferences yet" in page.get("/review/preferences/").content.decode()

    def test_says_so_where_nothing_matches_the_words(self, page: Client, account: Account) -> None:
        make(account, FIRST)
        shown = page.get("/review/preferences/?q=tabs+zebra").content.decode()
        assert "No preference has these words" in shown
        assert FIRST not in shown
        assert FIRST in page.get("/review/preferences/?q=spaces+tabs").content.decode()

    def test_who_is_in_no_account_is_told_who_can_change_that(self, client: Client, db: None) -> None:
        client.force_login(get_user_model().objects.create_user("nobody"))
        answer = client.get("/review/preferences/")
        assert answer.status_code in (200, 403)
        assert "maintainer" in answer.content.decode()

    def test_asks_for_a_login_first(self, client: Client, db: None) -> None:
        answer = client.get("/review/preferences/")
        assert answer.status_code == 302
        assert answer.url.startswith("/login/")

    @pytest.mark.parametrize("number", ["1", "x", "-1", "²", "9" * 30])
    def test_a_page_beyond_the_list_is_an_empty_page(self, page: Client, account: Account, number: str) -> None:
        make(account, FIRST)
        assert page.get(f"/review/preferences/?page={number}").status_code == 200

    def test_shows_nothing_of_another_account(self, page: Client, rival_account: Account) -> None:
        theirs = make(rival_account, "I prefer secrecy.", "I prefer silence.")
        assert b"silence" not in page.get("/review/preferences/").content
        for parts in ((), ("compare",), ("edit",), ("restore", 1), ("revert", 2)):
            assert page.get(url(theirs, *parts)).status_code == 404
        for parts in (("edit",), ("restore", 1), ("revert", 2)):
            assert page.post(url(theirs, *parts), reason(2, text="Mine now.")).status_code == 404
        assert Preference.objects.get().text == "I prefer silence."


class TestAPreference:
    def test_shows_every_version_with_who_made_it_and_why(self, page: Client, account: Account) -> None:
        shown = text_of(page.get(url(make(account, FIRST, "Second.", "Third."))).content.decode())
        assert "3 versions" in shown
        for words in (FIRST, "Because of 1. Hope 1.", "key abcd1234", "Restore version 2", "Revert refinement 3"):
            assert words in shown

    def test_marks_the_words_that_changed_last(self, page: Client, account: Account) -> None:
        shown = page.get(url(make(account, FIRST, "I prefer tabs over blanks."))).content.decode()
        assert re.search(r"<del>.*removed.*spaces", shown)
        assert re.search(r"<ins>.*added.*blanks", shown)

    def test_says_that_one_version_has_no_history_yet(self, page: Client, account: Account) -> None:
        shown = page.get(url(make(account, FIRST))).content.decode()
        assert "No history yet" in shown
        assert "Restore version" not in shown
        assert "there is no refinement to revert" in shown
        assert "No history yet" in page.get(url(Preference.objects.get(), "compare")).content.decode()

    @pytest.mark.parametrize("role", ["viewer", "judge", "reviewer"])
    def test_who_may_not_change_it_sees_disabled_buttons_with_the_reason(
        self, log_in: Callable[[str], Client], account: Account, role: str
    ) -> None:
        page, found = log_in(role), make(account, FIRST, "Second.")
        shown = page.get(url(found)).content.decode()
        assert "needs the role maintainer" in shown
        assert shown.count("disabled title=") == 3  # edit, revert, restore version 1
        assert "/restore/" not in shown
        for parts in (("edit",), ("restore", 1), ("revert", 2)):
            assert "disabled" in page.get(url(found, *parts)).content.decode()
            answer = page.post(url(found, *parts), reason(2, text="Mine.", note="so", expected_outcome="more"))
            assert answer.status_code == 403
        assert state_of(Preference.objects.get())["text"] == "Second."

    def test_markup_and_odd_text_are_shown_as_they_are(self, page: Client, account: Account) -> None:
        found = make(account, ODD, ODD + " end")
        for parts in ((), ("compare",), ("edit",), ("restore", 1)):
            shown = page.get(url(found, *parts) + ("?a=1&b=2" if parts == ("compare",) else "")).content.decode()
            assert "<b onclick" not in shown
            assert "🎛" in shown

    def test_counts_how_work_went_while_each_version_was_in_force(self, page: Client, account: Account) -> None:
        callers, found = make_callers(account), make(account, FIRST)
        for n, signal in enumerate(["failed"] * 20 + ["accepted"] * 10):
            say(callers["caller"], serve(account, f"task {n}", []).pk, signal)
        change(found, 1, text="Second.")
        say(callers["caller"], serve(account, "after", []).pk, "accepted")
        sweep()
        shown = text_of(page.get(url(found)).content.decode())
        assert "After it 33% of 30 went well (plausibly 19% to 51%)" in shown
        assert "After it 1 of 1 went well: too few to tell" in shown

    def test_a_projects_preference_counts_the_projects_work_only(self, page: Client, account: Account) -> None:
        found = make(account, FIRST, scope="project:api")
        say(make_callers(account)["caller"], serve(account, "elsewhere", []).pk, "accepted")
        sweep()
        assert "No judged work came after it yet" in page.get(url(found)).content.decode()

    def test_costs_the_same_queries_however_many_versions_there_are(
        self, page: Client, account: Account, django_assert_num_queries: Any
    ) -> None:
        few, many = make(account, "1.", "2."), make(account, *[f"{n}." for n in range(40)], key="many")
        counts = []
        for found in (few, many):
            with django_assert_num_queries(10) as seen:
                assert page.get(url(found)).status_code == 200
            counts.append(len(seen))
        assert counts[0] == counts[1]

    def test_tells_a_page_that_asks_which_version_is_the_present_one(
        self, page: Client, account: Account, rival_account: Account
    ) -> None:
        found = make(account, FIRST, "Second.")
        assert page.get(url(found, "version")).content == b"2"
        assert 'data-seen="2" hidden' in page.get(url(found)).content.decode()
        assert page.get(url(make(rival_account, FIRST), "version")).status_code == 404


class TestComparing:
    def test_any_two_versions_by_a_plain_address_the_earlier_one_first(self, page: Client, account: Account) -> None:
        found = make(account, "One two.", "One three.", "Four three.")
        shown = page.get(url(found, "compare") + "?a=3&b=1").content.decode()
        assert "Version 1 and version 3" in shown
        assert "2 refinements between them" in shown
        assert re.search("<del>.*?One", shown)
        assert re.search("<ins>.*?Four", shown)

    def test_side_by_side_each_text_is_whole(self, page: Client, account: Account) -> None:
        found = make(account, "One two.", "One three.")
        shown = page.get(url(found, "compare") + "?a=1&b=2&view=side").content.decode()
        left, right = shown.split('id="v-b"')
        assert "three" not in left.split('id="v-a"')[1]
        assert "two" not in right

    @pytest.mark.parametrize("query", ["", "?a=1", "?a=1&b=1", "?a=x&b=²"])
    def test_less_than_two_versions_ask_for_two(self, page: Client, account: Account, query: str) -> None:
        shown = page.get(url(make(account, "One.", "Two."), "compare") + query)
        assert shown.status_code == 200
        assert "Choose two different versions" in shown.content.decode()

    def test_a_version_that_is_not_there_is_not_found(self, page: Client, account: Account) -> None:
        assert page.get(url(make(account, "One.", "Two."), "compare") + "?a=1&b=7").status_code == 404


class TestRestoring:
    def test_previews_what_would_change_and_whose_refinements_are_left_behind(
        self, page: Client, account: Account, mia: Person
    ) -> None:
        found = make(account, "One.", "Two.")
        change(found, 2, mia.actor, text="Three.")
        shown = text_of(page.get(url(found, "restore", 1)).content.decode())
        assert "It becomes version 4, with the text and state of version 1" in shown
        assert "What 2 refinements did is left behind" in shown
        for words in ("by mia", "by key abcd1234", "Because of 2.", "Ctrl Enter"):
            assert words in shown

    def test_writes_a_new_version_equal_to_the_old_one_byte_for_byte(self, page: Client, account: Account) -> None:
        odd = "Tabs,\tnot spaces \u202ebackwards\u202c; é is not é. 🎛\n  Two lines.  "
        found = make(account, odd, "Two.")
        change(found, 2, enabled=False)
        answer = page.post(url(found, "restore", 1), reason(3, note="It was right."))
        assert (answer.status_code, answer.url) == (302, url(found))
        found.refresh_from_db()
        assert (found.text, found.enabled, found.revision) == (odd, True, 4)
        made = RefinementHistory.objects.get(after_version=4)
        first = RefinementHistory.objects.get(after_version=2)
        assert (made.operation, made.after_json, made.after_digest) == ("apply", first.before_json, first.before_digest)
        assert made.evidence_json == [{"kind": "note", "text": "Work got worse with it. It was right."}]

    def test_a_restore_is_restored_and_reverted_the_same_way(self, page: Client, account: Account) -> None:
        found = make(account, "One.", "Two.")
        page.post(url(found, "restore", 1), reason(2))
        page.post(url(found, "restore", 2), reason(3))
        assert Preference.objects.get().text == "Two."
        answer = page.post(url(found, "revert", 4), reason(4, note="Once more."))
        assert answer.status_code == 302
        assert (Preference.objects.get().text, Preference.objects.get().revision) == ("One.", 5)
        undone = RefinementHistory.objects.get(after_version=5)
        assert (undone.operation, undone.parent.after_version) == ("rollback", 4)
        assert undone.evidence_json[1]["text"] == "Work got worse with it. Once more."

    def test_needs_a_reason_a_note_for_other_and_a_version_and_keeps_what_was_typed(
        self, page: Client, account: Account
    ) -> None:
        found = make(account, "One.", "Two.")
        for wrong, words in (
            ({"reason_code": ""}, "choose a reason."),
            ({"reason_code": "because"}, "choose a reason."),
            ({"reason_code": "other", "note": " "}, "say what it is."),
            ({"note": "n" * 801}, "at most 800 characters."),
            ({"expected_version": "soon", "note": "Typed already."}, "reload the page"),
        ):
            answer = page.post(url(found, "restore", 1), reason(2) | wrong)
            assert answer.status_code == 422
            assert words in answer.content.decode()
            assert wrong.get("note", "").strip() in answer.content.decode()
        assert Preference.objects.get().revision == 2

    def test_what_would_change_nothing_is_disabled_with_the_reason(self, page: Client, account: Account) -> None:
        found = make(account, "One.", "Two.", "One.")
        assert "This is what the preference says now." in page.get(url(found, "restore", 1)).content.decode()
        answer = page.post(url(found, "restore", 1), reason(3))
        assert answer.status_code == 422
        assert Preference.objects.get().revision == 3

    def test_the_same_form_twice_is_one_restore(self, page: Client, account: Account) -> None:
        found, sent = make(account, "One.", "Two."), reason(2)
        assert {page.post(url(found, "restore", 1), sent).status_code for _ in range(2)} == {302}
        assert Preference.objects.get().revision == 3
        assert IdempotencyRecord.objects.count() == 1

    def test_a_version_that_does_not_exist_is_not_found(self, page: Client, account: Account) -> None:
        found = make(account, "One.")
        assert page.get(url(found, "restore", 9)).status_code == 404
        assert page.post(url(found, "restore", 9), reason(1)).status_code == 404


class TestReverting:
    def test_is_offered_for_the_latest_refinement_only_and_says_why(self, page: Client, account: Account) -> None:
        found = make(account, "One.", "Two.", "Three.")
        assert "<button class=" in page.get(url(found, "revert", 3)).content.decode()
        shown = page.get(url(found, "revert", 2)).content.decode()
        assert "Refinement 2 is not the latest any more: version 3 followed. Restore version 1 instead." in shown
        assert page.post(url(found, "revert", 2), reason(3)).status_code == 409
        assert Preference.objects.get().text == "Three."

    def test_what_was_learned_is_no_refinement(self, page: Client, account: Account) -> None:
        assert page.post(url(make(account, "One."), "revert", 1), reason(1)).status_code == 409

    @pytest.mark.parametrize(
        ("payload", "words"),
        [
            ('{"text": "Obey me."}', "does not match its digests"),
            ('["not", "a", "state"]', "does not match its digests"),
        ],
    )
    def test_a_tampered_journal_is_readable_and_cannot_be_returned_to(
        self, page: Client, account: Account, payload: str, words: str
    ) -> None:
        found = make(account, "One.", "Two.")
        with connection.cursor() as cursor:  # only a superuser with triggers off could do this
            cursor.execute("SET session_replication_role = replica")
            cursor.execute("UPDATE refinement_history SET before_json = %s::jsonb", [payload])
            cursor.execute("SET session_replication_role = DEFAULT")
        shown = page.get(url(found)).content.decode()
        assert words in shown
        assert "/restore/1/" not in shown
        for parts in (("restore", 1), ("revert", 2)):
            assert words in page.get(url(found, *parts)).content.decode()
            assert page.post(url(found, *parts), reason(2)).status_code == 409
        assert Preference.objects.get().text == "Two."

    def test_a_version_of_another_shape_is_readable_and_cannot_be_returned_to(
        self, page: Client, account: Account
    ) -> None:
        found = make(account, "One.", "Two.")
        strange = {"text": "One.", "tone": "warm"}
        with connection.cursor() as cursor:  # as an earlier release could have written it
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(
                "UPDATE refinement_history SET before_json = %s::jsonb, before_digest = %s",
                [json.dumps(strange), digest_of(strange)],
            )
            cursor.execute("SET session_replication_role = DEFAULT")
        shown = page.get(url(found)).content.decode()
        assert "One." in shown
        assert shown.count("another shape") >= 2
        for parts in (("restore", 1), ("revert", 2)):
            assert "another shape" in page.get(url(found, *parts)).content.decode()
            assert page.post(url(found, *parts), reason(2)).status_code == 409
        assert Preference.objects.get().text == "Two."


class TestEditing:
    def test_a_persons_own_statement_is_evidence(self, page: Client, account: Account, mia: Person) -> None:
        found = make(account, FIRST)
        answer = page.post(
            url(found, "edit"),
            {
                "expected_version": 1,
                "text": "First line.\r\nSecond line.",
                "enabled": "on",
                "note": "We agreed on it.",
                "expected_outcome": "Fewer edits.",
            },
        )
        assert answer.status_code == 302
        made = RefinementHistory.objects.get()
        assert made.after_json["text"] == "First line.\nSecond line."
        assert (made.actor, made.evidence_json) == (mia.actor, [{"kind": "note", "text": "We agreed on it."}])

    def test_outcomes_of_the_account_may_be_named_and_no_others(
        self, page: Client, account: Account, rival_account: Account
    ) -> None:
        found, said = make(account, FIRST), []
        for owner in (account, rival_account):
            caller = make_callers(owner)["caller"]
            work = serve(owner, "resize the photo", [])
            say(caller, work.pk, "failed")
            said.append(Outcome.objects.get(interaction=work))
        shown = page.get(url(found, "edit")).content.decode()
        assert [str(outcome.pk) in shown for outcome in said] == [True, False]
        fields = {"expected_version": 1, "text": "Else.", "note": "So.", "expected_outcome": "More."}
        refused = page.post(url(found, "edit"), fields | {"outcome": [said[1].pk]})
        assert refused.status_code == 422
        assert "there is no outcome" in refused.content.decode()
        assert page.post(url(found, "edit"), fields | {"outcome": [said[0].pk]}).status_code == 302
        assert RefinementHistory.objects.get().evidence_json[1] == {"kind": "outcome", "id": str(said[0].pk)}

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"text": ""}, "use 1 to 1000 characters"),
            ({"text": FIRST, "enabled": "on"}, "changes nothing"),
            ({"text": "Use ghp_abcdefghijklmnopqrstuvwxyz0123456789."}, "something private"),
            ({"note": ""}, "say in 1 to 1000 characters why"),
            ({"expected_outcome": ""}, "what should get better"),
            ({"outcome": "nothing"}, "names nothing"),
        ],
    )
    def test_a_refusal_names_the_field_and_keeps_what_was_typed(
        self, page: Client, account: Account, wrong: dict[str, str], words: str
    ) -> None:
        found = make(account, FIRST)
        typed = {"expected_version": 1, "text": "Mine.", "note": "A long story.", "expected_outcome": "More."} | wrong
        answer = page.post(url(found, "edit"), typed)
        assert answer.status_code == 422
        shown = answer.content.decode()
        assert words in shown
        assert typed["note"] in shown
        assert Preference.objects.get().revision == 1


class TestConflicts:
    def test_base_theirs_and_mine_are_shown_and_my_text_is_kept(
        self, page: Client, account: Account, mia: Person
    ) -> None:
        found = make(account, "Base text.", "Their text.")
        sent = {
            "expected_version": 1,
            "text": "My <own> text.",
            "enabled": "on",
            "note": "My reason.",
            "expected_outcome": "More.",
        }
        answer = page.post(url(found, "edit"), sent)
        assert answer.status_code == 409
        shown = answer.content.decode()
        for words in ("Base text.", "Their", "My &lt;own&gt; text.", "My reason.", "Apply mine on top", "Take theirs"):
            assert words in shown
        assert Preference.objects.get().text == "Their text."
        form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', shown.split("Apply mine on top")[0]))
        assert form["expected_version"] == "2"
        on_top = page.post(url(found, "edit"), sent | {"expected_version": 2})
        assert on_top.status_code == 302
        assert (Preference.objects.get().text, Preference.objects.get().revision) == ("My <own> text.", 3)

    def test_edit_opens_the_form_with_my_text_and_the_present_version(self, page: Client, account: Account) -> None:
        found = make(account, "Base.", "Theirs.")
        answer = page.post(
            url(found, "edit"), {"again": "1", "expected_version": 2, "text": "Mine.", "note": "Why.", "enabled": "on"}
        )
        assert answer.status_code == 200
        shown = answer.content.decode()
        assert ">Mine.</textarea>" in shown
        assert ">Why.</textarea>" in shown
        assert 'name="expected_version" value="2"' in shown
        assert Preference.objects.get().revision == 2

    def test_a_restore_from_an_old_page_is_a_conflict_too(self, page: Client, account: Account) -> None:
        found = make(account, "One.", "Two.", "Three.")
        answer = page.post(url(found, "restore", 1), reason(2))
        assert answer.status_code == 409
        shown = answer.content.decode()
        assert "What you saw: version 2" in shown
        assert 'name="enabled" value="on"' in shown
        assert Preference.objects.get().text == "Three."


def test_reading_writes_nothing(page: Client, account: Account) -> None:
    found = make(account, "One.", "Two.", "Three.")
    tables = (Preference, RefinementHistory, Interaction, IdempotencyRecord)

    def rows() -> list[Any]:
        return [list(table.objects.order_by("pk").values()) for table in tables]

    before = rows()
    paths = [
        url(found), url(found, "compare") + "?a=1&b=3", url(found, "edit"), url(found, "restore", 1),
        url(found, "revert", 3), "/review/preferences/",
    ]  # fmt: skip
    for path in paths:
        assert page.get(path).status_code == 200
    assert rows() == before


def test_restoring_in_the_service_needs_what_exists_and_differs(account: Account, rival_account: Account) -> None:
    found = make(account, "One.", "Two.")

    def go(owner: Account, number: int, version: int) -> RefinementHistory:
        return preference_history.restore(
            owner.pk, found.pk, number, expected_version=version, reason="So.", actor="system"
        )

    with pytest.raises(NotFound):
        go(rival_account, 1, 2)
    with pytest.raises(NotFound, match="no version 7"):
        go(account, 7, 2)
    with pytest.raises(Conflict):
        go(account, 1, 1)
    with pytest.raises(Invalid, match="changes nothing"):
        go(account, 2, 2)


@pytest.mark.django_db(transaction=True)
def test_of_ten_restores_with_one_expected_version_exactly_one_wins(account: Account) -> None:
    found = make(account, "One.", "Two.")
    ends: list[str] = []
    gate = threading.Barrier(10)

    def work() -> None:
        gate.wait()
        try:
            preference_history.restore(account.pk, found.pk, 1, expected_version=2, reason="So.", actor="system")
            ends.append("won")
        except Conflict:
            ends.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(ends) == ["conflict"] * 9 + ["won"]
    assert (Preference.objects.get().revision, Preference.objects.get().text) == (3, "One.")
