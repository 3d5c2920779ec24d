"""The embedded Valkey: on a Unix socket, with an append-only file, so that a killed machine loses a second at most."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchwright.embedded.binaries import ServiceFailed, valkey_server
from benchwright.embedded.postgres import tail

START_SECONDS = 60
INSTEAD = "Or give a running server: REDIS_URL=redis://host:6379/0 ./bw up"


class Valkey:
    """`data`: folder of the append-only file; `socket_path`: under 107 bytes, in a folder that is ours."""

    def __init__(self, data: Path, socket_path: Path, log: Path, *, durable: bool = True) -> None:
        self.data, self.socket_path, self.log, self.durable = data, socket_path, log, durable
        self.process: subprocess.Popen[bytes] | None = None

    def up(self) -> bool:
        """Does it answer PING? While it still loads its data it does not count as up."""
        return valkey_answers(self.socket_path)

    def start(self) -> None:
        """Starts it unless it answers already. Raises ServiceFailed."""
        if self.up():
            return
        binary = valkey_server()
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [str(binary), "--port", "0", "--unixsocket", str(self.socket_path), "--unixsocketperm", "700"]
        command += ["--dir", str(self.data), "--save", "", "--maxmemory-policy", "noeviction", "--daemonize", "no"]
        command += ["--appendonly", "yes" if self.durable else "no", "--appendfsync", "everysec"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.up():
            if self.process.poll() is not None:
                raise ServiceFailed(f"Valkey ended at once:\n{tail(self.log)}\nIts log: {self.log}\n{INSTEAD}")
            if time.monotonic() > deadline:
                self.process.kill()
                raise ServiceFailed(f"Valkey did not answer within {START_SECONDS} s. Its log: {self.log}\n{INSTEAD}")
            time.sleep(0.01)

    def stop(self, wait: Callable[[Callable[[], bool], float], bool]) -> None:
        """Writes what is left and ends."""
        pid = self.pid()
        if pid is None:
            return
        try:
            os.kill(pid, signal.SIGTERM)
            if not wait(lambda: not self._alive(pid), 20):
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def pid(self) -> int | None:
        """Our own child, or the process that answers on our socket, as it says itself."""
        if self.process is not None and self.process.poll() is None:
            return self.process.pid
        for line in _ask(self.socket_path, b"INFO server\r\n", 65536).splitlines():
            if line.startswith(b"process_id:"):
                return int(line.partition(b":")[2])
        return None

    def _alive(self, pid: int) -> bool:
        if self.process is not None and self.process.pid == pid:
            return self.process.poll() is None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True


def valkey_url(socket_path: Path) -> str:
    """The address of the server at that socket, for redis-py; the settings derive Celery's spelling from it."""
    return f"unix://{socket_path}?db=0"


def valkey_answers(socket_path: Path) -> bool:
    """Does the server at that socket answer PING?"""
    return _ask(socket_path, b"PING\r\n").startswith(b"+PONG")


def _ask(socket_path: Path, command: bytes, limit: int = 64) -> bytes:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(3)
            connection.connect(str(socket_path))
            connection.sendall(command)
            return connection.recv(limit)
    except OSError:
        return b""
