"""The only way out of a box: judge the name, resolve it once, judge the address, connect to exactly that address."""

from __future__ import annotations

import asyncio
import base64
import fnmatch
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from sandboxes.egress.policy import HostPolicy

CONNECT_SECONDS = 15.0


class Blocked(Exception):
    """The policy refuses; the text says why."""


class NoName(Exception):
    """The name does not resolve."""


class Unreachable(Exception):
    """Nobody answers there."""


@dataclass(frozen=True)
class Upstream:
    """The operator's own HTTP proxy."""

    host: str
    port: int
    authorization: str | None


@dataclass(frozen=True)
class Dialled:
    """A connected socket. With `via` it leads to the operator's proxy, which expects absolute URLs."""

    sock: socket.socket
    via: Upstream | None = None


class Dialler:
    """Connects on behalf of one box. `proxies`: scheme -> URL of the operator's proxy, "no" -> hosts without it."""

    def __init__(self, proxies: dict[str, str]) -> None:
        self._proxies = proxies
        # Each look-up holds a thread of the daemon; one box may not hold them all.
        self._lookups = asyncio.Semaphore(4)
        self._direct = [p.strip().lstrip(".").lower() for p in proxies.get("no", "").split(",") if p.strip()]

    async def dial(self, policy: HostPolicy, host: str, port: int, *, tunnel: bool = True) -> Dialled:
        """A TCP connection to host:port. Raises Blocked, NoName or Unreachable.

        Behind an operator's proxy, `tunnel` asks it for a tunnel, so that the socket speaks with the host itself.
        """
        verdict = policy.judge_host(host, port)
        if not verdict.allowed:
            raise Blocked(verdict.why)
        upstream = self._upstream(host, port)
        try:
            address = await self._resolve(policy, host, port)
        except NoName:
            if upstream is None:
                raise
            address = ""  # only the operator's proxy may know the name
        if upstream is None:
            return Dialled(await _connect(address, port))
        sock = await _connect_name(upstream.host, upstream.port)
        if not tunnel:
            return Dialled(sock, upstream)
        try:
            await asyncio.wait_for(_open_tunnel(sock, upstream, host, port), CONNECT_SECONDS)
        except (TimeoutError, OSError) as e:
            sock.close()
            raise Unreachable(str(e) or "the proxy did not answer") from None
        except BaseException:
            sock.close()
            raise
        return Dialled(sock)

    async def _resolve(self, policy: HostPolicy, host: str, port: int) -> str:
        """One address that may be reached. A name that leads anywhere private beside is not trusted half-way either."""
        loop = asyncio.get_running_loop()
        try:
            async with self._lookups:
                found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise NoName(f"{host} does not resolve") from None
        addresses = [str(info[4][0]) for info in found]
        if not addresses:
            raise NoName(f"{host} does not resolve")
        for address in addresses:
            verdict = policy.judge_address(host, port, address)
            if not verdict.allowed:
                raise Blocked(verdict.why)
        return next((a for a in addresses if ":" not in a), addresses[0])

    def _upstream(self, host: str, port: int) -> Upstream | None:
        url = self._proxies.get("https" if port == 443 else "http") or self._proxies.get("all")
        name = host.lower().rstrip(".")
        if not url or any(
            d == "*" or name == d or name.endswith(f".{d}") or fnmatch.fnmatch(name, d) for d in self._direct
        ):
            return None
        parts = urlsplit(url if "//" in url else f"//{url}")
        if not parts.hostname:
            return None
        authorization = None
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        return Upstream(parts.hostname, parts.port or 3128, authorization)


async def _connect(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(sock, (address, port)), CONNECT_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, TimeoutError) as e:
        sock.close()
        raise Unreachable(f"{address}:{port}: {getattr(e, 'strerror', None) or 'no answer'}") from None
    except BaseException:
        sock.close()
        raise
    return sock


async def _connect_name(host: str, port: int) -> socket.socket:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as e:
        raise Unreachable(f"the proxy {host} does not resolve: {e.strerror}") from None
    return await _connect(str(found[0][4][0]), port)


async def _open_tunnel(sock: socket.socket, upstream: Upstream, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n"
    if upstream.authorization:
        head += f"Proxy-Authorization: {upstream.authorization}\r\n"
    await loop.sock_sendall(sock, head.encode("ascii") + b"\r\n")
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        one = await loop.sock_recv(sock, 1)  # byte by byte: whatever follows belongs to the tunnel
        if not one or len(answer) > 16384:
            raise Unreachable("the proxy closed the connection")
        answer += one
    status = answer.split(b" ", 2)[1:2]
    if status != [b"200"]:
        raise Unreachable(f"the proxy answered {answer.splitlines()[0].decode('latin1')[:100]}")
