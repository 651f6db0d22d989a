"""The sentences say what the numbers say."""

import math

import pytest

from memory.rules.standing import ON_TRIAL, standing_in_words


def trial(**changes: object) -> dict:
    return {
        "policy": "trial",
        "constants": {"odds_ratio": 3.0, "release_odds": 50.0, "weights": {"caller": "1.0"}},
        "odds": 223.4,
        "s": math.log(223.4),
        "enough_to_judge": True,
        "with_it": {"lost": 13, "n": 16, "expected": 4.4},
        "without_it": {"coin": {"lost": 2, "n": 13, "expected": 3.5}},
        **changes,
    }


def test_the_leading_sentence_compares_work_with_the_lesson_and_without_it() -> None:
    said = standing_in_words("quarantined", wins=5, losses=15, evidence=trial())
    assert said[0] == "Quarantined: it is kept out, but for a sample."
    assert said[2] == (
        "With this lesson 13 of 16 were lost where 4.4 were expected; "
        "when a coin left it out of the same kind of task, 2 of 13."
    )
    assert "223 times likelier" in said[3]
    assert said[-1].startswith(
        "A win on probation, a loss of the same kind of work without it, or a correction frees it"
    )


def test_what_a_person_quarantined_no_evidence_is_said_to_free() -> None:
    said = standing_in_words("quarantined", wins=5, losses=15, evidence=trial(), by_person=True)
    assert said[-1] == "A person quarantined it, and only a person frees it."


def test_few_servings_are_called_few() -> None:
    said = standing_in_words("active", wins=1, losses=2, evidence=trial(enough_to_judge=False))
    assert any("too few servings" in sentence for sentence in said)


def test_a_lesson_on_trial_is_being_tested_and_never_suspected() -> None:
    said = standing_in_words("active", wins=1, losses=4, evidence=trial(), on_trial=True)
    assert said[0] == ON_TRIAL
    assert not any("suspect" in sentence for sentence in said)


def test_a_lesson_nobody_judged_says_so() -> None:
    evidence = trial(with_it={"lost": 0, "n": 0, "expected": 0.0}, without_it={})
    assert standing_in_words("active", wins=0, losses=0, evidence=evidence) == [
        "Active: it is handed out where it fits.",
        "Nobody has judged work that it was handed out for yet.",
    ]


def test_under_reference_the_unmet_condition_is_named() -> None:
    evidence = {
        "policy": "reference",
        "epoch": {"losses": 1, "tasks": 1, "share": 0.25},
        "gates": [{"passed": True, "words": "first."}, {"passed": False, "words": "only 1 loss; 5 are needed."}],
    }
    said = standing_in_words("active", wins=0, losses=1, evidence=evidence)
    assert "1 judged interaction it" in said[1]
    assert said[2].startswith("Since its last win it lost 1 time on 1 task")
    assert said[-1] == "It is not quarantined: only 1 loss; 5 are needed."


@pytest.mark.parametrize("state", ["candidate", "rejected", "superseded"])
def test_every_state_has_its_sentence(state) -> None:
    assert standing_in_words(state, wins=0, losses=0, evidence={"policy": "reference"})[0].lower().startswith(state)
