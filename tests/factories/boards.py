"""Benchmarks and finished runs as leaderboards see them: rows of the summary alone, and whole runs."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any
from uuid import uuid4

from billing.models import Account, User
from registry.actions import open_benchmark, save_subset
from registry.models import RunSummary, Subset
from registry.vocabulary import Visibility
from runs.events.log import append, read
from runs.events.types.artifact import AtomizeArtifact, DatasetTasksArtifact
from runs.events.types.run import PipelineFinished
from runs.fingerprints.identity import identity_of
from runs.models import Run
from tests.factories.runs import make_person, make_run, settled, sweep_started

_numbers = itertools.count(1)
DAY = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)


def make_subset(tasks: int = 100, account: Account | None = None, visibility: str = Visibility.PUBLIC) -> Subset:
    """A subset with so many tasks, of a benchmark that is public unless told otherwise."""
    owner = account or make_person()[1]
    benchmark = open_benchmark(owner, f"Board {next(_numbers)}", source={"files": []})
    benchmark.visibility = visibility
    benchmark.save()
    rows = [{"row": {"question": f"{i} + 1?"}, "reference": None, "choices": None} for i in range(tasks)]
    subset, _ = save_subset(benchmark, "test", rows, field_map={})
    return subset


def summary(subset: Subset, name: str, passed: int, **given: Any) -> RunSummary:
    """A finished public run over all tasks: set only what the test is about. Runs come a day apart."""
    tasks = subset.snapshot.count if subset.snapshot else 0
    selected = given.get("selected", tasks)
    source = "control" if name.startswith("control/") else "endpoint"
    values: dict[str, Any] = {
        "run_id": uuid4(), "account_id": 0, "benchmark_id": subset.benchmark_id, "subset_id": subset.id,
        "impl_id": "i", "model": {"source": source, "identifier": name}, "model_key": f"{source}:{name}",
        "status": "ok", "visibility": "public", "comparability_key": "a" * 64, "selected": selected,
        "passed": passed, "failed": selected - passed - given.get("errored", 0),
        "finished_at": DAY + dt.timedelta(days=next(_numbers)), **given,
    }  # fmt: skip
    n = values["passed"] + values["failed"]
    return RunSummary.objects.create(**{"accuracy": values["passed"] / n if n else None, **values})


def finished_run(
    subset: Subset,
    scores: list[float | None],
    *,
    person: tuple[User, Account] | None = None,
    impl: str = "f" * 64,
    visibility: str = Visibility.PUBLIC,
    **given: Any,
) -> Run:
    """A whole run that ended ok with these task scores (None: errored), on the subset's current task list."""
    user, account = person or make_person()
    model = {"source": "endpoint", "identifier": f"m{next(_numbers)}"}
    run = make_run(account, user, **{"model": model, "visibility": visibility, **given})
    assert subset.snapshot is not None
    append(
        run.pk,
        [
            DatasetTasksArtifact(
                subset_id=subset.id, snapshot_digest=subset.snapshot.digest, count=subset.snapshot.count, selected=None
            ),
            AtomizeArtifact(
                invocation=1, impl_id=f"{subset.benchmark_id}:{impl[:12]}", sha256=impl, source="", proof={}
            ),
            sweep_started(len(scores)),
        ],
    )
    for index, score in enumerate(scores):
        append(run.pk, settled(index, score))
    artifacts = [(row.type, row.data) for row in read(run.pk) if row.type.endswith("Artifact")]
    key = identity_of(artifacts, trials=run.trials_config, limits=run.limits).comparability_key
    Run.objects.filter(pk=run.pk).update(comparability_key=key)
    append(run.pk, [PipelineFinished(status="ok", duration_ms=1.0)])
    run.refresh_from_db()
    return run
