"""The endpoint route: an OpenAI-compatible server, spoken to directly. The hot path: one parse in, one parse out."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from sandboxes.model_proxy.adapt import Adaptations
from sandboxes.model_proxy.answers import (
    Answer,
    Piece,
    Served,
    Stream,
    note,
    raise_error_inside,
    read_answer,
    response_finish,
    unfinished,
    word,
)
from sandboxes.model_proxy.calls import Call, CallKind
from sandboxes.model_proxy.config import Route
from sandboxes.model_proxy.faults import Fault, FaultKind, from_status, malformed
from sandboxes.model_proxy.hub import DialRefused
from sandboxes.model_proxy.lenient import dumps, loads
from sandboxes.model_proxy.redaction import Redactor
from sandboxes.model_proxy.retries import read_retry_after
from sandboxes.model_proxy.sse import Event, Splitter

ANSWER_LIMIT = 64 << 20
ERROR_LIMIT = 1 << 20
DONE = b"[DONE]"
# Attach speaks chat completions; the other doors have names of their own, or no sampling at all.
_PARAM_NAMES = {
    CallKind.COMPLETIONS: {"max_completion_tokens": "max_tokens"},
    CallKind.RESPONSES: {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"},
}
_RESPONSE_ENDS = {"response.completed", "response.incomplete", "response.failed"}


def params_for(kind: CallKind, params: dict[str, Any]) -> dict[str, Any]:
    """The route's sampling parameters under the names of that door."""
    if kind is CallKind.EMBEDDINGS:
        return {}
    names = _PARAM_NAMES.get(kind, {})
    return {names.get(k, k): v for k, v in params.items()}


