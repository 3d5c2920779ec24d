"""What can go wrong with a sandbox.

    BenchwrightError
    ├── SandboxUnavailable   the backend cannot run sandboxes here: reason and fix
    ├── SandboxLost          this sandbox is gone
    ├── SandboxFailed        the sandbox is there, but it refused the operation
    │   └── FileRefused      a path in it cannot be read or written
    ├── SnapshotNotFound     no such snapshot
    ├── ExecNotFound         no such command in this sandbox
    └── OutputTooLarge       more bytes than the caller is ready to take

"Sandbox down" is never "command failed": a command's own failure is a code, not an exception.
"""

from __future__ import annotations

from benchwright.lib.errors import BenchwrightError


class SandboxUnavailable(BenchwrightError):
    """The backend cannot run sandboxes. `hint` says what to install, to set, or which backend to use instead."""

    code = "sandbox_unavailable"
    status = 503

    def __init__(self, reason: str, fix: str | None = None, **data: object) -> None:
        super().__init__(reason, hint=fix, data=dict(data))
        self.reason = reason
        self.fix = fix


class SandboxLost(BenchwrightError):
    """The sandbox is gone: killed, past its deadline, or its host went down."""

    code = "sandbox_lost"
    status = 410

    def __init__(self, sandbox_id: str, why: str = "") -> None:
        text = f"Sandbox {sandbox_id} is gone" + (f": {why}." if why else ".")
        super().__init__(text, data={"sandbox_id": sandbox_id})
        self.sandbox_id = sandbox_id


class SandboxFailed(BenchwrightError):
    """The sandbox lives, but could not do what was asked."""

    code = "sandbox_failed"
    status = 502


class FileRefused(SandboxFailed):
    """A path inside a sandbox cannot be read, listed or written. `data["errno"]` is the system's name, e.g. ENOENT."""

    code = "sandbox_file_refused"
    status = 404

    def __init__(self, path: str, errno_name: str, text: str) -> None:
        super().__init__(f"{path}: {text}", data={"path": path, "errno": errno_name})
        self.path = path
        self.errno_name = errno_name


class SnapshotNotFound(BenchwrightError):
    """There is no such snapshot; it was deleted or belongs to another host."""

    code = "snapshot_not_found"
    status = 404

    def __init__(self, snapshot_id: str) -> None:
        super().__init__(f"There is no snapshot {snapshot_id}.", data={"snapshot_id": snapshot_id})


class ExecNotFound(BenchwrightError):
    """No command of that id was ever started in this sandbox."""

    code = "exec_not_found"
    status = 404

    def __init__(self, exec_id: str) -> None:
        super().__init__(f"There is no command {exec_id} in this sandbox.", data={"exec_id": exec_id})


class OutputTooLarge(BenchwrightError):
    """More bytes than the caller said it takes. `data["limit"]` is that limit."""

    code = "output_too_large"
    status = 413

    def __init__(self, message: str, limit: int) -> None:
        super().__init__(message, data={"limit": limit})
