"""Running a program against its tests, under limits.

Programs run in children of a small fork server (`fork_server/serve.py`): no inherited environment, an empty folder, no
stdin unless given, a limit on processor time, wall time, memory, file size and output. When one ends, everything it
started is killed. A program over its limits is a failing program, not an error of the infrastructure; a fork server
that cannot be started is an error and raises.

The limits are no security boundary: the sandbox around the scorer is. A program that shares a process with its tests
could forge what they report; leaving early, by any way of exiting, does not pass.
"""

import base64
import json
import os
import select
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional


class ProgramResult(NamedTuple):
    """How a program ended.

    `reason`: "passed" (ran to its last statement), "failed" (exception or exit code), "early_exit", "timeout",
    "memory_limit", "crash" (a signal). `seconds` of wall time. stdout and stderr are bounded; `cut` says so.
    """

    ok: bool
    reason: str
    code: Optional[int]
    stdout: str
    stderr: str
    seconds: float
    error: Optional[str]
    message: Optional[str]
    cut: bool


class RunnerBroken(RuntimeError):
    """Programs cannot be run here at all; this says nothing about the program."""


def _holds_packages(folder: str) -> bool:
    """Whether installed packages lie there. The scorer's own folder and its helpers are not for programs."""
    if os.path.basename(folder) in ("site-packages", "dist-packages"):
        return True
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


class _Server:
    """One fork server process."""

    def __init__(self) -> None:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fork_server", "serve.py")
        packages = [entry for entry in sys.path if _holds_packages(entry)]
        # A fixed hash seed: the same program must end the same way twice.
        env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
        for name in ("TMPDIR", "LD_LIBRARY_PATH"):
            if name in os.environ:
                env[name] = os.environ[name]
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-s", "-S", "-B", script, json.dumps(packages)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise RunnerBroken(f"cannot start {sys.executable}: {error}") from None
        self.pid = os.getpid()

    def ask(self, request: Dict[str, Any], patience: float) -> Optional[Dict[str, Any]]:
        """The answer, or None when the server died or said nothing in time."""
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        data = memoryview(json.dumps(request).encode("ascii") + b"\n")
        try:
            while data:
                data = data[process.stdin.write(data) or 0 :]
        except OSError:
            return None
        give_up = time.monotonic() + patience
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        pieces: List[bytes] = []
        while True:
            left = give_up - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000 + 1):
                if left <= 0:
                    return None
                continue
            piece = os.read(process.stdout.fileno(), 1 << 20)
            if not piece:
                return None
            pieces.append(piece)
            if piece.endswith(b"\n"):
                answer: Dict[str, Any] = json.loads(b"".join(pieces))
                return answer

    def close(self) -> None:
        """End it, with what it runs."""
        if self.pid != os.getpid():
            return
        process = self.process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
        try:
            # Closing stdin makes it kill its program and leave.
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Pool:
    """As many servers as processors: more programs at once would only take each other's time."""

    def __init__(self) -> None:
        try:
            processors = len(os.sched_getaffinity(0))
        except AttributeError:
            processors = os.cpu_count() or 1
        self.room = threading.BoundedSemaphore(max(1, min(16, processors)))
        self.idle: List[_Server] = []

    def run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        with self.room:
            # An idle server may have died since; the second try is on a new one, so that its death is the program's.
            for fresh in (False, True):
                server = _Server() if fresh or not self.idle else self.idle.pop()
                try:
                    answer = server.ask(request, request["wall"] + 20)
                except BaseException:
                    server.close()
                    raise
                if answer is not None and "broken" not in answer:
                    self.idle.append(server)
                    return answer
                server.close()
                if answer is not None:
                    raise RunnerBroken(f"cannot run programs: {answer['broken']}")
            return {"ok": False, "reason": "crash", "error": "the program took its supervisor down"}


_pool: Optional[_Pool] = None
_lock = threading.Lock()


def _the_pool() -> _Pool:
    global _pool
    with _lock:
        if _pool is None:
            _pool = _Pool()
        return _pool


def _forget() -> None:
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    # A forked copy must not talk on its parent's pipes.
    os.register_at_fork(after_in_child=_forget)


def run_program(
    code: str,
    *,
    stdin: str = "",
    seconds: float = 5.0,
    memory_mb: int = 1024,
    output_limit: int = 1 << 20,
    file_mb: int = 16,
) -> ProgramResult:
    """Run one Python program. `seconds` bounds its processor time; its wall time may be twice that and a second.

    Raises RunnerBroken when no program can be run here.
    """
    request = {
        "code": code.encode("utf-8", "replace").decode("utf-8"),
        "stdin": base64.b64encode(stdin.encode("utf-8", "surrogateescape")).decode(),
        "cpu": seconds,
        "wall": 2 * seconds + 1,
        "memory_mb": memory_mb,
        "output_limit": output_limit,
        "file_mb": file_mb,
        "token": os.urandom(12).hex(),
        "argv": ["program.py"],
    }
    answer = _the_pool().run(request)
    return ProgramResult(
        ok=bool(answer.get("ok")),
        reason=answer["reason"],
        code=answer.get("code"),
        stdout=base64.b64decode(answer.get("stdout", "")).decode("utf-8", "replace"),
        stderr=base64.b64decode(answer.get("stderr", "")).decode("utf-8", "replace"),
        seconds=float(answer.get("seconds", 0.0)),
        error=answer.get("error"),
        message=answer.get("message"),
        cut=bool(answer.get("cut")),
    )


def run_tests(code: str, tests: str, *, seconds: float = 3.0, memory_mb: int = 1024) -> ProgramResult:
    """Run a program and then its tests, in one namespace. `ok` only when the last test statement was reached."""
    return run_program(code + "\n\n" + tests, seconds=seconds, memory_mb=memory_mb, output_limit=16 << 10)


def same_output(got: str, wanted: str) -> bool:
    """Equal line by line, without trailing spaces and trailing blank lines."""
    left = [line.rstrip() for line in got.rstrip().split("\n")]
    return left == [line.rstrip() for line in wanted.rstrip().split("\n")]


def run_in_out(code: str, stdin: str, expected: str, *, seconds: float = 5.0, memory_mb: int = 1024) -> ProgramResult:
    """Run a program that reads stdin and prints; `ok` when it ends well and prints what was expected.

    A program of this kind may end with `sys.exit(0)`.
    """
    result = run_program(code, stdin=stdin, seconds=seconds, memory_mb=memory_mb)
    ended = result.ok or (result.reason == "early_exit" and result.code == 0)
    right = ended and same_output(result.stdout, expected)
    return result._replace(ok=right, reason="passed" if right else "failed" if ended else result.reason)
