"""One task, one trial: extract and solve (again with the next key where the model failed), then score.

The same steps serve threads and coroutines; only the two lines that wait differ.
"""

from __future__ import annotations

import errno
import json
import threading
import time
from typing import TYPE_CHECKING, Any

from . import board as b
from .job import stored_answer
from .sut import Endpoint, Loop, Prompt, SutError, SutResult, Threads, bounded_prompt, encode, read_answer
from .verdict import (
    ErrorDict,
    TaskTimeout,
    Verdict,
    encode_response,
    error_dict,
    failed_line,
    is_blank,
    observed_no_answer,
    read_verdict,
    result_line,
    settle_no_answer,
)

if TYPE_CHECKING:
    from .runner import Runner

CALLS_LIMIT = 64 << 10


class Slot:
    """One worker. `claim` holds one token for what it does now: whoever takes it reports on the task."""

    __slots__ = ("abandoned", "claim", "forgiven", "forks", "ident", "item", "number", "seconds", "task", "trial")

    def __init__(self, number: int) -> None:
        self.number = number
        self.item = -1
        self.trial: Trial | None = None
        self.claim: list[int] = []
        self.abandoned = False
        self.forgiven = 0.0
        self.seconds = 0.0  # what this attempt may take
        self.forks = 0
        self.ident = 0
        self.task: Any = None

    def take_claim(self) -> bool:
        """Whether the caller is the first to report; list.pop is atomic."""
        try:
            self.claim.pop()
        except IndexError:
            return False
        return True


class Trial:
    """What is known of a trial while it runs."""

    __slots__ = ("answer", "attempt", "finish_reason", "index", "item", "keys", "observed", "row", "row_text", "trial")

    def __init__(self, item: int, task: dict[str, Any], attempt: int) -> None:
        self.item = item
        self.index: int = task["index"]
        self.trial: int = task.get("trial", 0)
        self.row: dict[str, Any] = task["row"]
        self.keys: list[str] = task.get("keys") or []
        self.attempt = attempt
        self.answer = ""
        self.finish_reason: str | None = None
        self.observed: str | None = None

    def key(self) -> str:
        """The key of this attempt; when the keys run out, the last one again."""
        return self.keys[min(self.attempt, len(self.keys)) - 1] if self.keys else "none"


class Call:
    """`call_sut` of one attempt; counts its calls and keeps the first prompt and the last answer."""

    __slots__ = ("_board", "_deadline", "_head", "_slot", "_transport", "calls", "last", "prompt")

    def __init__(self, transport: Any, head: bytes, deadline: float, board: b.Board, slot: int) -> None:
        self._transport = transport
        self._head = head
        self._deadline = deadline
        self._board = board
        self._slot = slot
        self.calls = 0
        self.prompt: str | None = None
        self.last: SutResult | None = None

    def _encode(self, prompt: Prompt, tools: Any, response_format: Any, stop: Any, logprobs: Any) -> bytes:
        body, shown = encode(prompt, tools, response_format, stop, logprobs)
        if self.prompt is None:
            self.prompt = bounded_prompt(shown)
        self.calls += 1
        return body

    def __call__(
        self,
        prompt: Prompt,
        *,
        tools: list[dict[str, Any]] | None = None,
        response_format: dict[str, Any] | None = None,
        stop: Any = None,
        logprobs: Any = None,
    ) -> SutResult:
        """Ask the model. Raises SutError."""
        body = self._encode(prompt, tools, response_format, stop, logprobs)
        self._board.phase(self._slot, b.CALL)
        reply = self._transport.post(self._head, body, self._deadline)
        self._board.phase(self._slot, b.THINK)
        self.last = answer = read_answer(reply)
        return answer


class AsyncCall(Call):
    """The same for `async def solve`: to be awaited."""

    __slots__ = ()

    async def __call__(  # type: ignore[override]
        self,
        prompt: Prompt,
        *,
        tools: list[dict[str, Any]] | None = None,
        response_format: dict[str, Any] | None = None,
        stop: Any = None,
        logprobs: Any = None,
    ) -> SutResult:
        """Ask the model. Raises SutError."""
        body = self._encode(prompt, tools, response_format, stop, logprobs)
        self._board.phase(self._slot, b.CALL)
        reply = await self._transport.post(self._head, body, self._deadline)
        self._board.phase(self._slot, b.THINK)
        self.last = answer = read_answer(reply)
        return answer


