"""Changing a preference: another wording, back to an earlier version, or without its latest refinement.

Each is previewed, needs a reason and the version that the person saw, and is one service call however often it is sent.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from memory.errors import Conflict, Invalid
from memory.models import Preference, RefinementHistory
from memory.models.vocabulary import Role
from memory.services import preference as preferences
from memory.services import preference_history
from memory.services.idempotency import Answer, body_digest, once
from memory.services.preference import Refinement
from memory.services.preference_history import Version
from review import reasons
from review.access import page, person_of
from review.diff import word_diff
from review.queries import preferences as queries
from review.views.preferences import changed_state, find, rights, why_no_revert

NOTE_LIMIT = 1000  # characters of a statement, as the API has it


@require_http_methods(["GET", "POST"])
@page()
def restore(request: HttpRequest, preference_id: UUID, number: int) -> HttpResponse:
    """An earlier version's text and state as a new version: first what would change, then the change."""
    preference = find(request, preference_id)
    versions = preference_history.versions_of(preference)
    version = preference_history.find(versions, number)
    same = (version.text, version.enabled) == (preference.text, preference.enabled)
    refusal = version.flaw or ("This is what the preference says now." if same else "")

    def act(expected: int, reason: str) -> RefinementHistory:
        return preference_history.restore(
            preference.account_id,
            preference.pk,
            number,
            expected_version=expected,
            reason=reason,
            actor=person_of(request).actor,
        )

    plan = Return(
        preference=preference,
        versions=versions,
        to=version,
        act=act,
        title=f"Restore version {number}",
        done=f"Restored version {number} as version",
        refusal=refusal,
    )
    return plan.answer(request)


@require_http_methods(["GET", "POST"])
@page()
def revert(request: HttpRequest, preference_id: UUID, number: int) -> HttpResponse:
    """Takes the refinement that made version `number` back, while it is the latest."""
    preference = find(request, preference_id)
    versions = preference_history.versions_of(preference)
    version = preference_history.find(versions, number)
    entry = version.entry
    before = preference_history.find(versions, entry.before_version) if entry else version

    def act(expected: int, reason: str) -> RefinementHistory:
        if entry is None:
            raise Conflict(why_no_revert(preference, versions, version))
        return preferences.roll_back(preference.account_id, entry.pk, expected, person_of(request).actor, reason)

    plan = Return(
        preference=preference,
        versions=versions,
        to=before,
        act=act,
        title=f"Revert refinement {number}",
        done=f"Reverted refinement {number}: it is version",
        refusal=why_no_revert(preference, versions, version),
    )
    return plan.answer(request)


class Return:
    """The way back to an earlier version: its preview, its request, and what stands in its way."""

    def __init__(
        self,
        *,
        preference: Preference,
        versions: list[Version],
        to: Version,
        act: Callable[[int, str], RefinementHistory],
        title: str,
        done: str,
        refusal: str,
    ) -> None:
        self._preference, self._versions, self._to, self._act = preference, versions, to, act
        self._title, self._done, self._refusal = title, done, refusal

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The preview, or the change."""
        if request.method == "GET":
            return self._preview(request)
        person_of(request).need(Role.MAINTAINER, self._preference.account_id)
        try:
            note = request.POST.get("note", "").strip()
            reason = reasons.in_words(reasons.RETURN, request.POST.get("reason_code", ""), note)
            made = _once(request, self._preference, lambda: self._act(_expected(request), reason))
        except Invalid as refusal:
            return self._preview(request, refusal, 422)
        except Conflict as late:
            if "expected_version" not in late.errors:
                raise
            return conflict(request, self._preference, self._to.text, self._to.enabled, self._title)
        messages.success(request, f"{self._done} {made}.")
        return HttpResponseRedirect(reverse("review:preference", args=[self._preference.pk]))

    def _preview(self, request: HttpRequest, refusal: Invalid | None = None, status: int = 200) -> HttpResponse:
        now = self._versions[0]
        lost = [version for version in self._versions if version.number > self._to.number]
        context = {
            "preference": self._preference,
            "title": self._title,
            "to": self._to,
            "number": self._preference.revision + 1,
            "spans": word_diff(now.text, self._to.text),
            "toggled": changed_state(now, self._to),
            "lost": queries.rail(self._preference, lost),
            "reasons": reasons.with_keys(reasons.RETURN),
            "expected": request.POST.get("expected_version", self._preference.revision),
            "chosen": request.POST.get("reason_code", ""),
            "note": request.POST.get("note", ""),
            "errors": refusal.errors if refusal else {},
            "refusal": self._refusal,
            **rights(request, self._preference),
        }
        return render(request, "review/preference_return.html", context, status=status)


@require_http_methods(["GET", "POST"])
@page()
def edit(request: HttpRequest, preference_id: UUID) -> HttpResponse:
    """Another wording, or on and off. The person's own statement is evidence; outcomes may be named beside it."""
    preference = find(request, preference_id)
    if request.method == "GET" or "again" in request.POST:
        return _form(request, preference)
    person_of(request).need(Role.MAINTAINER, preference.account_id)
    try:
        proposal = _proposal(request)
        made = _once(
            request,
            preference,
            lambda: preferences.refine(preference.account_id, preference.pk, proposal, person_of(request).actor),
        )
    except Invalid as refusal:
        return _form(request, preference, refusal, 422)
    except Conflict as late:
        if "expected_version" not in late.errors:
            raise
        changes = proposal.changes
        return conflict(request, preference, changes["text"], changes["enabled"], "Edit the preference")
    messages.success(request, f"Saved as version {made}.")
    return HttpResponseRedirect(reverse("review:preference", args=[preference.pk]))


