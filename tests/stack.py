"""A whole Benchwright to look at: one that runs already, or one started for the occasion on a state of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 180
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str:
    """Where the browser is: BENCHWRIGHT_CHROMIUM, else the system's."""
    for path in (os.environ.get("BENCHWRIGHT_CHROMIUM"), "/usr/bin/chromium", "/usr/bin/chromium-browser"):
        if path and Path(path).exists():
            return path
    raise RuntimeError("There is no Chromium. Debian: apt-get install --no-install-recommends chromium")


class Stack:
    """`with Stack(folder) as stack:` starts `./bw up`; `stack.url` is its address. Ends the one process it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
        self.env.pop("DJANGO_SETTINGS_MODULE", None)
        self.env |= {"BENCHWRIGHT_STATE": str(folder / "state"), "BENCHWRIGHT_PORT": "0", "BENCHWRIGHT_WORKERS": "2"}
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "up.log"

    def __enter__(self) -> Stack:
        with self._log.open("wb") as log:
            # Standard input is held open: when this process dies, however it dies, the stack ends too.
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "bw"), "up", "--while-stdin"],
                cwd=ROOT, env=self.env, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"./bw up ended with {self._process.returncode}:\n{self._tail()}")
            found = self._announced()
            if found and _answers(found):
                self.url = found
                return self
            time.sleep(0.3)
        self.__exit__(None, None, None)
        raise RuntimeError(f"./bw up was not ready in {START_SECONDS} s:\n{self._tail()}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def manage(self, *arguments: str) -> str:
        """The output of a manage.py command on this stack. Raises RuntimeError with what it said."""
        done = subprocess.run(
            [sys.executable, str(ROOT / "bw"), "manage", *arguments],
            cwd=ROOT, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"manage {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def sign_in_path(self) -> str:
        """The path of a fresh one-time link."""
        return "/" + self.manage("sign_in_link").strip().split("/", 3)[3]

    def _announced(self) -> str:
        for line in self._log.read_text(errors="replace").splitlines():
            if "Benchwright is up at " in line:
                return line.split("Benchwright is up at ", 1)[1].split()[0]
        return ""

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/healthz", timeout=2) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False
