"""One HTTP request of a scorer, from its fake key to the last byte, with its line on record in between."""

from __future__ import annotations

import asyncio
import itertools
import time
import traceback
from typing import Any

import orjson
from aiohttp import web

from sandboxes.model_proxy.adapt import Adaptations
from sandboxes.model_proxy.admission import Admission
from sandboxes.model_proxy.answers import Served, Stream, Upstream
from sandboxes.model_proxy.calls import PATHS, Call, CallKind, read_call, refused
from sandboxes.model_proxy.ceilings import Ceilings, Hold
from sandboxes.model_proxy.config import GatewayConfig
from sandboxes.model_proxy.faults import Fault, FaultKind
from sandboxes.model_proxy.keys import KeyScope, read_key
from sandboxes.model_proxy.prices import amount, find_price
from sandboxes.model_proxy.records import Records
from sandboxes.model_proxy.redaction import Redactor
from sandboxes.model_proxy.retries import wait_before_retry

REQUEST_LIMIT = 64 << 20
UNKNOWN_KEYS_RECORDED = 100  # a scorer that guesses keys may not flood the record
# How long a call is kept that the run's ceiling stops: the worker halts the run meanwhile, and no task is blamed.
KEPT_S = 20.0
NO_CLIENT_RETRY = {"x-should-retry": "false"}  # OpenAI's clients retry on their own: retries are made here, once


