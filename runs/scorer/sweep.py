"""The sweep, seen from the worker: what the guest and the proxy report goes into the log, each trial once.

Two streams come in: frames of the guest (untrusted) and calls of the proxy (trusted). The proxy writes a call's record
before the caller sees the last byte, so after a `sync` that the proxy has answered, the records of all frames read
before it are here. Only then is a batch of frames written.
"""

from __future__ import annotations

import json
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runs.events.bodies import fold_body
from runs.events.types.base import Event
from runs.events.types.materialize import (
    AttemptFailed,
    MaterializeResponse,
    MaterializeTaskAggregated,
    MaterializeTaskResult,
)
from runs.scorer.calls import CallBook
from runs.scorer.frames import NO_ANSWER, Lines, clean_error, number, score_of, word
from runs.trials.aggregators import aggregate
from runs.vocabulary import Outcome
from sandboxes.backends.base import Exec

BATCH_SECONDS = 0.1  # results are written at most this often: a commit costs the same for one as for hundreds
BATCH_FRAMES = 512
PARK_SECONDS = 0.5  # a response that waits longer than this for its score is written by itself
POLL_SECONDS = 0.25
CEILING_SECONDS = 1.0  # answers that came in before the run's ceiling was reached get this long to be scored


@dataclass
class Plan:
    """What is to be swept. `settled`: trials that the log has already, as {(index, trial): trial dict}."""

    invocation: int
    indices: set[int]
    trials: int
    aggregator: dict[str, Any]
    settled: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    aggregated: set[int] = field(default_factory=set)
    responses: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)  # stored, not yet scored

    @property
    def complete(self) -> bool:
        """Every trial has a result."""
        return len(self.settled) >= len(self.indices) * self.trials

    @property
    def left(self) -> list[tuple[int, int]]:
        """Trials without a result, in order."""
        return [(i, t) for i in sorted(self.indices) for t in range(self.trials) if (i, t) not in self.settled]


