"""The policy proxy of one box, on listeners inside the box's network namespace.

Port 3128 speaks HTTP: CONNECT and absolute URLs. Ports 80 and 443 of every other address lead here as well, because in
the box every address is loopback; together with a name server that hands out made-up addresses and remembers the name,
programs that know no proxy are judged by host name just the same. Each refusal is counted by host and port.

Not looked at: whether the TLS server name equals the host that was judged. A host that is allowed can front for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from sandboxes.backends.base import Refusal
from sandboxes.backends.local.dial import Blocked, Dialler, NoName, Unreachable
from sandboxes.egress.policy import HostPolicy, normalise_host
from sandboxes.vocabulary import Role

MAX_HEAD = 64 << 10
MAX_CONNECTIONS = 256
MAX_REFUSALS = 1000
MAX_NAMES = 16_384
HEAD_SECONDS = 60.0
_HOP = (b"proxy-", b"connection:", b"keep-alive:", b"host:")


class Refusals:
    """What a box was refused, by (host, port)."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._seen: dict[tuple[str, int], Refusal] = {}

    def add(self, host: str, port: int) -> None:
        """Counts one more. Names come from hostile programs: they are cut and kept printable."""
        try:
            name = normalise_host(host)
        except ValueError:
            name = "".join(c if c.isprintable() else "?" for c in host)[:253]
        now = time.time()
        old = self._seen.get((name, port))
        if old is None and len(self._seen) >= MAX_REFUSALS:
            name, port = "(more hosts)", 0
            old = self._seen.get((name, port))
        count, first = (old.seen_count + 1, old.first_seen) if old else (1, now)
        self._seen[name, port] = Refusal(name, port, self._role, count, first, now)

    def since(self, at: float) -> list[dict[str, Any]]:
        """Those last seen at or after `at`, as plain dicts."""
        return [asdict(r) for r in self._seen.values() if r.last_seen >= at]


