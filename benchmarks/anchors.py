"""Published scores, reproduced: recorded answers are replayed by a provider at the wire, and our own scorer must
count what was
published. One row for each recorded model, and the controls on every set.

    ./bw bench anchors --data ../shared/data [--only gsm8k] [--json]
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.client import Api
from tests.fakes.provider import FakeProvider, Request


@dataclass
class Row:
    """One recorded model on one set. `ours` None: the run did not end; `note` says how."""

    set: str
    recorded: str
    published: float | str
    ours: float | str | None
    same: bool
    run: str = ""
    seconds: float = 0.0
    note: str = ""


@dataclass
class Case:
    """One launch and what must come out. `answer` gives the recorded text for a request, None: a control."""

    set: str
    recorded: str
    files: list[Path]
    prompt: str
    published: float | str
    measure: str = "passed"  # passed | accuracy | status | pass@1
    tolerance: float = 0.0
    answer: Callable[[Request], str | None] | None = None
    control: str | None = None
    trials: int = 1
    labels: dict[str, Any] = field(default_factory=dict)


def _jsonl(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as f:
        return [json.loads(line) for line in f if line.strip()]


def _lookup(table: dict[str, Any]) -> Callable[[Request], Any]:
    """The entry whose key is in the prompt; the longest key wins, so that a question that begins another is not
    taken for it.
    """
    keys = sorted(table, key=len, reverse=True)
    known: dict[str, Any] = {}

    def find(request: Request) -> Any:
        if request.prompt not in known:
            known[request.prompt] = next((table[k] for k in keys if k in request.prompt), None)
        return known[request.prompt]

    return find


def gsm8k(data: Path) -> Iterator[Case]:
    """Four models of the paper, 1,319 problems each."""
    files, prompt = [data / "gsm8k/test.jsonl"], "Grade-school maths word problems: is the final number right?"
    rows = _jsonl(data / "gsm8k/recorded_openai_2021.jsonl.gz")
    for name, published in (
        ("6b_finetuning", 286),
        ("6b_verification", 515),
        ("175b_finetuning", 458),
        ("175b_verification", 742),
    ):
        find = _lookup({r["question"]: r[name]["solution"] for r in rows})
        yield Case("gsm8k", name, files, prompt, published, answer=find)
    yield from _controls("gsm8k", files, prompt)


def humaneval(data: Path) -> Iterator[Case]:
    """Recorded bodies, run in the sandbox; CodeGen with a hundred samples for each task."""
    files, prompt = [data / "humaneval/HumanEval.jsonl.gz"], "Python functions from docstrings, judged by unit tests."
    problems = {r["task_id"]: r["prompt"] for r in _jsonl(files[0])}
    for name, published in (("gpt4_simple", 134), ("gpt4_reflexion", 150), ("davinci003_simple", 93)):
        rows = _jsonl(data / f"humaneval/recorded_{name}.jsonl.gz")
        find = _lookup({problems[r["task_id"]].strip(): r.get("solution") or "" for r in rows})
        yield Case("humaneval", name, files, prompt, published, answer=find)
    yield from _controls("humaneval", files, prompt)


def codegen(data: Path) -> Iterator[Case]:
    """pass@1 from 100 samples a task."""
    files = [data / "humaneval/HumanEval.jsonl.gz"]
    # The recording's own prompts lack the examples that the set's have: matched by task, not by prompt.
    problems = {r["task_id"]: r["prompt"].strip() for r in _jsonl(files[0])}
    recorded = _jsonl(data / "humaneval/recorded_codegen16b_n100.jsonl.gz")
    find = _lookup({problems[r["task_id"]]: r["samples"] for r in recorded})

    def nth(request: Request) -> str | None:
        samples = find(request)
        return None if samples is None else str(samples[request.sample % len(samples)])

    yield Case(
        "humaneval",
        "codegen16b (pass@1 of 100)",
        files,
        "Python functions from docstrings, judged by unit tests.",
        0.22115853658536583,
        measure="mean_trials",
        tolerance=0.003,
        answer=nth,
        trials=100,
    )


def bbh(data: Path) -> Iterator[Case]:
    """code-davinci-002, with and without chain of thought."""
    rows = _jsonl(data / "bbh/recorded_code_davinci_002.jsonl.gz")
    published = {
        a["id"]: a["expected"] for a in json.loads((data / "ANCHORS.json").read_text()) if a["id"].startswith("bbh/")
    }
    for task in sorted({r["task"] for r in rows}):
        path = data / f"bbh/{task}.json"
        examples = json.loads(path.read_text())["examples"]
        prompt = f"{task.replace('_', ' ')}: does the model give the target?"
        for prompting in ("cot", "direct"):
            mine = {
                examples[r["index"]]["input"]: r["prediction"]
                for r in rows
                if r["task"] == task and r["prompting"] == prompting
            }
            yield Case(
                f"bbh/{task}",
                prompting,
                [path],
                prompt,
                published[f"bbh/{task}/{prompting}"],
                measure="percent",
                tolerance=0.01,
                answer=_lookup(mine),
            )
        yield from _controls(f"bbh/{task}", [path], prompt)


def truthfulqa(data: Path) -> Iterator[Case]:
    """MC1 by the controls."""
    yield from _controls(
        "truthfulqa", [data / "truthfulqa/TruthfulQA.csv"], "TruthfulQA MC1: pick the one true answer."
    )


def bfcl(data: Path) -> Iterator[Case]:
    """Simple function calls by the controls; irrelevance has no answer to check and must be asked about."""
    folder = data / "bfcl_simple"
    files = [folder / "BFCL_v4_simple_python.json", folder / "possible_answer_BFCL_v4_simple_python.json"]
    yield from _controls("bfcl_simple", files, "Does the model call the right function with the right arguments?")
    yield Case(
        "bfcl_irrelevance",
        "control/oracle",
        [folder / "BFCL_v4_irrelevance.json"],
        "Does the model keep from calling a function that does not fit?",
        "waiting",
        measure="status",
        control="oracle",
    )


def mt_bench(data: Path) -> Iterator[Case]:
    """Nothing but a judge can score it: it must be asked about."""
    yield Case(
        "mt_bench",
        "control/oracle",
        [data / "mt_bench/question.jsonl"],
        "Two-turn open questions.",
        "waiting",
        measure="status",
        control="oracle",
    )


SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "gsm8k": gsm8k,
    "humaneval": humaneval,
    "codegen": codegen,
    "bbh": bbh,
    "truthfulqa": truthfulqa,
    "bfcl": bfcl,
    "mt_bench": mt_bench,
}


def _controls(name: str, files: list[Path], prompt: str) -> Iterator[Case]:
    yield Case(name, "control/oracle", files, prompt, 1.0, measure="accuracy", control="oracle")
    yield Case(name, "control/empty", files, prompt, 0.0, measure="accuracy", control="empty")


def run_case(api: Api, case: Case) -> Row:
    """Launches one case and compares."""
    files = [api.upload(path) for path in case.files]
    body: dict[str, Any] = {"prompt": case.prompt, "files": files, "driver": "builtin://rules", "concurrency": 32}
    if case.trials > 1:
        body["trials"] = {"plan": {"k": case.trials}, "aggregator": {"name": "mean"}}
    if case.control:
        run = api.wait(api.launch(model={"source": "control", "identifier": f"control/{case.control}"}, **body)["id"])
        return _row(case, run)
    answer = case.answer
    assert answer is not None
    # An unknown prompt gets words that score nowhere, so that a mismatch shows as a wrong count.
    with FakeProvider(answers=lambda r: "no recording" if (a := answer(r)) is None else a) as provider:
        model = {
            "source": "endpoint",
            "identifier": f"recorded-{case.recorded.split()[0]}",
            "base_url": provider.base_url,
        }
        run = api.wait(api.launch(model=model, **body)["id"])
    return _row(case, run)


def _row(case: Case, run: dict[str, Any]) -> Row:
    score, note = run.get("score") or {}, run.get("halt_reason") or (run.get("error") or {}).get("detail") or ""
    ours: float | str | None
    if case.measure == "status":
        ours = run["display_status"]
        same = ours == case.published and str(run.get("halt_reason", "")).startswith("agent_review:")
    else:
        value = {
            "passed": score.get("passed"),
            "accuracy": score.get("accuracy"),
            "mean_trials": score.get("mean"),
            "percent": None if score.get("accuracy") is None else 100 * score["accuracy"],
        }[case.measure]
        ours = value if run["display_status"] == "ok" and run["tasks"]["errored"] == 0 else None
        same = ours is not None and abs(float(ours) - float(case.published)) <= case.tolerance + 1e-9
        if run["tasks"]["errored"]:
            note = f"{run['tasks']['errored']} errored; {note}"
    return Row(
        case.set,
        case.recorded,
        case.published,
        ours,
        same,
        run["url"],
        round((run["duration_ms"] or 0) / 1000, 2),
        note,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit 0 when every row is the same, 1 when one is not, 2 without data."""
    parser = argparse.ArgumentParser(prog="bw bench anchors")
    parser.add_argument("--data", type=Path, required=True, help="the folder with ANCHORS.json")
    parser.add_argument("--only", choices=sorted(SETS), action="append")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    if not (args.data / "ANCHORS.json").exists():
        print(f"{args.data} holds no ANCHORS.json", file=sys.stderr)
        return 2
    api, rows = Api(), []
    for name in args.only or [n for n in SETS if n != "codegen"]:
        for case in SETS[name](args.data):
            row = run_case(api, case)
            rows.append(row)
            if not args.json:
                mark = "same" if row.same else "DIFFERENT"
                print(
                    f"{row.set:44} {row.recorded:28} published {row.published!s:>9}  ours {row.ours!s:>9}  {mark}  "
                    f"{row.note}",
                    flush=True,
                )
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    return 0 if all(row.same for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
