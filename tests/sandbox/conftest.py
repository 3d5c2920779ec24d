"""A sandboxd of the tests' own, as we are and (when we are root) as an ordinary user too."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchwright.lib.paths import ROOT
from sandboxes.backends.base import Sandbox
from sandboxes.backends.conformance import Ground
from sandboxes.backends.local.client import LocalBackend
from sandboxes.backends.local.cpu import CpuGroups
from sandboxes.backends.local.reach import open_to_all

ORDINARY_UID = 61500


@dataclass
class Daemon:
    """One sandboxd, with a state folder that goes away with it."""

    folder: Path
    ordinary: bool = False
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "run" / "rpc.sock"

    @property
    def backend(self) -> LocalBackend:
        return LocalBackend(self.socket)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        argv = [sys.executable]
        path = str(ROOT)
        if self.ordinary:
            # The interpreter of the venv may lie in root's home; the system's own serves everybody.
            argv = ["/usr/bin/setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups"]
            argv += ["--inh-caps=-all", "/usr/bin/python3"]
            path += f":{ROOT}/.venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "BENCHWRIGHT_STATE": str(self.folder / "state"),
            "BENCHWRIGHT_SANDBOXD": str(self.socket),
            "DATABASE_URL": "postgres://host-secret",
            "BENCHWRIGHT_SECRET_KEY": "host-secret",
            **self.env,
        }
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, "-m", "sandboxes.backends.local.daemon"], env=env, stdout=log, stderr=log, cwd="/",
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 20
        while not self.socket.exists() or not self.backend.capabilities().available:
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"sandboxd did not start: {self.log}")
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(20)

    def root(self) -> Path:
        """Where it keeps its boxes."""
        if self.ordinary or os.geteuid() != 0:
            return self.folder / "state" / "sandboxes"
        code = "from sandboxes.backends.local.host import read_host; print(read_host().root)"
        env = {"PYTHONPATH": str(ROOT), "BENCHWRIGHT_STATE": str(self.folder / "state"), "PATH": "/usr/bin:/bin"}
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        return Path(out.stdout.strip())

    def remove(self) -> None:
        self.stop()
        root = self.root()
        if not root.is_relative_to(self.folder):
            shutil.rmtree(root.parent, ignore_errors=True)
            CpuGroups(root.parent.name.removeprefix("benchwright-"), True).close()  # a killed daemon clears nothing
        shutil.rmtree(self.folder, ignore_errors=True)


def new_daemon(ordinary: bool = False, **env: str) -> Daemon:
    """Not yet started. The folder's name is short: a Unix socket's path must fit in 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="bwt-"))
    if ordinary:
        os.chown(folder, ORDINARY_UID, ORDINARY_UID)
    return Daemon(folder, ordinary, env)


def _system_python_will_do() -> bool:
    if os.geteuid() != 0 or not open_to_all(str(ROOT / "sandboxes")) or not os.path.exists("/usr/bin/setpriv"):
        return False
    try:
        code = "import sys; print(sys.version_info >= (3, 11))"
        return subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, check=True).stdout == b"True\n"
    except (OSError, subprocess.CalledProcessError):
        return False


_KINDS = ["as_we_are"] + (["ordinary_user"] if _system_python_will_do() else [])


@pytest.fixture(scope="session", params=_KINDS)
def daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """A running sandboxd; `localhost` is a host that its operator trusts."""
    one = new_daemon(ordinary=request.param == "ordinary_user", BENCHWRIGHT_TRUSTED_HOSTS="localhost")
    try:
        one.start()
        yield one
    finally:
        one.remove()


@pytest.fixture
def own_daemon() -> Iterator[Daemon]:
    """One to be killed and started again."""
    one = new_daemon()
    try:
        one.start()
        yield one
    finally:
        one.remove()


@pytest.fixture
def backend(daemon: Daemon) -> LocalBackend:
    """The session's backend."""
    return daemon.backend


@pytest.fixture
def ground(backend: LocalBackend) -> Iterator[Ground]:
    with Ground(backend) as one:
        yield one


@pytest.fixture
def web() -> Iterator[int]:
    """A service of the host on 127.0.0.1; its port."""

    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"path": self.path, "host": self.headers["Host"]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def python(box: Sandbox, code: str, *, timeout: float = 30) -> str:
    """What the code prints in the box, errors included."""
    result = box.run(["sh", "-c", '"$BW_PYTHON" -c "$0"', code], timeout=timeout)
    return (result.stdout + result.stderr).decode(errors="replace")
