"""The gateway's side of the hub: listening sockets and connections arrive as file descriptors.

The proxy box has no network of its own. sandboxd dials for it, within the box's host policy, and hands over plain TCP;
TLS is spoken here, so that nobody outside the box sees the real key.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

import aiohttp
import orjson
from aiohttp.client_proto import ResponseHandler

DATAGRAM = 65536


class DialRefused(aiohttp.ClientConnectionError):
    """No connection. `reason`: blocked, dns, unreachable or hub; `detail` is for people."""

    def __init__(self, reason: str, host: str, detail: str) -> None:
        said = {
            "blocked": f"The host policy refuses {host}",
            "dns": f"The provider's host {host} does not resolve",
            "hub": f"No connection to {host}",
        }.get(reason, f"No connection to {host}")
        text = f"{said}: {detail}" if detail else f"{said}."
        super().__init__(text)
        self.reason = reason
        self.detail = text


class Hub:
    """One SEQPACKET socket: asks for connections, receives listeners."""

    def __init__(self, fd: int, on_listener: Callable[[socket.socket, str], None], on_end: Callable[[], None]) -> None:
        self._sock = socket.socket(fileno=fd)
        self._sock.setblocking(False)
        self._on_listener = on_listener
        self._on_end = on_end
        self._numbers = itertools.count(1)
        self._dials: dict[int, asyncio.Future[socket.socket]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._sock.fileno(), self._readable)

    async def dial(self, host: str, port: int) -> socket.socket:
        """A connected, non-blocking TCP socket. Raises DialRefused."""
        number = next(self._numbers)
        answer: asyncio.Future[socket.socket] = self._loop.create_future()
        self._dials[number] = answer
        try:
            await self._send(orjson.dumps({"op": "dial", "id": number, "host": host, "port": port}), host)
            return await answer
        except DialRefused as e:
            raise DialRefused(e.reason, host, str(e.args[0]) if e.reason == "hub" else e.detail) from None
        finally:
            self._dials.pop(number, None)

    def close(self) -> None:
        """Stops listening to the hub and fails the dials under way."""
        if self._sock.fileno() < 0:
            return
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        for answer in self._dials.values():
            if not answer.done():
                answer.set_exception(DialRefused("hub", "the provider", "the hub is closed"))

    async def _send(self, data: bytes, host: str) -> None:
        for _ in range(1000):
            try:
                self._sock.send(data)
                return
            except BlockingIOError:
                await asyncio.sleep(0.005)
            except OSError as e:
                raise DialRefused("hub", host, f"the hub is gone ({e.strerror})") from None
        raise DialRefused("hub", host, "the hub does not read")

    def _readable(self) -> None:
        for _ in range(64):
            try:
                data, fds, _, _ = socket.recv_fds(self._sock, DATAGRAM, 4)
            except BlockingIOError:
                return
            except OSError:
                data, fds = b"", []
            if not data:
                self.close()
                self._on_end()
                return
            self._take(data, fds)

    def _take(self, data: bytes, fds: list[int]) -> None:
        try:
            message: dict[str, Any] = orjson.loads(data)
            op = message["op"]
        except (ValueError, KeyError, TypeError):
            op, message = "", {}
        sock = None
        for fd in fds:
            os.set_inheritable(fd, False)
            if sock is None:
                sock = socket.socket(fileno=fd)
                sock.setblocking(False)
            else:
                os.close(fd)
        if op == "listener" and sock is not None:
            self._on_listener(sock, str(message.get("tag", "")))
            return
        answer = self._dials.get(message.get("id", -1)) if op == "dialed" else None
        if answer is None or answer.done():
            if sock is not None:
                sock.close()
        elif sock is not None:
            answer.set_result(sock)
        else:
            detail = str(message.get("detail") or "")
            answer.set_exception(DialRefused(str(message.get("error") or "unreachable"), "", detail))


class HubConnector(aiohttp.BaseConnector):
    """aiohttp's pool over sockets that the hub dials."""

    def __init__(self, dial: Callable[[str, int], Any], tls: ssl.SSLContext, **options: Any) -> None:
        super().__init__(**options)
        self._dial = dial
        self._tls = tls

    async def _create_connection(self, req: Any, traces: Any, timeout: aiohttp.ClientTimeout) -> ResponseHandler:
        host, port = req.url.raw_host or "", req.url.port or 0
        async with asyncio.timeout(timeout.sock_connect):
            sock = await self._dial(host, port)
            try:
                tls = self._tls if req.url.scheme == "https" else None
                name = host if tls is not None else None
                _, protocol = await self._loop.create_connection(
                    self._factory, sock=sock, ssl=tls, server_hostname=name
                )
            except ssl.SSLCertVerificationError as e:
                sock.close()
                raise aiohttp.ClientConnectorCertificateError(req.connection_key, e) from e
            except OSError as e:
                sock.close()
                raise aiohttp.ClientConnectorError(req.connection_key, e) from e
            except BaseException:
                sock.close()
                raise
        return protocol


def tls_context() -> ssl.SSLContext:
    """The system's certificates, or certifi's where the box shows none. SSL_CERT_FILE is honoured."""
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"] and not os.environ.get("SSL_CERT_FILE"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context