class EgressProxy:
    """Serves one box until `close`."""

    def __init__(self, policy: HostPolicy, dialler: Dialler, role: Role) -> None:
        self._policy = policy
        self._dialler = dialler
        self.refusals = Refusals(role)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._names: dict[str, str] = {}  # made-up address -> name
        self._addresses: dict[str, str] = {}
        self._dns: socket.socket | None = None

    async def serve(self, http: socket.socket, dns: socket.socket, direct: list[socket.socket]) -> None:
        """Starts to accept. The sockets stay the box's to close."""
        self._servers.append(await asyncio.start_server(self._guard(self._http), sock=http, limit=MAX_HEAD))
        for sock in direct:
            self._servers.append(await asyncio.start_server(self._guard(self._direct), sock=sock, limit=MAX_HEAD))
        dns.setblocking(False)
        self._dns = dns
        asyncio.get_running_loop().add_reader(dns.fileno(), self._answer_dns)

    def close(self) -> None:
        """Stops accepting and drops what is open."""
        if self._dns is not None and self._dns.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._dns.fileno())
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()

    def _guard(self, serve: Any) -> Any:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task
            if len(self._tasks) >= MAX_CONNECTIONS:
                writer.transport.abort()
                return
            self._tasks.add(task)
            try:
                await serve(reader, writer)
            except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                pass  # a hostile or impatient program; nothing of ours depends on it
            except asyncio.CancelledError:
                pass
            finally:
                self._tasks.discard(task)
                writer.transport.abort() if writer.is_closing() else writer.close()

        return one

    # --- HTTP on 3128 ------------------------------------------------------------------------------------------------

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        line, *headers = head[:-4].split(b"\r\n")
        method, target, version = line.decode("latin1").split(" ", 2)
        if method == "CONNECT":
            host, _, port_text = target.rpartition(":")
            port = int(port_text)
            dialled = await self._dial(host, port, writer, tunnel=True)
            if dialled is None:
                return
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            url = urlsplit(target)
            if url.scheme != "http" or not url.hostname:
                _answer(writer, 400, "bad_request", "This proxy takes CONNECT and absolute http:// URLs.")
                return
            host, port = url.hostname, url.port or 80
            dialled = await self._dial(host, port, writer, tunnel=False)
            if dialled is None:
                return
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            host_line = url.netloc.rpartition("@")[2].encode("latin1")
            kept = [h for h in headers if not h.lower().startswith(_HOP)]
            kept += [b"Host: " + host_line, b"Connection: close"]
            if dialled.via:
                path = f"http://{host_line.decode('latin1')}{path}"
                if dialled.via.authorization:
                    kept.append(b"Proxy-Authorization: " + dialled.via.authorization.encode("ascii"))
            first = f"{method} {path} {version}\r\n".encode("latin1")
            await asyncio.get_running_loop().sock_sendall(dialled.sock, first + b"\r\n".join(kept) + b"\r\n\r\n")
        await _join(reader, writer, dialled.sock)

    async def _dial(self, host: str, port: int, writer: asyncio.StreamWriter | None, *, tunnel: bool) -> Any:
        """The connection, or None after the program was told why not."""
        if not 0 < port < 65536:
            raise ValueError("not a port")
        try:
            return await self._dialler.dial(self._policy, host, port, tunnel=tunnel)
        except Blocked as e:
            self.refusals.add(host, port)
            status, word, text = 403, "egress_blocked", f"{host}:{port} is refused: {e}."
        except NoName as e:
            status, word, text = 502, "dns", f"{e}."
        except Unreachable as e:
            status, word, text = 502, "unreachable", f"{host}:{port} is unreachable: {e}."
        if writer is not None:
            _answer(writer, status, word, text)
            await writer.drain()
        return None

    # --- any other address, ports 80 and 443 -------------------------------------------------------------------------

    async def _direct(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")[:2]
        dialled = await self._dial(self._names.get(address, address), port, None, tunnel=True)
        if dialled is None:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a silent end
            writer.transport.abort()
            return
        await _join(reader, writer, dialled.sock)

    def _answer_dns(self) -> None:
        assert self._dns
        for _ in range(32):
            try:
                query, peer = self._dns.recvfrom(1500)
            except OSError:
                return
            answer = self._dns_answer(query)
            if answer:
                with contextlib.suppress(OSError):
                    self._dns.sendto(answer, peer)

    def _dns_answer(self, query: bytes) -> bytes | None:
        """A made-up A record from 198.18.0.0/15 (reserved for tests of this kind); nothing for every other type."""
        try:
            at, labels = 12, []
            while query[at]:
                labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii"))
                at += query[at] + 1
            (kind,) = struct.unpack_from("!H", query, at + 1)
            question = query[12 : at + 5]
        except (IndexError, struct.error, UnicodeDecodeError):
            return None
        name = ".".join(labels).lower()
        records = b""
        if kind == 1 and name:
            records = struct.pack("!HHHIH", 0xC00C, 1, 1, 30, 4) + socket.inet_aton(self._address(name))
        return query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, 1 if records else 0, 0, 0) + question + records

    def _address(self, name: str) -> str:
        known = self._addresses.get(name)
        if known is None:
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
                self._addresses.clear()
            number = len(self._names) + 1
            known = f"198.18.{number >> 8}.{number & 255}"
            self._names[known], self._addresses[name] = name, known
        return known


def _answer(writer: asyncio.StreamWriter, status: int, word: str, text: str) -> None:
    body = json.dumps({"error": {"code": word, "message": text}}).encode()
    # Most programs show nothing but this line, so it says what happened.
    phrase = {400: "Bad Request", 403: "Forbidden by the host policy", 502: "Bad Gateway"}[status]
    if status != 400:
        phrase += " - " + "".join(c if " " <= c < "\x7f" else "?" for c in text)[:200]
    writer.write(
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nX-Benchwright-Egress: {word}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sock: socket.socket) -> None:
    """Copies both ways until both sides are done."""
    far_reader, far_writer = await asyncio.open_connection(sock=sock)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, far_writer))
            group.create_task(_copy(far_reader, writer))
    except* OSError:
        pass
    finally:
        far_writer.transport.abort()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(256 << 10):
        target.write(data)
        await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()
