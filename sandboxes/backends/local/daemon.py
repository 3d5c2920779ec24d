"""sandboxd: owns every local box of this installation. `python -m sandboxes.backends.local.daemon`.

One process and one event loop: a box dies with the thread that forked it, so that thread must live as long as the
daemon. Boxes outlive the web and worker processes that ask for them; they do not outlive the daemon.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import fcntl
import logging
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

from sandboxes.backends.local.host import Host, read_host
from sandboxes.backends.local.house import House
from sandboxes.backends.local.rpc import Rpc

log = logging.getLogger("sandboxd")
THREADS = 32


def main() -> int:
    """Runs until SIGTERM or SIGINT. 0 = ended as asked; 1 = could not start."""
    logging.basicConfig(format="%(asctime)s sandboxd %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    # Threads here only resolve names and read disks; none of them holds a lock that a forked child will want.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*multi-threaded.*fork")
    os.umask(0o022)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    for name in os.listdir("/proc/self/fd") if sys.platform == "linux" else []:
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)  # whatever our parent left open must not reach a box
            except OSError:
                pass
    host = read_host()
    try:
        lock = _only_one(host)
    except OSError as e:
        log.error("cannot start: %s", e)
        return 1
    if lock is None:
        log.error("another sandboxd owns %s", host.root)
        return 1
    try:
        asyncio.run(_serve(host))
    finally:
        os.close(lock)
    return 0


def _only_one(host: Host) -> int | None:
    host.root.mkdir(parents=True, exist_ok=True)
    lock = os.open(host.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


async def _serve(host: Host) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(THREADS))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    house = House(host)
    rpc = Rpc(house)
    _prepare_socket(host.socket)
    await house.open()
    server = await asyncio.start_unix_server(rpc.connection, str(host.socket), limit=1 << 20, backlog=256)
    host.socket.chmod(0o600)
    log.info("listening on %s", host.socket)
    await stop.wait()
    server.close()
    await house.close()
    host.socket.unlink(missing_ok=True)


def _prepare_socket(path: Path) -> None:
    """The socket's folder is ours alone; a folder that somebody else put there is refused."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    if path.parent.is_symlink() or path.parent.stat().st_uid != os.geteuid():
        raise PermissionError(f"{path.parent} belongs to somebody else")
    path.parent.chmod(0o700)
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
