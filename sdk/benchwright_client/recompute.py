"""What a receipt has to say, made again from the exported log: counts, score, cost, identity. Standard library only.

Written apart from the server's code on purpose: two programs that agree say more than one that repeats itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from decimal import Decimal
from statistics import NormalDist
from typing import Any

PAYS = ("driver", "model", "sandbox", "narration", "judge", "proxy_linger")
INCURRED = ("driver", "model", "sandbox", "narration")
# What counts of each artifact; nothing else can move a fingerprint.
LOAD_BEARING = {
    "FetchArtifact": ("sources.sha256",),
    "AnalyzeArtifact": ("shape", "field_map"),
    "DatasetTasksArtifact": ("snapshot_digest", "selected"),
    "SetupArtifact": ("scoring_version", "scoring_digest", "requirements"),
    "ModelProxyArtifact": ("model", "config"),
    "AtomizeArtifact": ("sha256",),
}
SCORE_LIMITS = ("task.duration", "task.attempts", "attempt.duration", "attempt.tokens")
STATUS_OF_HALT = {
    "killed": ("operator_kill", "admin_kill", "cli_halt"),
    "paused": ("operator_pause",),
    "waiting": ("agent_review", "restart_cap_exceeded"),
}


def canonical(value: Any) -> str:
    """Sorted keys, no spaces, ASCII: the text that digests and signatures are taken over."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def fingerprint_of(inputs: list[dict[str, Any]]) -> str | None:
    """SHA-256 over the inputs' canonical texts, a record separator between two."""
    return hashlib.sha256("\x1e".join(map(canonical, inputs)).encode()).hexdigest() if inputs else None


def comparability_of(inputs: dict[str, Any] | None) -> str | None:
    """SHA-256 over the canonical text of the inputs."""
    return hashlib.sha256(canonical(inputs).encode()).hexdigest() if inputs else None


def score_of(counts: dict[str, Any], scores: list[float] | None = None) -> dict[str, Any] | None:
    """What follows from the counts; with the tasks' scores also their mean and its standard error."""
    passed, failed, errored = counts["passed"], counts["failed"], counts["errored"]
    n, settled = passed + failed, passed + failed + errored
    if not settled:
        return None
    out: dict[str, Any] = {
        "accuracy": passed / n if n else None,
        "interval": list(_wilson(passed, n)) if n > 1 else None,
        "n": n,
        "passed": passed,
        "failed": failed,
        "errored": errored,
        "coverage": settled / counts["selected"] if counts["selected"] else None,
        "band": [passed / settled, (passed + errored) / settled],
    }
    if scores is not None:
        mean = math.fsum(scores) / n if n else None
        out["mean"], out["stderr"] = mean, None
        if mean is not None and n > 1:
            out["stderr"] = math.sqrt(max(0.0, math.fsum(s * s for s in scores) - n * mean * mean) / (n - 1) / n)
    return out


def _wilson(passed: int, n: int) -> tuple[float, float]:
    z, rate = NormalDist().inv_cdf(0.975), passed / n
    scale = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (0.0 if not passed else max(0.0, centre - half), 1.0 if passed == n else min(1.0, centre + half))


