"""What a running supervisor leaves in `<state>/run` for other commands: its lock, its status, its children's ids.

Standard library only. The lock is the truth about "is it up": the kernel drops it however the supervisor ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from benchwright.lib.paths import state_dir


def folder() -> Path:
    """`<state>/run`."""
    return state_dir() / "run"


def take_lock() -> int | None:
    """The supervisor's lock as a descriptor to keep open, or None when another one holds it. Writes our pid into it."""
    fd = os.open(folder() / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return fd


def supervisor_pid() -> int | None:
    """The process that holds the lock; None when nothing is up."""
    try:
        fd = os.open(folder() / "supervisor.lock", os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with contextlib.suppress(ValueError):
            return int(os.pread(fd, 32, 0).decode().strip())
        return None
    else:
        return None
    finally:
        os.close(fd)


def write_status(**fields: Any) -> None:
    """Replaces `status.json`: url, ready, sign_in. `url` alone is also in a file of its own, for shell scripts."""
    _replace(folder() / "status.json", json.dumps(fields))
    if fields.get("url"):
        _replace(folder() / "url", str(fields["url"]) + "\n")


def read_status() -> dict[str, Any]:
    """The last status written; {} when there is none."""
    try:
        found = json.loads((folder() / "status.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def clear() -> None:
    """Nothing is up any more."""
    for name in ("status.json", "url", "children.json"):
        (folder() / name).unlink(missing_ok=True)


def write_children(pids: dict[str, int]) -> None:
    """Remembers the children, each with its start time: a number alone may belong to somebody else tomorrow."""
    known = {name: [pid, started(pid)] for name, pid in pids.items()}
    _replace(folder() / "children.json", json.dumps(known))


def end_orphans(grace: float = 3.0) -> list[str]:
    """Ends what a killed supervisor left running, whole groups; returns their names."""
    try:
        known: dict[str, list[Any]] = json.loads((folder() / "children.json").read_text())
    except (OSError, ValueError):
        return []
    groups = {name: int(pid) for name, (pid, start) in known.items() if start and started(int(pid)) == start}
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in groups.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and any(group_alive(pid) for pid in groups.values()):
            time.sleep(0.05)
    (folder() / "children.json").unlink(missing_ok=True)
    return sorted(groups)


def group_alive(pid: int) -> bool:
    """Is anything left in this process group?"""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def started(pid: int) -> str | None:
    """When a process started, in whatever unit the system uses; None when it is gone."""
    try:
        # The command's name may hold anything, a closing parenthesis too: count from the last one.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():
            return None
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    fresh.replace(path)