class Service:
    """Answers HTTP requests on every listener of the gateway."""

    def __init__(
        self, config: GatewayConfig, upstream: Upstream, records: Records, redactor: Redactor, adapt: Adaptations
    ) -> None:
        self._config = config
        self._upstream = upstream
        self._records = records
        self._redactor = redactor
        self._adapt = adapt
        self._price = find_price(config.route)
        self._ceilings = Ceilings(config.limits, self._price, config.route.params) if config.limits else None
        self._admission = Admission(config.max_concurrency, self._ceilings)
        self._told = False
        self._numbers = itertools.count(1)
        self._unknown_keys = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """aiohttp's handler."""
        kind = PATHS.get(request.path)
        key: KeyScope | None = None
        try:
            key = read_key(self._config.secret, _token(request))
            if key is None:
                raise Fault(FaultKind.INVALID_KEY, "This key is not one of this run.", status=401)
            if kind is None or request.method != "POST":
                return self._elsewhere(request)
            call = read_call(kind, key, await request.read())
        except (Fault, web.HTTPRequestEntityTooLarge) as e:
            fault = e if isinstance(e, Fault) else refused(f"The request is longer than {REQUEST_LIMIT >> 20} MiB.")
            if kind is not None and (key is not None or self._unknown_keys < UNKNOWN_KEYS_RECORDED):
                self._unknown_keys += key is None
                await self._record_refusal(key, fault)
            return _error(fault)
        began = time.monotonic()
        try:
            return await self._answer(request, call)
        except Fault as e:
            return _error(e)
        finally:
            if not call.recorded:  # cancelled: the gateway stops while the provider may be charging
                stopped = Fault(
                    FaultKind.UPSTREAM_ERROR, "The gateway stopped before the answer was there.", status=503
                )
                self._record(call, Served(provider=self._upstream.provider), began, fault=stopped)

    async def _answer(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        failures = 0
        while True:
            queued = time.monotonic()
            entered = await self._admission.enter()
            fault: Fault | None = None
            hold: Hold | None = None
            started = queued
            try:
                hold = await self._admission.afford(call)
                started = time.monotonic()
                call.waited_s += started - queued
                call.attempts += 1
                outcome = await self._upstream.attempt(call)
                if isinstance(outcome, Stream):
                    settled, hold = hold, None  # by the pump, once the stream has ended
                    return await self._pump(request, call, outcome, started, settled)
                passed, hold = (
                    self._admission.settle(call, hold, outcome.served.usage, outcome.served.finish_reason),
                    None,
                )
                await self._record(call, outcome.served, started, fault=passed)
                if passed is None:
                    return web.Response(body=outcome.body, content_type="application/json")
                return await self._stop(call, passed)
            except Fault as e:
                fault = e
            except Exception as e:
                traceback.print_exc()
                fault = Fault(FaultKind.UPSTREAM_ERROR, f"The gateway failed: {type(e).__name__}", status=502)
            finally:
                self._admission.leave(entered, fault)
                self._admission.release(hold, fault)
            if fault.kind is FaultKind.CEILING:
                await self._record(call, Served(provider=self._upstream.provider), started, fault=fault)
                return await self._stop(call, fault)
            adapted = fault.sent is not None and self._adapt.learn(fault, fault.sent)
            wait: float | None = 0.0
            if not adapted:
                failures += 1
                wait = wait_before_retry(
                    self._config.retries, failures, fault, max(self._config.timeout_s, self._config.retries.cap_s)
                )
            gone = request.transport is None or request.transport.is_closing()
            if wait is None or gone:
                await self._record(call, Served(provider=self._upstream.provider), started, fault=fault)
                raise fault
            self._records.put(self._retry_line(call, fault, started, wait, adapted))
            call.waited_s += wait
            await asyncio.sleep(wait)

    async def _stop(self, call: Call, fault: Fault) -> web.Response:
        """The answer to a call that a ceiling stops. Where it is the run's, the worker is told first and given time to
        halt: what a task may not do for want of the run's money is no fault of the task."""
        if self._ceilings is not None and self._ceilings.passed is not None:
            if not self._told:
                self._told = True
                await self._records.put({"t": "ceiling", "limit": self._ceilings.passed, "message": fault.message})
            if call.key.index >= 0:
                await asyncio.sleep(KEPT_S)
        return _error(fault)

    async def _pump(
        self, request: web.BaseRequest, call: Call, stream: Stream, started: float, hold: Hold | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        held, first, gone = b"", None, False
        fault: Fault | None = None
        try:
            await response.prepare(request)
        except ConnectionError:
            gone = True
        try:
            async for piece in stream.pieces:
                if first is None and piece.content:
                    first = time.monotonic()
                if piece.last:
                    held += piece.data
                elif not gone:
                    try:
                        await response.write(piece.data)
                    except ConnectionError:
                        gone = True  # read on: what was used must be known
        except Fault as e:
            fault = e
            held = b"data: " + e.body() + b"\n\n"
        finally:
            # A stream that breaks off may be charged in full: without usage it counts as its worst case.
            passed = self._admission.settle(call, hold, stream.served.usage, stream.served.finish_reason)
        if passed is not None and fault is None:
            fault, held = passed, b"data: " + passed.body() + b"\n\n"
        await self._record(call, stream.served, started, first=first, fault=fault)
        if not gone:
            try:
                await response.write_eof(held)
            except ConnectionError:
                pass
        return response

    def _elsewhere(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in ("/v1/models", "/models") and request.method == "GET":
            model = {
                "id": self._config.route.model,
                "object": "model",
                "created": 0,
                "owned_by": self._upstream.provider,
            }
            return web.Response(body=orjson.dumps({"object": "list", "data": [model]}), content_type="application/json")
        message = f"There is no {request.method} {request.path[:200]} here."
        return _error(Fault(FaultKind.PARAMETER_REFUSED, message, status=404))

    def _record(
        self, call: Call, served: Served, started: float, *, first: float | None = None, fault: Fault | None = None
    ) -> asyncio.Future[None]:
        call.recorded = True
        cost = None
        if self._price is not None and served.usage.input is not None:
            cost = self._price.cost(served.usage, embedding=call.kind is CallKind.EMBEDDINGS)
        source = self._price.source if self._price is not None else None
        return self._records.put(
            {
                "t": "call",
                "key": _key(call.key),
                "n": next(self._numbers),
                "kind": call.kind,
                "status": 200 if fault is None else fault.status,
                "model_requested": call.model_requested,
                "model_served": served.model,
                "provider": served.provider,
                "usage": served.usage.record(),
                "cost_usd": amount(cost),
                "price_source": "control" if self._config.route.kind == "control" else source,
                "latency_ms": round((time.monotonic() - started) * 1000, 3),
                "wait_ms": round(call.waited_s * 1000, 3),
                "ttft_ms": None if first is None else round((first - started) * 1000, 3),
                "attempts": call.attempts,
                "adapted": call.adapted,
                "stream": call.stream,
                "finish_reason": served.finish_reason,
                "error": None if fault is None else fault.record(),
            }
        )

    def _record_refusal(self, key: KeyScope | None, fault: Fault) -> asyncio.Future[None]:
        return self._records.put(
            {
                "t": "call",
                "key": None if key is None else _key(key),
                "n": next(self._numbers),
                "status": fault.status,
                "model_requested": None,
                "model_served": None,
                "provider": None,
                "usage": {"input": None, "output": None, "cached": None, "reasoning": None},
                "cost_usd": None,
                "price_source": None,
                "latency_ms": 0.0,
                "wait_ms": 0.0,
                "ttft_ms": None,
                "attempts": 0,
                "adapted": [],
                "stream": False,
                "finish_reason": None,
                "error": {**fault.record(), "message": self._redactor.text(fault.message)},
            }
        )

    def _retry_line(self, call: Call, fault: Fault, started: float, wait: float, adapted: bool) -> dict[str, Any]:
        return {
            "t": "retry",
            "key": _key(call.key),
            "attempt": call.attempts,
            "latency_ms": round((time.monotonic() - started) * 1000, 3),
            "wait_ms": round(wait * 1000, 3),
            "adapting": adapted,
            "error": fault.record(),
        }


def _token(request: web.BaseRequest) -> str:
    header = request.headers.get("Authorization", "")
    if header[:7].lower() == "bearer ":
        return header[7:].strip()
    return request.headers.get("x-api-key", "") or request.headers.get("api-key", "")


def _key(key: KeyScope) -> dict[str, int]:
    return {"invocation": key.invocation, "index": key.index, "trial": key.trial, "attempt": key.attempt}


def _error(fault: Fault) -> web.Response:
    return web.Response(
        body=fault.body(), status=fault.status, content_type="application/json", headers=NO_CLIENT_RETRY
    )
