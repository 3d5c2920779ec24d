"""A provider that does what it is told: a real HTTP server speaking OpenAI's protocol, and enough of Anthropic's.

    with FakeProvider(answers={"2 + 2?": "4"}, key="sk-real") as provider:
        ...provider.base_url...
        provider.requests

Answers are looked up by the last user message, then by the whole prompt (all messages, joined by newlines), then by
"*". A list gives the n-th sample of a prompt; a callable gets the request. `script` holds what goes wrong, one entry
per request, in order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answers = Mapping[str, Any] | Callable[["Request"], Any] | str
HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@dataclass(frozen=True)
class Request:
    """One request as the provider saw it. `sample`: how often this prompt was asked before. `at`: monotonic seconds."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    prompt: str
    last_user: str
    sample: int
    at: float


@dataclass(frozen=True)
class Reply:
    """A successful answer. `usage=None` leaves usage out."""

    text: str | None = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()  # {"name": …, "arguments": {…} | str}
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    model: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wrong:
    """Something other than an answer.

    `kind`: status (an error in OpenAI's shape), raw (these bytes, that content type), hang, cut (connection closed
    before any byte), truncated (half of a body), cut_stream (a stream that stops half-way).
    """

    kind: str = "status"
    status: int = 500
    message: str = "The server had an error."
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"


def rate_limited(retry_after: str | None = None) -> Wrong:
    """A 429, with Retry-After when given."""
    headers = {"Retry-After": retry_after} if retry_after is not None else {}
    return Wrong(status=429, message="Rate limit reached.", code="rate_limit_exceeded", headers=headers)


def unsupported(param: str, message: str | None = None) -> Wrong:
    """A 400 that blames one parameter, in OpenAI's words."""
    text = message or f"Unsupported parameter: '{param}' is not supported with this model."
    return Wrong(status=400, message=text, code="unsupported_parameter", param=param)


def html_page(status: int = 502) -> Wrong:
    """A proxy's error page."""
    return Wrong(kind="raw", status=status, body=HTML, content_type="text/html")