class Attempts:
    """Runs trials for the workers of one runner."""

    def __init__(self, runner: Runner, impl: Any) -> None:
        self.runner = runner
        self.impl = impl
        self.endpoint = Endpoint(runner.job.base_url)
        self.threads = Threads(self.endpoint)
        self.loop: Loop | None = None
        self.began: dict[int, float] = {}  # item -> when its first attempt began; only where a task has a limit

    # Steps.

    def open(self, slot: Slot, item: int) -> Trial:
        """Read a task and give it to a worker."""
        slot.item = item
        runner = self.runner
        task = runner.tasks[item]
        trial = Trial(item, task, runner.plan.attempts.get(item, 1))
        frame = runner.plan.answers.get(item)
        stored = json.loads(frame) if frame is not None else stored_answer(task)
        if stored:
            trial.answer = json.dumps(stored["response"])
            trial.attempt = int(stored.get("attempt") or 1)
            trial.finish_reason = stored.get("finish_reason")
            trial.observed = stored.get("no_answer") or ("empty" if is_blank(stored["response"]) else None)
        slot.trial = trial
        return trial

    def close(self, slot: Slot) -> None:
        """The worker is free again."""
        slot.trial = None
        slot.item = -1
        self.runner.board.phase(slot.number, b.IDLE)

    def start_solve(self, slot: Slot, trial: Trial, *, is_async: bool = False) -> Call:
        """The clock of an attempt starts."""
        runner = self.runner
        slot.claim, slot.forgiven = [1], 0.0
        slot.seconds = min(runner.job.attempt_seconds, self._task_left(trial))
        runner.board.begin(slot.number, trial.item, b.THINK, trial.attempt)
        make = AsyncCall if is_async else Call
        deadline = time.monotonic() + slot.seconds
        transport = self.loop if is_async else self.threads
        return make(transport, self.endpoint.head(trial.key()), deadline, runner.board, slot.number)

    def _task_left(self, trial: Trial) -> float:
        """Seconds that the trial has left, over all its attempts."""
        limit = self.runner.job.task_seconds
        if limit is None:
            return float("inf")
        now = time.monotonic()
        return max(0.001, self.began.setdefault(trial.item, now) + limit - now)

    def _task_is_over(self, trial: Trial, error: ErrorDict) -> bool:
        """Whether the trial's time is used up; then the error says so, and nothing is tried again."""
        if self._task_left(trial) > 0.001:
            return False
        error["type"] = "ceiling"
        error["message"] = f"task.duration of {self.runner.job.task_seconds:g} s is over: {error['message']}"
        return True

    def solved(self, slot: Slot, trial: Trial, call: Call, value: Any, seconds: float) -> bool:
        """Publish the response; False when there is nothing to score. Raises Rejected."""
        text, cut = encode_response(value)
        if not slot.take_claim():
            return False
        last = call.last
        trial.answer = text
        trial.finish_reason = last.finish_reason if last is not None else None
        trial.observed = observed_no_answer(value, last)
        tool_calls = json.dumps(last.tool_calls) if last is not None and last.tool_calls else "null"
        if len(tool_calls) > CALLS_LIMIT:
            tool_calls = "null"
        extra = ',"cut":true' if cut else ""
        if trial.observed:
            extra += f',"no_answer":"{trial.observed}"'
        body = (
            f'{{"t":"response","index":{trial.index},"trial":{trial.trial},"attempt":{trial.attempt},'
            f'"prompt":{call.prompt or self._prompt(trial)},"response":{text},"calls":{call.calls},'
            f'"finish_reason":{json.dumps(trial.finish_reason)},"latency_ms":{seconds * 1000:.2f},'
            f'"tool_calls":{tool_calls}{extra}}}\n'
        )
        self.runner.board.publish(b.RESPONSE, trial.item, trial.attempt, body.encode("ascii"))
        return True

    def _prompt(self, trial: Trial) -> str:
        """What extract gives, for a solve that called no model."""
        try:
            return bounded_prompt(json.dumps(self.impl.extract(trial.row)))
        except Exception:
            return "null"

    def failed(self, slot: Slot, trial: Trial, error: BaseException) -> bool:
        """An attempt ended without a response; True when there is another to try."""
        if not slot.take_claim():
            return False
        if self._is_suspect(trial, error):
            return False
        reason = error_dict(error)
        again = isinstance(error, SutError) and error.retryable and trial.attempt < self.runner.job.max_attempts
        again = not self._task_is_over(trial, reason) and again
        if again and not self.runner.board.stopping():
            self._report_failed(trial, reason)
            trial.attempt += 1
            return True
        self._report(trial, result_line(trial.index, trial.trial, trial.attempt, error=reason))
        return False

    def expired(self, trial: Trial, error: ErrorDict, *, retry: bool, doubtful: bool) -> None:
        """The monitor took the task away from its worker."""
        retry = not self._task_is_over(trial, error) and retry
        line = result_line(trial.index, trial.trial, trial.attempt, error=error)
        if doubtful and not self.runner.plan.alone:
            self.runner.board.publish(b.DOUBTFUL, trial.item, trial.attempt, line)
        elif retry and trial.attempt < self.runner.job.max_attempts:
            self._report_failed(trial, error)
            self.runner.plan.attempts[trial.item] = trial.attempt + 1
            self.runner.todo.append(trial.item)
        else:
            self._report(trial, line)

    def score(self, slot: Slot, trial: Trial) -> None:
        """Score the answer as the log holds it and publish the result."""
        runner = self.runner
        slot.claim, slot.forgiven, slot.forks = [1], 0.0, runner.forks
        slot.ident = threading.get_ident()
        runner.board.begin(slot.number, trial.item, b.SCORE, trial.attempt)
        started = time.perf_counter()
        verdict: Verdict | None = None
        error: BaseException | None = None
        try:
            verdict = read_verdict(self.impl.score(trial.row, json.loads(trial.answer)))
        except TaskTimeout:
            raise
        except BaseException as raised:
            error = raised
        spent = (time.perf_counter() - started) * 1000
        if runner.forked or not slot.take_claim():
            return
        if error is not None and self._is_suspect(trial, error):
            return
        no_answer = None
        reason = None
        if verdict is None and error is not None and trial.observed:
            # A scorer that stumbles over an empty answer: no answer is a fail.
            verdict = Verdict(0.0, {"scorer_error": error_dict(error)["message"]}, None, None, None, None)
        if verdict is not None:
            no_answer = settle_no_answer(verdict, trial.observed, trial.finish_reason)
            if trial.finish_reason == "length":
                verdict.meta["truncated"] = True
        elif error is not None:
            reason = error_dict(error)
        self._report(
            trial,
            result_line(
                trial.index,
                trial.trial,
                trial.attempt,
                verdict=verdict,
                no_answer=no_answer,
                error=reason,
                score_ms=spent,
            ),
        )

    def _is_suspect(self, trial: Trial, error: BaseException) -> bool:
        """Out of something that siblings use too: unless the task was alone, it is tried alone before it is blamed."""
        kind = b.DOUBTFUL if isinstance(error, MemoryError) else b.CROWDED if is_crowded(error) else 0
        if not kind or self.runner.plan.alone:
            return False
        line = result_line(trial.index, trial.trial, trial.attempt, error=error_dict(error))
        self.runner.board.publish(kind, trial.item, trial.attempt, line)
        return True

    def _report(self, trial: Trial, line: bytes) -> None:
        self.runner.board.publish(b.RESULT, trial.item, trial.attempt, line)

    def _report_failed(self, trial: Trial, error: ErrorDict) -> None:
        line = failed_line(trial.index, trial.trial, trial.attempt, error)
        self.runner.board.publish(b.FAILED, trial.item, trial.attempt, line)

    # Whole trials.

    def run_safely(self, slot: Slot, item: int) -> None:
        """One trial in this thread; a fault of the runner itself is that trial's error and not the worker's end."""
        try:
            self.run(slot, item)
        except Exception as error:
            self._own_fault(item, error)

    def _own_fault(self, item: int, error: Exception) -> None:
        task = self.runner.tasks[item]
        reason = error_dict(error, "crash")
        line = result_line(task.get("index", -1), task.get("trial", 0), 1, error=reason)
        self.runner.board.publish(b.RESULT, item, 1, line)

    def run(self, slot: Slot, item: int) -> None:
        """One trial in this thread."""
        trial = self.open(slot, item)
        try:
            if (trial.answer or self._solve(slot, trial)) and self.runner.plan.mode != "solve":
                self.score(slot, trial)
        finally:
            if not slot.abandoned:
                self.close(slot)

    def _solve(self, slot: Slot, trial: Trial) -> bool:
        while True:
            call = self.start_solve(slot, trial)
            started = time.perf_counter()
            try:
                value = self.impl.solve(trial.row, call)
                if self.runner.forked:
                    return False
                return self.solved(slot, trial, call, value, time.perf_counter() - started)
            except TaskTimeout:
                raise
            except BaseException as error:
                if self.runner.forked or not self.failed(slot, trial, error):
                    return False
            self._pause(slot, trial)

    def _pause(self, slot: Slot, trial: Trial) -> None:
        self.runner.board.phase(slot.number, b.WAIT)
        time.sleep(backoff(trial.attempt))

    async def run_async(self, slot: Slot, item: int, score: Any) -> None:
        """One trial in this coroutine; `score(slot, trial)` awaits a thread."""
        try:
            await self._run_async(slot, item, score)
        except Exception as error:
            self._own_fault(item, error)

    async def _run_async(self, slot: Slot, item: int, score: Any) -> None:
        trial = self.open(slot, item)
        try:
            if (trial.answer or await self._solve_async(slot, trial)) and self.runner.plan.mode != "solve":
                await score(slot, trial)
        finally:
            if not slot.abandoned:
                self.close(slot)

    async def _solve_async(self, slot: Slot, trial: Trial) -> bool:
        import asyncio

        while True:
            call = self.start_solve(slot, trial, is_async=True)
            started = time.perf_counter()
            try:
                value = await self.impl.solve(trial.row, call)
                if self.runner.forked:
                    return False
                return self.solved(slot, trial, call, value, time.perf_counter() - started)
            except TaskTimeout:
                raise
            except BaseException as error:
                if self.runner.forked or not self.failed(slot, trial, error):
                    return False
            self.runner.board.phase(slot.number, b.WAIT)
            await asyncio.sleep(backoff(trial.attempt))


def is_crowded(error: BaseException) -> bool:
    """Whether the box had no process, thread or file left."""
    if isinstance(error, OSError):
        return error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    return isinstance(error, RuntimeError) and "can't start new thread" in str(error)


def backoff(attempt: int) -> float:
    """Seconds before attempt number `attempt`: the proxy has retried already, so this is short."""
    return min(2.0, 0.1 * 2.0 ** (attempt - 2))
