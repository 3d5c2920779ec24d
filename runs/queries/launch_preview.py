"""What a launch would do, before it is one: which phases would work, how many tasks, about what cost, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Q

from billing.models import Account
from registry.vocabulary import Visibility
from runs.actions.launch import Resolved
from runs.actions.requests import LaunchRequest
from runs.models import Run
from runs.vocabulary import Mode, Phase, RunStatus


@dataclass(frozen=True)
class Preview:
    """`phases`: {name: runs | cached | skipped}. Numbers are None while they can't be known.

    `cost_usd` is an estimate; `basis` says from what, in words.
    """

    phases: dict[str, str] = field(default_factory=dict)
    tasks: int | None = None
    at_most: int | None = None
    k: int = 1
    cost_usd: Decimal | None = None
    tokens: int | None = None
    basis: str = ""


def preview(account: Account, request: LaunchRequest, found: Resolved) -> Preview:
    """Raises nothing: what can't be known is left open."""
    k = int(((request.trials or {}).get("plan") or {}).get("k") or 1)
    limit = request.sample.get("limit")
    if found.subset is None:
        return Preview(at_most=limit, k=k)
    phases = {Phase.FIND.value: "skipped", Phase.ANALYZE.value: "skipped"}
    if found.impl is not None:
        phases[Phase.ATOMIZE.value] = "skipped"
    if request.mode is Mode.REPLAY:
        phases |= {Phase.FETCH.value: "skipped", Phase.SETUP.value: "skipped"}
    visible = Q(account=account) | Q(visibility=Visibility.PUBLIC)
    earlier = Run.objects.filter(visible, subset_id=found.subset.pk, status=RunStatus.OK).order_by("-created_at")
    prior = earlier.filter(model__identifier=request.model.identifier).first() or earlier.first()
    if prior is not None and request.mode is Mode.PINNED:
        phases |= {Phase.FETCH.value: "cached", Phase.SETUP.value: "cached"}
    total = found.subset.snapshot.count if found.subset.snapshot else None
    indices = request.sample.get("indices")
    tasks = len(indices) if indices else total
    if tasks is not None and limit:
        tasks = min(tasks, limit)
    cost, tokens, basis = _estimate(prior, request, tasks, k)
    return Preview(phases=phases, tasks=tasks, at_most=limit, k=k, cost_usd=cost, tokens=tokens, basis=basis)


def _estimate(
    prior: Run | None, request: LaunchRequest, tasks: int | None, k: int
) -> tuple[Decimal | None, int | None, str]:
    """Scaled from an earlier run of the same task list; cost only when it measured the same model at known prices."""
    if prior is None or not tasks:
        return None, None, ""
    settled = prior.tasks_passed + prior.tasks_failed + prior.tasks_errored
    prior_k = int((prior.trials_config.get("plan") or {}).get("k") or 1)
    if not settled:
        return None, None, ""
    scale = Decimal(tasks * k) / Decimal(settled * prior_k)
    tokens = int((prior.tokens_in + prior.tokens_out) * scale)
    same = prior.model.get("identifier") == request.model.identifier
    cost = prior.cost_model * scale if same and not prior.unknown_cost_calls else None
    return cost, tokens, f"from run {str(prior.pk)[:8]}, {'the same' if same else 'another'} model"