class FakeProvider:
    """The server, in a thread of its own. `max_in_flight` is the largest number of requests seen at once."""

    def __init__(
        self,
        answers: Answers = "ok",
        *,
        key: str | None = None,
        models: Sequence[str] | None = None,
        latency_s: float = 0.0,
        script: Sequence[Wrong | Reply | None] = (),
        refuses: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answers = answers
        self.key = key
        self.models = models
        self.latency_s = latency_s
        self.script = list(script)
        self.refuses = refuses  # parameters that get a 400 whenever they are sent
        self.requests: list[Request] = []
        self.max_in_flight = 0
        self.dropped = 0  # connections the caller gave up while an answer was due
        self._in_flight = 0
        self._seen: Counter[str] = Counter()
        self._address = (host, port)
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()

    @property
    def url(self) -> str:
        """The root, without /v1."""
        return f"{'https' if self._tls else 'http'}://{self._address[0]}:{self._address[1]}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client calls its base URL."""
        return f"{self.url}/v1"

    def __enter__(self) -> FakeProvider:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True, name="fake-provider")
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the fake provider did not start")
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = web.Server(self._handle, request_factory=_factory, access_log=None)
        listener = await self._loop.create_server(server, *self._address, backlog=1024, ssl=self._tls)
        self._address = listener.sockets[0].getsockname()[:2]
        self._ready.set()
        await self._stop.wait()
        listener.close()
        await server.shutdown(0.1)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            return await self._respond(request)
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        finally:
            self._in_flight -= 1

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET" and request.path == "/stats":
            return web.json_response({"calls": len(self.requests)})
        if request.method == "GET" and request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": m} for m in self.models or ["fake-1"]]})
        seen = self._note(request, json.loads(await request.read() or b"{}"))
        wrong: Wrong | Reply | None = self.script.pop(0) if self.script else None
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        anthropic = request.path == "/v1/messages"
        if isinstance(wrong, Wrong) and wrong.kind != "cut_stream":
            return await self._fail(request, wrong, anthropic)
        refusal = self._refusal(seen)
        if refusal is not None:
            return await self._fail(request, refusal, anthropic)
        reply = wrong if isinstance(wrong, Reply) else self._reply(seen)
        if isinstance(reply, Wrong):
            return await self._fail(request, reply, anthropic)
        cut = isinstance(wrong, Wrong)
        if anthropic:
            events = _anthropic_events(seen, reply) if seen.body.get("stream") else None
            whole = _anthropic_message(seen, reply)
        elif request.path == "/v1/responses":
            events = _response_events(seen, reply) if seen.body.get("stream") else None
            whole = _response(seen, reply)
        elif request.path == "/v1/embeddings":
            items = seen.body["input"] if isinstance(seen.body["input"], list) else [seen.body["input"]]
            data = [{"object": "embedding", "index": n, "embedding": [0.5, -0.5]} for n in range(len(items))]
            usage = {"prompt_tokens": 3 * len(items), "total_tokens": 3 * len(items)}
            events, whole = None, {"object": "list", "model": seen.body.get("model"), "data": data, "usage": usage}
        elif request.path in ("/v1/chat/completions", "/v1/completions"):
            chat = request.path == "/v1/chat/completions"
            events = _chunks(seen, reply, chat) if seen.body.get("stream") else None
            whole = _completion(seen, reply, chat)
        else:
            return await self._fail(request, Wrong(status=404, message=f"Unknown path {request.path}"), anthropic)
        return web.json_response(whole) if events is None else await _send_events(request, events, cut)

    def _note(self, request: web.BaseRequest, body: dict[str, Any]) -> Request:
        messages = body.get("messages") or body.get("prompt") or body.get("input") or []
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        said = [(m.get("role"), _text(m.get("content"))) for m in messages if isinstance(m, dict)]
        prompt = "\n".join(text for _, text in said)
        last = next((text for role, text in reversed(said) if role == "user"), "")
        seen = Request(request.path, dict(request.headers), body, prompt, last, self._seen[prompt], time.monotonic())
        self._seen[prompt] += 1
        self.requests.append(seen)
        return seen

    def _refusal(self, seen: Request) -> Wrong | None:
        sent = seen.headers.get("Authorization", "").removeprefix("Bearer ") or seen.headers.get("x-api-key", "")
        if self.key is not None and sent != self.key:
            return Wrong(status=401, message=f"Incorrect API key provided: {sent}", code="invalid_api_key")
        model = seen.body.get("model")
        if self.models is not None and model not in self.models:
            return Wrong(status=404, message=f"The model `{model}` does not exist", code="model_not_found")
        for name in self.refuses:
            if name in seen.body:
                return unsupported(name)
        return None

    def _reply(self, seen: Request) -> Reply | Wrong:
        found: Any = self.answers
        if callable(found):
            found = found(seen)
        elif isinstance(found, Mapping):
            found = found.get(seen.last_user, found.get(seen.prompt, found.get("*", "I do not know.")))
        if isinstance(found, list):
            found = found[min(seen.sample, len(found) - 1)]
        return found if isinstance(found, (Reply, Wrong)) else Reply(str(found))

    async def _fail(self, request: web.BaseRequest, wrong: Wrong, anthropic: bool) -> web.StreamResponse:
        if wrong.kind == "hang":
            await asyncio.sleep(3600)
        if wrong.kind in ("cut", "truncated"):
            if wrong.kind == "truncated" and request.transport is not None:
                request.transport.write(
                    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{"id": "x", "cho'
                )
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        if wrong.kind == "raw":
            headers = dict(wrong.headers)
            return web.Response(body=wrong.body, status=wrong.status, content_type=wrong.content_type, headers=headers)
        error = {"message": wrong.message, "type": "invalid_request_error", "param": wrong.param, "code": wrong.code}
        document: dict[str, Any] = {"error": error}
        if anthropic:
            document = {"type": "error", "error": {"type": "api_error", "message": wrong.message}}
        return web.json_response(document, status=wrong.status, headers=dict(wrong.headers))


def _factory(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=64 << 20)


async def _send_events(request: web.BaseRequest, events: list[str], cut: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        for n, event in enumerate(events):
            if cut and n == len(events) // 2:
                if request.transport is not None:
                    request.transport.abort()
                return response
            await response.write(event.encode())
        await response.write_eof()
    return response


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def _tools(reply: Reply) -> list[dict[str, Any]]:
    out = []
    for n, tool in enumerate(reply.tool_calls):
        arguments = tool["arguments"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        out.append({"id": f"call_{n}", "type": "function", "function": {"name": tool["name"], "arguments": text}})
    return out


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _usage(reply: Reply) -> dict[str, Any] | None:
    if reply.usage is None:
        return None
    usage = dict(reply.usage)
    if {"prompt_tokens", "completion_tokens"} <= usage.keys():
        usage.setdefault("total_tokens", usage["prompt_tokens"] + usage["completion_tokens"])
    return usage


def _completion(seen: Request, reply: Reply, chat: bool) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "finish_reason": _finish(reply)}
    if chat:
        choice["message"] = {"role": "assistant", "content": reply.text}
        if reply.tool_calls:
            choice["message"]["tool_calls"] = _tools(reply)
    else:
        choice["text"] = reply.text
    document = {
        "id": "chatcmpl-1",
        "object": "chat.completion" if chat else "text_completion",
        "created": 1,
        "model": reply.model or seen.body.get("model"),
        "choices": [choice],
        **reply.extra,
    }
    usage = _usage(reply)
    return document if usage is None else {**document, "usage": usage}


def _chunks(seen: Request, reply: Reply, chat: bool) -> list[str]:
    model = reply.model or seen.body.get("model")
    kind = "chat.completion.chunk" if chat else "text_completion"
    head = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model, **reply.extra}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        said: dict[str, Any] = {"delta": delta} if chat else {"text": delta.get("content", "")}
        return _data({**head, "choices": [{"index": 0, "finish_reason": finish, **said}]})

    out = [chunk({"role": "assistant", "content": ""})]
    text = reply.text or ""
    out += [chunk({"content": text[n : n + 4]}) for n in range(0, len(text), 4)]
    out += [chunk({"tool_calls": [{"index": n, **tool}]}) for n, tool in enumerate(_tools(reply))]
    out.append(chunk({}, _finish(reply)))
    usage = _usage(reply)
    if usage is not None and (seen.body.get("stream_options") or {}).get("include_usage"):
        out.append(_data({**head, "choices": [], "usage": usage}))
    return [*out, "data: [DONE]\n\n"]


def _response(seen: Request, reply: Reply) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    usage = _usage(reply)
    if usage is not None:
        count_in, count_out = usage["prompt_tokens"], usage["completion_tokens"]
        usage = {"input_tokens": count_in, "output_tokens": count_out, "total_tokens": count_in + count_out}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": seen.body.get("model"),
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _response_events(seen: Request, reply: Reply) -> list[str]:
    whole = _response(seen, reply)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    delta = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": reply.text}
    return [
        _named("response.created", {"response": begun, "sequence_number": 0}),
        _named("response.output_text.delta", {**delta, "sequence_number": 1}),
        _named("response.completed", {"response": whole, "sequence_number": 2}),
    ]


def _anthropic_blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for n, tool in enumerate(reply.tool_calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{n}", "name": tool["name"], "input": tool["arguments"]})
    return blocks


def _anthropic_message(seen: Request, reply: Reply) -> dict[str, Any]:
    usage = dict(reply.usage or {})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": reply.model or seen.body.get("model"),
        "content": _anthropic_blocks(reply),
        "stop_reason": "tool_use" if reply.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.pop("prompt_tokens", 0),
            "output_tokens": usage.pop("completion_tokens", 0),
            **usage,
        },
    }


