"""The scorer that the pages show works: it is proved and run here as the pages say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.project import ROOT, code_blocks, read
from tests.unit.guest_harness import completion, model_server

ROWS = [
    {"question": "What is 7 + 5?", "answer": "12"},
    {"question": "A box holds 1,200 pens. How many are in 3 boxes?", "answer": "3,600"},
]


@pytest.fixture
def scorer(tmp_path: Path) -> Path:
    """The example of docs/scoring.md as a file."""
    (source,) = [block for block in code_blocks(read("docs/scoring.md"), "python") if "class TaskImpl" in block]
    path = tmp_path / "task_impl.py"
    path.write_text(source)
    return path


def guest(script: str, job: dict[str, object], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs one of the guest's scripts on a job."""
    (folder / "job.json").write_text(json.dumps(job))
    command = [sys.executable, "-I", str(ROOT / "runs" / "guest" / script), str(folder / "job.json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_scorer_on_the_page_passes_its_proof(scorer: Path, tmp_path: Path) -> None:
    samples = [
        {"index": i, "row": row, "reference": {"text": f"Answer: {row['answer']}", "tool_calls": None}}
        for i, row in enumerate(ROWS)
    ]
    done = guest("prove.py", {"impl": str(scorer), "samples": samples, "path": [str(ROOT / "sdk")]}, tmp_path)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["ok"], report["checks"]
    assert [c["name"] for c in report["checks"] if not c["ok"]] == []


def test_the_scorer_on_the_page_runs_against_any_endpoint(scorer: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"index": i, "trial": 0, "row": row, "keys": ["none"]}) for i, row in enumerate(ROWS)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    with model_server(lambda key, body: (200, completion("12 in all.\nAnswer: 12"), 0.0)) as model:
        job = {"impl": str(scorer), "tasks": str(tmp_path / "tasks.jsonl"), "base_url": model.url}
        done = guest("run_tasks.py", {**job, "path": [str(ROOT / "sdk")]}, tmp_path)
    assert done.returncode == 0, done.stderr
    results = {f["index"]: f for f in map(json.loads, done.stdout.splitlines()) if f["t"] == "result"}
    assert [results[i]["score"] for i in (0, 1)] == [1.0, 0.0]
    assert results[1]["extracted"] == "12" and results[1]["target"] == "3600"
