"""`call_sut`: the model, as a scorer sees it. A lean HTTP/1.1 client of the model proxy.

One keep-alive connection per thread (or per request in flight, for `async def solve`). The answer's time limit is the
attempt's: it is set on the socket, so that waiting costs no polling.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from typing import Any, Union

# Union, because this line runs, and on Python 3.9 too.
Prompt = Union[str, list[dict[str, Any]]]

PROMPT_LIMIT = 64 << 10
ANSWER_LIMIT = 64 << 20

# What another attempt cannot change.
PERMANENT = frozenset({"invalid_key", "parameter_refused", "upstream_auth", "model_not_found", "ceiling"})


class SutError(Exception):
    """The model gave no answer. `type`: the proxy's word for why, `status`: HTTP status or 0, `retryable`."""

    def __init__(self, message: str, *, type: str, status: int = 0) -> None:
        super().__init__(message)
        self.type = type
        self.status = status

    @property
    def retryable(self) -> bool:
        """Whether another attempt could end otherwise."""
        if self.type in PERMANENT:
            return False
        return not (400 <= self.status < 500 and self.status not in (408, 409, 425, 429))


class SutTimeout(SutError):
    """The attempt's time ran out while the model was answering."""


class SutResult:
    """One answer: text ("" when there is none), reasoning, tool calls, finish reason, usage, and the raw body."""

    __slots__ = ("finish_reason", "raw", "reasoning", "refusal", "text", "tool_calls", "usage")

    def __init__(self, raw: Any) -> None:
        try:
            choice = raw["choices"][0]
            message = choice.get("message") or {}
        except (KeyError, IndexError, TypeError, AttributeError):
            raise SutError("the answer has no choices", type="upstream_error", status=502) from None
        self.raw: dict[str, Any] = raw
        self.text: str = _text(message.get("content"))
        self.reasoning: str | None = message.get("reasoning_content") or message.get("reasoning") or None
        self.refusal: str | None = message.get("refusal") or None
        self.finish_reason: str | None = choice.get("finish_reason")
        self.usage: dict[str, Any] = raw.get("usage") or {}
        calls = message.get("tool_calls")
        self.tool_calls: list[dict[str, Any]] = [_tool_call(c) for c in calls] if isinstance(calls, list) else []

    def as_json(self) -> dict[str, Any]:
        """What stands in the log when `solve` returns the answer as it is."""
        return {
            "text": self.text,
            "tool_calls": self.tool_calls,
            "finish_reason": self.finish_reason,
            "reasoning": self.reasoning,
        }

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"SutResult(text={self.text[:80]!r}, tool_calls={len(self.tool_calls)}, {self.finish_reason})"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, dict)]
        return "".join(p for p in parts if isinstance(p, str))
    return ""


def _tool_call(call: Any) -> dict[str, Any]:
    """{"id", "name", "arguments"}: arguments as an object, or as text when they are not JSON."""
    call = call if isinstance(call, dict) else {}
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            pass
    return {"id": call.get("id"), "name": function.get("name"), "arguments": arguments}


class Endpoint:
    """Where the proxy listens, taken apart once. Only `http://` and `https://` base URLs."""

    def __init__(self, base_url: str) -> None:
        scheme, separator, rest = base_url.rstrip("/").partition("://")
        if not separator or scheme not in ("http", "https"):
            raise ValueError(f"not an http(s) URL: {base_url!r}")
        authority, slash, path = rest.partition("/")
        host, colon, port = authority.rpartition(":")
        if not colon or not port.isdigit():
            host, port = authority, "443" if scheme == "https" else "80"
        self.tls = scheme == "https"
        self.address = (host.strip("[]"), int(port))
        self.path = slash + path + "/chat/completions"
        self.authority = authority

    def head(self, key: str) -> bytes:
        """A request's head up to the length of its body."""
        return (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.authority}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: "
        ).encode("latin-1")

    def connect(self, deadline: float) -> socket.socket:
        """A connected socket; waits a little for a proxy that is just starting. Raises SutError."""
        give_up = min(deadline, time.monotonic() + 10)
        while True:
            try:
                sock = socket.create_connection(self.address, timeout=max(0.1, deadline - time.monotonic()))
                break
            except OSError as error:
                if time.monotonic() > give_up:
                    raise SutError(f"cannot reach the model proxy: {error}", type="upstream_unreachable") from None
                time.sleep(0.1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            import ssl

            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self.address[0])
        return sock


