"""The forked child on its way from sandboxd to bwrap: it gives up root, takes a network of its own, opens the box's
listeners there, hands them back, and becomes bwrap.

Everything between fork and exec happens here. bwrap never runs as uid 0: global root owns the files of /proc/sys, and
no dropped capability keeps it from writing them.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import NoReturn

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40

# Descriptors of the box's process 1. Fixed, so that they can be written into its command line beforehand.
AGENT_FD, SECCOMP_FD, HUB_FD = 198, 199, 200
_ABOVE = 201


@dataclass(frozen=True)
class Launch:
    """What the child needs to know. `listeners` are (kind, address, port), kind "tcp" or "udp"."""

    argv: list[str]
    uid: int
    gid: int
    drop: bool
    listeners: list[tuple[str, str, int]]
    rlimits: dict[int, int] = field(default_factory=dict)
    processes: int = 256
    cpu_group: str | None = None  # a cgroup.procs file to write ourselves into


def fork_box(launch: Launch, agent: int, hub: int | None, seccomp: int | None, errors: int) -> int:
    """Forks; returns the child's pid. `agent`, `hub` and `seccomp` become the fixed descriptors, `errors` its stderr.

    Call it on the main thread only: a box dies with the *thread* that forked it.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _become_box(launch, parent, agent, hub, seccomp, errors)
    except BaseException as e:
        step = "launch" if e.__traceback__ is None else _last_step(e)
        os.write(2, f"{step}: {e}".encode(errors="replace")[:2000])
    finally:
        os._exit(71)


def _last_step(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_code.co_name.strip("_") if frame else "launch"


def _become_box(launch: Launch, parent: int, agent: int, hub: int | None, seccomp: int | None, errors: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    os.setsid()
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("500")  # when the machine runs out of memory, boxes go before the daemon and the database
    if launch.cpu_group:
        with open(launch.cpu_group, "w") as f:
            f.write("0")
    fixed = [(agent, AGENT_FD), (seccomp, SECCOMP_FD), (hub, HUB_FD)]
    high = [(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE), to) for fd, to in fixed if fd is not None]
    # Nothing else of the daemon's goes along, whatever its flags say.
    os.closerange(3, _ABOVE)
    for fd, to in high:
        os.dup2(fd, to, inheritable=True)
    os.closerange(_ABOVE, 1 << 20)
    libc = ctypes.CDLL(None, use_errno=True)
    if launch.drop:
        _become(launch.uid, launch.gid)
    # Changing users made us undumpable, and /proc/self/uid_map root's with it. No process of this uid can see us here.
    _check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")
    _check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "die with sandboxd")
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if os.getppid() != parent:
        raise RuntimeError("sandboxd is gone")
    _enter_network(libc, launch.uid, launch.gid)
    sockets = [_listen(*one) for one in launch.listeners]
    with socket.socket(fileno=os.dup(AGENT_FD)) as channel:
        fds = array.array("i", [s.fileno() for s in sockets])
        channel.sendmsg([b"listeners"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    for one in sockets:
        one.close()
    for limit, value in launch.rlimits.items():
        _limit(limit, value)
    # After our own user namespace and before bwrap's: there it counts the processes of this box alone.
    _limit(resource.RLIMIT_NPROC, launch.processes)
    sys.stdout = sys.stderr = None
    os.execve(launch.argv[0], launch.argv, {})


def _become(uid: int, gid: int) -> None:
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as e:
        raise OSError(e.errno, f"cannot become uid {uid}: {e.strerror}") from e


def _limit(limit: int, value: int) -> None:
    hard = resource.getrlimit(limit)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(limit, (value, value))


def _check(result: int, step: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")


def _enter_network(libc: ctypes.CDLL, uid: int, gid: int) -> None:
    """A user and a network namespace. In the latter only loopback is up, and every address leads to loopback."""
    _check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET), "user and network namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as f:
            f.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP | IFF_RUNNING))
    _any_ip(socket.AF_INET)
    if socket.has_ipv6:
        try:
            _any_ip(socket.AF_INET6)
        except OSError:
            pass  # a kernel without IPv6: then there is nothing to catch either


def _any_ip(family: int) -> None:
    """`ip route add local default dev lo`: whatever address a program asks for, the box's own listeners answer."""
    body = struct.pack("BBBBBBBBI", family, 0, 0, 0, 255, 4, 254, 2, 0) + struct.pack("HHI", 8, 4, 1)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("IHHII", 16 + len(body), 24, 0x1 | 0x4 | 0x400, 1, 0) + body)
        (code,) = struct.unpack_from("i", s.recv(4096), 16)
    if code:
        raise OSError(-code, f"local route: {os.strerror(-code)}")


def _listen(kind: str, address: str, port: int) -> socket.socket:
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    if kind == "tcp":
        s.listen(512)
    return s
