"""The sweep: results of trials, tasks and failed attempts."""

from __future__ import annotations

from runs.events.types.base import JSON, Event, Usage


class MaterializeStarted(Event, frozen=True, kw_only=True):
    """A sweep begins. `mode`: sequential (tasks share the work sandbox) or fanout (a sandbox each)."""

    invocation: int
    mode: str
    tasks: int
    trials: int
    concurrency: int


class MaterializeResponse(Event, frozen=True, kw_only=True):
    """A response whose score is not there yet: it is kept before it is scored, so that no fault of a scorer costs a
    call.

    Written only when the score did not come in the same batch; the result carries the response in every case.
    """

    invocation: int
    index: int
    trial: int
    attempt: int
    prompt: JSON
    response: JSON
    finish_reason: str | None = None
    latency_ms: float | None = None
    usage: Usage | None = None


class MaterializeTaskResult(Event, frozen=True, kw_only=True):
    """One trial of one task, settled. `score` null: it could not be scored, and `error` says why.

    `usage` is null where `MaterializeResponse` already carried it.
    """

    invocation: int
    index: int
    trial: int
    attempts: int
    outcome: str
    score: float | None = None
    score_meta: JSON = None
    extracted: JSON = None
    rule: str | None = None
    no_answer: str | None = None
    prompt: JSON = None
    response: JSON = None
    target: JSON = None
    usage: Usage | None = None
    calls: int | None = None
    finish_reason: str | None = None
    latency_ms: float | None = None
    score_ms: float | None = None
    error: JSON = None


class AttemptFailed(Event, frozen=True, kw_only=True):
    """A failed attempt that was or may be tried again."""

    invocation: int
    index: int
    trial: int
    attempt: int
    error: JSON
    usage: Usage | None = None


class MaterializeTaskAggregated(Event, frozen=True, kw_only=True):
    """The task's verdict over its trials."""

    invocation: int
    index: int
    outcome: str
    score: float | None
    trial_scores: JSON
    aggregator: str
    note: str | None = None


class JudgmentRecorded(Event, frozen=True, kw_only=True):
    """A person's or a judge's word on one task."""

    index: int
    trial: int
    verdict: str
    by: str
    why: str
