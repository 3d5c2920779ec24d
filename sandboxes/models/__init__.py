"""The models of this app in one list."""

from sandboxes.models.host_rule import BlockedHost, HostPolicy, HostRule
from sandboxes.models.secret import ProviderSecret

__all__ = ["BlockedHost", "HostPolicy", "HostRule", "ProviderSecret"]
