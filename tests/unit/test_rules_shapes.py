"""The rules recognise a shape over whole columns, and their scorer passes what is right and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules_harness import (
    ROOT,
    answer,
    chosen,
    control_rates,
    derive,
    load,
    make_impl,
    refused,
    score,
    source,
)


def questions(labels: list[Any], **more: list[Any]) -> list[dict[str, Any]]:
    """Rows with different questions and these labels."""
    return [
        {"question": f"Question number {at} of this file?", "answer": label, **{k: v[at] for k, v in more.items()}}
        for at, label in enumerate(labels)
    ]


def check(rows: list[dict[str, Any]], shape: str, *, prompt: str = "measure this", name: str = "rows.jsonl") -> Any:
    """Derive, check the shape and both controls; gives the subset and its scorer."""
    subset = chosen(source(name, rows), prompt=prompt)
    assert subset.shape == shape
    assert control_rates(subset) == (1.0, 0.0)
    return subset, make_impl(subset.impl_source)


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "20", "-3"],
        [1, 2.5, 30],
        ["so 4\n#### 4", "x #### 1,200", "#### -7"],
        ["$5", "3/4", "12%"],
        ["\\boxed{3}", "\\boxed{4}"],
    ],
)
def test_numbers_are_recognised_however_they_are_written(labels: list[Any]) -> None:
    subset, impl = check(questions(labels), "numeric answer")
    wrong = score(impl, subset.rows[0], answer("A: 999"))
    assert wrong["score"] == 0.0 and wrong["extracted"] == "999" and wrong["rule"] == "answer mark"
    assert score(impl, subset.rows[0], answer("no idea"))["no_answer"] == "unparsed"


@pytest.mark.parametrize("labels", [["Yes", "No", "yes"], ["true", "False", "true"], [True, False, True]])
def test_yes_and_no_are_recognised(labels: list[Any]) -> None:
    subset, impl = check(questions(labels), "yes/no")
    assert score(impl, subset.rows[0], answer("yes or no"))["score"] == 0.0
    assert len(subset.choices[0]) == 2


def test_a_handful_of_classes_is_a_closed_set() -> None:
    labels = ["positive", "negative", "neutral"] * 10
    subset, impl = check(questions(labels), "closed labels")
    assert "positive" in impl.extract(subset.rows[0])
    assert score(impl, subset.rows[0], answer("So the answer is negative."))["score"] == 0.0


def test_class_numbers_get_the_names_that_the_prompt_gives() -> None:
    rows = [{"text": f"text {at}", "label": at % 2} for at in range(20)]
    asked = refused(source("rows.jsonl", rows))
    assert "0, 1" in asked.reason and "labels:" in asked.question
    subset, impl = check(rows, "closed labels", prompt="labels: neg, pos")
    assert score(impl, subset.rows[1], answer("pos"))["score"] == 1.0
    assert score(impl, subset.rows[1], answer("1"))["score"] == 0.0
    assert chosen(source("rows.jsonl", rows), prompt="they are numeric").shape == "numeric answer"


def test_short_texts_are_compared_as_text() -> None:
    subset, impl = check(questions(["Paris", "] ]", "The Nile"]), "exact or normalised text")
    assert score(impl, subset.rows[0], answer("So the answer is **paris**."))["score"] == 1.0
    assert score(impl, subset.rows[0], answer("So the answer is Rome."))["score"] == 0.0
    assert score(impl, subset.rows[1], answer("]]"))["score"] == 0.0


CHOICES = ["red", "blue", "gold", "grey"]


@pytest.mark.parametrize(
    ("rows", "letters"),
    [
        (questions(["B", "A", "d"], choices=[CHOICES] * 3), "BAD"),
        (questions(["(B)", "A.", "[C]"], options=[CHOICES] * 3), "BAC"),
        (questions([1, 0, 3], choices=[CHOICES] * 3), "BAD"),
        (questions(["1", "0", "3"], choices=[CHOICES] * 3), "BAD"),
        (questions([4, 1, 2], choices=[CHOICES] * 3), "DAB"),
        (questions(["blue", "red", "grey"], choices=[CHOICES] * 3), "BAD"),
        (questions(["2", "1"], choices=[{"text": CHOICES, "label": ["1", "2", "3", "4"]}] * 2), "BA"),
        (questions(["C", "A"], choices=[{"A": "x", "B": "y", "C": "z"}] * 2), "CA"),
        (questions(["k2", "k1"], choices=[[{"label": "k1", "text": "x"}, {"label": "k2", "text": "y"}]] * 2), "BA"),
        (questions(["B", "A"], A=["x", "y"], B=["z", "w"], C=["u", "v"]), "BA"),
        (questions(["B", "A"], option_a=["x", "y"], option_b=["z", "w"]), "BA"),
        (questions([2, 1], choice1=["x", "y"], choice2=["z", "w"]), "BA"),
        (questions(["C", "A"], A=["x", "y"], B=["z", "w"], C=["u", None]), "CA"),
        (
            [
                {
                    "id": at,
                    "answerKey": key,
                    "question": {
                        "stem": f"q{at}?",
                        "choices": [{"text": "x", "label": "A"}, {"text": "y", "label": "B"}],
                    },
                }
                for at, key in enumerate("BA")
            ],
            "BA",
        ),
        ([{"ctx": f"c{at}", "endings": CHOICES, "label": key} for at, key in enumerate("103")], "BAD"),
    ],
)
def test_options_and_labels_are_read_in_every_layout(rows: list[dict[str, Any]], letters: str) -> None:
    subset, impl = check(rows, "multiple choice")
    assert "".join(row["letter"] for row in subset.rows) == letters
    assert all(f"{row['letter']}) " in impl.extract(row) for row in subset.rows)
    other = "A" if letters[0] != "A" else "B"
    assert score(impl, subset.rows[0], answer(f"Answer: {other}"))["score"] == 0.0
    assert score(impl, subset.rows[0], answer("\n".join(subset.choices[0])))["score"] == 0.0


@pytest.mark.parametrize("wrong", [["y", "z"], "y; z"])
def test_a_right_answer_that_comes_first_is_shuffled_the_same_way_each_time(wrong: Any) -> None:
    rows = [
        {"Question": f"Question {at}?", "Best Answer": f"right {at}", "Incorrect Answers": wrong} for at in range(40)
    ]
    subset, _ = check(rows, "multiple choice")
    letters = [row["letter"] for row in subset.rows]
    assert set(letters) == {"A", "B", "C"}
    assert letters == [row["letter"] for row in chosen(source("rows.jsonl", rows)).rows]
    for at, row in enumerate(subset.rows):
        assert row["options"]["ABC".index(row["letter"])] == f"right {at}"
        assert sorted(row["options"]) == sorted([f"right {at}", "y", "z"])


def test_marked_options_are_read_and_shuffled() -> None:
    targets = {"choices": ["right", "wrong", "other"], "labels": [1, 0, 0]}
    rows = [{"question": f"Question {at}?", "mc1_targets": targets} for at in range(20)]
    subset, _ = check(rows, "multiple choice")
    assert all(row["options"]["ABC".index(row["letter"])] == "right" for row in subset.rows)
    assert len({row["letter"] for row in subset.rows}) > 1


def test_options_written_in_the_question_are_found_there() -> None:
    text = "Which?\nOptions:\n(A) one\n(B) two\n(C) three"
    rows = [{"input": f"{at}: {text}", "target": f"({'ABC'[at % 3]})"} for at in range(9)]
    subset, impl = check(rows, "multiple choice")
    assert score(impl, subset.rows[0], answer("So the answer is A."))["score"] == 1.0
    assert score(impl, subset.rows[0], answer("So the answer is one."))["score"] == 1.0
    assert score(impl, subset.rows[0], answer("(A)\n(B)\n(C)"))["score"] == 0.0


def test_functions_with_tests_are_run() -> None:
    rows = [
        {
            "task_id": at, "prompt": f"def f{at}(x):\n    '''Add {at}.'''\n", "entry_point": f"f{at}",
            "canonical_solution": f"    return x + {at}\n", "test": f"def check(c):\n    assert c(1) == {1 + at}\n",
        }
        for at in range(3)
    ]  # fmt: skip
    subset, impl = check(rows, "code with tests")
    assert score(impl, subset.rows[1], answer("    return x"))["score"] == 0.0
    assert score(impl, subset.rows[1], answer("```python\ndef f1(x):\n    return 1 + x\n```"))["score"] == 1.0
    assert score(impl, subset.rows[1], answer("import os\nos._exit(0)"))["score"] == 0.0


def test_programs_from_a_description_are_run() -> None:
    rows = [
        {
            "task_id": at, "text": f"Write a function that adds {at}.", "code": f"def add(x):\n    return x + {at}",
            "test_list": [f"assert add(1) == {1 + at}", f"assert add(0) == {at}"], "test_setup_code": "",
        }
        for at in range(3)
    ]  # fmt: skip
    subset, impl = check(rows, "code with tests")
    assert "assert add(1) == 2" in impl.extract(subset.rows[1])
    assert score(impl, subset.rows[1], answer("def add(x):\n    return x + 2"))["score"] == 0.0


def test_code_without_solutions_is_derived_only_when_a_person_says_so() -> None:
    rows = [{"prompt": f"Write a program {at}.", "tests": "assert f() == 1"} for at in range(3)]
    assert "no solutions" in refused(source("rows.jsonl", rows)).reason
    subset = chosen(source("rows.jsonl", rows), prompt="go on without solutions")
    assert subset.references[0].text is None and subset.notes


@pytest.mark.parametrize(
    "expected",
    [[{"f": {"a": [1], "b": ["x", ""]}}], {"name": "f", "arguments": {"a": 1}}, [{"name": "f", "arguments": {"a": 1}}]],
)
def test_tool_calls_are_recognised_in_every_form(expected: Any) -> None:
    function = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    }
    rows = [
        {"id": at, "question": f"Call it {at}", "function": [function], "ground_truth": expected} for at in range(3)
    ]
    subset, impl = check(rows, "tool call JSON")
    assert score(impl, subset.rows[0], answer("", [{"name": "f", "arguments": {"a": 2}}]))["score"] == 0.0
    assert score(impl, subset.rows[0], answer('{"name": "f", "arguments": {"a": 1}}'))["score"] == 1.0
    assert score(impl, subset.rows[0], answer("I would rather not."))["no_answer"] == "unparsed"


def test_questions_and_answers_in_two_files_are_joined_by_id() -> None:
    function = {"name": "f", "parameters": {"type": "dict", "properties": {}}}
    asked = [
        {"id": f"x{at}", "question": [[{"role": "user", "content": "go"}]], "function": [function]} for at in range(3)
    ]
    given = [{"id": f"x{at}", "ground_truth": [{"f": {}}]} for at in reversed(range(3))]
    subset = chosen(source("simple.json", asked), source("possible_answer_simple.json", given))
    assert subset.files == ["simple.json", "possible_answer_simple.json"]
    assert subset.rows[0]["id"] == "x0" and control_rates(subset) == (1.0, 0.0)
    assert make_impl(subset.impl_source).extract(subset.rows[0]) == [{"role": "user", "content": "go"}]


@pytest.mark.parametrize(("words", "shape"), [("any order", "set"), ("the order matters", "list")])
def test_lists_are_sets_or_lists_by_a_persons_word(words: str, shape: str) -> None:
    rows = questions([["a", "b, c"], ["d", "e"]])
    assert "Which is it" in refused(source("rows.jsonl", rows)).question
    subset, impl = check(rows, shape, prompt=words)
    turned = score(impl, subset.rows[1], answer("Answer: e, d"))["score"]
    assert turned == (1.0 if shape == "set" else 0.0)


def test_any_of_several_answers_is_right_when_a_person_says_so() -> None:
    subset, impl = check(
        questions([["Paris", "City of Light"], ["Rome"]]), "exact or normalised text", prompt="any of them"
    )
    assert score(impl, subset.rows[0], answer("city of light"))["score"] == 1.0


def test_a_column_named_for_it_needs_no_question() -> None:
    rows = [{"question": f"q {at}", "answer_set": ["a", "b"]} for at in range(3)]
    check(rows, "set")


def test_a_passage_stands_before_its_question() -> None:
    rows = questions(["Rome", "Oslo"], passage=["About Rome.", "About Oslo."])
    subset, impl = check(rows, "exact or normalised text")
    assert impl.extract(subset.rows[0]).startswith("About Rome.\n\nQuestion number 0")


def test_each_file_is_a_subset_of_its_own() -> None:
    found = derive(
        source("one.jsonl", questions(["1", "2"])), source("two.jsonl", questions(["a", "b"])), prompt="run two"
    )
    assert [s.name for s in found.subsets] == ["one", "two"] and found.chosen == "two"
    assert found.subsets[0].impl_source != found.subsets[1].impl_source


def test_a_test_split_is_preferred_and_several_tasks_are_asked_about() -> None:
    rows = questions(["1", "2"])
    splits = [source(f"{s}.jsonl", rows) for s in ("train", "validation", "test")]
    assert derive(*splits).chosen == "test"
    tasks = derive(source("dates.json", rows), source("names.json", rows))
    assert tasks.chosen is None and "dates, names" in (tasks.question or "")
    assert derive(source("dates.json", rows), source("names.json", rows), prompt="the dates please").chosen == "dates"


def test_the_same_files_give_the_same_bytes() -> None:
    rows = questions(["Paris", "Rome"])
    first, second = (chosen(source("rows.jsonl", rows)) for _ in range(2))
    assert first == second


def test_a_name_in_the_data_cannot_become_code() -> None:
    column = 'answer"\nimport os\nos.abort() #"""'
    rows = [{"question": f"q{at}", column: str(at), "answer": str(at)} for at in range(3)]
    subset = chosen(source('x"""\nimport os.jsonl', rows))
    assert control_rates(subset) == (1.0, 0.0)
    assert "\nimport os" not in subset.impl_source


def test_a_scorer_names_the_version_it_was_written_for() -> None:
    source_text = chosen(source("rows.jsonl", questions(["1", "2"]))).impl_source
    assert 'require("1.0.0")' in source_text
    assert '"""' in source_text and "numeric" not in source_text.split('"""')[2]


@pytest.mark.parametrize("name", ["arithmetic", "multiple_choice", "code_with_tests", "tool_calls"])
def test_our_own_samples_are_derived_and_both_controls_are_right(name: str, tmp_path: Path) -> None:
    folder = ROOT / "registry" / "samples"
    index = {e["file"]: e for e in json.loads((folder / "index.json").read_text())["samples"]}
    entry = index[f"{name}.jsonl"]
    subset = chosen(*load(tmp_path, folder / entry["file"]), prompt=entry["description"])
    assert len(subset.rows) == entry["rows"] >= 20
    assert control_rates(subset) == (1.0, 0.0)
