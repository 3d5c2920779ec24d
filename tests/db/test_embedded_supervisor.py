"""The whole of `./bw up`: four processes and two servers, in a state folder of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchwright.embedded import runfiles
from benchwright.embedded.background import Background
from benchwright.embedded.services import Services
from benchwright.embedded.supervisor import answers
from benchwright.lib.paths import ROOT, runtime_dir, state_key


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with a space in its name, and the default port taken."""
    folder = Path(tempfile.mkdtemp(prefix="bw u "))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("BENCHWRIGHT_STATE", str(folder))
        monkeypatch.setenv("BENCHWRIGHT_PORT", str(taken.getsockname()[1]))
        for name in ("DATABASE_URL", "REDIS_URL", "BENCHWRIGHT_SANDBOXD", "BENCHWRIGHT_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        yield folder
    runfiles.end_orphans()
    Services().stop_unused()
    for left in (folder, runtime_dir(), Path(f"/var/lib/benchwright-{state_key()}")):
        shutil.rmtree(left, ignore_errors=True)


def children() -> dict[str, int]:
    return {name: pid for name, (pid, _) in json.loads((runfiles.folder() / "children.json").read_text()).items()}


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def command(name: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-m", f"benchwright.embedded.{name}"]
    return subprocess.run(arguments, env=env, capture_output=True, text=True, check=False, timeout=60)


def test_up_serves_mends_itself_and_leaves_nothing_behind_after_down(state: Path) -> None:
    with Background() as up:
        assert up.url != f"http://127.0.0.1:{os.environ['BENCHWRIGHT_PORT']}", "that port was taken"
        assert answers(up.url)
        assert (state / "run" / "url").read_text().strip() == up.url

        again = command("supervisor")
        assert again.returncode == 0 and f"already up at {up.url}" in again.stdout

        before = children()
        assert {"web", "worker", "beat", "sandboxd"} == set(before)
        for name in ("web", "worker"):
            os.killpg(before[name], signal.SIGKILL)
        until(lambda: all(children().get(name) not in (None, before[name]) for name in ("web", "worker")))
        # The listening socket outlived the process: a request waits for the new one instead of being refused.
        assert answers(up.url, seconds=30)
        after = children()
        assert command("down").stdout == "Stopped.\n"
        assert up.process is not None and up.process.wait(10) == 0
    assert not any(runfiles.group_alive(pid) for pid in after.values())
    assert Services().unreachable() == ["PostgreSQL", "Valkey"]
    assert runfiles.supervisor_pid() is None and runfiles.read_status() == {}
    assert command("down").stdout == "Nothing is running.\n"


def test_down_stops_what_a_killed_up_left(state: Path) -> None:
    with Background() as killed:
        left = children()
        assert killed.process is not None
        killed.process.kill()
        killed.process.wait()
        done = command("down")
        assert done.returncode == 0 and "worker" in done.stdout and "PostgreSQL" in done.stdout
    assert not any(runfiles.group_alive(pid) for pid in left.values())
