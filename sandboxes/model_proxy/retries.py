"""When to try again, and how long to wait before."""

from __future__ import annotations

import math
import random
import time
from email.utils import parsedate_to_datetime

from sandboxes.model_proxy.config import Retries
from sandboxes.model_proxy.faults import Fault


def wait_before_retry(policy: Retries, failures: int, fault: Fault, longest_s: float) -> float | None:
    """Seconds to wait after the `failures`-th failure, None to give up.

    Full jitter: callers that failed together must not come back together. A provider's Retry-After is the least wait;
    one longer than `longest_s` is as good as a refusal.
    """
    if not fault.retryable or failures > policy.max:
        return None
    if fault.retry_after is not None:
        if fault.retry_after > longest_s:
            return None
        return fault.retry_after + random.uniform(0, min(policy.base_s, policy.cap_s))
    return random.uniform(0, min(policy.cap_s, policy.base_s * 2 ** min(failures - 1, 30)))


def read_retry_after(value: str | None, milliseconds: str | None = None) -> float | None:
    """Seconds of a Retry-After header (seconds or an HTTP date) or of `retry-after-ms`; None for none, or for junk."""
    if milliseconds:
        ms = _number(milliseconds)
        if ms is not None:
            return ms / 1000
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
