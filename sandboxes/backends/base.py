"""What every backend does: create, attach, list; and what a sandbox does: commands, files, snapshots.

Backends are reached through `sandboxes.backends.choose.open_backend`. Standard library only.
"""

from __future__ import annotations

from builtins import list as List
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from sandboxes.vocabulary import Role

WORKSPACE = "/workspace"
MODEL_PORT = 4000
EGRESS_PORT = 3128


@dataclass(frozen=True)
class Size:
    """What a sandbox may use. `cpus` is advisory where `Capabilities.cpu_limit` says so; megabytes are 2**20 bytes."""

    cpus: float = 1
    memory_mb: int = 1024
    processes: int = 256
    disk_mb: int = 2048
    file_mb: int = 512


@dataclass(frozen=True)
class Network:
    """The host policy of one sandbox.

    Patterns are an exact host, `*.domain`, `*`, each with an optional `:port`. A block rule beats an allow rule.
    Hosts that match `private_ok` may resolve to private or loopback addresses (or be such an address): endpoints that
    the account declared, and the operator's trusted hosts. `private_ok` alone allows nothing.
    """

    mode: Literal["allow", "deny"] = "deny"
    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    private_ok: tuple[str, ...] = ()


DEFAULT_SIZE = Size()
NO_NETWORK = Network()


@dataclass(frozen=True)
class Capabilities:
    """What a backend really enforces. Unavailable backends say why (`reason`) and what to do (`fix`)."""

    isolation: str  # namespaces | microvm | gvisor | container | none
    cpu_limit: str  # hard | advisory | none
    memory_limit: str  # hard | watchdog | none
    egress: str  # enforced+logged | enforced | none
    snapshots: bool
    pause: bool
    available: bool
    reason: str | None = None
    fix: str | None = None


@dataclass(frozen=True)
class SandboxInfo:
    """One line of `Backend.list`. Times are Unix seconds; `state` is running, paused or lost."""

    id: str
    role: Role
    labels: dict[str, str]
    created_at: float
    deadline_at: float | None
    state: str


@dataclass(frozen=True)
class ExecResult:
    """What a finished command left. `code` is None when it was killed for its time; signals are 128 + number."""

    code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    duration_ms: float


@dataclass(frozen=True)
class Entry:
    """One name in a folder; `kind` is file, dir, link or other; `size` is in bytes."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True)
class SnapshotInfo:
    """A saved workspace. `digest` covers paths, modes, kinds and contents; `bytes` counts this snapshot's own layer."""

    id: str
    digest: str
    bytes: int
    duration_ms: float


@dataclass(frozen=True)
class Refusal:
    """A host that a sandbox asked for and was refused, however often. Times are Unix seconds."""

    host: str
    port: int
    role: Role
    seen_count: int
    first_seen: float
    last_seen: float


class Exec(Protocol):
    """One connection to one started command, made for select(): wait for `fileno()`, then `read()`.

    The command outlives the connection: `close` only detaches, `Sandbox.reattach` comes back.
    """

    id: str
    offset: int  # bytes of stdout that read() has returned, counted from the start of the command
    ended: bool
    code: int | None  # None while it runs, and when it was killed
    reason: str | None  # once ended: exit | timeout | killed | lost
    stderr_tail: bytes  # once ended: the last 64 KiB

    def fileno(self) -> int:
        """The descriptor that becomes readable when `read` has something or the command ended."""

    def read(self) -> bytes:
        """New bytes of stdout without waiting; b"" = nothing now (look at `ended`)."""

    def write(self, data: bytes) -> None:
        """Bytes for its stdin; only if started with stdin=True."""

    def close_stdin(self) -> None:
        """End of its stdin."""

    def kill(self) -> None:
        """Kills it with everything it started."""

    def close(self) -> None:
        """Detaches; the command goes on."""


@runtime_checkable
class Sandbox(Protocol):
    """A running sandbox. Every method raises SandboxLost when it is gone, SandboxUnavailable when its host is."""

    id: str
    role: Role
    backend: str
    created_at: float

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
        """Runs to the end; a string goes through `/bin/sh -c`. stdout and stderr are each cut at `output_limit`."""

    def start(
        self,
        argv: Sequence[str] | str,
        *,
        exec_id: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
    ) -> Exec:
        """Starts a command that survives this client. `exec_id` is the caller's, unique in the sandbox."""

    def reattach(self, exec_id: str, offset: int = 0) -> Exec:
        """Replays stdout from byte `offset`, then follows. Raises ExecNotFound."""

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Writes a whole file, making its folders. A reader sees the old bytes or the new ones, never a part."""

    def read(self, path: str, limit: int = 64 << 20) -> bytes:
        """A whole regular file. Raises OutputTooLarge beyond `limit`, FileRefused when it can't be read."""

    def list(self, path: str) -> List[Entry]:
        """The entries of a folder by name (at most 10,000). Raises FileRefused."""

    def snapshot(self, *, seal: bool) -> SnapshotInfo:
        """Saves `/workspace`. With `seal` the sandbox is stopped for good, and that costs nothing."""

    def pause(self) -> None:
        """Stops every process until `resume`."""

    def resume(self) -> None:
        """Lets a paused sandbox go on."""

    def extend(self, deadline_s: float) -> None:
        """Sets the deadline to `deadline_s` seconds from now."""

    def kill(self) -> None:
        """Ends it and frees everything; a second kill is no error."""

    def refusals(self, since: float = 0) -> List[Refusal]:
        """Hosts refused so far, last seen at or after `since` (Unix seconds)."""


class Backend(Protocol):
    """A place where sandboxes run."""

    name: str

    def capabilities(self) -> Capabilities:
        """What is enforced here; never raises for a backend that is merely not available."""

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
    ) -> Sandbox:
        """A new sandbox. Raises SandboxUnavailable (with the reason) or SnapshotNotFound."""

    def attach(self, sandbox_id: str) -> Sandbox:
        """An existing sandbox, after its first client died. Raises SandboxLost."""

    def list(self, labels: Mapping[str, str] | None = None) -> List[SandboxInfo]:
        """Sandboxes that carry all these labels."""

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Forgets a snapshot; unknown ones are no error. Sandboxes made from it live on."""

    def link_model_port(self, work_id: str, proxy_id: str, tag: str) -> None:
        """Lets the gateway in `proxy_id` serve 127.0.0.1:4000 of `work_id`; `tag` names it to the gateway."""
