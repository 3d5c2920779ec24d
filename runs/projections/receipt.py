"""A run's receipt, from its log alone: the same log gives the same receipt, byte for byte. Pure.

Whoever has the log can make it again: `benchwright verify` does, with code of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from benchwright.lib.money import text, total, usd
from runs.fingerprints.identity import identity_of
from runs.projections.score import ScoreView, score_view
from runs.vocabulary import Outcome, RunStatus, display_status

SCHEMA = "benchwright.receipt/1"
PAYS = ("driver", "model", "sandbox", "narration", "judge", "proxy_linger")
# What the run itself cost; judging and a proxy that lingers afterwards are told apart.
INCURRED = ("driver", "model", "sandbox", "narration")


def receipt(run_id: str, rows: Iterable[tuple[int, str, str]]) -> dict[str, Any]:
    """The receipt of a log given as (seq, body, digest) in order. Dollars are exact text, null is unknown."""
    fold = _Fold()
    head, last = "", -1
    for seq, body, digest in rows:
        event = json.loads(body)
        fold.add(event["type"], event["at"], event["data"])
        head, last = digest, seq
    return {
        "schema": SCHEMA,
        "run": {"id": run_id, **fold.state()},
        "log": {"events": last + 1, "last_seq": last, "head_digest": head},
        **fold.identity(),
        **fold.results(),
        "cost": fold.cost(),
        "sandboxes": list(fold.sandboxes.values()),
        "versions": fold.versions(),
        "times": fold.times,
    }


def score_json(s: ScoreView | None) -> dict[str, Any] | None:
    """A score with what stands beside it."""
    if s is None:
        return None
    return {
        "accuracy": s.accuracy,
        "interval": None if s.low is None else [s.low, s.high],
        "n": s.n,
        "passed": s.passed,
        "failed": s.failed,
        "errored": s.errored,
        "mean": s.mean,
        "stderr": s.stderr,
        "coverage": s.coverage,
        "band": [s.band_low, s.band_high],
        "policy": s.policy,
        "method": s.method,
    }


class _Fold:
    """What a receipt needs of the events so far."""

    def __init__(self) -> None:
        self.launched: dict[str, Any] = {}
        self.status, self.halted, self.halt_reason = RunStatus.RUNNING.value, False, ""
        self.latest: dict[str, dict[str, Any]] = {}
        self.artifacts: list[tuple[str, dict[str, Any]]] = []
        self.sweep: dict[str, Any] = {}
        self.tasks: dict[int, tuple[str, float | None]] = {}
        self.sandboxes: dict[str, dict[str, Any]] = {}
        self.spent: dict[str, Decimal] = dict.fromkeys(PAYS, Decimal(0))
        self.unknown: set[str] = set()
        self.counted = dict.fromkeys(("requests", "input", "output", "unknown_cost_calls"), 0)
        self.served: set[str] = set()
        self.priced: set[str] = set()
        self.times: dict[str, Any] = {"launched_at": None, "finished_at": None, "duration_ms": None}

    def add(self, kind: str, at: str, data: dict[str, Any]) -> None:
        """Takes one event in."""
        match kind:
            case "RunLaunched":
                self.launched, self.times["launched_at"] = data, at
            case "PipelineStarted":
                self._going()
            case "PipelineFinished":
                self.status = data["status"]
                self.times.update(finished_at=at, duration_ms=data["duration_ms"])
            case "HaltRequested":
                self.halted, self.halt_reason = True, data["reason"]
            case "HaltCleared":
                self.halted, self.halt_reason = False, ""
                self._going()
            case "MaterializeStarted":
                self.sweep, self.tasks = data, {}
            case "MaterializeTaskAggregated":
                self.tasks[data["index"]] = (data["outcome"], data["score"])
            case "SandboxCreated":
                meta = data["metadata"]
                self.sandboxes[data["sandbox_id"]] = {
                    "id": data["sandbox_id"],
                    "role": meta.get("benchwright_role"),
                    "backend": data["backend"],
                    "isolation": meta.get("isolation"),
                    "created_at": at,
                    "lived_ms": None,
                    "ended": None,
                }
            case "SandboxKilled" if data["sandbox_id"] in self.sandboxes:
                self.sandboxes[data["sandbox_id"]].update(lived_ms=data["duration_ms"], ended=data["reason"])
            case "BenchmarkResolved":
                self.latest[kind] = data
        if kind.endswith("Artifact"):
            self.latest[kind] = data
            self.artifacts.append((kind, data))
        self._use(data.get("usage"))

    def _going(self) -> None:
        self.status = RunStatus.RUNNING.value
        self.times.update(finished_at=None, duration_ms=None)

    def _use(self, usage: Any) -> None:
        if not isinstance(usage, dict) or usage.get("pays") not in self.spent:
            return
        pays, cost = usage["pays"], usage.get("cost_usd")
        self.spent[pays] += usd(cost) or Decimal(0)
        # No calls cost nothing; a sandbox's time costs whether or not anybody called.
        if usage.get("unknown_cost_calls") or (cost is None and (usage.get("requests") or pays == "sandbox")):
            self.unknown.add(pays)
        for name in self.counted:
            self.counted[name] += usage.get(name) or 0
        for name, seen in (("model_served", self.served), ("priced_at", self.priced)):
            if usage.get(name):
                seen.add(str(usage[name]))

    def state(self) -> dict[str, Any]:
        """How the run was launched and where it stands."""
        return {
            "mode": self.launched.get("mode"),
            "backend": self.launched.get("backend"),
            "status": self.status,
            "display_status": display_status(self.status, self.halted, self.halt_reason).value,
            "halt_reason": self.halt_reason or None,
        }

    def identity(self) -> dict[str, Any]:
        """What was measured, with the hashes and what they were taken over."""
        tasks, impl = self.latest.get("DatasetTasksArtifact", {}), self.latest.get("AtomizeArtifact", {})
        resolved = self.latest.get("BenchmarkResolved", {})
        body = self.launched.get("body") or {}
        trials, limits = self.launched.get("trials") or {}, self.launched.get("limits") or {}
        found = identity_of(self.artifacts, trials=trials, limits=limits)
        return {
            "identity": {
                "model": body.get("model"),
                "model_served": sorted(self.served),
                "benchmark_id": resolved.get("benchmark_id") or self.launched.get("benchmark_id"),
                "subset_id": tasks.get("subset_id") or self.launched.get("subset_id"),
                "snapshot_digest": tasks.get("snapshot_digest"),
                "impl_id": impl.get("impl_id") or self.launched.get("impl_id"),
                "impl_sha256": impl.get("sha256"),
                "trials": trials,
                "limits": limits,
            },
            "fingerprint": {"sha256": found.fingerprint or None, "inputs": found.fingerprint_inputs},
            "comparability": {"key": found.comparability_key or None, "inputs": found.comparability_inputs},
        }

    def results(self) -> dict[str, Any]:
        """The latest sweep: its mode, counts and score."""
        outcomes = [outcome for outcome, _ in self.tasks.values()]
        passed, failed, errored = (outcomes.count(o.value) for o in (Outcome.PASS, Outcome.FAIL, Outcome.ERR))
        scores = [score for _, score in self.tasks.values() if score is not None]
        selected = self.sweep.get("tasks") or 0
        score = score_view(
            passed=passed,
            failed=failed,
            errored=errored,
            selected=selected,
            total=math.fsum(scores),
            squares=math.fsum(s * s for s in scores),
        )
        return {
            "sweep": {name: self.sweep.get(name) for name in ("invocation", "mode", "trials", "concurrency")},
            "counts": {
                "selected": selected,
                "settled": passed + failed + errored,
                "passed": passed,
                "failed": failed,
                "errored": errored,
            },
            "score": score_json(score),
        }

    def cost(self) -> dict[str, Any]:
        """A sum with an unknown part is unknown."""
        known = {name: None if name in self.unknown else self.spent[name] for name in PAYS}
        return {
            **{f"{name}_usd": text(known[name]) for name in PAYS},
            "incurred_usd": text(total(known[name] for name in INCURRED)),
            "unknown_calls": self.counted["unknown_cost_calls"],
            "requests": self.counted["requests"],
            "tokens_in": self.counted["input"],
            "tokens_out": self.counted["output"],
        }

    def versions(self) -> dict[str, Any]:
        """Of what the scorer found installed, and of the prices."""
        setup = self.latest.get("SetupArtifact", {})
        names = ("python", "scoring_version", "scoring_digest", "requirements")
        return {**{name: setup.get(name) for name in names}, "prices": sorted(self.priced)}
