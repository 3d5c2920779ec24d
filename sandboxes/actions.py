"""Change the host policy; write refusals down."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from sandboxes.backends.base import Refusal
from sandboxes.models import BlockedHost, HostPolicy, HostRule


def record_refusals(account_id: int, run_id: UUID, refusals: Iterable[Refusal]) -> None:
    """One row for each (run, host, port, role), with the newest count."""
    BlockedHost.objects.bulk_create(
        [
            BlockedHost(
                account_id=account_id,
                run_id=run_id,
                host=r.host[:260],
                port=r.port,
                role=r.role.value,
                seen_count=r.seen_count,
                first_seen=datetime.fromtimestamp(r.first_seen, UTC),
                last_seen=datetime.fromtimestamp(r.last_seen, UTC),
            )
            for r in refusals
        ],
        update_conflicts=True,
        unique_fields=["run_id", "host", "port", "role"],
        update_fields=["seen_count", "last_seen"],
    )


@transaction.atomic
def set_policy(account_id: int, mode: str, *, allow: list[str], block: list[str]) -> None:
    """Replaces the account's whole policy: `mode` for hosts that no pattern names, and the patterns."""
    HostPolicy.objects.update_or_create(account_id=account_id, defaults={"mode": mode})
    HostRule.objects.filter(account_id=account_id).delete()
    HostRule.objects.bulk_create(
        HostRule(account_id=account_id, action=action, pattern=pattern)
        for action, patterns in (("allow", allow), ("block", block))
        for pattern in patterns
    )