class Passthrough:
    """Sends calls on to `route.base_url`, keeping connections alive."""

    def __init__(
        self, route: Route, connector: aiohttp.BaseConnector, timeout_s: float, redactor: Redactor, adapt: Adaptations
    ) -> None:
        self._route = route
        self._connector = connector
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(20.0, timeout_s))
        self._redactor = redactor
        self._adapt = adapt
        self._params = {kind: params_for(kind, dict(route.params)) for kind in CallKind}
        self._urls = {kind: f"{route.base_url}/{kind.value}" for kind in CallKind}
        self._session: aiohttp.ClientSession | None = None
        self.provider = urlsplit(route.base_url or "").hostname or "endpoint"

    async def start(self) -> None:
        """Opens the session; connections come with the calls."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "benchwright"}
        if self._route.api_key:
            headers["Authorization"] = f"Bearer {self._route.api_key}"
        headers |= self._route.headers
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=self._timeout,
        )

    async def close(self) -> None:
        """Closes every connection."""
        if self._session is not None:
            await self._session.close()

    async def attempt(self, call: Call) -> Answer | Stream:
        """One request. Raises Fault."""
        body = self._body(call)
        try:
            return await self._send(call, orjson.dumps(body))
        except Fault as fault:
            fault.sent = body
            raise
        except DialRefused as e:
            raise Fault(FaultKind.UPSTREAM_UNREACHABLE, e.detail, status=502, retryable=e.reason != "blocked") from None
        except TimeoutError:  # before OSError and ClientError: aiohttp's timeouts are both
            message = f"The provider did not answer within {self._timeout.total:g} s."
            raise Fault(FaultKind.TIMEOUT, message, status=504, retryable=True) from None
        except aiohttp.ClientConnectorCertificateError as e:
            message = f"The provider's certificate is not valid: {e.certificate_error}"
            raise Fault(FaultKind.UPSTREAM_UNREACHABLE, message, status=502) from None
        except aiohttp.ClientConnectorError as e:
            message = f"No connection to the provider: {e.os_error.strerror or e.os_error}"
            raise Fault(FaultKind.UPSTREAM_UNREACHABLE, message, status=502, retryable=True) from None
        except aiohttp.ClientError as e:
            raise _cut(e) from None
        except (OSError, ssl.SSLError) as e:
            message = f"No connection to the provider: {e.strerror or e}"
            raise Fault(FaultKind.UPSTREAM_UNREACHABLE, message, status=502, retryable=True) from None

    def _body(self, call: Call) -> dict[str, Any]:
        body = {"model": self._route.model, **call.body, **self._params[call.kind]}
        if call.stream:
            body["stream"] = True
            if call.kind is not CallKind.RESPONSES:
                body["stream_options"] = {"include_usage": True}
        call.adapted = self._adapt.apply(body)
        return body

    async def _send(self, call: Call, data: bytes) -> Answer | Stream:
        assert self._session is not None
        response = await self._session.post(self._urls[call.kind], data=data, allow_redirects=False)
        streaming = False
        try:
            if response.status != 200:
                raise await self._failure(response)
            if call.stream:
                stream = await self._stream(call, response)
                streaming = True
                return stream
            raw = await _read(response, ANSWER_LIMIT)
        finally:
            if not streaming:
                response.release()
        return self._answer(call, raw, response.content_type)

    def _answer(self, call: Call, raw: bytes, content_type: str) -> Answer:
        try:
            document, body = loads(raw)
        except ValueError:
            raise malformed(self._redactor.text(_not_json(raw, content_type, 200)), status=200) from None
        served = Served(provider=self.provider)
        read_answer(call.kind, document, served)
        return Answer(self._redactor.bytes(body), served)

    async def _failure(self, response: aiohttp.ClientResponse) -> Fault:
        status = response.status
        retry_after = read_retry_after(response.headers.get("Retry-After"), response.headers.get("retry-after-ms"))
        if 300 <= status < 400:
            return malformed(f"The provider redirects (HTTP {status}); set the address it redirects to.", status=status)
        try:
            raw = await _read(response, ERROR_LIMIT)
        except (Fault, aiohttp.ClientError, TimeoutError, OSError):
            raw = b""
        try:
            message, code, param = _error_text(loads(raw)[0])
        except ValueError:
            message, code, param = _not_json(raw, response.content_type, status), None, None
        message = self._redactor.text(message or f"The provider answered HTTP {status}.")
        if 200 < status < 300:
            return malformed(f"The provider answered HTTP {status}: {message}", status=status)
        return from_status(status, message, retry_after=retry_after, code=code, param=param)

    async def _stream(self, call: Call, response: aiohttp.ClientResponse) -> Stream:
        if "json" in response.content_type or "html" in response.content_type:
            raw = await _read(response, ANSWER_LIMIT)
            response.release()
            self._answer(call, raw, response.content_type)  # raises what is wrong with it, if it says so itself
            raise malformed("The provider answered in one piece although a stream was asked for.", status=200)
        served = Served(provider=self.provider)
        pieces = self._pieces(call, response, served)
        first = await anext(pieces, None)
        if first is None:
            raise Fault(FaultKind.UPSTREAM_ERROR, "The provider's stream is empty.", status=502, retryable=True)
        return Stream(_chain(first, pieces), served)

    async def _pieces(self, call: Call, response: aiohttp.ClientResponse, served: Served) -> AsyncIterator[Piece]:
        reader = _responses_event if call.kind is CallKind.RESPONSES else _chunk_event
        splitter = Splitter()
        ended = False
        try:
            async for chunk in response.content.iter_any():
                for piece in _gather(splitter.feed(chunk), reader, call, served, self._redactor):
                    ended = ended or piece.last
                    yield piece
            for piece in _gather(splitter.end(), reader, call, served, self._redactor):
                ended = ended or piece.last
                yield piece
        except (aiohttp.ClientError, OSError) as e:
            if isinstance(e, TimeoutError):
                message = f"The provider's stream did not end within {self._timeout.total:g} s."
                raise Fault(FaultKind.TIMEOUT, message, status=504, retryable=True) from None
            if not ended:
                raise _cut(e) from None
        finally:
            if ended:
                response.release()
            else:
                response.close()
        if not ended:
            if served.finish_reason is None or call.kind is CallKind.RESPONSES:
                raise unfinished()
            yield Piece(b"data: [DONE]\n\n", content=False, last=True)


def _gather(events: list[Event], reader: Any, call: Call, served: Served, redactor: Redactor) -> list[Piece]:
    """One piece for what can go at once, one more for what must wait for the record."""
    now: list[bytes] = []
    last: list[bytes] = []
    content = False
    for event in events:
        if last:
            last.append(event.raw)
            continue
        verdict = reader(event, call, served)
        if verdict == "last":
            last.append(event.raw)
        elif verdict != "drop":
            now.append(event.raw)
            content = content or verdict == "content"
    out = [Piece(redactor.bytes(b"".join(now)), content)] if now else []
    return [*out, Piece(redactor.bytes(b"".join(last)), content=False, last=True)] if last else out


def _chunk_event(event: Event, call: Call, served: Served) -> str:
    if not event.data:
        return "comment"
    if event.data == DONE:
        return "last"
    document = _load(event)
    raise_error_inside(document, 200)
    note(document, served)
    choices = document.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        served.finish_reason = word(choices[0].get("finish_reason")) or served.finish_reason
        return "content"
    # The chunk that only carries usage is there because the gateway asked for it.
    return "other" if call.wants_usage or document.get("usage") is None else "drop"


def _responses_event(event: Event, call: Call, served: Served) -> str:
    if not event.data:
        return "comment"
    if event.data == DONE:
        return "drop"
    document = _load(event)
    kind = document.get("type")
    if kind == "error" or kind == "response.failed":
        inner = document.get("response")
        raise_error_inside({"error": (inner if isinstance(inner, dict) else document).get("error") or document}, 200)
    inner = document.get("response")
    if isinstance(inner, dict):
        note(inner, served)
    if kind in _RESPONSE_ENDS and isinstance(inner, dict):
        served.finish_reason = response_finish(inner)
        return "last"
    return "content" if isinstance(kind, str) and kind.endswith(".delta") else "other"


def _load(event: Event) -> dict[str, Any]:
    try:
        document, _ = loads(event.data)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise malformed("The provider's stream holds an event that is not JSON.", status=200)
    return document


async def _chain(first: Piece, rest: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
    yield first
    async for piece in rest:
        yield piece


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            response.close()
            raise malformed(f"The provider's answer is longer than {limit >> 20} MiB.", status=response.status)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _cut(error: Exception) -> Fault:
    message = "The provider cut the connection before the answer was complete."
    if isinstance(error, aiohttp.ClientResponseError):
        return malformed(f"The provider does not speak HTTP: {error.message}")
    return Fault(FaultKind.UPSTREAM_ERROR, message, status=502, retryable=True)


def _error_text(document: Any) -> tuple[str, object, str | None]:
    """Message, code and parameter of an error answer; providers agree on little."""
    if not isinstance(document, dict):
        return str(document)[:2000], None, None
    error = document.get("error", document)
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail") or dumps(error).decode()
        param = error.get("param")
        return str(message), error.get("code") or error.get("type"), param if isinstance(param, str) else None
    return str(error), None, None


def _not_json(raw: bytes, content_type: str, status: int) -> str:
    text = raw[:4000].decode("utf-8", "replace")
    if "html" in content_type or text.lstrip()[:15].lower().startswith(("<!doctype", "<html")):
        title = re.search(r"<title[^>]*>([^<]{1,200})", text, re.IGNORECASE)
        shown = f": {title[1].strip()}" if title else ""
        return f"The provider answered with a web page (HTTP {status}){shown}."
    if not raw:
        return f"The provider answered HTTP {status} without a body."
    return f"The provider's answer (HTTP {status}) is not JSON: {text[:200]}"
