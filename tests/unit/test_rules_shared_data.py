"""On real sets derived scorers give the oracle 1, the empty control 0 and recorded models their published score."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules_harness import answer, chosen, control_rates, derive, load, make_impl, refused, score

BFCL = ["BFCL_v4_simple_python.json", "possible_answer_BFCL_v4_simple_python.json", "BFCL_v4_irrelevance.json"]


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


@pytest.fixture(scope="module")
def anchors(shared_data: Path) -> dict[str, float]:
    """Published numbers by id."""
    return {a["id"]: a["expected"] for a in json.loads((shared_data / "ANCHORS.json").read_text())}


def test_gsm8k_gives_what_was_published(shared_data: Path, anchors: dict[str, float], tmp_path: Path) -> None:
    subset = chosen(*load(tmp_path, shared_data / "gsm8k" / "test.jsonl"), prompt="grade school maths")
    assert subset.shape == "numeric answer" and control_rates(subset) == (1.0, 0.0)
    impl, by_question = make_impl(subset.impl_source), {row["question"]: row for row in subset.rows}
    passed: Counter[str] = Counter()
    for record in records(shared_data / "gsm8k" / "recorded_openai_2021.jsonl.gz"):
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            ok = score(impl, by_question[record["question"]], answer(record[model]["solution"]))["score"]
            assert bool(ok) is record[model]["is_correct"]
            passed[model] += int(ok)
    assert dict(passed) == {m: anchors[f"gsm8k/{m}"] for m in passed}


def test_every_bbh_task_gives_what_was_published_in_both_ways_of_asking(
    shared_data: Path, anchors: dict[str, float], tmp_path: Path
) -> None:
    paths = [p for p in sorted((shared_data / "bbh").glob("*.json")) if p.name != "published_scores.json"]
    found = derive(*load(tmp_path, *paths), prompt="BIG-Bench Hard")
    assert len(found.subsets) == 10 and not found.cannot and found.chosen is None
    impls = {s.name: make_impl(s.impl_source) for s in found.subsets}
    scores: dict[tuple[str, str], list[float]] = {}
    for record in records(shared_data / "bbh" / "recorded_code_davinci_002.jsonl.gz"):
        row = found.subset(record["task"]).rows[record["index"]]
        got = score(impls[record["task"]], row, answer(record["prediction"]))["score"]
        scores.setdefault((record["task"], record["prompting"]), []).append(got)
    assert len(scores) == 20
    for (task, prompting), got_all in scores.items():
        assert 100 * sum(got_all) / len(got_all) == pytest.approx(anchors[f"bbh/{task}/{prompting}"], abs=0.01)
    for subset in found.subsets:
        assert control_rates(subset) == (1.0, 0.0), subset.name


def test_humaneval_gives_what_was_published(shared_data: Path, anchors: dict[str, float], tmp_path: Path) -> None:
    folder = shared_data / "humaneval"
    subset = chosen(*load(tmp_path, folder / "HumanEval.jsonl.gz"), prompt="HumanEval")
    impl, by_id = make_impl(subset.impl_source), {row["task_id"]: row for row in subset.rows}

    def passes(job: tuple[str, str]) -> float:
        return float(score(impl, by_id[job[0]], answer(job[1]))["score"])

    with ThreadPoolExecutor(8) as pool:
        for name in ("gpt4_simple", "gpt4_reflexion", "davinci003_simple"):
            jobs = [(r["task_id"], r["solution"]) for r in records(folder / f"recorded_{name}.jsonl.gz")]
            assert sum(pool.map(passes, jobs)) == anchors[f"humaneval/recorded_{name}"]
        # One task of a base model's raw continuations; all of them are what the benchmark command runs.
        expected = json.loads((folder / "expected_codegen16b_n100.json").read_text())["correct_by_task"]
        for record in records(folder / "recorded_codegen16b_n100.jsonl.gz"):
            if record["task_id"] == "HumanEval/0":
                jobs = [(record["task_id"], sample) for sample in record["samples"]]
                assert sum(pool.map(passes, jobs)) == pytest.approx(expected[record["task_id"]], abs=1)
    assert control_rates(subset) == (1.0, 0.0)


def test_truthfulqa_is_multiple_choice_with_the_right_one_anywhere(shared_data: Path, tmp_path: Path) -> None:
    subset = chosen(*load(tmp_path, shared_data / "truthfulqa" / "TruthfulQA.csv"), prompt="TruthfulQA MC1")
    assert len(subset.rows) == 817 and control_rates(subset) == (1.0, 0.0)
    places = Counter(row["letter"] for row in subset.rows)
    assert places["A"] < 300 and len(places) > 4
    assert all(
        row["options"]["ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(row["letter"])] == row["Best Answer"].strip()
        for row in subset.rows
    )


def test_simple_tool_calls_are_joined_and_irrelevance_is_asked_about(shared_data: Path, tmp_path: Path) -> None:
    files = load(tmp_path, *(shared_data / "bfcl_simple" / name for name in BFCL))
    subset = chosen(*files, prompt="BFCL simple")
    assert len(subset.rows) == 400 and control_rates(subset) == (1.0, 0.0)
    assert "may be right" in refused(files[2], prompt="BFCL irrelevance").reason
    assert "may be right" in refused(*files, prompt="BFCL irrelevance").reason


def test_a_wrong_value_of_one_argument_fails_the_call(shared_data: Path, tmp_path: Path) -> None:
    files = load(tmp_path, *(shared_data / "bfcl_simple" / name for name in BFCL[:2]))
    subset = chosen(*files, prompt="BFCL simple")
    impl = make_impl(subset.impl_source)
    for row, reference in zip(subset.rows, subset.references, strict=True):
        calls = json.loads(json.dumps(reference.tool_calls))
        for key, value in calls[0]["arguments"].items():
            wrong = json.loads(json.dumps(calls))
            wrong[0]["arguments"][key] = "zz" if isinstance(value, str) else [value, 0.5]
            assert score(impl, row, answer("", wrong))["score"] == 0.0, (row["id"], key)


def test_the_game_of_24_gives_what_was_published(shared_data: Path, anchors: dict[str, float], tmp_path: Path) -> None:
    subset = chosen(*load(tmp_path, shared_data / "game24" / "24.csv"), prompt="the game of 24")
    assert control_rates(subset) == (1.0, 0.0)
    impl = make_impl(subset.impl_source)
    results = {}
    for name in ("standard_n100", "tot_b5"):
        results[name] = [
            [score(impl, subset.rows[r["idx"] - 900], answer(s))["score"] for s in r["samples"]]
            for r in records(shared_data / "game24" / f"recorded_gpt4_{name}.jsonl.gz")
        ]
    standard = results["standard_n100"]
    assert sum(map(sum, standard)) / sum(map(len, standard)) == pytest.approx(anchors["game24/io_mean"], abs=1e-9)
    assert sum(max(s) for s in standard) == anchors["game24/io_best_of_100"]
    assert sum(max(s) for s in results["tot_b5"]) == anchors["game24/tot_b5"]


@pytest.mark.parametrize(
    "names",
    [
        ["mt_bench/question.jsonl"],
        ["mt_bench/question.jsonl", "mt_bench/reference_answer_gpt-4.jsonl", "mt_bench/judge_prompts.jsonl"],
        ["judge_rubric/mt_bench_rubric_80.jsonl.gz"],
        ["tau_airline/recorded_gpt4o_rewards.jsonl"],
        ["tau_airline/trajectories_sample.json.gz"],
        ["alpaca_eval/recorded_judge_preferences.jsonl.gz"],
        ["alpaca_eval/published_leaderboard.json"],
        ["bbh/recorded_code_davinci_002.jsonl.gz"],
        ["gsm8k/recorded_openai_2021.jsonl.gz"],
    ],
)
def test_sets_without_a_right_answer_to_compare_with_are_asked_about(
    shared_data: Path, names: list[str], tmp_path: Path
) -> None:
    asked = refused(*load(tmp_path, *(shared_data / name for name in names)), prompt="run this")
    assert asked.reason and asked.question
