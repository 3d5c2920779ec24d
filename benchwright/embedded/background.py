"""A whole Benchwright behind another program: for `./bw demo`, benchmarks and tests.

It ends with whoever started it, even when that one is killed: its standard input is our pipe, and its end means stop.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from benchwright.embedded import runfiles
from benchwright.embedded.postgres import tail
from benchwright.embedded.services import Services, prepare_state
from benchwright.lib.paths import ROOT, state_dir

START_SECONDS = 240.0  # the first start makes a database cluster and runs every migration


class BackgroundFailed(Exception):
    """It did not come up. The message ends with the last lines of its log."""


@dataclass(frozen=True)
class Access:
    """What `manage.py bootstrap --json` gives out. The key replaces the one given out before."""

    url: str
    sign_in: str
    api_key: str


class Background:
    """Use as a context manager. `already`: was there one running, which is then used and left alone?

    `environ` is the environment of everything it starts; BENCHWRIGHT_STATE in it may name another installation's state.
    """

    def __init__(self, environ: dict[str, str] | None = None) -> None:
        self.environ = {**os.environ, **(environ or {}), "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
        self.process: subprocess.Popen[bytes] | None = None
        self.already = False
        self.url = ""

    def __enter__(self) -> Background:
        prepare_state(state_dir())
        self.already = runfiles.supervisor_pid() is not None
        try:
            if not self.already:
                with self.log.open("ab") as log:
                    self.process = subprocess.Popen(
                        [sys.executable, "-m", "benchwright.embedded.supervisor", "--while-stdin"], env=self.environ,
                        stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT, start_new_session=True,
                    )  # fmt: skip
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def log(self) -> Path:
        """What the supervisor printed."""
        return state_dir() / "logs" / "up.log"

    @property
    def alive(self) -> bool:
        """Is it still running?"""
        return self.process is None or self.process.poll() is None

    def close(self) -> None:
        """Stops it, if it is ours, and waits for its end."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            runfiles.end_orphans()
        self.process = None

    def access(self) -> Access:
        """An API key and a sign-in link. Raises BackgroundFailed."""
        status = runfiles.read_status()
        services = Services().addresses()
        env = {**self.environ, **services, "BENCHWRIGHT_BASE_URL": str(status["url"])}
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "bootstrap", "--json"], env=env, cwd=ROOT, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise BackgroundFailed(f"manage.py bootstrap failed:\n{done.stderr.strip()[-2000:]}")
        given = json.loads(done.stdout.strip().splitlines()[-1])
        return Access(str(status.get("local_url") or given["url"]), given["sign_in"], given["api_key"])

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not (status := runfiles.read_status()).get("ready"):
            if not self.alive or (self.process is None and runfiles.supervisor_pid() is None):
                raise BackgroundFailed(f"Benchwright did not start:\n{tail(self.log, 20)}")
            if time.monotonic() > deadline:
                raise BackgroundFailed(f"Benchwright did not start within {START_SECONDS:.0f} s:\n{tail(self.log, 20)}")
            time.sleep(0.05)
        self.url = str(status["url"])
