"""Find benchmarks, subsets, impls and uploads that an account may use. A stranger gets *not found*."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from billing.models import Account
from registry.errors import UnknownBenchmark, UnknownImpl, UnknownSubset
from registry.models import Benchmark, Impl, Subset, SubsetSnapshot, Upload
from registry.models.blob import get_blob
from registry.vocabulary import Visibility


def visible_benchmarks(account: Account | None) -> QuerySet[Benchmark]:
    """Public ones and the account's own."""
    mine = Q(owner=account) if account else Q(pk__in=[])
    return Benchmark.objects.filter(Q(visibility=Visibility.PUBLIC) | mine)


def find_benchmark(account: Account | None, name: str) -> Benchmark:
    """By id, then by exact name. Unlisted ones are found by id. Raises UnknownBenchmark."""
    mine = Q(owner=account) if account else Q(pk__in=[])
    found = Benchmark.objects.filter(~Q(visibility=Visibility.PRIVATE) | mine).filter(pk=name).first()
    found = found or visible_benchmarks(account).filter(name=name).order_by("created_at").first()
    if found is None:
        raise UnknownBenchmark(
            f"There is no benchmark {name!r}.",
            field="benchmark",
            hint="See the registry for what there is, or describe one in words.",
        )
    return found


def find_subset(benchmark: Benchmark, name: str | None) -> Subset:
    """By name or full id; without a name the only one, or the one called test. Raises UnknownSubset."""
    subsets = list(benchmark.subsets.order_by("created_at"))
    names = [s.name for s in subsets]
    if name is None:
        if len(subsets) == 1:
            return subsets[0]
        for preferred in ("test", "default"):
            if preferred in names:
                return subsets[names.index(preferred)]
    for subset in subsets:
        if name in (subset.name, subset.id):
            return subset
    said = (
        f"There is no subset {name!r} in {benchmark.id}." if name else f"{benchmark.id} has several subsets: say which."
    )
    raise UnknownSubset(said, field="subset", hint=f"Subsets: {', '.join(names) or 'none yet'}.")


def subset_by_id(account: Account | None, subset_id: str) -> Subset:
    """A subset of a benchmark that the account may see, with both and its snapshot. Raises UnknownSubset."""
    found = Subset.objects.select_related("benchmark", "snapshot").filter(pk=subset_id).first()
    if found is None or not _may_see(account, found.benchmark):
        raise UnknownSubset("There is no such subset.", hint="Subset ids look like <benchmark>/<name>.")
    return found


def impl_by_id(account: Account | None, impl_id: str) -> Impl:
    """A scorer of a benchmark that the account may see. Raises UnknownImpl."""
    found = Impl.objects.select_related("benchmark", "promoted_by").filter(pk=impl_id).first()
    if found is None or not _may_see(account, found.benchmark):
        raise UnknownImpl("There is no such impl.", hint="Impl ids look like <benchmark>:<12 hex digits>.")
    return found


def _may_see(account: Account | None, benchmark: Benchmark) -> bool:
    return benchmark.visibility != Visibility.PRIVATE or (account is not None and benchmark.owner_id == account.pk)


def find_impl(subset: Subset, name: str | None) -> Impl | None:
    """An impl by id; `latest:official`; without a name the official one or None. Raises UnknownImpl."""
    mine = Impl.objects.filter(benchmark_id=subset.benchmark_id)
    if name in (None, "latest:official"):
        official = mine.filter(official=True).filter(Q(subset=subset) | Q(subset=None)).order_by("-promoted_at").first()
        if official is None and name:
            raise UnknownImpl(
                f"{subset.id} has no official impl yet.",
                field="impl",
                hint="Name an impl by its id, or leave impl out: the Driver writes one.",
            )
        return official
    found = mine.filter(pk=name).first()
    if found is None:
        raise UnknownImpl(
            f"There is no impl {name!r} of {subset.benchmark_id}.",
            field="impl",
            hint="Impl ids look like <benchmark>:<12 hex digits>.",
        )
    return found


def find_uploads(account: Account, ids: tuple[str, ...]) -> list[Upload]:
    """The account's uploads, in the order asked for. Raises UnknownBenchmark naming the first that is missing."""
    found = {u.id: u for u in Upload.objects.filter(account=account, pk__in=ids)}
    for key in ids:
        if key not in found:
            raise UnknownBenchmark(
                f"There is no file {key!r}.", code="unknown_file", field="files", hint="Upload it with POST /v1/files."
            )
    return [found[key] for key in ids]


def snapshot_rows(snapshot: SubsetSnapshot) -> Iterator[dict[str, Any]]:
    """Each task as {row, reference, choices}, in order. Raises UnknownSubset when the rows have expired."""
    data = get_blob(snapshot.rows_blob)
    if data is None:
        raise UnknownSubset(f"The rows of {snapshot.subset_id} are no longer stored.", code="rows_expired")
    for line in data.decode().splitlines():
        yield json.loads(line)


def search_benchmarks(account: Account | None, words: str, limit: int = 5) -> list[Benchmark]:
    """Those whose id, name or description share the most words with the text; best first, none without a match."""
    asked = set(re.findall(r"[a-z0-9]{3,}", words.lower())) - _COMMON
    scored = []
    for benchmark in visible_benchmarks(account):
        own = set(re.findall(r"[a-z0-9]{3,}", f"{benchmark.id} {benchmark.name}".lower())) - _COMMON
        rest = set(re.findall(r"[a-z0-9]{3,}", benchmark.description.lower())) - _COMMON
        score = 3 * len(asked & own) + len(asked & rest)
        if score:
            scored.append((score, benchmark.id, benchmark))
    scored.sort(key=lambda s: (-s[0], s[1]))
    return [s[2] for s in scored[:limit]]


_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "with",
        "that",
        "how",
        "well",
        "does",
        "can",
        "measure",
        "benchmark",
        "test",
        "score",
        "model",
        "models",
        "answer",
        "answers",
        "questions",
        "question",
        "use",
        "using",
        "run",
        "evaluate",
        "evaluation",
        "its",
        "are",
        "was",
        "from",
        "this",
        "what",
        "which",
        "sample",
    ]
)
