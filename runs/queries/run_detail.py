"""All that the run page and GET /v1/runs/{id} show of one run: one typed answer for both."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from billing.models import Account, User
from registry.models import Benchmark, Impl, Subset
from runs.events.log import read
from runs.fingerprints.identity import identity_of
from runs.models import Run, SandboxRow
from runs.projections.phases import PhaseView, phase_views
from runs.projections.score import ScoreView, score_view
from runs.queries.access import visible_run
from runs.queries.tiles import tiles
from runs.vocabulary import WAIT_REASONS, ModelSource, RunStatus, halt_is
from sandboxes.models import BlockedHost

# What tells the story of a run; the per-task events are counted on the row.
STORY = (
    "RunLaunched",
    "PipelineStarted",
    "PipelineFinished",
    "PhaseStarted",
    "PhaseCompleted",
    "PhaseFailed",
    "PhaseRestarted",
    "HaltRequested",
    "HaltCleared",
    "MaterializeStarted",
    "FetchArtifact",
    "AnalyzeArtifact",
    "DatasetTasksArtifact",
    "SetupArtifact",
    "ModelProxyArtifact",
    "AtomizeArtifact",
    "BenchmarkResolved",
)


@dataclass(frozen=True)
class ModelView:
    """The system under test. `control`: it verifies the infrastructure and is never ranked."""

    source: str
    identifier: str
    label: str
    control: bool
    base_url: str | None = None
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Named:
    """A benchmark or a subset."""

    id: str
    name: str


@dataclass(frozen=True)
class ImplView:
    """A scorer."""

    id: str
    official: bool


@dataclass(frozen=True)
class TrialsView:
    """k and the aggregator's name."""

    k: int
    aggregator: str


@dataclass(frozen=True)
class TaskSummary:
    """Counts of tasks. `outcomes`: one sign per index of the list, p f e r, `.` not begun, `-` not selected."""

    total: int
    selected: int
    settled: int
    passed: int
    failed: int
    errored: int
    running: int
    outcomes: str


@dataclass(frozen=True)
class CostView:
    """Dollars, exact; None is unknown. `unknown`: some calls have no known price."""

    driver: Decimal | None
    model: Decimal | None
    sandbox: Decimal | None
    narration: Decimal | None
    judge: Decimal | None
    billed: Decimal | None
    incurred: Decimal | None
    proxy_linger: Decimal | None
    unknown: bool
    unknown_calls: int
    tokens_in: int
    tokens_out: int
    requests: int


@dataclass(frozen=True)
class SandboxView:
    """One sandbox of the run."""

    id: str
    role: str
    backend: str
    created_at: datetime
    killed_at: datetime | None
    duration_ms: float | None
    cost_usd: Decimal | None


@dataclass(frozen=True)
class RunError:
    """Why the run ended in error, and what to do."""

    phase: str
    type: str
    detail: str
    hint: str | None


@dataclass(frozen=True)
class RunDetail:
    """One run as it is shown."""

    id: UUID
    title: str
    url: str
    display_status: str
    status: str
    halt_reason: str
    mode: str
    prompt: str
    created_at: datetime
    finished_at: datetime | None
    duration_ms: float | None
    model: ModelView
    driver: str
    harness: str
    backend: str
    benchmark: Named | None
    subset: Named | None
    impl: ImplView | None
    visibility: str
    trials: TrialsView
    limits: dict[str, Any]
    metadata: dict[str, Any]
    concurrency: int
    phases: list[PhaseView]
    tasks: TaskSummary
    score: ScoreView | None
    cost: CostView
    fingerprint: str
    fingerprint_sha256: str
    fingerprint_inputs: list[dict[str, Any]]
    comparability_key: str
    head_digest: str
    last_seq: int
    sandboxes: list[SandboxView]
    blocked_hosts: list[BlockedHost]
    review_reason: str
    impl_source: str | None
    error: RunError | None
    parent_id: UUID | None = None  # what a replay or fork goes on from
    rewind_to: str = ""
    sweep_mode: str | None = None  # sequential or fanout; None before tasks ran


def run_detail(account: Account | None, user: User | Any, run_id: UUID | str) -> RunDetail:
    """Raises NotFound for a stranger."""
    return detail_of(visible_run(account, run_id))