class Sweep:
    """Reads until every trial is settled or the guest has ended. `emit` appends events under the lease."""

    def __init__(
        self,
        plan: Plan,
        emit: Callable[..., int],
        check: Callable[[], None],
        stop: Callable[[str], Any] = lambda limit: None,
    ) -> None:
        self.plan = plan
        self.emit = emit
        self.check = check
        self.stop = stop  # told the ceiling of the run that the proxy has reached; raises
        self._ceiling: tuple[float, str] | None = None
        self.book = CallBook(plan.invocation)
        self._guest_lines, self._gateway_lines = Lines(), Lines()
        self._waiting: list[dict[str, Any]] = []
        self._synced, self._sent = 0, 0
        self._parked: dict[tuple[int, int], tuple[float, dict[str, Any]]] = {}
        self._base, self._next = 0, 0.0

    def follow(self, guest: Exec, gateway: Exec, *, base_attempt: int = 0) -> bool:
        """True when all is settled; False when the guest ended with trials left. Raises what `check` raises."""
        self._base, self._next = base_attempt, 0.0
        while True:
            self.check()
            self._wait(guest, gateway)
            self._records(gateway)
            frames = self._guest_lines.feed(guest.read())
            self._waiting.extend(frames)
            ended = guest.ended
            if self._waiting and (ended or len(self._waiting) >= BATCH_FRAMES or time.monotonic() >= self._next):
                self._settle(gateway)
                self._next = time.monotonic() + BATCH_SECONDS
            self._park()
            if self.plan.complete:
                return True
            if self._ceiling is not None and time.monotonic() > self._ceiling[0]:
                self.stop(self._ceiling[1])
            if ended and not self._waiting:
                return False

    def _wait(self, guest: Exec, gateway: Exec) -> None:
        streams = [s for s in (guest, gateway) if not s.ended]
        patience = POLL_SECONDS
        if self._waiting:
            # Frames are waiting for their turn: what arrives meanwhile joins them without waking anybody.
            time.sleep(max(0.0, min(BATCH_SECONDS, self._next - time.monotonic())))
            patience = 0.0
        elif self._parked:
            patience = BATCH_SECONDS
        select.select(streams, [], [], patience)

    def _records(self, gateway: Exec) -> None:
        for record in self._gateway_lines.feed(gateway.read()):
            kind = record.get("t")
            if kind == "call":
                self.book.add(record)
            elif kind == "synced":
                self._synced = max(self._synced, int(record.get("id") or 0))
            elif kind == "ceiling" and self._ceiling is None:
                self._ceiling = (time.monotonic() + CEILING_SECONDS, str(record.get("limit")))

    def close(self, gateway: Exec, reason: str) -> None:
        """Before a halt: what has arrived is written, and calls that no result will take any more are kept with what
        they cost."""
        self._settle(gateway, closing=True)
        events: list[Event] = [
            AttemptFailed(
                invocation=self.plan.invocation,
                index=index,
                trial=trial,
                attempt=attempt,
                error={"kind": "halted", "type": "halted", "message": reason},
                usage=self.book.take([(index, trial, attempt)]),
            )
            for index, trial, attempt in self.book.left()
            if index in self.plan.indices and 0 <= trial < self.plan.trials
        ]
        if events:
            self.emit(*events)

    def _settle(self, gateway: Exec, *, closing: bool = False) -> None:
        """Writes the waiting frames once the proxy's records have caught up with them."""
        batch, self._waiting = self._waiting, []
        self._sent += 1
        gateway.write(json.dumps({"op": "sync", "id": self._sent}).encode() + b"\n")
        until = time.monotonic() + (1 if closing else 30)
        while self._synced < self._sent and not gateway.ended and time.monotonic() < until:
            select.select([gateway], [], [], POLL_SECONDS)
            self._records(gateway)
            if not closing:
                self.check()
        events: list[Event] = []
        for frame in batch:
            self._frame(frame, events)
        if events:
            self.emit(*events)

    def _frame(self, frame: dict[str, Any], events: list[Event]) -> None:
        kind, index, trial = frame.get("t"), frame.get("index"), frame.get("trial")
        if type(index) is not int or type(trial) is not int:
            return
        key = (index, trial)
        if index not in self.plan.indices or not 0 <= trial < self.plan.trials or key in self.plan.settled:
            return
        if kind == "response":
            self._parked[key] = (time.monotonic(), frame)
        elif kind == "attempt_failed":
            attempt = self._attempt(frame.get("attempt"))
            events.append(
                AttemptFailed(
                    invocation=self.plan.invocation,
                    index=index,
                    trial=trial,
                    attempt=attempt,
                    error=clean_error(frame.get("error")),
                    usage=self.book.take([(index, trial, attempt)]),
                )
            )
        elif kind == "result":
            self._result(key, frame, events)

    def _attempt(self, value: Any) -> int:
        return self._base + (value if type(value) is int and 0 < value < 10_000 else 1)

    def _result(self, key: tuple[int, int], frame: dict[str, Any], events: list[Event]) -> None:
        index, trial = key
        score, error = score_of(frame)
        if (ceiling := self.book.ceilings.get(key)) is not None:
            # Whatever the scorer makes of a refused call: a task over its ceiling is not scored.
            score, error = None, {"kind": "model", "type": "ceiling", "message": ceiling}
        _, answer = self._parked.pop(key, (0.0, self.plan.responses.get(key) or {}))
        attempts = self._attempt(frame.get("attempts"))
        outcome = Outcome.ERR if score is None else Outcome.PASS if score >= 1 else Outcome.FAIL
        meta = frame.get("meta") if isinstance(frame.get("meta"), dict) else None
        usage = self.book.take([(index, trial, a) for a in range(1, attempts + 1)])
        self.book.forget(index, trial)
        calls = usage.requests if usage else None
        events.append(
            MaterializeTaskResult(
                invocation=self.plan.invocation,
                index=index,
                trial=trial,
                attempts=attempts,
                outcome=outcome.value,
                score=score,
                score_meta=fold_body(meta),
                extracted=fold_body(frame.get("extracted")),
                rule=word(frame.get("rule")),
                no_answer=word(frame.get("no_answer"), NO_ANSWER),
                prompt=fold_body(answer.get("prompt")),
                response=fold_body(answer.get("response")),
                target=fold_body(frame.get("target")),
                usage=usage,
                calls=calls,
                finish_reason=word(answer.get("finish_reason")),
                latency_ms=number(answer.get("latency_ms")),
                score_ms=number(frame.get("score_ms")),
                error=error,
            )
        )
        self.plan.settled[key] = {
            "trial": trial,
            "score": score,
            "outcome": outcome.value,
            "meta": meta or {},
            "extracted": frame.get("extracted"),
        }
        self._aggregate(index, events)

    def _aggregate(self, index: int, events: list[Event]) -> None:
        trials = [self.plan.settled.get((index, t)) for t in range(self.plan.trials)]
        if index in self.plan.aggregated or any(t is None for t in trials):
            return
        self.plan.aggregated.add(index)
        events.append(aggregated_event(self.plan, index, [t for t in trials if t is not None]))

    def _park(self) -> None:
        """Keeps responses whose score is slow, so that no fault of a scorer costs a model call."""
        late = time.monotonic() - PARK_SECONDS
        events: list[Event] = []
        for key, (since, frame) in list(self._parked.items()):
            if since > late or key in self.plan.responses:
                continue
            attempt = self._attempt(frame.get("attempt"))
            events.append(
                MaterializeResponse(
                    invocation=self.plan.invocation,
                    index=key[0],
                    trial=key[1],
                    attempt=attempt,
                    prompt=fold_body(frame.get("prompt")),
                    response=fold_body(frame.get("response")),
                    finish_reason=word(frame.get("finish_reason")),
                    latency_ms=number(frame.get("latency_ms")),
                    usage=self.book.take([(*key, attempt)]),
                )
            )
            self.plan.responses[key] = frame
        if events:
            self.emit(*events)

    def finish_aggregates(self) -> None:
        """Aggregates that an earlier worker died before writing."""
        events: list[Event] = []
        for index in sorted(self.plan.indices - self.plan.aggregated):
            self._aggregate(index, events)
        if events:
            self.emit(*events)


def aggregated_event(plan: Plan, index: int, trials: list[dict[str, Any]]) -> MaterializeTaskAggregated:
    """The task's verdict over its settled trials."""
    verdict = aggregate(plan.aggregator, trials)
    return MaterializeTaskAggregated(
        invocation=plan.invocation,
        index=index,
        outcome=verdict.outcome.value,
        score=verdict.score,
        trial_scores=[t["score"] for t in trials],
        aggregator=plan.aggregator["name"],
        note=verdict.note,
    )
