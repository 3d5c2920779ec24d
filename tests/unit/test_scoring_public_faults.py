"""Faults that were reported in public against other harnesses, replayed from the shared file of cases."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.unit import rules_harness as harness

# isort: split
from benchwright_scoring import (
    Found,
    NotJson,
    answer_text,
    choice_letter,
    choice_letters,
    extract_code,
    find_numbers,
    last_boxed,
    no_answer,
    number_answer,
    parse_json,
    parse_number,
    run_in_out,
    run_tests,
    same_arguments,
    same_json,
    same_number,
    same_text,
    visible,
    without_ansi,
)

Case = dict[str, Any]


def _right(response: str, gold: str, **options: float) -> float:
    found = number_answer(response)
    wanted = number_answer(gold)
    assert wanted is not None
    return float(found is not None and same_number(found.value, wanted.value, **options))


def comma_in_prose(case: Case, _: Path) -> None:
    found = number_answer(case["input"]["response"])
    assert found is not None and found.text == case["expected"]["extracted"]


def percent(case: Case, _: Path) -> None:
    found = number_answer(case["input"]["response"])
    assert found is not None and found.value.unit == "%"
    assert str(found.value.value) == case["expected"]["extracted"]
    assert _right(case["input"]["response"], case["input"]["gold"]) == 1.0


def negative_gold(case: Case, _: Path) -> None:
    gold = number_answer(case["input"]["gold"])
    assert gold is not None and gold.value.value == case["expected"]["gold_value"]
    assert [_right(r, case["input"]["gold"]) for r in case["input"]["responses"]] == case["expected"]["scores"]


def fractions(case: Case, _: Path) -> None:
    pairs = case["input"]["pairs"]
    values = [float(find_numbers(p["response"])[-1].value) for p in pairs]
    assert values == case["expected"]["values"]
    assert [_right(p["response"], p["gold"]) for p in pairs] == case["expected"]["scores"]


def nested_box(case: Case, _: Path) -> None:
    box = last_boxed(case["input"]["response"])
    assert box == case["expected"]["extracted"]
    assert [float(box == gold) for gold in case["input"]["golds"]] == case["expected"]["scores"]


def letters_in_words(case: Case, _: Path) -> None:
    for item, wanted in zip(case["input"]["cases"], case["expected"]["parsed"], strict=True):
        found = choice_letter(item["response"], "ABCD"[: case["input"]["n_choices"]])
        assert (found.value if found else None) == wanted


def several_letters(case: Case, _: Path) -> None:
    for item in case["input"]["cases"]:
        found = choice_letters(item["response"], "ABCD")
        assert found is not None and sorted(found.value) == item["target"]


def lone_fence(case: Case, _: Path) -> None:
    code = extract_code(case["input"]["response"])
    assert code == case["expected"]["code"]
    assert run_tests(code, case["input"]["test"]).ok


def endless_c_call(case: Case, _: Path) -> None:
    limits = case["input"]["limits"]
    result = run_tests(case["input"]["code"], case["input"]["test"], seconds=1, memory_mb=limits["memory_mb"])
    assert not result.ok and result.reason in case["expected"]["reason_one_of"]
    assert result.seconds < case["expected"]["max_wall_s"]


def bytes_on_stdin(case: Case, _: Path) -> None:
    assert run_in_out(case["input"]["code"], case["input"]["stdin"], case["input"]["expected_stdout"]).ok


def argument_values(case: Case, _: Path) -> None:
    given = case["input"]
    scores = [float(same_arguments(a, given["expected_args"], given["schema"]).ok) for a in given["actual_args"]]
    assert scores == case["expected"]["scores"]


def json_as_structure(case: Case, _: Path) -> None:
    wanted = parse_json(case["input"]["expected"])
    scores = []
    for text in case["input"]["actual"]:
        try:
            scores.append(float(same_json(parse_json(text), wanted)))
        except NotJson:
            scores.append(0.0)
    assert scores == case["expected"]["scores"]


def byte_order_mark(case: Case, tmp: Path) -> None:
    (tmp / "rows.csv").write_bytes(bytes.fromhex(case["input"]["bytes_hex"]))
    file = harness.load(tmp / "out", tmp / "rows.csv")[0]
    assert list(file.report["columns"]) == case["expected"]["columns"]
    assert file.rows == case["expected"]["rows"]


def late_type(case: Case, tmp: Path) -> None:
    (tmp / "rows.jsonl").write_text("\n".join(case["input"]["jsonl"]))
    file = harness.load(tmp / "out", tmp / "rows.jsonl")[0]
    column = file.report["columns"]["hint"]
    assert set(column["types"]) == {"string"} and column["nulls"] == 2
    assert [row["hint"] for row in file.rows] == case["expected"]["hints"]


def index_from_one(case: Case, _: Path) -> None:
    rows = [{"question": f"Which? {at}", **row} for at, row in enumerate(case["input"]["rows"])]
    subset = harness.chosen(harness.source("rows.jsonl", rows))
    assert [row["letter"] for row in subset.rows] == case["expected"]["letters"]


def cut_by_the_limit(case: Case, _: Path) -> None:
    reply = case["input"]["reply"]
    response = {
        "text": reply["content"],
        "reasoning": reply["reasoning_content"],
        "finish_reason": reply["finish_reason"],
    }
    assert number_answer(answer_text(response)) is None
    assert no_answer(response) == case["expected"]["meta"]["no_answer"]


def thinking(case: Case, _: Path) -> None:
    boxes = [last_boxed(visible(r)) for r in case["input"]["responses"]]
    assert boxes == case["expected"]["extracted"]


def stray_closing_tag(case: Case, _: Path) -> None:
    seen = [visible(r).strip() for r in case["input"]["responses"]]
    assert seen == case["expected"]["visible"]
    assert all(same_text(s, case["input"]["gold"]) for s in seen)


def colour_codes(case: Case, _: Path) -> None:
    line = without_ansi(case["input"]["stdout"]).split()
    assert {line[1]: line[0]} == case["expected"]["statuses"]


def separators(case: Case, _: Path) -> None:
    values = []
    for item in case["input"]["cases"]:
        found = number_answer(item["response"])
        assert found is not None
        values.append(found.value.value)
        assert _right(item["response"], item["gold"]) == 1.0
    assert values == [Fraction(v) for v in case["expected"]["values"]]


def tolerance(case: Case, _: Path) -> None:
    rel = case["input"]["rel_tol"]
    scores = [float(same_number(p["response"], p["gold"], rel_tol=rel)) for p in case["input"]["pairs"]]
    assert scores == case["expected"]["scores"]


def letter_of_a_word(case: Case, _: Path) -> None:
    found = choice_letter(case["input"]["response"], "ABCD")
    assert isinstance(found, Found) and found.value == case["expected"]["parsed"]


def opened_fence(case: Case, _: Path) -> None:
    code = extract_code(case["input"]["response"], opened=True)
    assert run_tests(code, case["input"]["test"]).ok


def wrong_candidate(case: Case, _: Path) -> None:
    assert not run_tests(case["input"]["code"], case["input"]["test"]).ok


def json_within_json(case: Case, _: Path) -> None:
    given = case["input"]
    scores = [float(same_arguments(a, given["expected_args"], given["schema"]).ok) for a in given["raw_arguments"]]
    assert scores == case["expected"]["scores"]


def gzip_by_its_bytes(case: Case, tmp: Path) -> None:
    (tmp / "rows.jsonl").write_bytes(gzip.compress(case["input"]["gzip_of"].encode()))
    file = harness.load(tmp / "out", tmp / "rows.jsonl")[0]
    assert [row["id"] for row in file.rows] == case["expected"]["ids"]


def other_line_ends(case: Case, tmp: Path) -> None:
    (tmp / "rows.jsonl").write_text(case["input"]["text"], encoding="utf-8")
    file = harness.load(tmp / "out", tmp / "rows.jsonl")[0]
    assert [row["out"] for row in file.rows] == case["expected"]["outs"]


CHECKS: dict[str, Callable[[Case, Path], None]] = {
    "BUG-01": comma_in_prose, "BUG-03": percent, "BUG-05": negative_gold, "BUG-07": fractions, "BUG-09": nested_box,
    "BUG-11": letters_in_words, "BUG-13": several_letters, "BUG-15": lone_fence, "BUG-17": endless_c_call,
    "BUG-19": bytes_on_stdin, "BUG-21": argument_values, "BUG-23": json_as_structure, "BUG-24": byte_order_mark,
    "BUG-26": late_type, "BUG-28": index_from_one, "BUG-32": cut_by_the_limit, "BUG-34": thinking,
    "BUG-53": colour_codes, "EXT-01": separators, "EXT-03": tolerance, "EXT-05": letter_of_a_word,
    "EXT-07": opened_fence, "EXT-09": wrong_candidate, "EXT-12": json_within_json, "EXT-13": gzip_by_its_bytes,
    "EXT-15": other_line_ends, "EXT-16": stray_closing_tag,
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> dict[str, Case]:
    """The shared cases by id; skipped where the file is not there."""
    path = shared_data.parent / "cases" / "public_faults.jsonl"
    if not path.is_file():
        pytest.skip("no shared cases here")
    with path.open(encoding="utf-8") as file:
        return {case["id"]: case for case in map(json.loads, file)}


@pytest.mark.parametrize("name", CHECKS)
def test_a_fault_reported_elsewhere_is_not_ours(name: str, cases: dict[str, Case], tmp_path: Path) -> None:
    CHECKS[name](cases[name], tmp_path)


def test_a_number_that_is_a_label_is_itself() -> None:
    parsed = parse_number("3/8")
    assert parsed is not None and parsed.value == Fraction(3, 8)
