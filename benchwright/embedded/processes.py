"""One supervised process: started in a group of its own, restarted with growing pauses, ended with everything it
forked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchwright.embedded.logs import LineSink
from benchwright.embedded.runfiles import group_alive
from benchwright.lib.paths import ROOT

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
CALM_SECONDS = 60.0  # deaths longer ago than this are forgiven


@dataclass(frozen=True)
class Spec:
    """What to run. `grace`: signals to the leader, each with the seconds it gets before the next; then the group is
    killed.
    """

    name: str
    argv: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)
    grace: tuple[tuple[int, float], ...] = ((signal.SIGTERM, 8.0),)
    pass_fds: tuple[int, ...] = ()


class Child:
    """A process that should be running."""

    def __init__(self, spec: Spec, sink: LineSink) -> None:
        self.spec, self.sink = spec, sink
        self.process: subprocess.Popen[bytes] | None = None
        self.restart_at = 0.0
        self._deaths: list[float] = []
        self._signals: list[tuple[int, float]] = []
        self._deadline = 0.0

    @property
    def running(self) -> bool:
        """Has it been started and not yet been buried?"""
        return self.process is not None

    @property
    def fd(self) -> int:
        """Its output, to be selected on. Only while running."""
        assert self.process is not None and self.process.stdout is not None
        return self.process.stdout.fileno()

    def start(self) -> None:
        """A new session: a Ctrl-C at the terminal reaches the supervisor alone, which then ends things in order."""
        self.process = subprocess.Popen(
            list(self.spec.argv), env={**os.environ, **self.spec.env}, cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, pass_fds=self.spec.pass_fds,
        )  # fmt: skip
        os.set_blocking(self.fd, False)

    def pump(self) -> bool:
        """Takes over what it printed; False at the end of its output."""
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.sink.feed(data)

    def bury(self) -> int:
        """After its death: what it forked goes too, so that a restart finds no rival. Returns the exit code."""
        assert self.process is not None and self.process.stdout is not None
        code = self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.pump()
        self.process.stdout.close()
        self.process = None
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < CALM_SECONDS] + [now]
        self.restart_at = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (len(self._deaths) - 1))
        return code

    @property
    def recent_deaths(self) -> int:
        """How often it died within the last minute."""
        return len(self._deaths)

    def ask_to_stop(self) -> None:
        """Begins the way out: the gentle signal first."""
        self._signals = [*self.spec.grace, (signal.SIGKILL, 5.0)]
        self._deadline = 0.0

    def stopping_step(self, hurry: bool = False) -> bool:
        """Goes on with the way out; True when nothing is left of it."""
        if self.process is None:
            return True
        if self.process.poll() is not None:
            self.bury()
            return True
        now = time.monotonic()
        if hurry and self._signals and self._signals[0][0] != signal.SIGKILL:
            self._signals = [(signal.SIGKILL, 5.0)]
            self._deadline = 0.0
        if now >= self._deadline and self._signals:
            number, seconds = self._signals.pop(0)
            self._deadline = now + seconds
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if number == signal.SIGKILL:
                    os.killpg(self.process.pid, number)
                else:
                    self.process.send_signal(number)
        return False


def gone(pid: int, seconds: float) -> bool:
    """Waits until a process group that is not our child has ended."""
    deadline = time.monotonic() + seconds
    while group_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def log_path(state: Path, name: str) -> Path:
    """Where a process's output is kept."""
    return state / "logs" / f"{name}.log"
