"""The registry as its pages and the launch form read it: what an account may see, in plain values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.utils.safestring import SafeString, mark_safe

from registry.errors import UnknownBenchmark
from registry.identicon import identicon
from registry.immunity import checks_of, failings
from registry.models import AdminAct, Benchmark, Impl, RunSummary, Subset
from registry.official import acts_on
from registry.vocabulary import Visibility

MOST_RESULTS = 200


@dataclass(frozen=True)
class Card:
    """One benchmark in the directory. `tasks` None: no task list has been read yet."""

    id: str
    name: str
    description: str
    visibility: str
    identicon: SafeString
    subsets: int
    tasks: int | None
    runs: int


@dataclass(frozen=True)
class SubsetRow:
    """A task list: its size and its fingerprint (64 hex)."""

    id: str
    name: str
    tasks: int | None
    fingerprint: str
    rolling: bool
    synthetic: bool


@dataclass(frozen=True)
class ImplRow:
    """A scorer file. `checked`, `stumbled`: how many checks its proof has, and the names of those that failed.

    `failings`: what stands between it and being official. `acts`: what admins did to it, newest first.
    """

    id: str
    official: bool
    created_at: dt.datetime
    reason: str = ""
    promoted_at: dt.datetime | None = None
    checked: int = 0
    stumbled: tuple[str, ...] = ()
    failings: tuple[str, ...] = ()
    acts: tuple[AdminAct, ...] = ()


@dataclass(frozen=True)
class SubsetPage:
    """A task list with its benchmark and the scorers that read it, official ones first."""

    benchmark_id: str
    benchmark_name: str
    visibility: str
    identicon: SafeString
    subset: SubsetRow
    impls: list[ImplRow]


@dataclass(frozen=True)
class ResultRow:
    """A finished run. Shares are in [0, 1]; `cost_usd` None is unknown."""

    run_id: UUID
    model_label: str
    control: bool
    subset_name: str
    accuracy: float | None
    low: float | None
    high: float | None
    n: int
    cost_usd: Decimal | None
    finished_at: dt.datetime


@dataclass(frozen=True)
class BenchmarkPage:
    """A benchmark with its parts and its results."""

    id: str
    name: str
    description: str
    visibility: str
    identicon: SafeString
    subset_rows: list[SubsetRow]
    impl_rows: list[ImplRow]
    result_rows: list[ResultRow]


@dataclass(frozen=True)
class Picked:
    """What can be chosen once a benchmark is."""

    subsets: list[SubsetRow]
    impls: list[ImplRow]


def _visible(account: Any) -> QuerySet[Benchmark]:
    mine = Q(owner_id=account.pk) if account is not None else Q()
    public = Q(visibility=Visibility.PUBLIC)
    return Benchmark.objects.filter(public | mine if account is not None else public)


def _runs(account: Any) -> QuerySet[RunSummary]:
    public = Q(visibility=Visibility.PUBLIC)
    return RunSummary.objects.filter(public | Q(account_id=account.pk) if account is not None else public)


def _tile(benchmark_id: str, size: int = 40) -> SafeString:
    return mark_safe(identicon(benchmark_id, size))


def cards(account: Any, q: str = "") -> list[Card]:
    """Benchmarks the account may see, newest first; `q` matches name, id and description."""
    found = _visible(account)
    if q:
        found = found.filter(Q(name__icontains=q) | Q(id__icontains=q) | Q(description__icontains=q))
    found = found.prefetch_related("subsets__snapshot").order_by("-created_at")[:MOST_RESULTS]
    rows = list(found)
    runs = dict(
        _runs(account)
        .filter(benchmark_id__in=[row.id for row in rows])
        .values_list("benchmark_id")
        .annotate(n=Count("run_id"))
        .values_list("benchmark_id", "n")
    )
    out = []
    for row in rows:
        subsets = list(row.subsets.all())
        counts = [subset.snapshot.count for subset in subsets if subset.snapshot]
        out.append(
            Card(
                id=row.id,
                name=row.name,
                description=row.description,
                visibility=row.visibility,
                identicon=_tile(row.id),
                subsets=len(subsets),
                tasks=sum(counts) if counts else None,
                runs=runs.get(row.id, 0),
            )
        )
    return out


def benchmark_page(account: Any, benchmark_id: str) -> BenchmarkPage:
    """One benchmark. Raises UnknownBenchmark, also when it is someone else's."""
    row = _visible(account).filter(pk=benchmark_id).first()
    if row is None:
        raise UnknownBenchmark("There is no such benchmark.")
    picked = _parts(row)
    names = {subset.id: subset.name for subset in picked.subsets}
    results = _runs(account).filter(benchmark_id=row.id, status="ok", accuracy__isnull=False)
    return BenchmarkPage(
        id=row.id,
        name=row.name,
        description=row.description,
        visibility=row.visibility,
        identicon=_tile(row.id, 56),
        subset_rows=picked.subsets,
        impl_rows=picked.impls,
        result_rows=[_result(result, names) for result in results.order_by("-finished_at")[:MOST_RESULTS]],
    )


