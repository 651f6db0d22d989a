"""The plan in the browser: readable at any time, applied by a maintainer who typed the number, and undone in one go."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import (
    Account,
    Comment,
    Contradiction,
    EmbeddingSpace,
    Lesson,
    LessonTombstone,
    LessonUsage,
    PruneArchive,
    PrunePlan,
    TrustEvent,
)
from memory.models.vocabulary import Verdict
from memory.rules.pruning import Contender, why_kept
from memory.services import applying, pruning
from memory.services.adjudication import decide
from memory.services.authority import Person
from memory.services.credit import sweep
from review.queries import prune as queries
from tests.services.near import place
from tests.services.people import decision, member
from tests.services.play import make_callers, say, serve

pytestmark = pytest.mark.django_db
REASON = "Each is right in its own place."


@pytest.fixture
def mia(account: Account) -> Person:
    return member(account, "maintainer", "mia")


@pytest.fixture
def page(client: Client, mia: Person) -> Client:
    """A maintainer's browser."""
    client.force_login(get_user_model().objects.get(pk=mia.user_id))
    return client


def twins(lesson: Callable[..., Lesson], space: EmbeddingSpace, topic: int = 0, **more: Any) -> tuple[Lesson, Lesson]:
    """The first is kept: its text is longer."""
    kept = lesson(f"Close each `cursor_{topic}` before its connection goes back to the pool.", **more)
    gone = lesson(f"Close `cursor_{topic}` before the connection goes to its pool.", **more)
    return place(kept, space, 0.99, topic), place(gone, space, 0.985, topic)


