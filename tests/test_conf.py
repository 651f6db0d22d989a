"""A setting that cannot be used stops the start with a sentence that names it and the remedy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory.conf import SettingError, from_environment

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SONDER_TRUST_POLICY", "harsh", "choose one of trial, reference"),
        ("SONDER_TRUST_POLCY", "trial", "Did you mean SONDER_TRUST_POLICY?"),
        ("SONDER_ZZZ", "1", "docs/settings.md"),
        ("SONDER_HALF_LIFE_DAYS", "nan", "use a finite number"),
        ("SONDER_HALF_LIFE_DAYS", "inf", "use a finite number"),
        ("SONDER_HALF_LIFE_DAYS", "soon", "use a number"),
        ("SONDER_HALF_LIFE_DAYS", "0", "the lowest value allowed is 1"),
        ("SONDER_LAMBDA_MMR", "1.5", "the highest value allowed is 1"),
        ("SONDER_LIVE_BANDS", "perhaps", "use true or false"),
        ("SONDER_THROTTLE_LOOP", "abc", "as in 600/min"),
        ("SONDER_THROTTLE_READ", "0/min", "as in 600/min"),
        ("SONDER_SOURCE_WEIGHTS", "caller=2", "'caller=2' is no weight"),
        ("SONDER_SOURCE_WEIGHTS", "boss=1", "'boss=1' is no weight"),
        ("SONDER_SOURCE_WEIGHTS", "caller=0.12345", "at most 3 decimals"),
        ("SONDER_TRIAL_ODDS", "500", "must be below SONDER_QUARANTINE_ODDS"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_remedy(name: str, value: str, words: str) -> None:
    with pytest.raises(SettingError) as refused:
        from_environment({name: value}, ROOT)
    assert name in str(refused.value)
    assert words in str(refused.value)


def test_values_are_read_in_their_own_types() -> None:
    values = from_environment(
        {"SONDER_LIVE_BANDS": "Yes", "SONDER_RRF_K": "30", "SONDER_HALF_LIFE_DAYS": "14", "SONDER_VAR": "store"}, ROOT
    )
    assert (values["SONDER_LIVE_BANDS"], values["SONDER_RRF_K"], values["SONDER_HALF_LIFE_DAYS"]) == (True, 30, 14.0)
    assert values["SONDER_VAR"] == str(ROOT / "store")


def test_a_command_tells_it_in_one_sentence() -> None:
    environment = {**os.environ, "SONDER_TRUST_POLICY": "harsh", "DJANGO_SETTINGS_MODULE": "sonder_site.settings"}
    ran = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr == "SONDER_TRUST_POLICY is 'harsh'; choose one of trial, reference.\n"
