"""The models of this app in one list."""

from billing.models.account import Account, Membership, User
from billing.models.api_key import ApiKey, SignInLink
from billing.models.ledger import LedgerEntry

__all__ = ["Account", "ApiKey", "LedgerEntry", "Membership", "SignInLink", "User"]
