"""API v1 of the host policy: where an account's sandboxes may go."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja import Router

from benchwright.auth import caller, writer
from benchwright.lib.errors import BenchwrightError
from sandboxes.actions import set_policy
from sandboxes.egress.policy import parse_pattern
from sandboxes.policy import rules_of

router = Router(tags=["host policy"])


@router.get("/host-policy", summary="Read the host policy")
def read_policy(request: HttpRequest) -> dict[str, Any]:
    """`mode` for hosts that no rule names, and the patterns allowed and blocked."""
    return rules_of(caller(request).account.pk)


@router.put("/host-policy", summary="Set the host policy")
def write_policy(request: HttpRequest) -> dict[str, Any]:
    """The whole policy: `mode` (allow or deny), `allow` and `block` (patterns).

    A run takes it up when its next sandbox starts.
    """
    account = writer(request).account.pk
    try:
        body = json.loads(request.body or b"null")
    except (ValueError, RecursionError):
        raise BenchwrightError("The body is not JSON.", code="invalid_json") from None
    if not isinstance(body, dict):
        raise BenchwrightError("The body is a JSON object.", code="invalid_request", hint="mode, allow, block.")
    for key in body:
        if key not in {"mode", "allow", "block"}:
            raise BenchwrightError(
                f"There is no key {key!r}.", code="unknown_key", field=str(key), hint="Known: mode, allow, block."
            )
    mode = body.get("mode", "allow")
    if mode not in ("allow", "deny"):
        raise BenchwrightError("mode is allow or deny.", code="invalid_request", field="mode")
    set_policy(account, mode, allow=_patterns(body, "allow"), block=_patterns(body, "block"))
    return rules_of(account)


def _patterns(body: dict[str, Any], name: str) -> list[str]:
    given = body.get(name) or []
    if not isinstance(given, list) or len(given) > 1000 or any(not isinstance(p, str) for p in given):
        raise BenchwrightError(
            f"{name} must be a list of at most 1,000 host patterns.", code="invalid_request", field=name
        )
    for pattern in given:
        try:
            parse_pattern(pattern)
        except ValueError as e:
            raise BenchwrightError(str(e), code="bad_host_pattern", field=name) from None
    return list(dict.fromkeys(given))
