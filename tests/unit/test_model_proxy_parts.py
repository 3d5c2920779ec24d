"""The gateway's parts on their own: keys, usage, events, retries, adaptation, admission, redaction."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.model_proxy.adapt import Adaptations
from sandboxes.model_proxy.admission import Admission
from sandboxes.model_proxy.config import Retries
from sandboxes.model_proxy.faults import Fault, FaultKind, from_status
from sandboxes.model_proxy.keys import KeyScope, make_key, proof_index, proof_row, read_key
from sandboxes.model_proxy.redaction import RedactingStream, Redactor
from sandboxes.model_proxy.retries import read_retry_after, wait_before_retry
from sandboxes.model_proxy.sse import Splitter
from sandboxes.model_proxy.usage import UNKNOWN, Usage, read_usage

SECRET = b"s" * 32
COUNT = st.integers(0, 10**8)


@given(invocation=COUNT, index=st.integers(-(10**8), 10**8), trial=COUNT, attempt=COUNT)
def test_a_key_says_exactly_what_it_was_made_for(invocation: int, index: int, trial: int, attempt: int) -> None:
    key = make_key(SECRET, "0192b5a0-1111-7222-8333-444455556666", invocation, index, trial, attempt)
    assert read_key(SECRET, key) == KeyScope(invocation, index, trial, attempt)
    assert read_key(b"t" * 32, key) is None


def test_a_key_with_a_changed_number_is_worthless() -> None:
    key = make_key(SECRET, "run-12345678", 1, 2, 3, 4)
    assert key.startswith("bw-12345678-1-2-3-4-")
    for other in (key.replace("-2-", "-9-"), key + "0", key.upper(), " " + key, key.replace("1-2", "1-٢"), ""):
        assert read_key(SECRET, other) is None


def test_proof_rows_and_tasks_never_share_an_index() -> None:
    assert [proof_row(proof_index(row)) for row in range(5)] == list(range(5))
    assert proof_row(-1) is None and proof_row(0) is None


def test_keys_need_only_the_standard_library() -> None:
    code = "import sys; sys.path[:0] = ['.']; import sandboxes.model_proxy.keys"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=20)


def test_the_passthrough_never_loads_litellm() -> None:
    code = "import sys, sandboxes.model_proxy.gateway, sandboxes.model_proxy.passthrough as p; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    loaded = out.stdout.split()
    assert "aiohttp" in loaded and "litellm" not in loaded


@pytest.mark.parametrize("raw", [None, 3, "x", [], {}, {"prompt_tokens": None}, {"prompt_tokens": True}])
def test_usage_that_is_not_there_is_unknown(raw: object) -> None:
    assert read_usage(raw) == UNKNOWN


def test_usage_is_read_from_both_shapes() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 2}}
    assert read_usage({"prompt_tokens": 9, "completion_tokens": 0, **details}) == Usage(9, 0, 1, 2)
    assert read_usage({"input_tokens": 9, "output_tokens": 8}) == Usage(9, 8)
    assert read_usage({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}).cached == 4


@given(st.lists(st.sampled_from(["data: a", "data: b\ndata: c", ": note", "event: x\ndata: {}"])), st.data())
def test_events_come_out_whole_however_the_bytes_are_cut(events: list[str], data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    stream = "".join(event.replace("\n", ending) + ending * 2 for event in events).encode()
    splitter, out, at = Splitter(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, 9))
        out += splitter.feed(stream[at : at + size])
        at += size
    out += splitter.end()
    assert [event.raw.decode() for event in out] == [event + "\n\n" for event in events]
    expected = ["\n".join(x[6:] for x in e.split("\n") if x.startswith("data:")) for e in events]
    assert [event.data.decode() for event in out] == expected


def test_an_event_without_end_is_refused() -> None:
    splitter = Splitter()
    with pytest.raises(Fault):
        for _ in range(20):
            splitter.feed(b"x" * (1 << 20))


POLICY = Retries(max=3, base_s=1.0, cap_s=4.0)


def busy(retry_after: float | None = None) -> Fault:
    return from_status(429, "busy", retry_after=retry_after)


def test_waits_grow_up_to_the_cap_with_full_jitter() -> None:
    for failures, most in ((1, 1.0), (2, 2.0), (3, 4.0)):
        waits = [wait_before_retry(POLICY, failures, busy(), 60) for _ in range(300)]
        assert all(w is not None and 0 <= w <= most for w in waits)
        assert min(w for w in waits if w is not None) < most * 0.2
    assert wait_before_retry(POLICY, 4, busy(), 60) is None


def test_retry_after_is_the_least_wait_and_an_absurd_one_ends_it() -> None:
    wait = wait_before_retry(POLICY, 1, busy(10), 60)
    assert wait is not None and 10 <= wait <= 11
    assert wait_before_retry(POLICY, 1, busy(61), 60) is None
    assert wait_before_retry(POLICY, 1, from_status(400, "no"), 60) is None


def test_retry_after_is_read_in_every_form() -> None:
    assert read_retry_after("2.5") == 2.5
    assert read_retry_after("9", "250") == 0.25
    date = read_retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True))
    assert date is not None and 28 < date <= 30
    assert read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    for junk in (None, "", "soon", "-3", "nan", "inf", "1e999"):
        assert read_retry_after(junk) is None


def blame(message: str, param: str | None = None, status: int = 400) -> Fault:
    return from_status(status, message, param=param)


BLAMED: list[tuple[str, str | None, dict[str, object], dict[str, object]]] = [
    (
        "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
        "max_tokens",
        {"max_tokens": 5},
        {"max_completion_tokens": 5},
    ),
    (
        "Unrecognized request argument supplied: max_completion_tokens",
        None,
        {"max_completion_tokens": 5},
        {"max_tokens": 5},
    ),
    ("Unsupported value: 'temperature' does not support 0.2.", "temperature", {"temperature": 0.2}, {}),
    (
        "`temperature` and `top_p` cannot both be specified for this model.",
        None,
        {"temperature": 0, "top_p": 1},
        {"temperature": 0},
    ),
    ('[{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]', None, {"seed": 1}, {}),
    ("groq does not support parameters: ['stop'], for model=x", None, {"stop": ["\n"]}, {}),
]


@pytest.mark.parametrize(("message", "param", "body", "after"), BLAMED)
def test_a_blamed_parameter_is_bent(
    message: str, param: str | None, body: dict[str, object], after: dict[str, object]
) -> None:
    adapt = Adaptations()
    assert adapt.learn(blame(message, param), body)
    changed = dict(body)
    assert adapt.apply(changed) and changed == after
    assert not adapt.learn(blame(message, param), body)


@pytest.mark.parametrize(
    "fault",
    [
        blame("max_tokens is too large: 999. This model supports at most 4096."),
        blame("temperature must be between 0 and 2"),
        blame("tools is not supported"),
        blame("temperature is not supported", status=500),
        blame("this model's maximum context length is 8192 tokens"),
    ],
)
def test_other_faults_bend_nothing(fault: Fault) -> None:
    assert not Adaptations().learn(fault, {"temperature": 1, "max_tokens": 999, "tools": []})


def test_a_limit_refused_under_both_names_is_dropped() -> None:
    adapt = Adaptations()
    assert adapt.learn(blame("max_tokens is not supported"), {"max_tokens": 5})
    assert adapt.learn(blame("max_completion_tokens is not supported"), {"max_completion_tokens": 5})
    body: dict[str, object] = {"max_tokens": 5}
    assert adapt.apply(body) == ["max_tokens→max_completion_tokens", "-max_completion_tokens"]
    assert body == {}


async def test_admission_is_first_come_first_served_and_survives_a_caller_that_leaves() -> None:
    admission = Admission(1)
    entered = await admission.enter()
    order: list[int] = []

    async def come(n: int) -> None:
        place = await admission.enter()
        order.append(n)
        admission.leave(place)

    tasks = [asyncio.ensure_future(come(n)) for n in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    admission.leave(entered)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2, 3] and admission.in_flight == 0


async def test_a_rate_limit_halves_the_calls_once_per_round_and_success_brings_them_back() -> None:
    admission = Admission(8)
    entered = [await admission.enter() for _ in range(8)]
    for place in entered:
        admission.leave(place, busy())
    assert admission.allowed == 4.0
    for _ in range(100):
        admission.leave(await admission.enter())
    assert admission.allowed == 8.0 and admission.in_flight == 0


def test_secrets_are_replaced_even_when_split_over_two_writes() -> None:
    redactor = Redactor(["sk-secret-1", "sk-secret-1-longer", "no"])
    assert redactor.text("a sk-secret-1-longer b sk-secret-1 no") == "a [redacted] b [redacted] no"
    assert redactor.bytes(b"x sk-secret-1") == b"x [redacted]"
    out = io.StringIO()
    stream = RedactingStream(out, redactor)
    stream.write("trace: sk-sec")
    stream.write("ret-1\nrest")
    stream.close()
    assert "sk-secret" not in out.getvalue() and out.getvalue().endswith("rest")


def test_a_fault_is_an_openai_error() -> None:
    fault = from_status(503, "down\nfor  now")
    assert orjson.loads(fault.body()) == {
        "error": {"message": "down for now", "type": "upstream_error", "param": None, "code": "upstream_error"}
    }
    assert (fault.kind, fault.status, fault.upstream_status) == (FaultKind.UPSTREAM_ERROR, 502, 503)
