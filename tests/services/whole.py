"""An account that has something of every kind, written as raw rows: no service has a say in it."""

from memory.models import Account
from memory.models.base import new_id
from memory.rules.text import digest
from tests.models.rows import EARLIER, LATER, insert, word

TEXT = "Prime the pump with `pump --prime 3` before a cold start, because air in the line stalls it."


def lesson(text: str, **columns: object) -> dict[str, object]:
    """A lesson with the digest of its text."""
    return insert("lesson", text=text, text_sha256=digest(text), **columns)


def whole_account() -> Account:
    """What people, agents and workers left of each kind, with most columns filled."""
    rita = insert("auth_user", username="rita")["id"]
    account = insert("account", slug="pumps", name="Pumps")["id"]
    own = {"account_id": account}
    key = insert("api_key", **own, scopes='["loop"]', expires_at=LATER)["id"]
    project = insert("project", **own)["id"]
    run = insert("import_run", figures='{"stored": 1}')["id"]
    space = insert("embedding_space", calibrated_at=EARLIER, gate='{"min_support": 0.2}')["id"]
    session = insert("session", **own, title="Pumps", summary="All is primed.", project_id=project)["id"]
    insert("session_project_summary", session_id=session, project_id=project, summary="Primed.")
    work = insert("interaction", **own, api_key_id=key, project_id=project, session_id=session, project_explicit=True,
                  task="Prime the pump", response="Primed.", retrieved_context="<lesson/>", tier="fast", model="m",
                  tokens_in=3, tokens_out=4, token_source="provider", idempotency_key="k", created_at=EARLIER,
                  task_embedding="[0.25,0.5,1]", space_id=space)["id"]  # fmt: skip
    outcome = insert("outcome", interaction_id=work, api_key_id=key, judge_id=rita, detail="ok", credited_at=LATER)
    taught = lesson(TEXT, source_interaction=work, source_import_id=run, source_ref="7", reviewed_at=LATER,
                    reviewed_by_id=rita, created_at=EARLIER)["id"]  # fmt: skip
    other = lesson("Never prime the pump.", state="quarantined", supersedes=new_id())["id"]
    insert("lesson_embedding", lesson_id=taught, space_id=space, embedding="[0.1,0.2,0.3]")
    insert("lesson_tombstone", source_lesson=other, text_sha256=digest("Never prime the pump."), space_id=space,
           embedding="[1,0,0]", source_interaction=work)  # fmt: skip
    insert("lesson_distillation", interaction_id=work, state="stored", result_reason="stored", lesson=taught,
           completed_at=LATER, attempts=2, last_error="once")  # fmt: skip
    credited = {"credited_outcome_id": outcome["id"], "outcome_signal": "accepted", "reward": "0.80",
                "outcome_source": "caller", "outcome_at": outcome["created_at"], "expected_loss": "0.123456789012",
                "source_rate": 0.2, "task_factor": 1.0, "peer_factor": 1.1, "niche_factor": 1.0, "weight": 1,
                "credit_seq": 7}  # fmt: skip
    usage = insert("lesson_usage", lesson_id=taught, interaction_id=work, similarity=1 / 3, lexical_rank=2, **credited)
    excuse = insert("usage_exemption", usage_id=usage["id"], reviewer_id=rita)["id"]
    insert("usage_exemption", usage_id=usage["id"], reviewer_id=rita, reverts_id=excuse)
    insert("credit", interaction_id=work, outcome_id=outcome["id"], y=0, b="0.123456789012", credit_seq=7)
    insert("lesson_standing", lesson_id=other, quarantined_at=LATER, ledger_from_seq=3, released_seq=5, released_s=2.5)
    insert("trust_event", lesson=other, actor=f"user:{rita}", evidence='{"rows": [], "odds": 200.5}')
    wish = insert("preference", **own, source_interaction=work, revision=3)["id"]
    first = insert("refinement_history", preference_id=wish, actor=f"user:{rita}", after_json='{"text": "x"}')["id"]
    insert("refinement_history", preference_id=wish, operation="rollback", parent_id=first, before_version=2,
           after_version=3)  # fmt: skip
    fact = {**own, "project_id": project}
    old = insert("fact", **fact, key="tank", valid_from=EARLIER, valid_until=LATER, retracted_at=LATER)["id"]
    insert("fact", **fact, key="tank", supersedes=old, embedding="[1,0,0]", space_id=space)
    task = insert("task", **own, project_id=project)["id"]
    insert("task_dependency", task_id=insert("task", **own, parent_id=task)["id"], depends_on_id=task)
    insert("task_event", task_id=task, actor="api_key:abc")
    pair = {"first": taught, "second": other, "verdict": "keep_first", "decided_by_id": rita}
    insert("contradiction", **pair)
    insert("review_item", subject=taught, snoozed_until=LATER, status="snoozed", requested_by_id=rita,
           priority_parts=f'{{"severity": 0.5, "skipped_by": [{rita}]}}')  # fmt: skip
    decided = insert("adjudication", subject=taught, reviewer_id=rita, before='{"state": "candidate"}')["id"]
    insert("adjudication", subject=taught, reviewer_id=rita, verdict="undo", reverts_id=decided)
    insert("comment", subject=work, author_id=rita)
    insert("second_opinion", subject=other, author_id=rita)
    insert("write_refusal", **own, digest=digest(word()))
    insert("imported_row", **own, run_id=run, subject=taught)
    insert("membership", **own, user_id=rita, role="reviewer")
    return Account.objects.get(pk=account)
