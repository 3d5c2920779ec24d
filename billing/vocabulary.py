"""Words of this app, exactly as API and pages say them."""

from enum import StrEnum


class MemberRole(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"  # reads, never launches


class LedgerKind(StrEnum):
    CREDIT = "credit"
    DEBIT = "debit"
