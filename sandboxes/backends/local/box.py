"""One live box, as sandboxd sees it: its processes, its commands, its life and death."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import secrets
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sandboxes.backends.base import EGRESS_PORT, MODEL_PORT, WORKSPACE, ExecResult
from sandboxes.backends.local.channel import Channel
from sandboxes.backends.local.command import BoxSpec, bwrap_argv, command_env
from sandboxes.backends.local.host import Host
from sandboxes.backends.local.jobs import Collected, Job, Spooled
from sandboxes.backends.local.launch import Launch, fork_box
from sandboxes.backends.local.reach import Reach
from sandboxes.errors import (
    ExecNotFound,
    FileRefused,
    OutputTooLarge,
    SandboxFailed,
    SandboxLost,
    SandboxUnavailable,
)
from sandboxes.vocabulary import ExecEnd, Role

START_SECONDS = 20.0
KILL_SECONDS = 15.0
FILE_SECONDS = 120.0
PROCESSES_OF_OURS = 64  # on top of what commands may have: process 1 and supervisors are never short of one

LISTENERS = [
    ("tcp", "127.0.0.1", EGRESS_PORT),
    ("udp", "127.0.0.1", 53),
    ("tcp", "0.0.0.0", 80),
    ("tcp", "0.0.0.0", 443),
]


class Box:
    """Made by `Box.launch`; over once `dead` is set. All methods run on sandboxd's event loop."""

    def __init__(self, host: Host, spec: BoxSpec, folder: Path, layers: list[str], deadline_s: float) -> None:
        self.host = host
        self.spec = spec
        self.folder = folder
        self.layers = layers
        self.created_at = time.time()
        self.deadline_at = self.created_at + deadline_s
        self.state = "starting"
        self.why_dead = ""
        self.dead = asyncio.Event()
        self.pid = 0
        self.init_pid = 0
        self.jobs: dict[int, Job] = {}
        self.execs: dict[str, Spooled] = {}
        self.lingering: set[int] = set()  # ended jobs whose background processes live on
        self.activity = asyncio.Event()  # wakes the watchdog
        self.egress_listener: socket.socket | None = None
        self.dns_listener: socket.socket | None = None
        self.direct_listeners: list[socket.socket] = []
        self.model_listener: socket.socket | None = None
        self.hub: socket.socket | None = None
        self.limit_hit = (0.0, b"")  # when a limit killed a process, and the words for it
        self.env = command_env(host, spec)
        self.parent_digest = ""  # of the snapshot it was made from
        self.closers: list[Callable[[], None]] = []  # called once when it dies, before its sockets are closed
        self.rest_killers: set[asyncio.Task[None]] = set()
        self._numbers = 0
        self._pidfd = -1
        self._init_pidfd = -1
        self._channel: Channel | None = None
        self._ready = asyncio.Event()
        self._empty = asyncio.Event()  # nobody is left inside
        self._empty.set()

    # --- birth -------------------------------------------------------------------------------------------------------

    async def launch(
        self, reach: Reach, layer_paths: list[Path], seccomp: bytes | None, cpu_group: Path | None
    ) -> None:
        """Forks the box and waits until its process 1 answers. Raises SandboxUnavailable with what went wrong."""
        for name in ("upper", "work", "tmp"):
            path = self.folder / name
            path.mkdir()
            path.chmod(0o755 if name != "tmp" else 0o1777)
            if self.host.as_root:
                os.chown(path, self.host.uid, self.host.gid)
        (self.folder / "spool").mkdir(mode=0o700)
        filtered = seccomp is not None
        argv = bwrap_argv(self.host, reach, self.spec, self.folder, layer_paths, filtered)
        ours, errors = self._fork(self._launch(argv, cpu_group), seccomp)
        loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(self.pid)
        loop.add_reader(self._pidfd, self._outer_exited)
        self._channel = Channel(ours, self._on_line, self._channel_ended)
        try:
            await asyncio.wait_for(self._ready.wait(), START_SECONDS)
        except TimeoutError:
            self.why_dead = "it did not start in time"
        finally:
            said = _read_all(errors)
            os.close(errors)
        if self.state != "starting" or self.why_dead:
            await self.kill(self.why_dead or "it did not start")
            raise SandboxUnavailable(f"The box did not start: {said or self.why_dead or 'no reason given'}")
        listeners = self._channel.listeners
        self.egress_listener, self.dns_listener = listeners[0], listeners[1]
        self.direct_listeners = listeners[2:4]
        if self.spec.model_port:
            self.model_listener = listeners[4]
        self.init_pid = _only_child(self.pid)
        self._init_pidfd = os.pidfd_open(self.init_pid)
        self._empty.clear()
        loop.add_reader(self._init_pidfd, self._init_exited)
        self.state = "running"
        self._note()

    def _launch(self, argv: list[str], cpu_group: Path | None) -> Launch:
        size = self.spec.size
        wanted = list(LISTENERS)
        if self.spec.model_port:
            wanted.append(("tcp", "127.0.0.1", MODEL_PORT))
        return Launch(
            argv=argv,
            uid=self.host.uid,
            gid=self.host.gid,
            drop=self.host.as_root,
            listeners=wanted,
            rlimits={
                resource.RLIMIT_CORE: 0,
                resource.RLIMIT_NOFILE: 4096,
                resource.RLIMIT_FSIZE: size.file_mb << 20,
                resource.RLIMIT_DATA: max(64, size.memory_mb) << 20,
                resource.RLIMIT_MEMLOCK: 1 << 20,
                resource.RLIMIT_MSGQUEUE: 1 << 20,
            },
            processes=size.processes + PROCESSES_OF_OURS,
            cpu_group=str(cpu_group) if cpu_group else None,
        )

    def _fork(self, launch: Launch, seccomp: bytes | None) -> tuple[socket.socket, int]:
        """Our end of the channel, and the pipe on which the child complains."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        hub_theirs: socket.socket | None = None
        if self.spec.role is Role.PROXY:
            self.hub, hub_theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.hub.setblocking(False)
        errors_r, errors_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        filter_fd = _memfd(seccomp) if seccomp else None
        hub_fd = hub_theirs.fileno() if hub_theirs else None
        try:
            self.pid = fork_box(launch, theirs.fileno(), hub_fd, filter_fd, errors_w)
        finally:
            theirs.close()
            if hub_theirs:
                hub_theirs.close()
            if filter_fd is not None:
                os.close(filter_fd)
            os.close(errors_w)
        return ours, errors_r

    def _note(self) -> None:
        """The file beside the box, for people who look at the folder."""
        about = {
            "id": self.spec.id,
            "role": self.spec.role,
            "labels": self.spec.labels,
            "size": asdict(self.spec.size),
            "created_at": self.created_at,
            "layers": self.layers,
        }
        (self.folder / "box.json").write_text(json.dumps(about, indent=1))

    # --- news --------------------------------------------------------------------------------------------------------

    def _on_line(self, word: str, number: int, value: int) -> None:
        if word == "ready":
            self._ready.set()
            return
        job = self.jobs.get(number)
        if word == "gone":
            self.lingering.discard(number)
            if job is not None:
                self._end(job, reason=ExecEnd.KILLED)
        elif job is not None and word == "fail":
            self._end(job, errno=value)
        elif job is not None and word == "exit":
            self.lingering.add(number)
            at, note = self.limit_hit
            if value == 128 + signal.SIGKILL and time.monotonic() - at < 2:
                job.doom(ExecEnd.KILLED, note)
                self.rest_killers.add(task := asyncio.ensure_future(self._kill_rest(number)))
                task.add_done_callback(self.rest_killers.discard)
            self._end(job, code=value)

    def _end(self, job: Job, **fate: Any) -> None:
        self.jobs.pop(job.number, None)
        job.finish(**fate)
        for spooled in self.execs.values():
            if spooled.job is job:
                spooled.tail(job.note)
                spooled.ended()

    def _channel_ended(self) -> None:
        asyncio.get_running_loop().call_soon(self._signal_death)

    def _outer_exited(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass
        self._buried()

    def _init_exited(self) -> None:
        """Process 1 leaves only after everything else in its pid namespace: now nobody writes any more."""
        asyncio.get_running_loop().remove_reader(self._init_pidfd)
        os.close(self._init_pidfd)
        self._init_pidfd = -1
        self._empty.set()

    def _signal_death(self) -> None:
        for fd in (self._init_pidfd, self._pidfd):
            if fd >= 0:
                try:
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def _buried(self) -> None:
        """The outer process is gone: the box is over, whatever it was doing."""
        self.state = "lost"
        self.why_dead = self.why_dead or "its processes ended"
        self._ready.set()
        self.activity.set()
        for job in list(self.jobs.values()):
            self._end(job, reason=ExecEnd.LOST)
        self.lingering.clear()
        for close in self.closers:
            close()
        if self._channel:
            self._channel.close()
        for sock in (self.egress_listener, self.dns_listener, self.model_listener, self.hub, *self.direct_listeners):
            if sock is not None:
                sock.close()
        self.dead.set()

    # --- commands ----------------------------------------------------------------------------------------------------

    def alive(self) -> None:
        """Raises SandboxLost, or SandboxFailed while the box is paused."""
        if self.state == "paused":
            raise SandboxFailed(f"Sandbox {self.spec.id} is paused.", code="sandbox_paused", hint="Resume it first.")
        if self.state != "running":
            raise SandboxLost(self.spec.id, self.why_dead)

    async def _begin(self, message: dict[str, Any], job: Job) -> None:
        assert self._channel
        self.jobs[job.number] = job
        self.activity.set()
        try:
            await self._channel.send({**message, "id": job.number, "fds": job.names}, job.remote)
        except BrokenPipeError:
            self._end(job, reason=ExecEnd.LOST)
            raise SandboxLost(self.spec.id, self.why_dead) from None
        except BaseException:
            self._end(job, reason=ExecEnd.LOST)
            raise
        job.handed_over()

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _control(self, op: str) -> None:
        job = Job(self._next(), self.host.uid, _nowhere, _nowhere, False)
        await self._begin({"op": op}, job)
        await asyncio.wait_for(job.done.wait(), KILL_SECONDS)

    async def kill_job(self, job: Job, why: ExecEnd, note: bytes = b"") -> None:
        """Kills a command with all its descendants. A box that cannot even do that is killed itself."""
        job.doom(why, note)
        await self._kill_rest(job.number)
        try:
            await asyncio.wait_for(job.done.wait(), KILL_SECONDS)
        except TimeoutError:
            await self.kill("a command could not be killed")

    async def _kill_rest(self, number: int) -> None:
        """Tells process 1 to kill a job's tree; what is over already is no error."""
        if self._channel is not None and (number in self.jobs or number in self.lingering):
            try:
                await self._channel.send({"op": "kill", "job": number})
            except BrokenPipeError:
                pass

    async def kill_everything(self, note: bytes) -> None:
        """Ends every command, and what earlier commands left running; the box stays."""
        for number in list(self.lingering):
            await self._kill_rest(number)
        for job in list(self.jobs.values()):
            await self.kill_job(job, ExecEnd.KILLED, note)

    def _exec(self, argv: list[str], cwd: str | None, env: Mapping[str, str], hub: bool) -> dict[str, Any]:
        return {"op": "exec", "argv": argv, "cwd": cwd or WORKSPACE, "env": {**self.env, **env}, "hub": hub}

    async def run(
        self, argv: list[str], stdin: bytes, cwd: str | None, env: Mapping[str, str], timeout: float, limit: int
    ) -> ExecResult:
        """A command from start to end. If the caller is cancelled, the command is killed."""
        self.alive()
        out, err = Collected(limit), Collected(limit)
        job = Job(self._next(), self.host.uid, out, err, bool(stdin))
        if job.stdin:
            job.stdin.write(stdin)
            job.stdin.end()
        await self._begin(self._exec(argv, cwd, env, False), job)
        await self._finish_in(job, timeout)
        if job.reason is ExecEnd.LOST:
            raise SandboxLost(self.spec.id, self.why_dead)
        code, extra = job.code, job.note
        if job.errno is not None:
            code, extra = 127 if job.errno == errno.ENOENT else 126, f"{argv[0]}: {os.strerror(job.errno)}\n".encode()
        elif job.reason is ExecEnd.KILLED:
            code = 128 + signal.SIGKILL
        assert job.ended_at
        return ExecResult(
            code=code,
            stdout=bytes(out.data),
            stderr=bytes(err.data) + extra,
            timed_out=job.reason is ExecEnd.TIMEOUT,
            truncated=out.truncated or err.truncated,
            duration_ms=(job.ended_at - job.started) * 1000,
        )

    async def _finish_in(self, job: Job, timeout: float) -> None:
        try:
            await asyncio.wait_for(job.done.wait(), timeout)
        except TimeoutError:
            await self.kill_job(job, ExecEnd.TIMEOUT)
        except asyncio.CancelledError:
            await asyncio.shield(self.kill_job(job, ExecEnd.KILLED))
            raise

    async def start(
        self,
        argv: list[str],
        exec_id: str,
        cwd: str | None,
        env: Mapping[str, str],
        timeout: float | None,
        stdin: bool,
    ) -> Spooled:
        """Starts a command that outlives its client."""
        self.alive()
        if exec_id in self.execs:
            raise SandboxFailed(f"Command {exec_id} was already started here.", code="exec_exists", status=409)
        number = self._next()
        spooled = Spooled(exec_id, self.folder / "spool" / f"{number}.out")
        job = Job(number, self.host.uid, spooled.write, spooled.tail, stdin)
        spooled.job = job
        spooled.overflow = lambda: asyncio.ensure_future(self.kill_job(job, ExecEnd.KILLED))
        self.execs[exec_id] = spooled
        try:
            await self._begin(self._exec(argv, cwd, env, self.spec.role is Role.PROXY), job)
        except BaseException:
            self.execs.pop(exec_id, None)
            spooled.ended()
            raise
        if timeout is not None:
            watch = asyncio.ensure_future(self._finish_in(job, timeout))
            watch.add_done_callback(lambda t: t.cancelled() or t.exception())
        return spooled

    def find_exec(self, exec_id: str) -> Spooled:
        """Raises ExecNotFound."""
        spooled = self.execs.get(exec_id)
        if spooled is None:
            raise ExecNotFound(exec_id)
        return spooled

    # --- files -------------------------------------------------------------------------------------------------------

    async def file_job(self, op: str, path: str, limit: int = 0, data: bytes | None = None, mode: int = 0) -> bytes:
        """write, read or list. Raises FileRefused and OutputTooLarge."""
        self.alive()
        out = Collected(limit + 1)
        job = Job(self._next(), self.host.uid, out, _nowhere, data is not None)
        full = os.path.join(WORKSPACE, path)
        if job.stdin and data is not None:
            job.stdin.write(data)
            job.stdin.end()
        size = len(data) if data is not None else 0
        await self._begin({"op": op, "path": full, "limit": limit, "mode": mode, "size": size}, job)
        await self._finish_in(job, FILE_SECONDS)
        if job.reason is ExecEnd.LOST:
            raise SandboxLost(self.spec.id, self.why_dead)
        if job.errno is not None:
            raise FileRefused(path, _errno_name(job.errno), os.strerror(job.errno))
        if job.reason is not ExecEnd.EXIT or job.code:
            raise SandboxFailed(f"{path}: the sandbox did not answer.")
        if len(out.data) > limit and op == "read":
            raise OutputTooLarge(f"{path} has more than {limit} bytes.", limit)
        return bytes(out.data)

    # --- life and death ----------------------------------------------------------------------------------------------

    async def pause(self) -> None:
        """Stops every process in the box."""
        if self.state == "paused":
            return
        self.alive()
        self.state = "paused"  # first: from here on nothing new is started in it
        await self._control("pause")

    async def resume(self) -> None:
        """Lets them go on."""
        if self.state == "paused":
            self.state = "running"
            await self._control("resume")
        self.alive()

    async def kill(self, why: str) -> None:
        """Ends every process of the box and waits until they are gone."""
        self.why_dead = self.why_dead or why
        self._signal_death()
        if self._pidfd >= 0:
            await asyncio.wait_for(self.dead.wait(), KILL_SECONDS)
        await asyncio.wait_for(self._empty.wait(), KILL_SECONDS)


def _nowhere(data: bytes) -> None:
    """A sink that keeps nothing."""


def _memfd(data: bytes) -> int:
    fd = os.memfd_create("bw-filter", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _read_all(fd: int) -> str:
    try:
        return os.read(fd, 4096).decode(errors="replace").strip()
    except BlockingIOError:
        return ""


def _only_child(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return int(f.read().split()[0])


def _errno_name(number: int) -> str:
    return errno.errorcode.get(number, str(number))


def new_id(prefix: str) -> str:
    """A short name that nobody guesses."""
    return f"{prefix}-{secrets.token_hex(8)}"
