"""What happens behind the pages while somebody looks at them."""

from memory.models import Preference, RefinementHistory
from memory.services.preference import Refinement, refine


def reword(preference: Preference, *texts: str, actor: str = "api_key:abcd1234") -> list[RefinementHistory]:
    """An agent refines a preference to each of these texts in turn."""
    made = []
    for text in texts:
        preference.refresh_from_db()
        proposal = Refinement(
            expected_version=preference.revision,
            changes={"text": text},
            evidence=[{"kind": "note", "text": f"Because of “{text[:40]}”."}],
            expected_outcome="Fewer questions back.",
        )
        made.append(refine(preference.account_id, preference.pk, proposal, actor))
    preference.refresh_from_db()
    return made
