"""Change the host policy; write refusals down."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

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


def set_rule(account_id: int, action: str, pattern: str) -> None:
    """Adds a rule; the opposite rule for the same pattern goes."""
    HostRule.objects.filter(account_id=account_id, pattern=pattern).exclude(action=action).delete()
    HostRule.objects.get_or_create(account_id=account_id, action=action, pattern=pattern)


def set_mode(account_id: int, mode: str) -> None:
    """`allow` or `deny` for hosts that no rule names."""
    HostPolicy.objects.update_or_create(account_id=account_id, defaults={"mode": mode})
