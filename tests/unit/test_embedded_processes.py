"""Supervised processes, their logs, their listening socket, and what is remembered of them."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchwright.embedded import logs, runfiles
from benchwright.embedded.listener import open_listener, url_of
from benchwright.embedded.logs import LineSink, Terminal
from benchwright.embedded.processes import Child, Spec


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("BENCHWRIGHT_STATE", str(tmp_path))
    monkeypatch.delenv("BENCHWRIGHT_BASE_URL", raising=False)


@pytest.fixture
def child(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Child]]:
    """A started process that runs some Python; whatever is left of it goes with the test."""
    made: list[Child] = []

    def start(code: str, grace: float = 5.0) -> Child:
        spec = Spec("web", [sys.executable, "-u", "-c", code], grace=((signal.SIGTERM, grace),))
        one = Child(spec, LineSink("web", tmp_path / "web.log", Terminal(colours=False)))
        one.start()
        made.append(one)
        return one

    yield start
    for one in made:
        if one.process is not None:
            one.process.kill()
            one.bury()
        one.sink.close()


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def test_what_a_process_prints_is_in_its_file_and_prefixed_on_the_terminal(
    child: Callable[..., Child], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = child("print('hello')")
    assert one.process is not None
    one.process.wait()
    assert one.bury() == 0
    assert (tmp_path / "web.log").read_text() == "hello\n"
    assert capsys.readouterr().out == "web      │ hello\n"


def test_a_terminal_is_never_steered_by_what_a_process_prints(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(colours=False).line("worker", "\x1b[2J\x07gone\r\n")
    assert not set(capsys.readouterr().out) & {"\x1b", "\x07", "\r"}


def test_a_line_without_end_is_shown_in_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = LineSink("web", tmp_path / "x.log", Terminal(colours=False))
    sink.feed(b"x" * (logs.LINE_LIMIT + 1))
    assert len(sink._rest) == 0
    sink.close()


def test_a_log_over_its_limit_is_moved_aside_at_start(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    for text in ("first", "second"):
        log.write_text(text)
        logs.rotate(log, limit=3)
    assert not log.exists()
    assert (tmp_path / "a.log.1").read_text() == "second"
    assert (tmp_path / "a.log.2").read_text() == "first"


def test_the_death_of_a_process_takes_what_it_forked_with_it(child: Callable[..., Child], tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, os, signal\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=subprocess.DEVNULL)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); os.kill(os.getpid(), signal.SIGKILL)"
    )
    one = child(code)
    assert one.process is not None
    group = one.process.pid
    one.process.wait()
    assert one.bury() == -signal.SIGKILL
    until(lambda: not runfiles.group_alive(group) or _zombie(int((tmp_path / "pid").read_text())))


def _zombie(pid: int) -> bool:
    """A container without an init reaps nobody: dead, but still listed."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_each_death_in_a_row_makes_the_next_start_wait_longer(child: Callable[..., Child]) -> None:
    one = child("raise SystemExit(3)")
    pauses = []
    for _ in range(4):
        assert one.process is not None
        one.process.wait()
        one.bury()
        pauses.append(round(one.restart_at - time.monotonic(), 1))
        one.start()
    assert pauses == sorted(set(pauses)) and pauses[0] <= 0.2


def test_who_does_not_listen_is_killed_after_its_grace(child: Callable[..., Child]) -> None:
    one = child(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(60)", 0.2
    )
    until(lambda: one.pump() and one.sink.file.tell() > 0)
    one.ask_to_stop()
    until(one.stopping_step)
    assert one.process is None


def test_a_taken_port_gives_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with open_listener("127.0.0.1", port) as found:
            assert port < found.getsockname()[1] < port + 100


def test_a_host_that_is_not_ours_is_refused() -> None:
    with pytest.raises(OSError):
        open_listener("192.0.2.1", 8800)


def test_the_url_is_one_that_a_browser_here_can_open() -> None:
    with open_listener("0.0.0.0", 0) as found:
        assert url_of(found) == f"http://127.0.0.1:{found.getsockname()[1]}"


def test_only_one_supervisor_holds_the_lock() -> None:
    assert runfiles.supervisor_pid() is None
    lock = runfiles.take_lock()
    assert lock is not None
    assert runfiles.take_lock() is None
    assert runfiles.supervisor_pid() == os.getpid()
    os.close(lock)
    assert runfiles.supervisor_pid() is None


def test_what_a_killed_supervisor_left_behind_is_ended(child: Callable[..., Child]) -> None:
    one = child("import time; time.sleep(60)")
    assert one.process is not None
    runfiles.write_children({"worker": one.process.pid})
    assert runfiles.end_orphans(grace=0.3) == ["worker"]
    assert one.process.wait(5) == -signal.SIGTERM


def test_a_number_that_now_belongs_to_another_process_is_left_alone(child: Callable[..., Child]) -> None:
    one = child("import time; time.sleep(60)")
    assert one.process is not None
    (runfiles.folder() / "children.json").write_text(f'{{"worker": [{one.process.pid}, "1"]}}')
    assert runfiles.end_orphans() == []
    assert one.process.poll() is None


def test_the_status_with_its_link_is_for_our_eyes_only() -> None:
    runfiles.write_status(url="http://127.0.0.1:8800", ready=True)
    assert runfiles.read_status() == {"url": "http://127.0.0.1:8800", "ready": True}
    assert (runfiles.folder() / "status.json").stat().st_mode & 0o077 == 0
    assert (runfiles.folder() / "url").read_text() == "http://127.0.0.1:8800\n"
    runfiles.clear()
    assert runfiles.read_status() == {}
