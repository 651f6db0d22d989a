"""The page of thresholds: read by everybody, changed by a maintainer with a reason, and taken back."""

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from memory.models import Account, Calibration, EmbeddingSpace, JobRun, LessonUsage
from memory.rules.calibration import Expected
from memory.services import calibration
from memory.services.authority import Person
from memory.services.calibration import Proposal, Values

pytestmark = pytest.mark.django_db
URL = "/review/health/thresholds/"
NOBODY = "11111111-1111-4111-8111-111111111111"
PROPOSED = {
    "min_similarity": 0.31,
    "uncorroborated_min_similarity": 0.42,
    "gate": {"min_support": 0.16, "min_similarity": 0.25},
}
Login = Callable[..., Person]


def shown(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def proposal(space: EmbeddingSpace, proposed: Values | None = PROPOSED, **more: Any) -> JobRun:
    """A proposal as the measurement keeps it."""
    judged = Expected(tasks=78, found=74, off_domain=48, noisy=0)
    scores = [
        calibration.distribution(name, [0.2, 0.4, 0.5], 0.05)
        for name in ("tasks", "off_domain", "support_tasks", "support_off_domain")
    ]
    made = Proposal(
        **{
            "space": str(space.pk),
            "present": calibration.values_of(space),
            "proposed": proposed,
            "why_not": "" if proposed else "Too little evidence for a fit.",
            "present_does": Expected(tasks=78, found=60, off_domain=48, noisy=3),
            "proposed_does": judged if proposed else None,
            "basis": {"learned": 70, "won": 8, "everyday": 48},
            "other_topics": 0,
            "missing": (0, 0),
            "data_digest": "d" * 64,
            "distributions": tuple(scores),
            **more,
        }
    )
    return JobRun.objects.create(
        job=calibration.JOB, outcome="done", finished_at=timezone.now(), figures=made.to_json()
    )


def sent(space: EmbeddingSpace, what: str, **more: str) -> dict[str, str]:
    space.refresh_from_db()
    version = calibration.version_of(calibration.values_of(space))
    return {"what": what, "expected_version": version, "reason": "It finds more.", **more}


def in_force(space: EmbeddingSpace) -> Values:
    return calibration.values_of(EmbeddingSpace.objects.get(pk=space.pk))


class TestReading:
    def test_shows_what_is_in_force_before_anything_was_measured(
        self, client: Client, login: Login, space: EmbeddingSpace
    ) -> None:
        login("viewer")
        page = shown(client.get(URL))
        assert "0.500 Similarity that is enough alone" in page
        assert "Never calibrated to this store" in page
        assert "Nothing was measured yet" in page
        assert "The thresholds were never changed." in page

    def test_shows_the_proposal_beside_what_is_in_force_with_what_each_does(
        self, client: Client, login: Login, space: EmbeddingSpace
    ) -> None:
        login("viewer")
        proposal(space)
        page = shown(client.get(URL))
        assert "Similarity that is enough alone 0.500 0.420" in page
        assert "60 of 78, plausibly 66% to 85% 74 of 78, plausibly 87% to 98%" in page
        assert "3 of 48, plausibly 2% to 17% 0 of 48, plausibly 0% to 8%" in page
        assert "70 tasks that a lesson was learned from" in page

    def test_charts_can_be_read_as_tables(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("viewer")
        proposal(space)
        assert client.get(URL).content.count(b"<svg") >= 4
        page = client.get(f"{URL}?tables=1").content
        assert b"<svg" not in page.split(b'id="scores"')[1]
        assert b"Questions that none fits (n = 3)" in page

    def test_says_how_much_evidence_is_missing_instead_of_a_fit(
        self, client: Client, login: Login, space: EmbeddingSpace
    ) -> None:
        login("maintainer")
        proposal(space, None, missing=(18, 1))
        page = shown(client.get(URL))
        assert "Too little evidence for a fit." in page
        assert "18 more tasks with a lesson known to fit are needed" in page
        assert "1 more question that no lesson fits is needed" in page
        assert "Apply the proposal" not in page

    def test_writes_nothing(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("maintainer")
        proposal(space)
        before = (JobRun.objects.count(), Calibration.objects.count(), LessonUsage.objects.count(), in_force(space))
        for address in (URL, f"{URL}?tables=1"):
            assert client.get(address).status_code == 200
        assert client.get(f"{URL}apply/").status_code == client.get(f"{URL}measure/").status_code == 405
        after = (JobRun.objects.count(), Calibration.objects.count(), LessonUsage.objects.count(), in_force(space))
        assert before == after

    def test_works_without_a_space(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("maintainer")
        EmbeddingSpace.objects.update(is_active=False)
        assert "No embedding space is open" in shown(client.get(URL))
        assert client.post(f"{URL}apply/", {"what": "proposal:x"}).status_code == 404

    def test_health_leads_here_and_says_when(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("viewer")
        assert "never calibrated to this store" in shown(client.get("/review/health/"))
        EmbeddingSpace.objects.update(calibrated_at=timezone.now())
        page = client.get("/review/health/")
        assert URL.encode() in page.content
        assert "last calibrated" in shown(page)


class TestApplying:
    def test_sets_the_thresholds_and_journals_who_why_and_on_what(
        self, client: Client, login: Login, space: EmbeddingSpace
    ) -> None:
        mia = login("maintainer")
        before = in_force(space)
        run = proposal(space)
        answer = client.post(f"{URL}apply/", sent(space, f"proposal:{run.pk}"), follow=True)
        assert "in force from the next question on" in shown(answer)
        assert in_force(space) == PROPOSED
        entry = Calibration.objects.get()
        assert (entry.before, entry.actor, entry.data_digest) == (before, mia.actor, "d" * 64)
        assert entry.after == {**PROPOSED, "reason": "It finds more."}
        page = shown(client.get(URL))
        assert "by maintainer It finds more. Similarity that is enough alone: 0.500 to 0.420" in page
        assert "The proposal is in force." in page
        assert "What When measured Proposed Similarity that is enough alone 0.500 0.420" in page

    def test_is_taken_back_by_applying_what_was_before(
        self, client: Client, login: Login, space: EmbeddingSpace
    ) -> None:
        login("maintainer")
        before = in_force(space)
        client.post(f"{URL}apply/", sent(space, f"proposal:{proposal(space).pk}"))
        entry = Calibration.objects.get()
        assert f'value="before:{entry.pk}"' in client.get(URL).content.decode()
        client.post(f"{URL}apply/", sent(space, f"before:{entry.pk}", reason="It finds less."))
        assert in_force(space) == before
        assert Calibration.objects.count() == 2
        assert "What was before is in force." in shown(client.get(URL))

    @pytest.mark.parametrize("role", ["viewer", "judge", "reviewer"])
    def test_is_a_maintainers(self, client: Client, login: Login, space: EmbeddingSpace, role: str) -> None:
        login(role)
        run = proposal(space)
        assert "needs the role maintainer" in shown(client.get(URL))
        assert client.post(f"{URL}apply/", sent(space, f"proposal:{run.pk}")).status_code == 403
        assert client.post(f"{URL}measure/").status_code == 403
        assert not Calibration.objects.exists()
        assert JobRun.objects.count() == 1

    def test_is_an_operators_where_accounts_share_nothing_else(
        self, client: Client, login: Login, space: EmbeddingSpace, operator: Any, settings: Any
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        run = proposal(space)
        login("maintainer")
        assert client.post(f"{URL}apply/", sent(space, f"proposal:{run.pk}")).status_code == 403
        client.force_login(operator)
        assert client.post(f"{URL}apply/", sent(space, f"proposal:{run.pk}")).status_code == 302
        assert in_force(space) == PROPOSED

    def test_wants_a_reason(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("maintainer")
        run = proposal(space)
        answer = client.post(f"{URL}apply/", sent(space, f"proposal:{run.pk}", reason=" "))
        assert answer.status_code == 422
        assert "say in 1 to 1000 characters why" in shown(answer)
        assert not Calibration.objects.exists()

    def test_of_two_one_wins_and_the_other_keeps_what_they_typed(
        self, client: Client, login: Login, space: EmbeddingSpace, account: Account
    ) -> None:
        login("maintainer")
        run = proposal(space)
        late = sent(space, f"proposal:{run.pk}", reason="Mine.")
        calibration.apply(
            space.pk, {**PROPOSED, "min_similarity": 0.3}, expected=late["expected_version"], actor="system", reason="x"
        )
        answer = client.post(f"{URL}apply/", late)
        assert answer.status_code == 409
        assert "changed meanwhile; nothing was applied" in shown(answer)
        assert b">Mine.</textarea>" in answer.content
        assert Calibration.objects.count() == 1
        assert in_force(space)["min_similarity"] == 0.3

    def test_of_the_same_form_twice_is_one_change(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("maintainer")
        form = sent(space, f"proposal:{proposal(space).pk}")
        assert [client.post(f"{URL}apply/", form).status_code for _ in range(2)] == [302, 302]
        assert Calibration.objects.count() == 1

    @pytest.mark.parametrize("what", ["", "proposal:", "proposal:nothing", f"before:{NOBODY}", f"proposal:{NOBODY}"])
    def test_takes_its_values_from_the_store_alone(
        self, client: Client, login: Login, space: EmbeddingSpace, what: str
    ) -> None:
        login("maintainer")
        answer = client.post(f"{URL}apply/", sent(space, what, min_similarity="0.1"))
        assert answer.status_code == 404
        assert not Calibration.objects.exists()

    def test_of_another_space_is_refused(self, client: Client, login: Login, space: EmbeddingSpace) -> None:
        login("maintainer")
        run = proposal(space)
        JobRun.objects.update(figures={**run.figures, "space": str(uuid4())})
        assert client.post(f"{URL}apply/", sent(space, f"proposal:{run.pk}")).status_code == 404

    def test_asks_for_a_login(self, client: Client, space: EmbeddingSpace) -> None:
        for address in (URL, f"{URL}apply/", f"{URL}measure/"):
            assert client.post(address).status_code in (302, 405)
        assert not get_user_model().objects.exists()


def test_measuring_keeps_a_proposal_for_the_page(client: Client, login: Login, space: EmbeddingSpace) -> None:
    login("maintainer")
    assert client.post(f"{URL}measure/").status_code == 302
    assert JobRun.objects.get().job == calibration.JOB
    page = shown(client.get(URL))
    assert "30 more tasks with a lesson known to fit are needed" in page
    assert "60 questions of everyday life" in page
    assert LessonUsage.objects.count() == 0
