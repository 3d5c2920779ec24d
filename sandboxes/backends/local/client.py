"""The local backend as the rest of the product sees it: blocking calls to sandboxd over its Unix socket.

Cheap to import; safe to use from many threads and after a fork (a child opens connections of its own).
"""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
from builtins import list as List
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchwright.lib.errors import BenchwrightError
from benchwright.lib.paths import sandboxd_socket
from sandboxes import errors
from sandboxes.backends.base import (
    DEFAULT_SIZE,
    NO_NETWORK,
    Capabilities,
    Entry,
    ExecResult,
    Network,
    Refusal,
    SandboxInfo,
    Size,
    SnapshotInfo,
)
from sandboxes.backends.local import wire
from sandboxes.vocabulary import Role

FIX = "Start Benchwright's services with ./bw up, or run: python -m sandboxes.backends.local.daemon"
CONNECT_SECONDS = 10.0
CALL_SECONDS = 120.0
SLACK_SECONDS = 45.0  # on top of a command's own time: the daemon kills it, and that may take a moment
MAX_IDLE = 8


class Connections:
    """Idle connections to one daemon, for this process only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._idle: List[socket.socket] = []
        self._pid = os.getpid()

    def open(self) -> socket.socket:
        """A new connection. Raises SandboxUnavailable when nobody listens."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(CONNECT_SECONDS)
        try:
            sock.connect(str(self.path))
        except OSError as e:
            sock.close()
            raise errors.SandboxUnavailable(
                f"sandboxd does not answer at {self.path}: {e.strerror or e}", FIX
            ) from None
        return sock

    def call(
        self, head: dict[str, Any], body: bytes = b"", seconds: float = CALL_SECONDS
    ) -> tuple[dict[str, Any], bytes]:
        """One request, one answer. Raises what the daemon answered, or SandboxUnavailable when it goes silent."""
        sock, reused = self._take()
        message = wire.pack(head, body)
        try:
            answer = self._exchange(sock, message, seconds)
        except (OSError, EOFError) as e:
            sock.close()
            if not reused or isinstance(e, TimeoutError):
                raise errors.SandboxUnavailable(f"sandboxd broke off: {e or 'connection closed'}", FIX) from None
            # The daemon was restarted since that connection was made; the request never reached anybody.
            sock = self.open()
            try:
                answer = self._exchange(sock, message, seconds)
            except (OSError, EOFError) as again:
                sock.close()
                raise errors.SandboxUnavailable(f"sandboxd broke off: {again or 'connection closed'}", FIX) from None
        except BaseException:
            sock.close()
            raise
        self._give_back(sock)
        raise_for(answer[0], head)
        return answer

    def _exchange(self, sock: socket.socket, message: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
        sock.settimeout(seconds)
        sock.sendall(message)
        return read_answer(sock)

    def _take(self) -> tuple[socket.socket, bool]:
        with self._lock:
            if self._pid != os.getpid():
                self._idle, self._pid = [], os.getpid()
            if self._idle:
                sock = self._idle.pop()
                if not _closed(sock):
                    return sock, True
                sock.close()
        return self.open(), False

    def _give_back(self, sock: socket.socket) -> None:
        with self._lock:
            if self._pid == os.getpid() and len(self._idle) < MAX_IDLE:
                self._idle.append(sock)
                return
        sock.close()


def _closed(sock: socket.socket) -> bool:
    try:
        sock.setblocking(False)
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = sock.recv_into(view)
        if not got:
            raise EOFError("connection closed")
        view = view[got:]
    return bytes(data)


def read_answer(sock: socket.socket) -> tuple[dict[str, Any], bytes]:
    """One answer off the socket."""
    head_size, body_size = wire.HEAD.unpack(_exactly(sock, wire.HEAD.size))
    return json.loads(_exactly(sock, head_size)), _exactly(sock, body_size)


def raise_for(answer: dict[str, Any], asked: dict[str, Any]) -> None:
    """Turns a refusal back into the exception it was."""
    if answer["ok"]:
        return
    code, data, message = answer["code"], answer["data"], answer["message"]
    if code == "sandbox_lost":
        lost = errors.SandboxLost(data["sandbox_id"])
        lost.message = message
        lost.args = (message,)
        raise lost
    if code == "exec_not_found":
        raise errors.ExecNotFound(data["exec_id"])
    if code == "snapshot_not_found":
        raise errors.SnapshotNotFound(data["snapshot_id"])
    if code == "sandbox_file_refused":
        raise errors.FileRefused(data["path"], data["errno"], message.removeprefix(f"{data['path']}: "))
    if code == "output_too_large":
        raise errors.OutputTooLarge(message, data["limit"])
    if code == "sandbox_unavailable":
        raise errors.SandboxUnavailable(message, answer["hint"])
    raise errors.SandboxFailed(message, code=code, status=answer["status"], hint=answer["hint"], data=data)


def _argv(argv: Sequence[str] | str) -> List[str]:
    return ["/bin/sh", "-c", argv] if isinstance(argv, str) else [*argv]


class LocalExec:
    """See `sandboxes.backends.base.Exec`."""

    def __init__(self, sock: socket.socket, exec_id: str, offset: int) -> None:
        self.id = exec_id
        self.offset = offset
        self.ended = False
        self.code: int | None = None
        self.reason: str | None = None
        self.stderr_tail = b""
        self._sock = sock
        self._sock.setblocking(False)
        self._buffer = bytearray()

    def fileno(self) -> int:
        """For select()."""
        return self._sock.fileno()

    def read(self) -> bytes:
        """New stdout without waiting. Raises SandboxUnavailable when sandboxd dies: the command died with it."""
        if self.ended:
            return b""
        gone = False
        try:
            data = self._sock.recv(1 << 20)
            gone = not data
            self._buffer += data
        except BlockingIOError:
            pass
        except OSError:
            gone = True
        out = self._chunks()
        if gone and not self.ended and not out:
            raise errors.SandboxUnavailable("sandboxd ended while the command ran.", FIX)
        self.offset += len(out)
        return out

    def _chunks(self) -> bytes:
        out: List[bytes] = []
        at = 0
        while len(self._buffer) - at >= wire.CHUNK.size:
            kind, size = wire.CHUNK.unpack_from(self._buffer, at)
            start = at + wire.CHUNK.size
            if len(self._buffer) < start + size:
                break
            at = start + size
            data = bytes(self._buffer[start:at])
            if kind == wire.STDOUT:
                out.append(data)
            elif kind == wire.END:
                self._ended(json.loads(data))
        del self._buffer[:at]
        return b"".join(out)

    def _ended(self, end: dict[str, Any]) -> None:
        self.ended = True
        self.code = end["code"]
        self.reason = end["reason"]
        self.stderr_tail = base64.b64decode(end["stderr"])

    def write(self, data: bytes) -> None:
        """Waits while the command does not read. After the command's end the bytes go nowhere."""
        for at in range(0, len(data), wire.MAX_CHUNK):
            self._order(wire.STDIN, data[at : at + wire.MAX_CHUNK])

    def close_stdin(self) -> None:
        """End of its stdin."""
        self._order(wire.CLOSE_STDIN)

    def kill(self) -> None:
        """Kills it with everything it started; read on until `ended`."""
        self._order(wire.KILL)

    def _order(self, kind: bytes, data: bytes = b"") -> None:
        if self.ended or self._sock.fileno() < 0:
            return
        self._sock.settimeout(CALL_SECONDS)
        try:
            self._sock.sendall(wire.pack_chunk(kind, data))
        except TimeoutError:
            raise errors.SandboxUnavailable("sandboxd does not take any more input.", FIX) from None
        except OSError:
            pass  # it ended meanwhile; `read` tells
        finally:
            self._sock.setblocking(False)

    def close(self) -> None:
        """Detaches."""
        self._sock.close()


class LocalSandbox:
    """See `sandboxes.backends.base.Sandbox`."""

    backend = "local"

    def __init__(self, connections: Connections, sandbox_id: str, role: Role, created_at: float) -> None:
        self._connections = connections
        self.id = sandbox_id
        self.role = role
        self.created_at = created_at

    def _call(
        self, op: str, body: bytes = b"", seconds: float = CALL_SECONDS, **args: Any
    ) -> tuple[dict[str, Any], bytes]:
        return self._connections.call({"op": op, "box": self.id, **args}, body, seconds)

    def run(
        self,
        argv: Sequence[str] | str,
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        output_limit: int = 1 << 20,
    ) -> ExecResult:
        """Runs a command to its end."""
        head, body = self._call(
            "run",
            stdin,
            timeout + SLACK_SECONDS,
            argv=_argv(argv),
            cwd=cwd,
            env=dict(env or {}),
            timeout=timeout,
            limit=output_limit,
        )
        return ExecResult(
            code=head["code"],
            stdout=body[: head["stdout"]],
            stderr=body[head["stdout"] :],
            timed_out=head["timed_out"],
            truncated=head["truncated"],
            duration_ms=head["duration_ms"],
        )

    def start(
        self,
        argv: Sequence[str] | str,
        *,
        exec_id: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
    ) -> LocalExec:
        """Starts a command that outlives this client. Raises SandboxFailed (`exec_exists`) for an id in use."""
        return self._stream(
            "start", exec_id, 0, argv=_argv(argv), cwd=cwd, env=dict(env or {}), timeout=timeout, stdin=stdin
        )

    def reattach(self, exec_id: str, offset: int = 0) -> LocalExec:
        """Comes back to a command."""
        return self._stream("reattach", exec_id, offset)

    def _stream(self, op: str, exec_id: str, offset: int, **args: Any) -> LocalExec:
        head = {"op": op, "box": self.id, "exec_id": exec_id, "offset": offset, **args}
        sock = self._connections.open()
        try:
            sock.settimeout(CALL_SECONDS)
            sock.sendall(wire.pack(head))
            answer, _ = read_answer(sock)
            raise_for(answer, head)
        except (OSError, EOFError) as e:
            sock.close()
            raise errors.SandboxUnavailable(f"sandboxd broke off: {e}", FIX) from None
        except BenchwrightError:
            sock.close()
            raise
        return LocalExec(sock, exec_id, offset)

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Writes a whole file."""
        self._call("write", data, 2 * CALL_SECONDS, path=path, mode=mode)

    def read(self, path: str, limit: int = 64 << 20) -> bytes:
        """Reads a whole file."""
        return self._call("read", b"", 2 * CALL_SECONDS, path=path, limit=limit)[1]

    def list(self, path: str) -> List[Entry]:
        """The entries of a folder, by name."""
        fields = self._call("list_files", path=path)[1].split(b"\0")
        rows = zip(fields[0::3], fields[1::3], fields[2::3], strict=False)
        entries = [Entry(os.fsdecode(name), kind.decode(), int(size)) for kind, size, name in rows]
        return sorted(entries, key=lambda e: e.name)

    def snapshot(self, *, seal: bool) -> SnapshotInfo:
        """Saves `/workspace`."""
        head, _ = self._call("snapshot", b"", 10 * CALL_SECONDS, seal=seal)
        return SnapshotInfo(head["id"], head["digest"], head["bytes"], head["duration_ms"])

    def pause(self) -> None:
        """Stops every process."""
        self._call("pause")

    def resume(self) -> None:
        """Lets them go on."""
        self._call("resume")

    def extend(self, deadline_s: float) -> None:
        """A new deadline, in seconds from now."""
        self._call("extend", deadline_s=deadline_s)

    def kill(self) -> None:
        """Ends it; no error when it is gone already."""
        self._call("kill")

    def refusals(self, since: float = 0) -> List[Refusal]:
        """Hosts that were refused."""
        found = self._call("refusals", since=since)[0]["refusals"]
        return [Refusal(**{**one, "role": Role(one["role"])}) for one in found]


class LocalBackend:
    """See `sandboxes.backends.base.Backend`."""

    name = "local"

    def __init__(self, path: Path | None = None) -> None:
        self._connections = Connections(path or sandboxd_socket())

    def capabilities(self) -> Capabilities:
        """What sandboxd found out at its start; unavailable while it does not answer."""
        try:
            head, _ = self._connections.call({"op": "capabilities"}, seconds=CONNECT_SECONDS)
        except errors.SandboxUnavailable as e:
            return Capabilities(
                "namespaces", "advisory", "watchdog", "enforced+logged", True, True, False, e.reason, e.fix
            )
        return Capabilities(**head["capabilities"])

    def create(
        self,
        *,
        role: Role,
        labels: Mapping[str, str],
        size: Size = DEFAULT_SIZE,
        network: Network = NO_NETWORK,
        snapshot: str | None = None,
        deadline_s: float = 3600,
        env: Mapping[str, str] | None = None,
        model_port: bool = False,
    ) -> LocalSandbox:
        """A new sandbox."""
        head = {
            "op": "create",
            "role": role,
            "labels": dict(labels),
            "size": asdict(size),
            "network": asdict(network),
            "snapshot": snapshot,
            "deadline_s": deadline_s,
            "env": dict(env or {}),
            "model_port": model_port,
        }
        return self._sandbox(self._connections.call(head)[0])

    def attach(self, sandbox_id: str) -> LocalSandbox:
        """An existing sandbox."""
        return self._sandbox(self._connections.call({"op": "attach", "box": sandbox_id})[0])

    def _sandbox(self, about: dict[str, Any]) -> LocalSandbox:
        return LocalSandbox(self._connections, about["id"], Role(about["role"]), about["created_at"])

    def list(self, labels: Mapping[str, str] | None = None) -> List[SandboxInfo]:
        """Sandboxes that carry all these labels."""
        boxes = self._connections.call({"op": "list", "labels": dict(labels or {})})[0]["boxes"]
        return [
            SandboxInfo(b["id"], Role(b["role"]), b["labels"], b["created_at"], b["deadline_at"], b["state"])
            for b in boxes
        ]

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Forgets a snapshot."""
        self._connections.call({"op": "delete_snapshot", "snapshot": snapshot_id})

    def link_model_port(self, work_id: str, proxy_id: str, tag: str) -> None:
        """Lets a gateway serve the model port of another sandbox."""
        self._connections.call({"op": "link_model_port", "work": work_id, "proxy": proxy_id, "tag": tag})
