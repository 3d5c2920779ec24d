"""The proof of a scorer on sample rows: what it must catch, and what it must let pass."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.unit.guest_harness import RUNNER

PROVE = RUNNER.with_name("prove.py")

GOOD = """
import re
class TaskImpl:
    def extract(self, row):
        return row["q"]
    def solve(self, row, call_sut):
        return call_sut(self.extract(row)).text
    def score(self, row, response):
        found = re.findall(r"-?\\d+", response)
        return {"score": bool(found) and found[-1] == row["a"], "extracted": found[-1] if found else None}
"""

ROWS = [
    {"index": i, "row": {"q": f"What is {i} + {i}?", "a": str(2 * i)}, "reference": {"text": f"It is {2 * i}."}}
    for i in range(3)
]


def prove(folder: Path, impl: str, samples: Any = ROWS, **settings: Any) -> dict[str, Any]:
    """The report of prove.py, run as the sandbox runs it."""
    (folder / "task_impl.py").write_text(textwrap.dedent(impl))
    job = folder / "job.json"
    job.write_text(json.dumps({"impl": str(folder / "task_impl.py"), "samples": samples, "seconds": 10, **settings}))
    done = subprocess.run([sys.executable, "-I", str(PROVE), str(job)], capture_output=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 0) == report["ok"]
    return report


def check(report: dict[str, Any], name: str) -> dict[str, Any]:
    """One check of a report."""
    return next(c for c in report["checks"] if c["name"] == name)


def test_a_good_scorer_is_proved(tmp_path: Path) -> None:
    report = prove(tmp_path, GOOD)
    assert report["ok"], report
    assert all(c["ok"] for c in report["checks"] if c["name"] != "injection")
    assert check(report, "oracle")["rows"] == 3
    assert report["samples"][1]["prompt"] == "What is 1 + 1?"
    assert report["samples"][1]["oracle"]["extracted"] == "2"
    assert report["samples"][1]["empty"]["score"] == 0.0


def test_an_async_scorer_and_rows_from_a_file_are_proved_alike(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(r) for r in ROWS))
    impl = GOOD.replace("def solve", "async def solve").replace(
        "call_sut(self.extract(row)).text", "(await call_sut(self.extract(row))).text"
    )
    assert prove(tmp_path, impl, str(tmp_path / "rows.jsonl"))["ok"]


def test_tool_calls_reach_the_scorer_as_the_reference_has_them(tmp_path: Path) -> None:
    impl = """
    class TaskImpl:
        def extract(self, row):
            return [{"role": "user", "content": row["q"]}]
        def solve(self, row, call_sut):
            return call_sut(self.extract(row), tools=row["tools"])
        def score(self, row, response):
            return [(c["name"], c["arguments"]) for c in response["tool_calls"]] == [("f", {"x": 1})]
    """
    call = {"name": "f", "arguments": {"x": 1}}
    rows = [{"index": 0, "row": {"q": "?", "tools": []}, "reference": {"text": None, "tool_calls": [call]}}]
    assert prove(tmp_path, impl, rows)["ok"]


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("oracle", "== row", "!= row", "the reference itself"),
        ("empty", "bool(found) and", "not found or", "an empty answer scores 1.0"),
        ("in_range", 'found[-1] == row["a"]', "7.0", "7.0, outside [0, 1]"),
        ("deterministic", "import re", "import re, random", "for the same answer"),
        ("extract", 'return row["q"]', "return 42", "not int"),
        ("extract", 'return row["q"]', 'return row["question"]', "KeyError"),
        ("solves", "return call_sut", "return open('/nothing') or call_sut", "FileNotFoundError"),
        ("imports", "import re", "import nothing_like_this", "nothing_like_this"),
        ("imports", "class TaskImpl", "class Impl", "no class TaskImpl"),
        ("imports", "import re", "import os; os._exit(0)", "ended the process"),
        ("survives", "found = ", "import os; os._exit(0); found = ", "ended the process"),
    ],
)
def test_a_faulty_scorer_is_caught_by_the_check_of_that_name(
    tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    impl = GOOD.replace(old, new)
    if name == "deterministic":
        impl = impl.replace("bool(found) and", "random.random() if found else 0,\n            'x':")
    report = prove(tmp_path, impl)
    assert not report["ok"]
    assert not check(report, name)["ok"]
    assert words in check(report, name)["detail"]
    assert name == "imports" or check(report, name)["row"] == 0


def test_a_scorer_that_hangs_is_caught_in_its_time(tmp_path: Path) -> None:
    report = prove(tmp_path, GOOD.replace("found = ", "while True: pass\n        found = "), ROWS[:1], seconds=0.5)
    assert "not done after 0.5 s" in check(report, "survives")["detail"]


def test_a_scorer_that_passes_anything_is_told_but_left_to_a_person(tmp_path: Path) -> None:
    report = prove(tmp_path, GOOD.replace('bool(found) and found[-1] == row["a"]', "bool(response.strip())"))
    assert report["ok"]
    assert [check(report, n)["ok"] for n in ("refusal", "injection", "wrong")] == [False, False, False]
    assert check(report, "wrong")["advisory"]
    assert "the reference of row 1 scores 1 here" in check(report, "wrong")["detail"]


def test_listing_every_option_is_told(tmp_path: Path) -> None:
    rows = [{**r, "choices": ["0", "2", "4"]} for r in ROWS]
    report = prove(tmp_path, GOOD.replace('found[-1] == row["a"]', 'row["a"] in found'), rows)
    assert not check(report, "every_option")["ok"]


def test_a_row_without_a_reference_must_only_run(tmp_path: Path) -> None:
    report = prove(tmp_path, GOOD, [{"index": 9, "row": {"q": "?", "a": "1"}, "reference": None}])
    assert report["ok"]
    assert {c["name"] for c in report["checks"]} == {
        "imports",
        "extract",
        "solves",
        "in_range",
        "deterministic",
        "survives",
    }


def test_what_a_scorer_prints_is_not_in_the_report(tmp_path: Path) -> None:
    assert prove(tmp_path, GOOD.replace("found = ", "print('{}' * 10 ** 6)\n        found = "))["ok"]
