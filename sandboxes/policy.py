"""An account's host policy as its sandboxes get it."""

from __future__ import annotations

from django.conf import settings

from sandboxes.backends.base import Network
from sandboxes.models import HostPolicy, HostRule


def network_for(account_id: int, *, also: tuple[str, ...] = ()) -> Network:
    """The account's default mode and rules; the operator's trusted hosts may resolve to private addresses.

    `also`: hosts of endpoints that the account declared.
    """
    policy = HostPolicy.objects.filter(account_id=account_id).first()
    rules = list(HostRule.objects.filter(account_id=account_id).values_list("action", "pattern"))
    trusted = tuple(settings.TRUSTED_HOSTS)
    return Network(
        mode="deny" if policy and policy.mode == "deny" else "allow",
        allow=(*(p for a, p in rules if a == "allow"), *trusted, *also),
        block=tuple(p for a, p in rules if a == "block"),
        private_ok=(*trusted, *also),
    )


def network_to(host: str, port: int) -> Network:
    """A model proxy's network: the provider's host and nothing else."""
    return Network(mode="deny", allow=(f"{host}:{port}",), private_ok=(f"{host}:{port}",))