def encode(
    prompt: Prompt, tools: list[dict[str, Any]] | None, response_format: dict[str, Any] | None, stop: Any, logprobs: Any
) -> tuple[bytes, str]:
    """(request body, the prompt as JSON text). Raises TypeError for a prompt that is neither text nor messages."""
    if isinstance(prompt, str):
        shown = json.dumps(prompt)
        body = '{"messages":[{"role":"user","content":' + shown + "}]"
    elif isinstance(prompt, list) and all(isinstance(m, dict) for m in prompt):
        shown = json.dumps(prompt, default=_plain)
        body = '{"messages":' + shown
    else:
        raise TypeError(f"call_sut takes text or a list of messages, not {type(prompt).__name__}")
    if tools:
        body += ',"tools":' + json.dumps(tools)
    if response_format is not None:
        body += ',"response_format":' + json.dumps(response_format)
    if stop is not None:
        body += ',"stop":' + json.dumps(stop)
    if logprobs is not None and logprobs is not False:
        body += ',"logprobs":true'
        if logprobs is not True:
            body += ',"top_logprobs":' + json.dumps(logprobs)
    return (body + "}").encode("ascii"), shown


def _plain(value: Any) -> Any:
    if isinstance(value, SutResult):
        return value.text
    raise TypeError(f"{type(value).__name__} is not JSON")


