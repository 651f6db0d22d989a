"""The reasons that people choose from."""

from memory.models.vocabulary import REASONED_VERDICTS, Verdict
from memory.rules.reasons import REASONS, reason_in_words, reasons_for


def test_every_verdict_that_needs_a_reason_offers_six_on_the_keys_1_to_6() -> None:
    for verdict in REASONED_VERDICTS:
        codes = [code for code, _ in reasons_for(verdict)]
        assert (len(codes), len(set(codes)), codes[-1]) == (6, 6, "other")


def test_reasons_belong_to_verdicts_that_exist() -> None:
    assert set(REASONS) <= set(Verdict.values)


def test_a_code_is_told_in_words_and_an_unknown_one_as_it_is() -> None:
    assert reason_in_words("too_vague") == "It says nothing concrete"
    assert reason_in_words("gone_by_now") == "gone_by_now"