def recompute(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Events in order, each {seq, type, at, data}. The parts of a receipt, without the digests of the log."""
    log = _Log()
    for event in events:
        log.take(event["type"], event["at"], event["data"])
    return log.parts()


class _Log:
    """The sums and last words of a log."""

    def __init__(self) -> None:
        self.launch: dict[str, Any] = {}
        self.last: dict[str, dict[str, Any]] = {}
        self.inputs: dict[str, dict[str, Any]] = {}
        self.sweep: dict[str, Any] = {}
        self.tasks: dict[int, tuple[str, float | None]] = {}
        self.boxes: dict[str, dict[str, Any]] = {}
        self.money = {name: Decimal(0) for name in PAYS}
        self.unpriced: set[str] = set()
        self.sums = {"unknown_calls": 0, "requests": 0, "tokens_in": 0, "tokens_out": 0}
        self.served: set[str] = set()
        self.prices: set[str] = set()
        self.end: dict[str, Any] | None = None
        self.halt = ""
        self.launched_at: str | None = None
        self.ended_at: str | None = None

    def take(self, kind: str, at: str, data: dict[str, Any]) -> None:
        """One event."""
        if kind == "RunLaunched":
            self.launch, self.launched_at = data, at
        elif kind == "PipelineStarted":
            self.end = None
        elif kind == "PipelineFinished":
            self.end, self.ended_at = data, at
        elif kind == "HaltRequested":
            self.halt = data["reason"] or "halted"
        elif kind == "HaltCleared":
            self.halt, self.end = "", None
        elif kind == "MaterializeStarted":
            self.sweep, self.tasks = data, {}
        elif kind == "MaterializeTaskAggregated":
            self.tasks[data["index"]] = (data["outcome"], data["score"])
        elif kind == "SandboxCreated":
            self.boxes[data["sandbox_id"]] = {
                "id": data["sandbox_id"],
                "role": data["metadata"].get("benchwright_role"),
                "backend": data["backend"],
                "isolation": data["metadata"].get("isolation"),
                "created_at": at,
                "lived_ms": None,
                "ended": None,
            }
        elif kind == "SandboxKilled" and data["sandbox_id"] in self.boxes:
            self.boxes[data["sandbox_id"]].update(lived_ms=data["duration_ms"], ended=data["reason"])
        self.last[kind] = data
        if kind in LOAD_BEARING:
            self.inputs[kind] = {"type": kind, **{path: _at(data, path) for path in LOAD_BEARING[kind]}}
        usage = data.get("usage")
        if isinstance(usage, dict) and usage.get("pays") in self.money:
            self._use(usage)

    def _use(self, usage: dict[str, Any]) -> None:
        pays, cost, unknown = usage["pays"], usage.get("cost_usd"), usage.get("unknown_cost_calls") or 0
        if cost is not None:
            self.money[pays] += Decimal(cost)
        if unknown or (cost is None and (pays == "sandbox" or usage.get("requests"))):
            self.unpriced.add(pays)
        self.sums["unknown_calls"] += unknown
        for name, key in (("requests", "requests"), ("tokens_in", "input"), ("tokens_out", "output")):
            self.sums[name] += usage.get(key) or 0
        if usage.get("model_served"):
            self.served.add(str(usage["model_served"]))
        if usage.get("priced_at"):
            self.prices.add(str(usage["priced_at"]))

    def parts(self) -> dict[str, Any]:
        """All of it."""
        tasks, impl = self.last.get("DatasetTasksArtifact", {}), self.last.get("AtomizeArtifact", {})
        setup, launch = self.last.get("SetupArtifact", {}), self.launch
        counts = {"selected": self.sweep.get("tasks") or 0, "settled": len(self.tasks)}
        for name, outcome in (("passed", "pass"), ("failed", "fail"), ("errored", "err")):
            counts[name] = sum(1 for found, _ in self.tasks.values() if found == outcome)
        inputs, ruler = list(self.inputs.values()), self._ruler(tasks, impl, setup)
        status = self.end["status"] if self.end else "running"
        return {
            "run": {
                "mode": launch.get("mode"),
                "backend": launch.get("backend"),
                "status": status,
                "display_status": self._shown(status),
                "halt_reason": self.halt or None,
            },
            "identity": {
                "model": (launch.get("body") or {}).get("model"),
                "model_served": sorted(self.served),
                "benchmark_id": self.last.get("BenchmarkResolved", {}).get("benchmark_id")
                or launch.get("benchmark_id"),
                "subset_id": tasks.get("subset_id") or launch.get("subset_id"),
                "snapshot_digest": tasks.get("snapshot_digest"),
                "impl_id": impl.get("impl_id") or launch.get("impl_id"),
                "impl_sha256": impl.get("sha256"),
                "trials": launch.get("trials") or {},
                "limits": launch.get("limits") or {},
            },
            "fingerprint": {"sha256": fingerprint_of(inputs), "inputs": inputs},
            "comparability": {"key": comparability_of(ruler), "inputs": ruler},
            "sweep": {name: self.sweep.get(name) for name in ("invocation", "mode", "trials", "concurrency")},
            "counts": counts,
            "score": score_of(counts, [score for _, score in self.tasks.values() if score is not None]),
            "cost": self._cost(),
            "sandboxes": list(self.boxes.values()),
            "versions": {
                **{n: setup.get(n) for n in ("python", "scoring_version", "scoring_digest", "requirements")},
                "prices": sorted(self.prices),
            },
            "times": {
                "launched_at": self.launched_at,
                "finished_at": self.ended_at if self.end else None,
                "duration_ms": self.end["duration_ms"] if self.end else None,
            },
        }

    def _shown(self, status: str) -> str:
        if not self.halt:
            return status
        return next((word for word, reasons in STATUS_OF_HALT.items() if self.halt.startswith(reasons)), "halted")

    def _ruler(self, tasks: dict[str, Any], impl: dict[str, Any], setup: dict[str, Any]) -> dict[str, Any] | None:
        if not tasks or not impl:
            return None
        limits = self.launch.get("limits") or {}
        return {
            "snapshot": tasks["snapshot_digest"],
            "impl": impl["sha256"],
            "trials": self.launch.get("trials") or {},
            "limits": {name: (limits.get(name.split(".")[0]) or {}).get(name.split(".")[1]) for name in SCORE_LIMITS},
            "selected": tasks["selected"],
            "scoring": setup.get("scoring_version", ""),
            "scaffold": "none",
            "score_policy": "errors_outside",
        }

    def _cost(self) -> dict[str, Any]:
        known = {name: None if name in self.unpriced else self.money[name] for name in PAYS}
        return {**{f"{n}_usd": known[n] for n in PAYS}, "incurred_usd": incurred(known), **self.sums}


def incurred(parts: dict[str, Decimal | None]) -> Decimal | None:
    """The sum of what the run itself cost; None when a part is unknown."""
    found = [parts[name] for name in INCURRED]
    return None if None in found else sum((p for p in found if p is not None), Decimal(0))


def _at(data: dict[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    value = data.get(head)
    return [_at(item, rest) for item in value or []] if rest else value
