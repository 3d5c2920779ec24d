"""Who may see a run."""

from __future__ import annotations

from django.db import transaction

from registry.models import Benchmark
from registry.vocabulary import Visibility
from runs.errors import LaunchRefused
from runs.events.log import append
from runs.events.types.run import VisibilityChanged
from runs.models import Run


@transaction.atomic
def change_visibility(run: Run, visibility: Visibility, *, by: str) -> None:
    """Reversible at any time. A run can be public only while its benchmark is."""
    if visibility == run.visibility:
        return
    if visibility is Visibility.PUBLIC:
        benchmark = Benchmark.objects.filter(pk=run.benchmark_id).first()
        if benchmark is None or benchmark.visibility != Visibility.PUBLIC:
            raise LaunchRefused(
                "A run can be public only while its benchmark is public.",
                code="benchmark_not_public",
                status=409,
                field="visibility",
                hint="Make the benchmark public first, or use unlisted.",
            )
    append(run.pk, [VisibilityChanged(visibility=visibility.value, by=by)])
