"""A choice is a letter that stands for itself."""

from __future__ import annotations

import pytest

from tests.unit import rules_harness  # noqa: F401 - puts the scoring helpers on the path

# isort: split
from benchwright_scoring import choice_letter, choice_letters, label_answer, letters_for, yes_no

OPTIONS = ["Paris", "Rome", "Oslo", "Lima"]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B) Rome", "B"),
        ("**B**", "B"),
        ("B. It is the capital", "B"),
        ("The answer is (C).", "C"),
        ("So the answer is C", "C"),
        ("Answer: D", "D"),
        ("**Answer: D**", "D"),
        ("**Answer:** (D)", "D"),
        ("Answer: B\nWait, no.\nAnswer: C", "C"),
        ("My estimate comes to 30.\n\nAnswer looks close to B for now.\n\nAnswer: D", "D"),
        ("\\boxed{C}", "C"),
        ("\\boxed{\\text{(C)}}", "C"),
        ("Oslo", "C"),
        ("The answer is Oslo.", "C"),
        ("Answer: oslo", "C"),
        ("I weigh (A) and others.\nBut it must be **C**", None),
        ("It can only be option (C) here", "C"),
        ("Let me think.\n\nC", "C"),
    ],
)
def test_the_chosen_letter_is_found(reply: str, letter: str | None) -> None:
    found = choice_letter(reply, "ABCD", OPTIONS)
    assert (found.value if found else None) == letter


@pytest.mark.parametrize(
    "reply",
    [
        "ANSWER: none apply",
        "ANSWER: Cannot decide",
        "A dog is an animal, so none.",
        "I think all of them are fine.",
        "Answer: E",
        "Answer: A or B",
        "A\nB\nC\nD",
        "Answer: A\nAnswer: B\nAnswer: C\nAnswer: D",
        "I'm sorry, but I can't help with that.",
        "",
    ],
)
def test_what_chooses_nothing_is_no_answer(reply: str) -> None:
    assert choice_letter(reply, "ABCD", OPTIONS) is None


def test_two_options_of_the_same_text_are_not_told_apart_by_it() -> None:
    assert choice_letter("Rome", "AB", ["Rome", "Rome"]) is None


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        ("ANSWER: A, B, and D", "ABD"),
        ("ANSWER: A and B", "AB"),
        ("ANSWER: B,D,", "BD"),
        ("(A) & (C)", "AC"),
    ],
)
def test_several_letters_are_a_set(reply: str, letters: str) -> None:
    found = choice_letters(reply, "ABCD")
    assert found is not None
    assert found.value == frozenset(letters)


def test_a_list_with_a_stranger_in_it_is_no_answer() -> None:
    assert choice_letters("ANSWER: A, B and maybe C", "ABCD") is None


def test_there_are_letters_for_26_options_and_no_more() -> None:
    assert letters_for(4) == "ABCD"
    with pytest.raises(ValueError, match="A to Z"):
        letters_for(27)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes", True),
        ("no.", False),
        ("No, because there is none.", False),
        ("**Yes**, it is.", True),
        ("There is no reason to think so. So the answer is yes.", True),
        ("Answer: No", False),
        ("Let me see.\n\nYes", True),
        ("True", True),
        ("There is no reason to think so.", None),
        ("yes or no", None),
        ("yes\nno", None),
        ("Notably, this holds.", None),
        ("", None),
    ],
)
def test_yes_and_no_are_words_of_their_own(reply: str, value: bool | None) -> None:
    found = yes_no(reply)
    assert (found.value if found else None) is value


def test_a_label_is_matched_whole() -> None:
    labels = ["positive", "negative", "neutral"]
    found = label_answer("Sentiment: I would say\nSo the answer is Neutral.", labels)
    assert found is not None and found.value == "neutral"
    assert label_answer("So the answer is positively odd.", labels) is None