def picked(account: Any, benchmark_id: str) -> Picked:
    """Subsets and scorers of a benchmark, for the launch form; nothing when it is unknown."""
    row = _visible(account).filter(pk=benchmark_id).first()
    return _parts(row) if row else Picked([], [])


def _parts(benchmark: Benchmark) -> Picked:
    subsets = Subset.objects.filter(benchmark=benchmark).select_related("snapshot").order_by("created_at", "name")
    impls = Impl.objects.filter(benchmark=benchmark).defer("source").order_by("-official", "-created_at")
    return Picked([_subset_row(subset) for subset in subsets], [_impl_row(impl) for impl in impls])


def subset_page(subset: Subset) -> SubsetPage:
    """For a subset that the viewer may see, fetched with its benchmark and snapshot."""
    benchmark = subset.benchmark
    mine = Impl.objects.filter(Q(subset=subset) | Q(subset=None), benchmark=benchmark).defer("source")
    impls = list(mine.order_by("-official", "-promoted_at", "-created_at")[:MOST_RESULTS])
    acts = acts_on(*(impl.id for impl in impls))
    return SubsetPage(
        benchmark_id=benchmark.id,
        benchmark_name=benchmark.name,
        visibility=benchmark.visibility,
        identicon=_tile(benchmark.id, 56),
        subset=_subset_row(subset),
        impls=[_impl_row(impl, tuple(act for act in acts if act.subject == impl.id)) for impl in impls],
    )


def _subset_row(subset: Subset) -> SubsetRow:
    return SubsetRow(
        id=subset.id,
        name=subset.name,
        tasks=subset.snapshot.count if subset.snapshot else None,
        fingerprint=subset.subset_fingerprint,
        rolling=subset.rolling,
        synthetic=subset.synthetic,
    )


def _impl_row(impl: Impl, acts: tuple[AdminAct, ...] = ()) -> ImplRow:
    checks = checks_of(impl.proof)
    return ImplRow(
        id=impl.id,
        official=impl.official,
        created_at=impl.created_at,
        reason=impl.promotion_reason if impl.official else "",
        promoted_at=impl.promoted_at if impl.official else None,
        checked=len(checks),
        stumbled=tuple(name for name, ok in checks.items() if not ok),
        failings=tuple(f"{name} {why}" for name, why in failings(impl.proof).items()),
        acts=acts,
    )


def _result(row: RunSummary, names: dict[str, str]) -> ResultRow:
    model = row.model if isinstance(row.model, dict) else {}
    n = row.passed + row.failed
    low, high = wilson(row.passed, n)
    subset_id = row.subset_id or ""
    return ResultRow(
        run_id=row.run_id,
        model_label=str(model.get("label") or model.get("identifier") or row.model_key),
        control=model.get("source") == "control",
        subset_name=names.get(subset_id, subset_id.rpartition("/")[2]),
        accuracy=row.accuracy,
        low=low,
        high=high,
        n=n,
        cost_usd=row.cost_model,
        finished_at=row.finished_at,
    )


def wilson(passed: float, n: int) -> tuple[float | None, float | None]:
    """The 95 % Wilson interval of a pass rate; (None, None) without tasks."""
    if n <= 0:
        return None, None
    z = 1.959963984540054
    p = passed / n
    centre = p + z * z / (2 * n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n))