@pytest.fixture
def pair(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> tuple[Lesson, Lesson]:
    return twins(lesson, space)


def plan_now() -> PrunePlan:
    return pruning.current(None)


def url(plan: PrunePlan, *parts: str) -> str:
    return "/".join(["/review/prune", plan.digest, *parts, ""])


def form(plan: PrunePlan, typed: object, *, but: dict[Lesson, tuple[str, str]] | None = None) -> dict[str, Any]:
    """The form as the page sends it: every row, the checked ones, and why the others stay."""
    but = but or {}
    rows = [m["lesson"] for cluster in plan.clusters for m in cluster["members"]]
    out = {str(lesson.pk): why for lesson, why in but.items()}
    sent: dict[str, Any] = {"row": rows, "merge": [row for row in rows if row not in out], "count": typed}
    for row, (code, note) in out.items():
        sent |= {f"reason_{row}": code, f"note_{row}": note}
    return sent


def shown(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


class TestReading:
    def test_says_who_is_kept_who_goes_and_why(self, page: Client, account: Account, pair: Any) -> None:
        kept, gone = pair
        callers = make_callers(account)
        for n, signal in enumerate(["failed", "accepted", "accepted"]):
            say(callers["caller"], serve(account, f"task {n}", [kept]).pk, signal)
        say(callers["caller"], serve(account, "other", [gone]).pk, "failed")
        sweep()
        text = shown(page.get(url(plan_now())))
        for words in (
            kept.text.replace("`", ""),  # shown as code
            gone.text.replace("`", ""),
            "33% lost (1 of 3)",
            "100% lost (1 of 1)",
            "Kept because callers judged it more often: 3 against 1.",
            "same claim",
            "1 rows of evidence",
            "2 in service when it was made",
            "Cosine from 0.93",
        ):
            assert words in text

    def test_the_only_plan_is_shown_at_once_and_several_as_a_list(
        self, page: Client, account: Account, rival_account: Account, lesson: Any, space: Any, settings: Any
    ) -> None:
        for owner in (account, rival_account):
            twins(lesson, space, account_id=owner.pk)
            pruning.current(owner.pk)
        only = page.get("/review/prune/")
        assert "Apply the plan" in shown(only)
        plan_now()
        several = shown(page.get("/review/prune/"))
        assert "Shared by all accounts" in several
        assert "Acme" in several
        assert "Rival" not in several

    def test_a_plan_of_another_account_does_not_exist(
        self, page: Client, rival_account: Account, lesson: Any, space: Any
    ) -> None:
        twins(lesson, space, account_id=rival_account.pk)
        plan = pruning.current(rival_account.pk)
        for parts in ((), ("restore",)):
            assert page.get(url(plan, *parts)).status_code == 404
        assert page.get(f"/review/prune/{plan.digest}/plan.csv").status_code == 404
        for parts in (("apply",), ("restore",)):
            assert page.post(url(plan, *parts), form(plan, 1)).status_code == 404
        assert page.post("/review/prune/replan/", {"account": rival_account.pk}).status_code == 403
        assert Lesson.objects.count() == 2

    def test_without_any_plan_it_says_what_one_is_and_offers_to_make_one(self, page: Client, space: Any) -> None:
        assert "No plan yet" in shown(page.get("/review/prune/"))
        answer = page.post("/review/prune/replan/", {"account": ""})
        assert answer.url == url(PrunePlan.objects.get())

    def test_nothing_to_prune_shows_the_threshold_and_the_nearest_candidates(
        self, page: Client, lesson: Any, space: Any
    ) -> None:
        place(lesson("Name every index after its table and its columns."), space, 0.999, 3)
        place(lesson("Call an index by the columns that it covers."), space, 0.88, 3)
        text = shown(page.get(url(plan_now())))
        assert "Nothing to prune" in text
        assert "0.93 or more alike" in text
        assert "Name every index" in text
        assert re.search(r"0\.8\d\d they (are not near enough|make different claims)", text)

    def test_the_three_riskiest_rows_come_first(self, page: Client, account: Account, lesson: Any, space: Any) -> None:
        pairs = [twins(lesson, space, topic) for topic in range(5)]
        make_callers(account)
        for topic, (_, gone) in enumerate(pairs):
            for n in range(topic):
                serve(account, f"task {n}", [gone])
        reading = queries.read(plan_now())
        assert [row.side.lesson for row, _ in reading.riskiest] == [pairs[n][1].pk for n in (4, 3, 2)]
        assert [group.rows[0].side.lesson for group in reading.groups][:2] == [pairs[4][1].pk, pairs[3][1].pk]
        text = shown(page.get(url(plan_now())))
        assert text.index("Look at these first") < text.index("5 groups")

    def test_a_row_with_a_better_record_than_the_kept_one_is_marked(
        self, page: Client, account: Account, pair: Any
    ) -> None:
        kept, gone = pair
        caller = make_callers(account)["caller"]
        for n in range(12):
            say(caller, serve(account, f"kept {n}", [kept]).pk, "failed" if n < 2 else "accepted")
            if n < 11:
                say(caller, serve(account, f"gone {n}", [gone]).pk, "accepted")
        sweep()
        text = shown(page.get(url(plan_now())))
        assert "Better record than the kept one" in text
        assert re.search(r"\+17 points losses of what is kept against what goes, plausibly -\d+ to \+\d+", text)

    def test_simulating_counts_what_would_have_been_another_text(
        self, page: Client, account: Account, rival_account: Account, pair: Any
    ) -> None:
        kept, gone = pair
        make_callers(account), make_callers(rival_account)
        serve(account, "alone", [gone])
        serve(account, "both", [kept, gone])
        serve(account, "neither", [])
        serve(account, "held back", [], [gone])
        serve(rival_account, "elsewhere", [gone])
        text = shown(page.get(url(plan_now()) + "?simulate=1"))
        assert "Of the last 4 interactions of your accounts, 2 were handed one of these lessons" in text
        assert "2 servings would have been the kept one instead, and in 1 it was there too" in text

    def test_costs_the_same_queries_however_many_rows_there_are(
        self, page: Client, lesson: Any, space: Any, django_assert_num_queries: Any
    ) -> None:
        twins(lesson, space)
        for topic in (1, 2, 3):
            plan = plan_now()
            with django_assert_num_queries(17):
                assert page.get(url(plan)).status_code == 200
            twins(lesson, space, topic)

    def test_reading_simulating_and_exporting_write_nothing(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        before = (
            list(PrunePlan.objects.values()),
            list(Lesson.objects.values("pk", "state")),
            TrustEvent.objects.count(),
        )
        for path in (url(plan), url(plan) + "?simulate=1", url(plan, "restore"), "/review/prune/"):
            assert page.get(path).status_code == 200
        for kind in ("csv", "ndjson"):
            assert page.get(f"/review/prune/{plan.digest}/plan.{kind}").status_code == 200
        after = list(PrunePlan.objects.values()), list(Lesson.objects.values("pk", "state")), TrustEvent.objects.count()
        assert after == before

    def test_markup_is_shown_as_it_is(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        Lesson.objects.filter(pk=pair[1].pk).update(text='<img src=x onerror="x()"> \u202e🎛 ' + "y" * 1900)
        answer = page.get(url(plan)).content.decode()
        assert "<img src=x" not in answer
        assert "&lt;img" in answer


@pytest.mark.parametrize(
    ("keeper", "others", "words"),
    [
        ({"caller": 3}, [{"caller": 1}, {"caller": 2}], "callers judged it more often: 3 against 2"),
        ({"machine": 3}, [{}], "the runtime judged it more often: 3 against 0"),
        ({"wins": 2}, [{"wins": 1}], "it has more wins: 2 against 1"),
        ({"length": 9}, [{"length": 8}], "its text is longer: 9 against 8"),
        ({"caller": 1, "wins": 1}, [{"caller": 1}, {}], "it has the best record of them, taken class by class"),
        ({}, [{}], "nothing sets them apart but its age"),
    ],
)
def test_why_one_is_kept_is_the_first_thing_that_sets_it_apart(
    keeper: dict[str, int], others: list[dict[str, int]], words: str
) -> None:
    def contender(**figures: int) -> Contender:
        return Contender(lesson=uuid4(), **{"caller": 0, "machine": 0, "wins": 0, "length": 1, "created": 0} | figures)

    assert why_kept(contender(**keeper), [contender(**other) for other in others]) == words


class TestApplying:
    def test_merges_what_is_checked_and_says_so(self, page: Client, pair: Any, mia: Person) -> None:
        kept, gone = pair
        plan = plan_now()
        answer = page.post(url(plan, "apply"), form(plan, 1), follow=True)
        assert "1 lesson merged." in shown(answer)
        assert list(Lesson.objects.all()) == [kept]
        assert TrustEvent.objects.get(kind="merged").actor == mia.actor
        text = shown(page.get(url(plan)))
        assert gone.text in text, "the archive still has what was merged"
        assert "Restore everything" in text

    @pytest.mark.parametrize("typed", ["", "2", "one", "²", "1.0", "-1"])
    def test_needs_the_number_typed(self, page: Client, pair: Any, typed: str) -> None:
        plan = plan_now()
        answer = page.post(url(plan, "apply"), form(plan, typed))
        assert answer.status_code == 422
        assert f'value="{typed}"' in answer.content.decode()
        assert Lesson.objects.count() == 2

    def test_an_unchecked_row_stays_with_its_reason_and_is_not_proposed_again(
        self, page: Client, lesson: Any, space: Any, mia: Person
    ) -> None:
        (_, gone), (other, stays) = twins(lesson, space, 0), twins(lesson, space, 1)
        plan = plan_now()
        sent = form(plan, 1, but={stays: ("different_scope", "Ours is older.")})
        assert page.post(url(plan, "apply"), sent).status_code == 302
        assert not Lesson.objects.filter(pk=gone.pk).exists()
        assert Lesson.objects.filter(pk=stays.pk).exists()
        said = Comment.objects.get(subject=stays.pk)
        assert (said.author_id, said.text) == (
            mia.user_id,
            f"Kept when plan {plan.digest[:8]} was applied: {REASON} Ours is older.",
        )
        assert Contradiction.objects.get().decided_by_id == mia.user_id
        assert plan_now().clusters == []
        assert "kept by a person" in shown(page.get(url(plan)))
        assert other.pk in Lesson.objects.values_list("pk", flat=True)

    @pytest.mark.parametrize(("code", "note"), [("", ""), ("because", ""), ("other", ""), ("other", "n" * 801)])
    def test_an_unchecked_row_needs_a_reason_and_everything_typed_is_kept(
        self, page: Client, pair: Any, code: str, note: str
    ) -> None:
        plan = plan_now()
        answer = page.post(url(plan, "apply"), form(plan, 0, but={pair[1]: (code, note)}))
        assert answer.status_code == 422
        text = answer.content.decode()
        assert "choose a reason." in text or "say what it is." in text or "at most 800 characters." in text
        assert note in text
        box = re.search(rf'<input type="checkbox" name="merge" value="{pair[1].pk}"[^>]*>', text)
        assert box
        assert "checked" not in box[0]
        assert Lesson.objects.count() == 2

    def test_twice_is_once(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        assert {page.post(url(plan, "apply"), form(plan, 1)).status_code for _ in range(2)} == {302}
        assert TrustEvent.objects.filter(kind="merged").count() == 1

    @pytest.mark.parametrize("role", ["viewer", "judge", "reviewer"])
    def test_nobody_but_a_maintainer_may_and_the_others_see_why(
        self, client: Client, account: Account, pair: Any, role: str
    ) -> None:
        client.force_login(get_user_model().objects.get(pk=member(account, role, "vic").user_id))
        plan = plan_now()
        answer = client.get(url(plan)).content.decode()
        assert "needs the role maintainer" in answer
        assert re.search(r'id="do-apply"[^>]*disabled', answer)
        assert client.post(url(plan, "apply"), form(plan, 1)).status_code == 403
        assert client.post(url(plan, "restore"), {"reason_code": "mistake"}).status_code == 403
        assert Lesson.objects.count() == 2

    def test_asks_for_a_login_first(self, client: Client, pair: Any) -> None:
        plan = plan_now()
        for answer in (client.get(url(plan)), client.post(url(plan, "apply"), form(plan, 1))):
            assert answer.status_code == 302
            assert answer.url.startswith("/login/")

    def test_an_interrupted_plan_says_so_and_goes_on(self, page: Client, lesson: Any, space: Any, mia: Person) -> None:
        for topic in range(3):
            twins(lesson, space, topic)
        plan = plan_now()
        next(applying.applying(None, plan.digest, actor=mia.actor))
        text = shown(page.get(url(plan)))
        assert "Applying was interrupted: 1 of 3 lessons are merged." in text
        assert page.post(url(plan, "apply"), form(plan, 3)).status_code == 302
        assert Lesson.objects.count() == 3

    def test_a_row_that_names_nothing_is_refused(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        sent = form(plan, 1) | {"row": ["nothing"], "reason_nothing": "mistake", "reason_": ""}
        assert page.post(url(plan, "apply"), sent).status_code == 422


class TestAStoreThatMoved:
    def test_it_names_what_changed_disables_applying_and_stays_readable(
        self, page: Client, account: Account, pair: Any, mia: Person
    ) -> None:
        kept, gone = pair
        plan = plan_now()
        decide(decision(mia, Verdict.REJECT, gone.pk))
        answer = page.get(url(plan))
        text = shown(answer)
        assert "The store has moved since this plan was made" in text
        assert f"“{gone.text}” left service" in text
        assert re.search(r'id="do-apply"[^>]*disabled', answer.content.decode())
        assert kept.text.replace("`", "") in text
        assert page.post(url(plan, "apply"), form(plan, 1)).status_code == 409
        assert Lesson.objects.count() == 2

    def test_a_plan_that_moved_while_it_was_read_keeps_why_rows_were_to_stay(
        self, page: Client, lesson: Any, space: Any, mia: Person
    ) -> None:
        (_, gone), (_, stays) = twins(lesson, space, 0), twins(lesson, space, 1)
        plan = plan_now()
        decide(decision(mia, Verdict.REJECT, gone.pk))
        answer = page.post(url(plan, "apply"), form(plan, 1, but={stays: ("complementary", "See the manual.")}))
        assert answer.status_code == 409
        text = shown(answer)
        assert "Nothing was merged." in text
        assert f"“{gone.text}” left service" in text
        assert "You wanted it to stay: They go together. See the manual." in text
        assert Lesson.objects.count() == 4

    def test_re_planning_makes_the_plan_of_now(self, page: Client, pair: Any, mia: Person) -> None:
        plan = plan_now()
        decide(decision(mia, Verdict.REJECT, pair[1].pk))
        answer = page.post("/review/prune/replan/", {"account": "", "digest": plan.digest}, follow=True)
        assert "Planned anew." in shown(answer)
        assert "Nothing to prune" in shown(answer)
        assert "a newer plan" in shown(page.get(url(plan)))

    def test_re_planning_a_store_that_has_not_moved_says_so(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        answer = page.post("/review/prune/replan/", {"account": "", "digest": plan.digest}, follow=True)
        assert "The store has not moved" in shown(answer)
        assert PrunePlan.objects.count() == 1

    def test_a_judge_may_not_re_plan(self, client: Client, account: Account, pair: Any) -> None:
        client.force_login(get_user_model().objects.get(pk=member(account, "judge", "jo").user_id))
        assert client.post("/review/prune/replan/", {"account": ""}).status_code == 403
        assert client.post("/review/prune/replan/", {"account": "x"}).status_code == 404

    def test_without_a_model_it_is_readable_and_says_why_it_cannot_be_applied(
        self, page: Client, pair: Any, space: EmbeddingSpace
    ) -> None:
        plan = plan_now()
        EmbeddingSpace.objects.update(is_active=False)
        try:
            answer = page.get(url(plan))
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)
        assert answer.status_code == 200
        assert re.search(r'id="do-apply"[^>]*disabled', answer.content.decode())


class TestUndoing:
    def test_previews_what_comes_back_and_brings_each_state_and_row_back(
        self, page: Client, account: Account, pair: Any, mia: Person
    ) -> None:
        kept, gone = pair
        caller = make_callers(account)["caller"]
        say(caller, serve(account, "one", [gone]).pk, "accepted")
        sweep()
        before = {
            "lessons": list(Lesson.objects.order_by("pk").values("pk", "text", "state")),
            "usage": list(LessonUsage.objects.order_by("pk").values("pk", "lesson_id", "reward")),
        }
        plan = plan_now()
        if plan.clusters[0]["keeper"] == str(gone.pk):
            kept, gone = gone, kept  # evidence decides
        page.post(url(plan, "apply"), form(plan, 1))
        assert gone.text in shown(page.get(url(plan, "restore")))
        answer = page.post(url(plan, "restore"), {"reason_code": "different", "note": "Look."}, follow=True)
        assert "1 lesson restored with all that was known of them." in shown(answer)
        assert {
            "lessons": list(Lesson.objects.order_by("pk").values("pk", "text", "state")),
            "usage": list(LessonUsage.objects.order_by("pk").values("pk", "lesson_id", "reward")),
        } == before
        assert not LessonTombstone.objects.exists()
        event = TrustEvent.objects.get(kind="restored_by_reviewer")
        assert (event.actor, event.evidence["reason"]) == (mia.actor, "They were not the same after all. Look.")
        assert "what it merged was restored" in shown(page.get(url(plan)))

    def test_needs_a_reason(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        page.post(url(plan, "apply"), form(plan, 1))
        answer = page.post(url(plan, "restore"), {"note": "Typed already."})
        assert answer.status_code == 422
        assert "Typed already." in answer.content.decode()
        assert PruneArchive.objects.exists()

    def test_what_was_never_applied_or_is_restored_has_nothing_to_restore(self, page: Client, pair: Any) -> None:
        plan = plan_now()
        assert "nothing in the archive" in shown(page.get(url(plan, "restore")))
        assert page.post(url(plan, "restore"), {"reason_code": "mistake"}).status_code == 409

    def test_what_a_person_merged_is_listed_and_restored_like_a_plan(
        self, page: Client, pair: Any, mia: Person
    ) -> None:
        kept, gone = pair
        decide(decision(mia, Verdict.MERGE, gone.pk, data={"keeper": str(kept.pk)}))
        merged = PrunePlan.objects.get()
        assert "Merged by a person" in shown(page.get("/review/prune/"))
        text = shown(page.get(url(merged)))
        assert "A person decided that they say the same." in text
        assert page.post(url(merged, "restore"), {"reason_code": "mistake"}).status_code == 302
        assert set(Lesson.objects.all()) == {kept, gone}


def test_a_reviewer_merges_a_duplicate_with_a_reason_and_takes_it_back(
    client: Client, account: Account, pair: Any
) -> None:
    kept, gone = pair
    ana = member(account, "reviewer", "ana")
    client.force_login(get_user_model().objects.get(pk=ana.user_id))
    asked = {"subject": gone.pk, "keeper": kept.pk, "expected_version": 0, "next": f"/review/lessons/{kept.pk}/"}
    page = client.get("/review/decide/merge/", asked).content.decode()
    assert f'name="keeper" value="{kept.pk}"' in page
    sent = {**asked, "decision": "merge"}
    assert client.post("/review/decide/", sent).status_code == 422
    assert client.post("/review/decide/", {**sent, "reason_code": "clearer", "keeper": "x"}).status_code == 422
    assert client.post("/review/decide/", {**sent, "reason_code": "clearer"}).url == asked["next"]
    assert list(Lesson.objects.all()) == [kept]
    assert client.post("/review/undo/", {"next": asked["next"]}).status_code == 302
    assert set(Lesson.objects.all()) == {kept, gone}


class TestExports:
    def test_have_every_row_with_both_texts(self, page: Client, pair: Any) -> None:
        kept, gone = pair
        plan = plan_now()
        table = page.get(f"/review/prune/{plan.digest}/plan.csv")
        (row,) = csv.DictReader(io.StringIO(table.content.decode()))
        assert (row["keeper"], row["lesson"], row["text"]) == (str(kept.pk), str(gone.pk), gone.text)
        assert f'filename="plan-{plan.digest[:8]}.csv"' in table["Content-Disposition"]
        lines = page.get(f"/review/prune/{plan.digest}/plan.ndjson").content.decode().splitlines()
        assert json.loads(lines[0])["keeper_text"] == kept.text

    @pytest.mark.parametrize("begin", ["=", "+", "-", "@"])
    def test_a_text_that_a_spreadsheet_would_run_is_made_a_text(self, page: Client, pair: Any, begin: str) -> None:
        plan = plan_now()
        Lesson.objects.filter(pk=pair[1].pk).update(text=f"{begin}HYPERLINK(1)")
        table = page.get(f"/review/prune/{plan.digest}/plan.csv").content.decode()
        (row,) = csv.DictReader(io.StringIO(table))
        assert row["text"] == f"'{begin}HYPERLINK(1)"

    def test_of_an_unknown_kind_or_plan_there_is_none(self, page: Client, pair: Any) -> None:
        assert page.get(f"/review/prune/{plan_now().digest}/plan.pdf").status_code == 404
        assert page.get(f"/review/prune/{'0' * 64}/plan.csv").status_code == 404
        assert page.get("/review/prune/nothing/").status_code == 404
