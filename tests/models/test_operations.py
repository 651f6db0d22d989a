"""Plans, refusals, replays, jobs, calibrations, acts of operators and erasures as PostgreSQL keeps them."""

from memory.models.vocabulary import OperatorAction
from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import digest, new, word
from tests.models.rules import Journal, Unique, actors, digests, links, not_empty, words


class TestOperations(Tables, Checks, Uniques, Journals):
    tables = {
        "prune_plan": {},
        "prune_archive": links("plan_id"),
        "write_refusal": links("account_id"),
        "idempotency_record": links("account_id"),
        "job_run": {},
        "calibration": links("space_id"),
        "operator_act": {},
        "erasure_record": {},
    }
    checks = [
        digests("prune_plan", "digest"),
        not_empty("write_refusal", "path"),
        not_empty("write_refusal", "reason"),
        digests("write_refusal", "digest"),
        actors("write_refusal"),
        digests("idempotency_record", "body_digest"),
        not_empty("job_run", "job"),
        digests("calibration", "data_digest"),
        actors("calibration"),
        words("operator_act", "action", *OperatorAction.values),
        actors("operator_act"),
        not_empty("erasure_record", "kind"),
        actors("erasure_record"),
    ]
    uniques = [
        Unique(name="prune_plan_digest_key", table="prune_plan", key=("digest",), passes=[{"digest": digest}]),
        Unique(
            name="idempotency_record_account_key_unique",
            table="idempotency_record",
            key=("account_id", "key"),
            passes=[{"account_id": new("account")}, {"key": word}],
        ),
    ]
    journals = [Journal(table="calibration"), Journal(table="operator_act"), Journal(table="erasure_record")]
