"""Runs programs, one at a time, each in a forked child under limits. Started as a script; talks JSON lines.

Request (stdin): {"code", "stdin": base64, "cpu": s, "wall": s, "memory_mb", "output_limit", "file_mb", "token", "argv"}
Answer (stdout): {"ok", "reason", "code", "signal", "stdout": base64, "stderr": base64, "seconds", "error", "cut"}

A fork costs 1 ms where a new interpreter costs 20. This process stays single-threaded, so that a fork is safe. It
adopts orphans: after a program has ended nothing it started is left, however it was detached.
"""

import atexit
import base64
import contextlib
import errno
import importlib
import json
import linecache
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import types

# Imported before the fork because test programs import them again and again. Their names are still unknown to a
# program until it imports them itself.
WARM = [
    "bisect",
    "collections",
    "copy",
    "dataclasses",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "operator",
    "re",
    "string",
    "typing",
]

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
STATUS_LIMIT = 8192


def _libc():
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None


LIBC = _libc()


def _prctl(option, value):
    if LIBC is not None:
        with contextlib.suppress(AttributeError):
            LIBC.prctl(option, value, 0, 0, 0)


def _limit(which, value):
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _child(request, folder, pipes):
    """The forked side. Never returns."""
    stdin_fd, out_fd, err_fd, status_fd = pipes
    status = {"error": None}
    code = 1
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for source, target in ((stdin_fd, 0), (out_fd, 1), (err_fd, 2)):
            os.dup2(source, target)
        keep = os.dup2(status_fd, 3, inheritable=False)
        os.closerange(4, 256)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        cpu = max(1, int(-(-request["cpu"] // 1)))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        _limit(resource.RLIMIT_AS, int(request["memory_mb"]) << 20)
        _limit(resource.RLIMIT_FSIZE, int(request["file_mb"]) << 20)
        _limit(resource.RLIMIT_CORE, 0)
        os.chdir(folder)
        os.environ.update({"HOME": folder, "TMPDIR": folder})
        random.seed(0)
        sys.stdin = _stream(0, "r")
        sys.stdout = _stream(1, "w")
        sys.stderr = _stream(2, "w")
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        sys.argv = request["argv"]
        main = types.ModuleType("__main__")
        main.__file__ = "program.py"
        sys.modules["__main__"] = main
        source, token = request["code"], request["token"]
        linecache.cache["program.py"] = (len(source), None, source.splitlines(True), "program.py")
        try:
            # Running it is what this process is for; the limits above and the sandbox around hold it.
            exec(compile(source, "program.py", "exec", dont_inherit=True), main.__dict__)  # noqa: S102
            # Said only here, after the last statement: a program that leaves early cannot pass.
            status["done"] = token
            code = 0
        except SystemExit as error:
            status["error"] = "SystemExit"
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            if not isinstance(error.code, (int, type(None))):
                print(error.code, file=sys.stderr)
        except BaseException as error:
            status["error"] = type(error).__name__
            status["message"] = str(error)[:500]
            traceback.print_exc()
        _flush()
        os.write(keep, json.dumps(status).encode("ascii", "replace"))
        if code == 0:
            getattr(threading, "_shutdown", lambda: None)()
            atexit._run_exitfuncs()
            _flush()
    except BaseException:
        code = code or 1
    finally:
        os._exit(code & 0xFF)


def _stream(fd, mode):
    errors = "surrogateescape" if mode == "r" else "backslashreplace"
    return open(fd, mode, encoding="utf-8", errors=errors, closefd=False)


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass


def _children():
    """Pids of all our children."""
    me = os.getpid()
    try:
        with open("/proc/self/task/%d/children" % me) as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        pass
    out = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return out
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == me:
                        out.append(int(name))
            except (OSError, ValueError, IndexError):
                continue
    return out


def _kill(pid, group=False):
    try:
        if group:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _bury():
    """Kill and reap whatever the program left. Orphans come to us, so nothing can hide."""
    give_up = time.monotonic() + 5
    while time.monotonic() < give_up:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for child in _children():
                _kill(child)
            time.sleep(0.001)


class Output:
    """The first `limit` bytes of a stream; the rest is read and dropped, so that the program never blocks on it."""

    def __init__(self, fd, limit):
        self.fd, self.limit, self.data, self.cut = fd, limit, bytearray(), False

    def read(self):
        """Take what is there; False at the end."""
        while True:
            try:
                piece = os.read(self.fd, 65536)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not piece:
                return False
            room = self.limit - len(self.data)
            if room < len(piece):
                self.cut = True
            self.data += piece[: max(0, room)]
            if len(piece) < 65536:
                return True


def run(request, wake_fd):
    """One program, from fork to burial."""
    folder = tempfile.mkdtemp(prefix="program-")
    read_ends, write_ends = [], []
    for _ in range(3):
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        read_ends.append(read_end)
        write_ends.append(write_end)
    text = base64.b64decode(request["stdin"])
    if text:
        stdin_fd = (
            os.memfd_create("stdin")
            if hasattr(os, "memfd_create")
            else os.open(os.path.join(folder, ".stdin"), os.O_RDWR | os.O_CREAT, 0o600)
        )
        view = memoryview(text)
        while view:
            view = view[os.write(stdin_fd, view) :]
        os.lseek(stdin_fd, 0, os.SEEK_SET)
    else:
        stdin_fd = os.open(os.devnull, os.O_RDONLY)
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(request, folder, (stdin_fd, *write_ends))
    os.close(stdin_fd)
    for fd in write_ends:
        os.close(fd)
    outputs = [Output(read_ends[0], request["output_limit"]), Output(read_ends[1], request["output_limit"])]
    outputs.append(Output(read_ends[2], STATUS_LIMIT))
    poll = select.poll()
    poll.register(wake_fd, select.POLLIN)
    poll.register(0, select.POLLHUP)
    by_fd = {output.fd: output for output in outputs}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    deadline = started + request["wall"]
    timed_out, wait_status = False, None
    while wait_status is None:
        left = deadline - time.monotonic()
        if left <= 0:
            timed_out = True
            break
        for fd, event in poll.poll(left * 1000 + 1):
            if fd == wake_fd:
                os.read(wake_fd, 4096)
            elif fd == 0:
                if event & (select.POLLHUP | select.POLLERR):
                    # Whoever asked is gone.
                    _kill(pid, group=True)
                    _bury()
                    shutil.rmtree(folder, ignore_errors=True)
                    os._exit(0)
            elif not by_fd[fd].read():
                poll.unregister(fd)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            wait_status = status
    seconds = time.monotonic() - started
    _kill(pid, group=True)
    if wait_status is None:
        _, wait_status = os.waitpid(pid, 0)
    _bury()
    for output in outputs:
        output.read()
        os.close(output.fd)
    try:
        os.rmdir(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
    return _answer(request, outputs, wait_status, timed_out, seconds)


def _answer(request, outputs, wait_status, timed_out, seconds):
    try:
        said = json.loads(bytes(outputs[2].data))
        said = said if isinstance(said, dict) else {}
    except ValueError:
        said = {}
    killed_by = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else 0
    code = os.WEXITSTATUS(wait_status) if os.WIFEXITED(wait_status) else None
    done = said.get("done") == request["token"]
    if timed_out or killed_by in (signal.SIGXCPU,):
        reason = "timeout"
    elif said.get("error") == "MemoryError":
        reason = "memory_limit"
    elif killed_by:
        reason = "crash"
    elif done and code == 0:
        reason = "passed"
    elif said.get("error") == "SystemExit" or (code == 0 and not done):
        reason = "early_exit"
    else:
        reason = "failed"
    return {
        "ok": reason == "passed",
        "reason": reason,
        "code": code,
        "signal": killed_by,
        "stdout": base64.b64encode(bytes(outputs[0].data)).decode(),
        "stderr": base64.b64encode(bytes(outputs[1].data)).decode(),
        "cut": outputs[0].cut or outputs[1].cut,
        "seconds": seconds,
        "error": str(said.get("error") or "")[:100] or None,
        "message": str(said.get("message") or "")[:500] or None,
    }


def main():
    """Requests until stdin closes."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Programs run as the same user: they must not write into this process.
    _prctl(PR_SET_DUMPABLE, 0)
    # Our own folder first: it is not for programs.
    del sys.path[0]
    for name in WARM:
        importlib.import_module(name)
    sys.path.extend(json.loads(sys.argv[1]) if len(sys.argv) > 1 else [])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    wake_fd, wake_write = os.pipe()
    os.set_blocking(wake_fd, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    # Anything that programs print goes to their own pipes; ours is kept where they cannot meet it by accident.
    answers = os.dup(1)
    requests = os.fdopen(os.dup(0), "rb")
    while True:
        line = requests.readline()
        if not line:
            return
        try:
            answer = run(json.loads(line), wake_fd)
        except OSError as error:
            answer = {"broken": "%s: %s" % (errno.errorcode.get(error.errno or 0, "OSError"), error)}
        data = json.dumps(answer).encode("ascii") + b"\n"
        while data:
            data = data[os.write(answers, data) :]


if __name__ == "__main__":
    main()
