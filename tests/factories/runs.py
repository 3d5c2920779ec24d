"""Runs, and events that make them."""

from __future__ import annotations

import itertools
from typing import Any

from billing.actions import open_account
from billing.models import Account, User
from runs.events.log import append
from runs.events.types.materialize import MaterializeStarted, MaterializeTaskAggregated, MaterializeTaskResult
from runs.events.types.run import RunLaunched
from runs.models import Run

_numbers = itertools.count(1)
TRIALS = {"plan": {"k": 1}, "aggregator": {"name": "any_pass"}}


def make_person(name: str | None = None) -> tuple[User, Account]:
    """A person with an account of their own."""
    return open_account(name or f"person{next(_numbers)}")


def make_run(account: Account | None = None, user: User | None = None, **given: Any) -> Run:
    """A launched run with its seq 0."""
    if account is None or user is None:
        user, account = make_person()
    values: dict[str, Any] = {
        "title": "A run", "mode": "pinned", "model": {"source": "control", "identifier": "control/oracle"},
        "driver": "builtin://rules", "trials_config": TRIALS, "key_secret": b"0" * 32, **given,
    }  # fmt: skip
    run = Run.objects.create(account=account, user=user, **values)
    append(
        run.pk,
        [
            RunLaunched(
                mode=run.mode, body={}, account=account.slug, user=user.username, trials=run.trials_config, limits={},
                backend="local",
            )
        ],
    )  # fmt: skip
    run.refresh_from_db()
    return run


def sweep_started(tasks: int, trials: int = 1, invocation: int = 1) -> MaterializeStarted:
    """The start of a sweep."""
    return MaterializeStarted(invocation=invocation, mode="sequential", tasks=tasks, trials=trials, concurrency=8)


def settled(index: int, score: float | None, **given: Any) -> list[Any]:
    """A result and its aggregate."""
    outcome = "err" if score is None else "pass" if score >= 1 else "fail"
    result: dict[str, Any] = {
        "invocation": 1, "index": index, "trial": 0, "attempts": 1, "outcome": outcome, "score": score, **given,
    }  # fmt: skip
    return [
        MaterializeTaskResult(**result),
        MaterializeTaskAggregated(
            invocation=result["invocation"], index=index, outcome=outcome, score=score, trial_scores=[score],
            aggregator="any_pass",
        ),
    ]  # fmt: skip
