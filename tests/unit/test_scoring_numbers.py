"""Numbers are read as people write them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.unit import rules_harness  # noqa: F401 - puts the scoring helpers on the path

# isort: split
from benchwright_scoring import all_boxed, find_numbers, last_boxed, number_answer, parse_number, same_number
from benchwright_scoring.found import shown


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("it holds 1,234,567 grains", [1234567]),
        ("12{,}500 in LaTeX and 3\\,400 too", [12500, 3400]),
        ("12\u202f500 with narrow spaces", [12500]),
        ("the pair (3, 4)", [3, 4]),
        ("1,2,3", [1, 2, 3]),
        ("1,00,000 rupees", [100000]),
        ("$1,234.50.", [Fraction("1234.5")]),
        ("-$5 and $-6 and \u22127", [-5, -6, -7]),
        ("3/8 of it", [Fraction(3, 8)]),
        ("\\frac{3}{4} or \\dfrac{-1}{2}", [Fraction(3, 4), Fraction(-1, 2)]),
        ("2 1/2 cups, 2½ cups", [Fraction(5, 2), Fraction(5, 2)]),
        ("6.02e23 and 1.2 × 10^{3} and 5*10**-1", [Fraction("6.02e23"), 1200, Fraction(1, 2)]),
        (".5 is half", [Fraction(1, 2)]),
        ("18.", [18]),
        ("10-20 people", [10, 20]),
        ("9 - 4", [9, 4]),
        ("x2 + H2O", []),
        ("5/0", [5, 0]),
        ("1e999999999", [1]),
        ("٣٤ and １２", [34, 12]),
        ("no digits, only commas, here", []),
    ],
)  # fmt: skip
def test_a_number_is_read_whole(text: str, values: list[Fraction]) -> None:
    assert [n.value for n in find_numbers(text)] == values


def test_a_percent_sign_is_a_unit_and_not_a_factor() -> None:
    number = find_numbers("the share is 35%")[0]
    assert (number.value, number.unit) == (35, "%")
    assert same_number(number, "35") and same_number(number, "35 %")
    assert not same_number(number, "0.35")
    assert same_number(number, "0.35", percent_is_fraction=True)


def test_a_scale_word_counts_on_the_side_that_has_it() -> None:
    assert same_number("2 million", "2000000")
    assert same_number("2 million", "2")
    assert not same_number("2 million", "3")


@pytest.mark.parametrize(
    ("reply", "value", "rule"),
    [
        ("First 3, then 4.\n#### 12", 12, "answer mark"),
        ("so it is 9\nA: 1,200.", 1200, "answer mark"),
        ("**Answer:** 42 apples, of which 3 are bad", 42, "answer mark"),
        ("The answer is $7.50 because 3 were sold", Fraction("7.5"), "answer mark"),
        ("A: 5 * 4 = 20", 20, "answer mark"),
        ("The final answer is:\n\n17", 17, "answer mark"),
        ("Thus \\boxed{\\$12{,}500}", 12500, "boxed"),
        ("A: 3\nNo, \\boxed{4}", 4, "boxed"),
        ("\\boxed{3} at first.\nA: 4", 4, "answer mark"),
        ("8", 8, "first line"),
        ("**8**\n\nsince 5 + 3 = 8 of 10", 8, "first line"),
        ("There were 5, now there are 6", 6, "last number"),
        ("Answer: A: -1.8 billion", Fraction("-1.8"), "answer mark"),
    ],
)
def test_the_answer_is_found_where_it_is_marked(reply: str, value: Fraction, rule: str) -> None:
    found = number_answer(reply)
    assert found is not None
    assert (found.value.value, found.rule) == (value, rule)


@pytest.mark.parametrize("reply", ["", "   \n", "I can't help with that.", "\\boxed{", "####"])
def test_a_reply_without_a_number_is_no_answer(reply: str) -> None:
    assert number_answer(reply) is None


def test_an_unclosed_box_is_no_answer_and_braces_are_counted() -> None:
    assert last_boxed("\\boxed{\\frac{3}{4}") is None
    assert all_boxed("\\boxed{\\frac{3}{4}} and \\boxed 5") == ["\\frac{3}{4}", "5"]


def test_tolerance_is_relative_to_the_gold_value() -> None:
    assert not same_number("0.009", "0.004", rel_tol=0.01)
    assert same_number("0.00401", "0.004", rel_tol=0.01)
    assert same_number("0.0001", "0", abs_tol=0.001)


def test_a_label_that_is_true_is_not_the_number_one() -> None:
    assert parse_number(True) is None
    assert not same_number("1", None)


def test_equal_numbers_look_equal_when_counted() -> None:
    assert shown(find_numbers("1,000.0")[0]) == shown(find_numbers("$1000")[0]) == "1000"
    assert shown(find_numbers("-0.50")[0]) == "-0.5"
    assert shown(find_numbers("1/3")[0]) == "1/3"


@pytest.mark.parametrize(
    "text", ["9" * 100_000, "1," * 50_000, "1/" * 50_000, "A:" * 20_000, "\\boxed{" * 20_000, "-" * 100_000]
)
def test_hostile_text_is_read_in_time(text: str) -> None:
    number_answer(text)
