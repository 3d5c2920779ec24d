"""Where the rules cannot tell they ask; they never write a scorer that is silently wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules_harness import chosen, control_rates, refused, source

LONG = "A long explanation in many words that no model would give in the very same way. " * 3


def rows(*labels: Any, **more: Any) -> list[dict[str, Any]]:
    """Rows with different questions."""
    return [{"question": f"Question {at}?", "answer": label, **more} for at, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([{"question": "a"}, {"question": "b"}], "no column of right answers"),
        (rows(None, None, ""), "null in all 3 rows"),
        (rows("1", None, None, "2"), "null in 2 of 4"),
        (rows("1", "2", target="x"), "2 columns that could hold the right answer"),
        (rows("1", "2", "3", "4", "many"), "not all"),
        (rows(LONG, LONG + "x"), "long texts"),
        (rows({"a": 1}, {"a": 2}), "holds objects"),
        (rows(["a", "b"], ["c", "d"]), "holds lists"),
        (rows(["a"], "b"), "lists in some rows"),
        ([{"turns": ["a", "b"], "reference": ["c", "d"]}], "several turns"),
        ([{"question": "q", "choices": ["a", "b"]}], "no column says which one is right"),
        (rows("E", "A", choices=["a", "b", "c", "d"]), "does not name one of the options"),
        (rows(5, 1, choices=["a", "b", "c", "d"]), "does not name one of the options"),
        (rows(1, 2, choices=["a", "b", "c", "d"]), "can be read as"),
        (rows("2", "1", choices=["1", "2", "3"]), "can be read as"),
        (rows("A", None, choices=["a", "b"]), "have no 'answer'"),
        ([{"question": "q", "function": [{"name": "f"}]}], "not which calls are right"),
        ([{"question": "q", "function": [{"name": "f"}], "ground_truth": [1]}], "not in a known form"),
        ([{"prompt": "q", "tests": "assert (", "solution": "x"}], "not Python"),
        ([{"Question": "q", "Best Answer": "a", "Incorrect Answers": "a; b"}], "also among the wrong ones"),
        (
            [{"x": "one", "y": "two", "answer": "3"}, {"x": "four", "y": "five", "answer": "6"}],
            "which column is the question",
        ),
        ([{"task": "same", "prediction": f"p{n}", "target": "x"} for n in range(9)], "which column is the question"),
    ],
)
def test_a_doubt_is_asked_about(data: list[dict[str, Any]], reason: str) -> None:
    asked = refused(source("rows.jsonl", data))
    assert reason in asked.reason
    assert asked.question


def test_an_index_that_may_start_at_0_or_1_is_settled_by_a_word() -> None:
    data = rows(1, 2, choices=["a", "b", "c", "d"])
    assert [r["letter"] for r in chosen(source("x.jsonl", data), prompt="the index starts at 0").rows] == ["B", "C"]
    assert [r["letter"] for r in chosen(source("x.jsonl", data), prompt="the index starts at 1").rows] == ["A", "B"]


@pytest.mark.parametrize(
    "words", ["label column: target", "The answers are in the column `target`.", "target holds the right answer"]
)
def test_a_label_column_is_settled_by_a_word(words: str) -> None:
    subset = chosen(source("x.jsonl", rows("1", "2", target="x")), prompt=words)
    assert subset.field_map["label"] == "target"


def test_words_that_mean_something_else_decide_nothing() -> None:
    lists = rows(["a", "b"], ["c", "d"])
    for prompt in (
        "Run it in order to compare models.",
        "without any of our own data",
        "the answers from 1,319 people",
    ):
        assert "holds lists" in refused(source("x.jsonl", lists), prompt=prompt).reason
    index = rows(1, 2, choices=["a", "b", "c", "d"])
    assert "can be read" in refused(source("x.jsonl", index), prompt="the answers from 1,319 people").reason
    marked = rows("so it is\n#### 5", LONG + "\n#### 6")
    assert chosen(source("x.jsonl", marked), prompt="exact match please").shape == "numeric answer"


def test_probabilities_are_not_replaced_by_a_choice() -> None:
    data = [{"Question": "q", "Best Answer": "a", "Incorrect Answers": "b; c"}]
    assert "MC2" in refused(source("x.csv", data), prompt="TruthfulQA MC2").reason
    assert chosen(source("x.csv", data), prompt="TruthfulQA MC1").shape == "multiple choice"


def test_two_label_columns_that_say_the_same_are_no_doubt() -> None:
    data = [{**row, "target": row["answer"]} for row in rows("1", "2")]
    assert chosen(source("x.jsonl", data)).field_map["label"] == "answer"


def test_a_few_rows_without_a_label_are_left_out_and_said() -> None:
    data = rows(*[str(n) for n in range(50)], None)
    subset = chosen(source("x.jsonl", data))
    assert len(subset.rows) == len(subset.references) == 50
    assert any("1 of 51" in note for note in subset.notes)
    assert control_rates(subset) == (1.0, 0.0)


def test_the_prompt_that_names_an_undecidable_subset_is_told_so() -> None:
    good = source("simple.json", rows("1", "2"))
    bad = source("irrelevance.json", [{"question": "q", "function": [{"name": "f"}]}])
    assert "may be right" in refused(good, bad, prompt="run the irrelevance set").reason
    assert chosen(good, bad, prompt="run the simple set").name == "simple"


def test_files_that_could_not_be_read_pass_their_message_on() -> None:
    broken = source("x.jsonl", [])
    broken.report["fatal"] = {"message": "x.jsonl is a web page", "fix": "Give the raw file."}
    asked = refused(broken)
    assert (asked.reason, asked.question) == ("x.jsonl is a web page", "Give the raw file.")
    assert "no files" in refused().reason