def _anthropic_events(seen: Request, reply: Reply) -> list[str]:
    whole = _anthropic_message(seen, reply)
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    out = [_named("message_start", {"message": start})]
    for n, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        out.append(_named("content_block_start", {"index": n, "content_block": empty}))
        out.append(_named("content_block_delta", {"index": n, "delta": delta}))
        out.append(_named("content_block_stop", {"index": n}))
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    out.append(_named("message_delta", {"delta": end, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}))
    return [*out, _named("message_stop", {})]


def _data(document: dict[str, Any]) -> str:
    return f"data: {json.dumps(document)}\n\n"


def _named(kind: str, document: dict[str, Any]) -> str:
    return f"event: {kind}\n{_data({'type': kind, **document})}"


def main() -> None:
    """Runs it by hand: every prompt gets the same answer."""
    parser = argparse.ArgumentParser(description="A provider for tests and benchmarks.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--answer", default="ok")
    parser.add_argument("--answers", help="JSON file: last user message -> text, or list of texts")
    options = parser.parse_args()
    answers: Answers = options.answer
    if options.answers:
        with open(options.answers, encoding="utf-8") as file:
            answers = json.load(file)
    provider = FakeProvider(answers, latency_s=options.latency_ms / 1000, host=options.host, port=options.port)
    with provider:
        print(provider.base_url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