def detail_of(run: Run) -> RunDetail:
    """The answer for a run that the viewer may see."""
    story = list(read(run.pk, types=STORY))
    artifacts = [(row.type, row.data) for row in story if row.type.endswith("Artifact")]
    latest = dict(artifacts)
    identity = identity_of(artifacts, trials=run.trials_config, limits=run.limits)
    launched = story[0].data if story else {}
    benchmark_id = run.benchmark_id or launched.get("benchmark_id")
    subset_id = run.subset_id or launched.get("subset_id")
    impl_id = run.impl_id or launched.get("impl_id")
    benchmark = Benchmark.objects.filter(pk=benchmark_id).first() if benchmark_id else None
    subset = Subset.objects.filter(pk=subset_id).first() if subset_id else None
    impl = Impl.objects.filter(pk=impl_id).first() if impl_id else None
    source = latest.get("AtomizeArtifact", {}).get("source") or (impl.source if impl else None)
    waiting = run.halted and halt_is(run.halt_reason, WAIT_REASONS)
    return RunDetail(
        id=run.pk,
        title=run.title,
        url=f"/runs/{run.pk}/",
        display_status=run.display_status.value,
        status=run.status,
        halt_reason=run.halt_reason,
        mode=run.mode,
        prompt=run.prompt,
        created_at=run.created_at,
        finished_at=run.finished_at,
        duration_ms=(run.finished_at - run.created_at).total_seconds() * 1000 if run.finished_at else None,
        model=model_view(run),
        driver=run.driver,
        harness=run.harness,
        backend=run.backend,
        benchmark=Named(benchmark.id, benchmark.name) if benchmark else None,
        subset=Named(subset.id, subset.name) if subset else None,
        impl=ImplView(impl.id, impl.official) if impl else None,
        visibility=run.visibility,
        trials=TrialsView(run.trials_config["plan"]["k"], run.trials_config["aggregator"]["name"]),
        limits=run.limits,
        metadata=run.metadata,
        concurrency=run.concurrency,
        phases=phase_views(story, run),
        tasks=task_summary(run, latest),
        score=score_of(run),
        cost=cost_view(run),
        fingerprint=identity.fingerprint[:12],
        fingerprint_sha256=identity.fingerprint,
        fingerprint_inputs=identity.fingerprint_inputs,
        comparability_key=identity.comparability_key,
        head_digest=run.head_digest,
        last_seq=run.next_seq - 1,
        sandboxes=[_sandbox(row) for row in SandboxRow.objects.filter(run_id=run.pk).order_by("created_at")],
        blocked_hosts=list(BlockedHost.objects.filter(run_id=run.pk).order_by("-seen_count")[:100]),
        review_reason=run.halt_reason.partition(":")[2].strip() if waiting else "",
        impl_source=source,
        error=_error(story, run),
        parent_id=run.parent_id,
        rewind_to=run.rewind_phase,
        sweep_mode=next((row.data["mode"] for row in reversed(story) if row.type == "MaterializeStarted"), None),
    )


def model_view(run: Run) -> ModelView:
    """The model as shown."""
    m = run.model
    identifier = m.get("identifier", "")
    return ModelView(
        m.get("source", ""),
        identifier,
        m.get("label") or identifier,
        m.get("source") == ModelSource.CONTROL,
        m.get("base_url"),
        m.get("params") or {},
    )


def task_summary(run: Run, artifacts: dict[str, dict[str, Any]]) -> TaskSummary:
    """Counts from the row, tiles from the projection."""
    tasks = artifacts.get("DatasetTasksArtifact") or {}
    total = int(tasks.get("count") or 0)
    selected = tasks.get("selected")
    settled = run.tasks_passed + run.tasks_failed + run.tasks_errored
    signs = tiles(run, total, selected)
    count = len(selected) if selected is not None else total
    return TaskSummary(
        total, count, settled, run.tasks_passed, run.tasks_failed, run.tasks_errored, signs.count("r"), signs
    )


def score_of(run: Run) -> ScoreView | None:
    """The score of the latest Materialize, None before anything could be scored."""
    return score_view(
        passed=run.tasks_passed,
        failed=run.tasks_failed,
        errored=run.tasks_errored,
        selected=run.tasks_selected or 0,
        total=run.score_sum,
        squares=run.score_squares,
    )


def cost_view(run: Run) -> CostView:
    """A sum with an unknown part is unknown."""
    model = None if run.unknown_cost_calls else run.cost_model
    incurred = None if model is None else run.cost_driver + model + run.cost_sandbox + run.cost_narration
    billed = (run.cost_sandbox + run.cost_driver + run.cost_narration) * (1 + run.account.markup)
    return CostView(
        driver=run.cost_driver,
        model=model,
        sandbox=run.cost_sandbox,
        narration=run.cost_narration,
        judge=run.cost_judge,
        billed=billed,
        incurred=incurred,
        proxy_linger=run.cost_proxy_linger,
        unknown=bool(run.unknown_cost_calls),
        unknown_calls=run.unknown_cost_calls,
        tokens_in=run.tokens_in,
        tokens_out=run.tokens_out,
        requests=run.requests,
    )


def _sandbox(row: SandboxRow) -> SandboxView:
    lived = (row.killed_at - row.created_at).total_seconds() * 1000 if row.killed_at else None
    return SandboxView(row.id, row.role, row.backend, row.created_at, row.killed_at, lived, row.cost_usd)


def _error(story: list[Any], run: Run) -> RunError | None:
    if run.status != RunStatus.ERROR:
        return None
    for row in reversed(story):
        if row.type == "PhaseFailed":
            return RunError(row.data["phase"], row.data["error_type"], row.data["detail"], row.data["hint"])
    return None
