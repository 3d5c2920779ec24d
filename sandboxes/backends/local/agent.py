"""Process 1 of a box: starts, supervises and kills commands on behalf of sandboxd. Standard library only.

It talks over one SOCK_SEQPACKET socket (descriptor number in argv[1]). In: marshalled dicts, with the command's pipes
as attached descriptors; only sandboxd can write there. Out: short ASCII lines, for sandboxd trusts nothing from here.

Each job runs under a supervisor of its own, a fork of this process that adopts every orphan of the command. So killing
a job reaches all that it started, however often that forked, and nothing gets lost in between. Imports are few on
purpose: a box should be ready in some 20 ms (json alone would cost 10).
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import marshal
import os
import resource
import select
import signal
import stat
import sys
import time

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
MSG_CMSG_CLOEXEC = 0x40000000
MAX_MESSAGE = 160 << 10
MAX_ENTRIES = 10_000
NICE = 5  # commands yield to us, and boxes to the web and the workers
DEFAULT_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ]

TYPE_CHECKING = False
if TYPE_CHECKING:  # the real typing module costs as long as json
    from typing import Any

    Message = dict[str, Any]  # from sandboxd: "op", "id" and what the job needs

libc = ctypes.CDLL(None, use_errno=True)
paused = False
sock: _socket.socket  # set by main
hub_fd = -1  # stays -1 when the box has none
processes = 0  # how many the commands may have; our own limit is higher, so that a full box still obeys
jobs: dict[int, int] = {}  # supervisor's pid -> job id


def send(text: str) -> None:
    """One line to sandboxd. Supervisors use it too: a datagram is never torn."""
    sock.send(text.encode("ascii"))


def children(pid: int) -> list[int]:
    """Pids whose parent is any thread of `pid`."""
    out: list[int] = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/children") as f:
                out += map(int, f.read().split())
    except OSError:
        pass
    return out


def descendants(pid: int) -> list[int]:
    """Everything below `pid` that is not yet dead."""
    out: list[int] = []
    todo = children(pid)
    while todo:
        one = todo.pop()
        todo += children(one)
        try:
            with open(f"/proc/{one}/stat", "rb") as f:
                if f.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                    continue
        except OSError:
            continue
        out.append(one)
    return out


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def kill_job(supervisor: int) -> None:
    """Kills the tree; the supervisor goes last.

    A large tree is first frozen, together with everything else in the box: that is one call, however short of processor
    time we are, and a fork bomb holds still.
    """
    for attempt in range(50):
        pids = descendants(supervisor)
        if not pids:
            break
        frozen = len(pids) > 8 or attempt > 2
        if frozen:
            freeze(signal.SIGSTOP)
            pids = descendants(supervisor)
        signal_all(pids, signal.SIGKILL)
        signal_all([supervisor], signal.SIGCONT)
        if frozen and not paused:
            freeze(signal.SIGCONT)
        time.sleep(0.002)
    signal_all([supervisor], signal.SIGKILL)


def freeze(number: int) -> None:
    """Signals everything in the box but us."""
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        pass  # nobody here but us


def find_program(name: str, env: dict[str, str], cwd: str) -> str:
    """The path that execvp would run, by the command's own PATH."""
    if "/" in name:
        return name
    for folder in env.get("PATH", "/usr/bin:/bin").split(":"):
        path = os.path.join(cwd, folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise OSError(errno.ENOENT, "not found")


def job_exec(m: Message, fds: dict[str, int]) -> int:
    """Starts the command; returns its pid."""
    os.chdir(m["cwd"])
    env = m["env"]
    null = None
    actions = []
    for target, key in enumerate("ioe"):
        fd = fds.get(key)
        if fd is None:
            if null is None:
                null = os.open("/dev/null", os.O_RDWR)
            fd = null
        actions.append((os.POSIX_SPAWN_DUP2, fd, target))
    if m.get("hub") and hub_fd >= 0:
        os.set_inheritable(hub_fd, True)
    return os.posix_spawn(
        find_program(m["argv"][0], env, m["cwd"]),
        m["argv"],
        env,
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=DEFAULT_SIGNALS,
    )


def job_write(m: Message, fds: dict[str, int]) -> None:
    """stdin into a file: first beside it, then renamed over it."""
    path = m["path"]
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    if os.path.isdir(path):
        raise OSError(errno.EISDIR, "is a folder")
    part = os.path.join(folder, f".bw-part-{os.getpid()}")
    out = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        got = 0
        while chunk := os.read(fds["i"], 1 << 20):
            got += len(chunk)
            view = memoryview(chunk)
            while view:
                view = view[os.write(out, view) :]
        if got != m["size"]:
            raise OSError(errno.EIO, "cut short")  # sandboxd died or gave up: leave the old file as it is
        os.fchmod(out, m["mode"])
        os.rename(part, path)
    except BaseException:
        os.unlink(part)
        raise


def job_read(m: Message, fds: dict[str, int]) -> None:
    """A regular file to stdout. One byte beyond the limit tells sandboxd that it is too large."""
    fd = os.open(m["path"], os.O_RDONLY | os.O_NONBLOCK)
    kind = os.fstat(fd).st_mode
    if stat.S_ISDIR(kind):
        raise OSError(errno.EISDIR, "is a folder")
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "not a regular file")
    left = m["limit"] + 1
    while left > 0 and (chunk := os.read(fd, min(left, 1 << 20))):
        left -= len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(fds["o"], view) :]


