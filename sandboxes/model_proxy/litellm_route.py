"""Every provider that does not speak OpenAI's protocol, through LiteLLM's SDK. One attempt, no hidden retries."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from sandboxes.model_proxy.adapt import Adaptations
from sandboxes.model_proxy.answers import (
    Answer,
    Piece,
    Served,
    Stream,
    note,
    read_answer,
    response_finish,
    unfinished,
    word,
)
from sandboxes.model_proxy.calls import Call, CallKind
from sandboxes.model_proxy.config import Route
from sandboxes.model_proxy.faults import Fault, FaultKind, from_status, malformed
from sandboxes.model_proxy.lenient import dumps
from sandboxes.model_proxy.passthrough import params_for
from sandboxes.model_proxy.redaction import Redactor
from sandboxes.model_proxy.retries import read_retry_after
from sandboxes.model_proxy.usage import UNKNOWN, Usage

_NO_JSON = re.compile(r"Unable to get json response|Empty or invalid response from LLM endpoint", re.IGNORECASE)


class LiteLLM:
    """Calls `litellm.acompletion` and its siblings."""

    def __init__(self, route: Route, timeout_s: float, redactor: Redactor, adapt: Adaptations) -> None:
        self._route = route
        self._timeout = timeout_s
        self._redactor = redactor
        self._adapt = adapt
        self._params = {kind: params_for(kind, dict(route.params)) for kind in CallKind}
        self._litellm: Any = None
        self.provider = route.model.partition("/")[0] if "/" in route.model else "litellm"

    async def start(self) -> None:
        """Imports LiteLLM, which takes seconds: nothing may do so before."""
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # without it the import asks the network for prices
        import litellm

        litellm.suppress_debug_info = True  # it prints advice to stdout, which carries the records
        litellm.telemetry = False
        litellm.drop_params = False  # a dropped parameter must be on record; adapt.py does it
        litellm.aiohttp_trust_env = True  # the box has no way out but the proxy in its environment
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._litellm = litellm
        try:
            _, self.provider, _, _ = litellm.get_llm_provider(self._route.model)
        except Exception:  # an unknown name fails with its own words at the first call
            return

    async def close(self) -> None:
        """Its clients end with the process."""

    async def attempt(self, call: Call) -> Answer | Stream:
        """One request. Raises Fault."""
        body = {**call.body, **self._params[call.kind]}
        if call.stream and call.kind is not CallKind.RESPONSES:
            body["stream_options"] = {"include_usage": True}
        call.adapted = self._adapt.apply(body)
        try:
            answer = await self._call(call, body)
            served = Served(provider=self.provider)
            if call.stream:
                pieces = self._pieces(call, answer, served)
                first = await anext(pieces)
                return Stream(_chain(first, pieces), served)
            document = _plain(answer)
            read_answer(call.kind, document, served)
            served.usage = _without_made_up(served.usage, call.kind)
            if served.usage.input is None or (served.usage.output is None and call.kind is not CallKind.EMBEDDINGS):
                document["usage"] = None
            return Answer(self._redactor.bytes(dumps(document)), served)
        except Fault as fault:
            fault.sent = body
            raise
        except Exception as e:
            translated = self._fault(e)
            translated.sent = body
            raise translated from None

    async def _call(self, call: Call, body: dict[str, Any]) -> Any:
        route = self._route
        doors = {
            CallKind.CHAT: self._litellm.acompletion,
            CallKind.COMPLETIONS: self._litellm.atext_completion,
            CallKind.RESPONSES: self._litellm.aresponses,
            CallKind.EMBEDDINGS: self._litellm.aembedding,
        }
        more: dict[str, Any] = dict(route.litellm_params)
        if route.api_key:
            more["api_key"] = route.api_key
        if route.base_url:
            more["api_base"] = route.base_url
        if route.headers:
            more["extra_headers"] = dict(route.headers)
        if call.stream:
            more["stream"] = True
        return await doors[call.kind](
            model=route.model, **body, **more, timeout=self._timeout, num_retries=0, max_retries=0
        )

    async def _pieces(self, call: Call, chunks: Any, served: Served) -> AsyncIterator[Piece]:
        try:
            async for chunk in chunks:
                document = _plain(chunk)
                if call.kind is CallKind.RESPONSES:
                    yield self._response_event(document, served)
                elif (piece := self._chunk(call, document, served)) is not None:
                    yield piece
        except Fault:
            raise
        except Exception as e:
            raise self._fault(e) from None
        if not _reported_usage(chunks):
            served.usage = UNKNOWN
        if call.kind is not CallKind.RESPONSES:
            if served.finish_reason is None:
                raise unfinished()
            yield Piece(b"data: [DONE]\n\n", content=False, last=True)

    def _chunk(self, call: Call, document: dict[str, Any], served: Served) -> Piece | None:
        note(document, served)
        choices = document.get("choices") or []
        if choices:
            served.finish_reason = word(choices[0].get("finish_reason")) or served.finish_reason
        if document.get("usage") is not None and not call.wants_usage:
            # Some providers put usage in a chunk that also holds text: only the usage goes.
            del document["usage"]
            if not choices:
                return None
        return Piece(self._redactor.bytes(b"data: " + dumps(document) + b"\n\n"), bool(choices))

    def _response_event(self, document: dict[str, Any], served: Served) -> Piece:
        kind = str(document.get("type") or "")
        inner = document.get("response")
        ended = kind in ("response.completed", "response.incomplete", "response.failed")
        if isinstance(inner, dict):
            note(inner, served)
            if ended:
                served.finish_reason = response_finish(inner)
        data = b"event: " + kind.encode() + b"\ndata: " + dumps(document) + b"\n\n"
        return Piece(self._redactor.bytes(data), kind.endswith(".delta"), ended)

    def _fault(self, error: Exception) -> Fault:
        message = self._redactor.text(str(getattr(error, "message", None) or error) or type(error).__name__)
        name = type(error).__name__
        status = getattr(error, "status_code", None)
        response = getattr(error, "response", None)
        headers = getattr(response, "headers", None) or getattr(error, "litellm_response_headers", None) or {}
        if name == "Timeout" or isinstance(error, TimeoutError):
            return Fault(FaultKind.TIMEOUT, message, status=504, retryable=True)
        if _NO_JSON.search(message):
            return malformed(f"The provider's answer is not JSON. {message[:300]}")
        if name == "APIConnectionError" or "Connection error" in message:
            return Fault(FaultKind.UPSTREAM_UNREACHABLE, message, status=502, retryable=True)
        if name in ("TypeError", "ImportError", "ModuleNotFoundError") or type(status) is not int:
            return Fault(FaultKind.UPSTREAM_ERROR, f"LiteLLM: {name}: {message}", status=502)
        retry_after = read_retry_after(headers.get("retry-after"), headers.get("retry-after-ms"))
        return from_status(status, message, retry_after=retry_after, code=getattr(error, "code", None))


def _without_made_up(usage: Usage, kind: CallKind) -> Usage:
    """LiteLLM writes 0 where a provider said nothing. No prompt has 0 tokens: such an answer is one without usage."""
    if not usage.input:
        return UNKNOWN
    return usage if usage.output or kind is CallKind.EMBEDDINGS else replace(usage, output=None)


def _reported_usage(chunks: Any) -> bool:
    """Whether the provider itself sent usage: LiteLLM fills a gap with an estimate that looks the same."""
    seen = getattr(chunks, "chunks", None)
    return not isinstance(seen, list) or any(getattr(chunk, "usage", None) is not None for chunk in seen)


def _plain(answer: Any) -> dict[str, Any]:
    if isinstance(answer, dict):
        return answer
    document = answer.model_dump(mode="json", exclude_none=True)
    return document if isinstance(document, dict) else {}


async def _chain(first: Piece, rest: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
    yield first
    async for piece in rest:
        yield piece
