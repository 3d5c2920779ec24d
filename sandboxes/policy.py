"""An account's host policy as its sandboxes get it."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from sandboxes.backends.base import Network
from sandboxes.models import HostPolicy, HostRule


def rules_of(account_id: int) -> dict[str, Any]:
    """{mode, allow, block} as the account set it; a fresh account allows what no rule names."""
    policy = HostPolicy.objects.filter(account_id=account_id).first()
    rules = list(HostRule.objects.filter(account_id=account_id).order_by("id").values_list("action", "pattern"))
    return {
        "mode": policy.mode if policy else "allow",
        "allow": [pattern for action, pattern in rules if action == "allow"],
        "block": [pattern for action, pattern in rules if action == "block"],
    }


def network_for(account_id: int) -> Network:
    """The account's default mode and rules; the operator's trusted hosts may resolve to private addresses."""
    rules = rules_of(account_id)
    trusted = tuple(settings.TRUSTED_HOSTS)
    return Network(
        mode=rules["mode"], allow=(*rules["allow"], *trusted), block=tuple(rules["block"]), private_ok=trusted
    )


def network_to(host: str, port: int) -> Network:
    """A model proxy's network: the provider's host and nothing else."""
    return Network(mode="deny", allow=(f"{host}:{port}",), private_ok=(f"{host}:{port}",))