def job_list(m: Message, fds: dict[str, int]) -> None:
    """kind NUL size NUL name NUL …"""
    out = []
    with os.scandir(os.fsencode(m["path"])) as entries:
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            kind = b"other"
            for test, word in ((stat.S_ISREG, b"file"), (stat.S_ISDIR, b"dir"), (stat.S_ISLNK, b"link")):
                if test(info.st_mode):
                    kind = word
            out.append(b"%s\0%d\0%s\0" % (kind, info.st_size, entry.name))
            if len(out) >= MAX_ENTRIES:
                break
    view = memoryview(b"".join(out))
    while view:
        view = view[os.write(fds["o"], view) :]


JOBS = {"write": job_write, "read": job_read, "list": job_list}


def supervise(m: Message, fds: dict[str, int]) -> None:
    """The life of a job, in a process of its own. Never returns."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o022)
    os.nice(NICE)
    main = 0
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        if m["op"] == "exec":
            main = job_exec(m, fds)
        else:
            JOBS[m["op"]](m, fds)
    except (OSError, ValueError) as e:  # ValueError: a NUL in a name
        send(f"fail {m['id']} {getattr(e, 'errno', None) or errno.EINVAL}")
        os._exit(1)
    for fd in fds.values():
        os.close(fd)
    if not main:
        send(f"exit {m['id']} 0")
        os._exit(0)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == main:
            code = os.waitstatus_to_exitcode(status)
            send(f"exit {m['id']} {code if code >= 0 else 128 - code}")


def start(m: Message, fds: dict[str, int]) -> None:
    """Forks the supervisor of a new job."""
    try:
        pid = os.fork()
    except OSError as e:
        send(f"fail {m['id']} {e.errno or errno.EAGAIN}")
        return
    if pid == 0:
        try:
            supervise(m, fds)
        finally:
            os._exit(70)
    jobs[pid] = m["id"]


def reap() -> None:
    """Buries dead supervisors. What they left behind has nobody to answer for it any more, so it goes too."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        job = jobs.pop(pid, None)
        if job is not None:
            send(f"gone {job}")
        signal_all([c for c in children(1) if c not in jobs], signal.SIGKILL)


def receive() -> tuple[Message, dict[str, int]]:
    """The next message and its descriptors; leaves (and so ends the box) when sandboxd is gone."""
    data, ancillary, _, _ = sock.recvmsg(MAX_MESSAGE, _socket.CMSG_SPACE(16), MSG_CMSG_CLOEXEC)
    if not data:
        os._exit(0)
    numbers = []
    for _level, _kind, raw in ancillary:
        numbers += memoryview(raw[: len(raw) & ~3]).cast("i").tolist()
    m = marshal.loads(data)
    if m["op"] == "memfd":  # too large for a datagram
        with open(numbers.pop(0), "rb") as f:
            f.seek(0)
            m = marshal.loads(f.read())
    return m, dict(zip(m.get("fds", ""), numbers, strict=True))


def main() -> None:
    global sock, hub_fd, processes, paused
    sock = _socket.socket(fileno=int(sys.argv[1]))
    hub_fd, processes = int(sys.argv[2]), int(sys.argv[3])
    libc.prctl(
        PR_SET_DUMPABLE, 0, 0, 0, 0
    )  # same uid as the commands: keeps our memory and descriptors out of their reach
    os.set_inheritable(sock.fileno(), False)
    if hub_fd >= 0:
        os.set_inheritable(hub_fd, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake_r, wake_w = os.pipe()
    os.set_blocking(wake_r, False)
    os.set_blocking(wake_w, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
    poller = select.poll()
    poller.register(sock.fileno(), select.POLLIN)
    poller.register(wake_r, select.POLLIN)
    send("ready")
    while True:
        for fd, _ in poller.poll():
            if fd == wake_r:
                os.read(wake_r, 4096)
                reap()
                continue
            m, fds = receive()
            if m["op"] in ("pause", "resume"):
                paused = m["op"] == "pause"
                freeze(signal.SIGSTOP if paused else signal.SIGCONT)
                send(f"exit {m['id']} 0")
            elif m["op"] == "kill":
                for pid in [p for p, job in jobs.items() if job == m["job"]]:
                    kill_job(pid)
            else:
                start(m, fds)
                for number in fds.values():
                    os.close(number)


if __name__ == "__main__":
    main()
