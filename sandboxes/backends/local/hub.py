"""The socket between sandboxd and a gateway in a proxy box: it brings connections to providers, and model ports."""

from __future__ import annotations

import array
import asyncio
import json
import socket
from typing import Any

from sandboxes.backends.local.dial import Blocked, Dialler, NoName, Unreachable
from sandboxes.backends.local.egress import Refusals
from sandboxes.egress.policy import HostPolicy

MAX_DIALS = 512


class Hub:
    """Answers `dial` within the box's own policy, and hands over listeners. JSON datagrams, descriptors attached."""

    def __init__(self, sock: socket.socket, policy: HostPolicy, dialler: Dialler, refusals: Refusals) -> None:
        self._sock = sock
        self._policy = policy
        self._dialler = dialler
        self._refusals = refusals
        self._tasks: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_reader(sock.fileno(), self._readable)

    def close(self) -> None:
        """Stops listening; the socket stays the box's to close."""
        if self._sock.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._sock.fileno())
        for task in self._tasks:
            task.cancel()

    async def listener(self, tag: str, sock: socket.socket) -> None:
        """Gives the gateway a listening socket. Raises OSError when the gateway's side is gone or full."""
        await self._send({"op": "listener", "tag": tag}, sock)

    async def _send(self, message: dict[str, Any], sock: socket.socket | None = None) -> None:
        ancillary = []
        if sock is not None:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))]
        for _ in range(1000):
            try:
                self._sock.sendmsg([json.dumps(message).encode()], ancillary)
                return
            except BlockingIOError:
                await asyncio.sleep(0.005)  # the gateway is not reading yet
        raise TimeoutError("the gateway does not read")

    def _readable(self) -> None:
        for _ in range(32):
            try:
                data = self._sock.recv(8192)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.close()
                return
            try:
                message = json.loads(data)
                number, host, port = int(message["id"]), str(message["host"]), int(message["port"])
                if message["op"] != "dial" or not 0 < port < 65536 or len(self._tasks) >= MAX_DIALS:
                    continue
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                continue
            task = asyncio.ensure_future(self._dial(number, host, port))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _dial(self, number: int, host: str, port: int) -> None:
        answer: dict[str, Any] = {"op": "dialed", "id": number}
        sock = None
        try:
            sock = (await self._dialler.dial(self._policy, host, port)).sock
            sock.setblocking(True)
        except Blocked as e:
            self._refusals.add(host, port)
            answer |= {"error": "blocked", "detail": str(e)}
        except NoName as e:
            answer |= {"error": "dns", "detail": str(e)}
        except Unreachable as e:
            answer |= {"error": "unreachable", "detail": str(e)}
        try:
            await self._send(answer, sock)
        except (OSError, TimeoutError):
            pass  # the gateway is gone; nobody waits for the answer
        finally:
            if sock is not None:
                sock.close()