def bounded_prompt(shown: str) -> str:
    """A prompt's JSON text, cut (then it is a JSON string) when it is over PROMPT_LIMIT."""
    if len(shown) <= PROMPT_LIMIT:
        return shown
    return json.dumps(shown[: PROMPT_LIMIT // 2] + f"… (cut, {len(shown)} characters in all)")


class Reply:
    """Collects one HTTP response from pieces. `feed` returns True when it is whole."""

    __slots__ = ("_chunked", "_data", "_need", "_start", "body", "close", "status")

    def __init__(self) -> None:
        self._data = b""
        self._start = -1
        self._need = -1
        self._chunked = False
        self.status = 0
        self.close = False
        self.body = b""

    @property
    def begun(self) -> bool:
        """Whether any byte has come."""
        return bool(self._data)

    def feed(self, piece: bytes) -> bool:
        """Take the next bytes (empty: the other side closed). Raises ValueError for what is not HTTP."""
        self._data = self._data + piece if self._data else piece
        if len(self._data) > ANSWER_LIMIT:
            raise ValueError("the answer is too large")
        if self._start < 0:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                if not piece:
                    raise ValueError("the connection closed inside the head")
                return False
            self._head(self._data[:end])
            self._start = end + 4
            if self.status == 100:
                rest = self._data[self._start :]
                self.__init__()  # type: ignore[misc]
                return self.feed(rest) if rest else False
        if self._chunked:
            return self._read_chunks(closed=not piece)
        have = len(self._data) - self._start
        if self._need < 0:
            if piece:
                return False
            self._need = have
        if have < self._need:
            if not piece:
                raise ValueError("the connection closed inside the answer")
            return False
        self.body = self._data[self._start : self._start + self._need]
        return True

    def _head(self, head: bytes) -> None:
        line, _, rest = head.partition(b"\r\n")
        if not line.startswith(b"HTTP/1."):
            raise ValueError("not an HTTP answer")
        self.status = int(line[9:12])
        lowered = b"\r\n" + rest.lower()
        at = lowered.find(b"\r\ncontent-length:")
        if at >= 0:
            self._need = int(lowered[at + 17 :].partition(b"\r\n")[0])
        self._chunked = b"\r\ntransfer-encoding: chunked" in lowered
        self.close = b"\r\nconnection: close" in lowered or (self._need < 0 and not self._chunked)

    def _read_chunks(self, *, closed: bool) -> bool:
        data, at = self._data, self._start
        parts: list[bytes] = []
        while True:
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            size = int(data[at:end].partition(b";")[0], 16)
            if len(data) < end + 2 + size + 2:
                break
            if size == 0:
                self.body = b"".join(parts)
                return True
            parts.append(data[end + 2 : end + 2 + size])
            at = end + 2 + size + 2
        if closed:
            raise ValueError("the connection closed inside the answer")
        return False


def read_answer(reply: Reply) -> SutResult:
    """The answer in an HTTP response. Raises SutError with the proxy's own words."""
    try:
        body = json.loads(reply.body)
    except ValueError:
        text = reply.body[:300].decode("utf-8", "replace")
        raise SutError(f"HTTP {reply.status}, not JSON: {text}", type="upstream_error", status=reply.status) from None
    if reply.status >= 300 or (isinstance(body, dict) and body.get("error") and not body.get("choices")):
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {"message": str(error or body)}
        message = str(error.get("message") or f"HTTP {reply.status}")[:2000]
        raise SutError(message, type=str(error.get("type") or "upstream_error"), status=reply.status)
    return SutResult(body)


class Threads:
    """Blocking transport: a connection for each thread, dropped in a forked child."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._local = threading.local()
        # Two processes on one connection would read each other's answers.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._local = threading.local()

    def post(self, head: bytes, body: bytes, deadline: float) -> Reply:
        """Send one request and read its answer. Raises SutError, SutTimeout."""
        message = b"%s%d\r\n\r\n%s" % (head, len(body), body)
        local = self._local
        for fresh in (False, True):
            sock: socket.socket | None = None if fresh else getattr(local, "sock", None)
            fresh = sock is None
            if sock is None:
                sock = self.endpoint.connect(deadline)
                # Blocking, with the kernel's own time limit: a Python timeout costs a poll() for each call.
                sock.settimeout(None)
            left = deadline - time.monotonic()
            if left <= 0:
                raise SutTimeout("the attempt's time ran out", type="timeout")
            limit = struct.pack("ll", int(left), int(left % 1 * 1_000_000) or 1)
            reply = Reply()
            local.sock = None
            try:
                if self.endpoint.tls:
                    sock.settimeout(left)
                else:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
                sock.sendall(message)
                while not reply.feed(sock.recv(65536)):
                    if time.monotonic() > deadline:
                        raise BlockingIOError
            except (TimeoutError, BlockingIOError):
                sock.close()
                raise SutTimeout("the attempt's time ran out while the model was answering", type="timeout") from None
            except (OSError, ValueError) as error:
                sock.close()
                # A proxy may close an idle connection just as it is used again: once more on a new one.
                if fresh or reply.begun:
                    raise SutError(f"the model proxy broke off: {error}", type="upstream_unreachable") from None
                continue
            if reply.close:
                sock.close()
            else:
                local.sock = sock
            return reply
        raise SutError("the model proxy broke off", type="upstream_unreachable")


class Loop:
    """The same for one asyncio loop: a pool of non-blocking connections."""

    def __init__(self, endpoint: Endpoint, loop: Any) -> None:
        self.endpoint = endpoint
        self._loop = loop
        self._idle: list[socket.socket] = []

    async def post(self, head: bytes, body: bytes, deadline: float) -> Reply:
        """Send one request and read its answer. Raises SutError; cancelled by its task at the deadline."""
        if self.endpoint.tls:
            return await self._loop.run_in_executor(None, Threads(self.endpoint).post, head, body, deadline)
        message = b"%s%d\r\n\r\n%s" % (head, len(body), body)
        loop = self._loop
        while True:
            fresh = not self._idle
            sock = await self._connect(deadline) if fresh else self._idle.pop()
            reply = Reply()
            try:
                await loop.sock_sendall(sock, message)
                while not reply.feed(await loop.sock_recv(sock, 65536)):
                    pass
            except (OSError, ValueError) as error:
                sock.close()
                if fresh or reply.begun:
                    raise SutError(f"the model proxy broke off: {error}", type="upstream_unreachable") from None
                continue
            except BaseException:
                sock.close()
                raise
            if reply.close:
                sock.close()
            else:
                self._idle.append(sock)
            return reply

    async def _connect(self, deadline: float) -> socket.socket:
        import asyncio

        give_up = min(deadline, time.monotonic() + 10)
        while True:
            family = socket.AF_INET6 if ":" in self.endpoint.address[0] else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.sock_connect(sock, self.endpoint.address)
                return sock
            except OSError as error:
                sock.close()
                if time.monotonic() > give_up:
                    raise SutError(f"cannot reach the model proxy: {error}", type="upstream_unreachable") from None
                await asyncio.sleep(0.1)
            except BaseException:
                sock.close()
                raise
