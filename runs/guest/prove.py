"""Prove a scorer on sample rows: `prove.py job.json` prints one JSON object and exits 0 when it holds, else 1.

Job: {"impl": path, "samples": [{"index", "row", "reference": {"text", "tool_calls"} | null, "choices": [...] | null}],
"seconds": 60, "memory_mb": 1024, "path": [...]}; "samples" may be the path of a file with such a list, or JSON lines.
`seconds` is for one row.

Printed: {"ok", "checks": [{"name", "ok", "detail", "row", "rows", "failed", "advisory"}], "samples": [...]}.
Each check stands once, with the first row that fails it. Advisory checks do not decide `ok`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from importlib import import_module
from typing import Any, Optional

NAMES = (
    "imports",
    "extract",
    "solves",
    "in_range",
    "deterministic",
    "oracle",
    "empty",
    "refusal",
    "injection",
    "every_option",
    "wrong",
    "survives",
)

Found = list[tuple[Any, dict[str, Any]]]


def find_package() -> None:
    """Make this folder importable as `guest`; what lies beside it stays importable, last."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, beside)
    import_module("guest")
    sys.path.remove(beside)
    sys.path.append(beside)


def read_samples(value: Any) -> list[dict[str, Any]]:
    """The samples of a job: a list, or the path of a file that holds one."""
    if isinstance(value, list):
        return value
    with open(value, encoding="utf-8") as file:
        text = file.read()
    if text.lstrip().startswith("["):
        found: list[dict[str, Any]] = json.loads(text)
        return found
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def in_child(
    job: dict[str, Any], sample: Optional[dict[str, Any]], others: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """All checks on one row (or the import alone) in a process that may die; what it reported."""
    processes = import_module("guest.processes")
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            os.setpgid(0, 0)
            _child(job, sample, others, write_end)
        finally:
            os._exit(70)
    os.close(write_end)
    limit = float(job.get("seconds", 60))
    deadline = time.monotonic() + limit
    data, hung = b"", False
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            hung = True
            break
        ready, _, _ = select.select([read_end], [], [], left)
        piece = os.read(read_end, 65536) if ready else b""
        data += piece
        if ready and (not piece or data.endswith(b'{"end": true}\n')):
            break
    os.close(read_end)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    processes.kill_orphans(set())
    reports = [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
    ended = bool(reports) and reports[-1] == {"end": True}
    if not ended:
        why = (
            f"the scorer was not done after {limit:g} s" if hung else f"the scorer ended the process (status {status})"
        )
        reports.append({"name": "survives" if sample else "imports", "ok": False, "detail": why, "advisory": False})
    elif sample:
        reports.append({"name": "survives", "ok": True, "detail": "", "advisory": False})
    return [r for r in reports if "end" not in r]


def _child(job: dict[str, Any], sample: Optional[dict[str, Any]], others: list[dict[str, Any]], out: int) -> None:
    impl_module, proof, verdict = (import_module(f"guest.{n}") for n in ("impl", "proof", "verdict"))

    def report(frame: dict[str, Any]) -> None:
        data = memoryview(json.dumps(frame).encode("ascii") + b"\n")
        while data:
            data = data[os.write(out, data) :]

    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    impl_module.prctl(impl_module.PR_SET_PDEATHSIG, signal.SIGKILL)
    impl_module.prefer_oom_victim()
    impl_module.limit_memory(int(job.get("memory_mb", 1024)), 8, 8 << 20)
    try:
        impl = impl_module.load_impl(job["impl"], job.get("path", ()))
    except BaseException as error:
        reason = verdict.error_dict(error)
        detail = f"{reason['type']}: {reason['message']}\n{reason['trace'] or ''}".strip()
        report({"name": "imports", "ok": False, "detail": detail, "advisory": False})
        report({"end": True})
        os._exit(0)
    if sample is None:
        report({"name": "imports", "ok": True, "detail": "", "advisory": False})
    else:
        proof.prove_row(impl, sample, others, report)
    report({"end": True})
    os._exit(0)


def with_another_answer(sample: dict[str, Any], samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Samples whose reference says something else than this one's, and something at all."""
    proof = import_module("guest.proof")
    mine = json.dumps(sample.get("reference"), sort_keys=True)
    return [
        other
        for other in samples
        if not proof.is_empty(other.get("reference")) and json.dumps(other["reference"], sort_keys=True) != mine
    ]


def summarise(found: Found) -> list[dict[str, Any]]:
    """One entry per check, in a fixed order, with the first row that fails it."""
    checks = []
    for name in NAMES:
        mine = [(row, c) for row, c in found if c.get("name") == name]
        if not mine:
            continue
        bad = [(row, c) for row, c in mine if not c["ok"]]
        row, first = (bad or mine)[0]
        checks.append(
            {
                "name": name,
                "ok": not bad,
                "detail": first["detail"] if bad else "",
                "row": row if bad else None,
                "rows": len(mine),
                "failed": len(bad),
                "advisory": first["advisory"],
            }
        )
    return checks


def prove(job: dict[str, Any]) -> dict[str, Any]:
    """The whole report."""
    samples = read_samples(job.get("samples") or job.get("rows") or [])
    found: Found = [(None, c) for c in in_child(job, None, [])]
    shown = []
    if all(c["ok"] for _, c in found):
        for sample in samples:
            for check in in_child(job, sample, with_another_answer(sample, samples)):
                if "sample" in check:
                    shown.append(check["sample"])
                else:
                    found.append((sample.get("index"), check))
    checks = summarise(found)
    return {"ok": all(c["ok"] or c["advisory"] for c in checks), "checks": checks, "samples": shown}


def main(argv: list[str]) -> int:
    """The command line."""
    if len(argv) != 2:
        print("usage: prove.py job.json", file=sys.stderr)
        return 2
    find_package()
    impl_module = import_module("guest.impl")
    impl_module.prctl(impl_module.PR_SET_CHILD_SUBREAPER, 1)
    try:
        with open(argv[1], encoding="utf-8") as file:
            job = json.load(file)
        report = prove(job)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"prove: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stdout.flush()
    os._exit(code)
