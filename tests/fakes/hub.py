"""sandboxd's side of the hub, as a thread: dials on request, hands over listeners."""

from __future__ import annotations

import array
import json
import socket
import threading
from typing import Any


class FakeHub:
    """`theirs` is the end for the gateway. `routes`: (host, port) -> where to connect, or an error as a dict."""

    def __init__(self, routes: dict[tuple[str, int], tuple[str, int] | dict[str, str]]) -> None:
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.routes = routes
        self.dials: list[tuple[str, int]] = []
        self._listeners: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def give_listener(self, tag: str = "work-1") -> int:
        """Hands over a fresh listening socket; returns its port."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        self._send({"op": "listener", "tag": tag}, listener)
        port: int = listener.getsockname()[1]
        return port

    def close(self) -> None:
        """sandboxd goes away."""
        self.ours.shutdown(socket.SHUT_RDWR)
        for sock in (self.ours, self.theirs, *self._listeners):
            sock.close()

    def _serve(self) -> None:
        while True:
            try:
                data = self.ours.recv(65536)
            except OSError:
                return
            if not data:
                return
            message = json.loads(data)
            place = (message["host"], message["port"])
            self.dials.append(place)
            target = self.routes.get(place, {"error": "dns", "detail": "no such name"})
            answer = {"op": "dialed", "id": message["id"]}
            if isinstance(target, dict):
                self._send(answer | target, None)
                continue
            try:
                with socket.create_connection(target, 5) as sock:
                    self._send(answer, sock)
            except OSError as e:
                self._send(answer | {"error": "unreachable", "detail": str(e)}, None)

    def _send(self, message: dict[str, Any], sock: socket.socket | None) -> None:
        ancillary = []
        if sock is not None:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))]
        self.ours.sendmsg([json.dumps(message).encode()], ancillary)