def _proposal(request: HttpRequest) -> Refinement:
    sent = request.POST
    note = sent.get("note", "").strip()
    if not 1 <= len(note) <= NOTE_LIMIT:
        raise Invalid.field("note", f"say in 1 to {NOTE_LIMIT} characters why.")
    outcomes = [{"kind": "outcome", "id": str(_uuid(given))} for given in sent.getlist("outcome")]
    return Refinement(
        expected_version=_expected(request),
        changes={"text": _lines(sent.get("text", "")), "enabled": sent.get("enabled") == "on"},
        evidence=[{"kind": "note", "text": note}, *outcomes],
        expected_outcome=sent.get("expected_outcome", "").strip(),
    )


def _lines(text: str) -> str:
    """As it was typed: browsers send line ends as CR LF."""
    return text.replace("\r\n", "\n").replace("\x00", "").strip()


def _uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise Invalid.field("evidence", "reload the page: one of these outcomes names nothing.") from None


def _form(
    request: HttpRequest, preference: Preference, refusal: Invalid | None = None, status: int = 200
) -> HttpResponse:
    sent = request.POST
    context = {
        "preference": preference,
        "text": sent.get("text", preference.text),
        "enabled": sent.get("enabled") == "on" if sent else preference.enabled,
        "note": sent.get("note", ""),
        "hoped": sent.get("expected_outcome", ""),
        "expected": sent.get("expected_version", preference.revision),
        "outcomes": queries.recent_outcomes(preference),
        "chosen": set(sent.getlist("outcome")),
        "errors": refusal.errors if refusal else {},
        **rights(request, preference),
    }
    return render(request, "review/preference_edit.html", context, status=status)


def _expected(request: HttpRequest) -> int:
    given = request.POST.get("expected_version", "")
    if not (given.isascii() and given.isdigit() and len(given) < 9):
        raise Invalid.field("expected_version", "reload the page and decide again.")
    return int(given)


def _once(request: HttpRequest, preference: Preference, act: Callable[[], RefinementHistory]) -> int:
    """The new version. The same form sent again gives the same one."""
    key = request.POST.get("idempotency_key", "")[:64]
    if not key:
        return act().after_version

    def answer() -> Answer:
        made = act()
        return Answer(status=303, body={"refinement": str(made.pk), "version": made.after_version})

    sent = {name: request.POST.getlist(name) for name in request.POST if name != "csrfmiddlewaretoken"}
    digest = body_digest("POST", request.path, sent)
    kept = once(preference.account_id, f"page:{person_of(request).user_id}:{key}", digest, answer)
    return int(kept.body["version"])


def conflict(request: HttpRequest, preference: Preference, mine: str, enabled: bool, title: str) -> HttpResponse:
    """What the person saw, what it is by now, what they wanted; nothing of theirs is lost."""
    preference.refresh_from_db()
    versions = preference_history.versions_of(preference)
    seen = next((v for v in versions if str(v.number) == request.POST.get("expected_version")), None)
    base = seen.text if seen else ""
    keep: list[tuple[str, Any]] = [
        (name, value)
        for name in request.POST
        if name not in ("csrfmiddlewaretoken", "idempotency_key", "expected_version")
        for value in request.POST.getlist(name)
    ]
    context = {
        "preference": preference,
        "title": title,
        "seen": seen,
        "base": base,
        "mine": mine,
        "theirs": queries.rail(preference, versions[:1])[0],
        "to_theirs": word_diff(base, preference.text),
        "to_mine": word_diff(base, mine),
        "keep": keep,
        "again": [(name, value) for name, value in keep if name not in ("text", "enabled")],
        "enabled": enabled,
        "on_top": request.path,
    }
    return render(request, "review/preference_conflict.html", context, status=409)
