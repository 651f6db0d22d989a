"""A setting that cannot be used stops the start with a sentence that names it and the remedy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory.conf import SettingError, from_environment
from sonder_site.environment import SECRETS, with_files

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


class TestSecretsInFiles:
    def test_a_secret_is_read_from_the_file_that_names_it(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_text("sécret of many words\n")
        assert with_files({"SECRET_KEY_FILE": str(file), "PATH": "/bin"}) == {
            "SECRET_KEY": "sécret of many words",
            "PATH": "/bin",
        }

    def test_every_secret_setting_may_stand_in_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "value"
        file.write_text("redis://:password@localhost")
        assert with_files({f"{name}_FILE": str(file) for name in SECRETS}) == dict.fromkeys(SECRETS, file.read_text())
        settings = (ROOT / "docs/settings.md").read_text()
        assert all(f"`{name}_FILE`" in settings for name in SECRETS)

    @pytest.mark.parametrize(
        ("content", "words"),
        [(None, "cannot be read: no such file"), (b"\n", "is empty"), (b"\xff\xfe", "no text in UTF-8")],
    )
    def test_a_file_that_holds_no_secret_stops_the_start(
        self, tmp_path: Path, content: bytes | None, words: str
    ) -> None:
        file = tmp_path / "key"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(SettingError, match=words) as refused:
            with_files({"SECRET_KEY_FILE": str(file)})
        assert "SECRET_KEY_FILE" in str(refused.value)

    def test_a_secret_given_both_ways_is_refused_without_telling_it(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_text("one")
        with pytest.raises(SettingError, match="both set") as refused:
            with_files({"SECRET_KEY": "another", "SECRET_KEY_FILE": str(file)})
        assert "another" not in str(refused.value)
