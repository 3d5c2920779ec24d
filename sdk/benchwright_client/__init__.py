"""Benchwright from a program: the clients of API v1 and the check of receipts.

    from benchwright_client import Client

The clients need httpx; the check of receipts needs nothing, so they are only imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchwright_client.errors import (
    ApiError,
    BadRequest,
    ClientError,
    Conflict,
    NotAllowed,
    NotFound,
    NotLoggedIn,
    NotSignedIn,
    RateLimited,
    ServerFault,
    Unreachable,
    WaitTimeout,
)

if TYPE_CHECKING:
    from benchwright_client.aio import AsyncClient, AsyncRun
    from benchwright_client.client import Client, Run

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncRun",
    "BadRequest",
    "Client",
    "ClientError",
    "Conflict",
    "NotAllowed",
    "NotFound",
    "NotLoggedIn",
    "NotSignedIn",
    "RateLimited",
    "Run",
    "ServerFault",
    "Unreachable",
    "WaitTimeout",
]


def __getattr__(name: str) -> Any:
    if name in ("Client", "Run"):
        from benchwright_client import client

        return getattr(client, name)
    if name in ("AsyncClient", "AsyncRun"):
        from benchwright_client import aio

        return getattr(aio, name)
    raise AttributeError(f"benchwright_client has no {name!r}")
