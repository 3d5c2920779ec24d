"""The checks that every backend must pass, named one by one after what would otherwise be false.

`CHECKS` lists them; each takes a `Ground`, which makes sandboxes and clears them away. Where a backend's capabilities
exclude something, its check is not in `checks_for(capabilities)`.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from sandboxes import errors
from sandboxes.backends.base import Backend, Capabilities, Exec, Network, Sandbox, Size
from sandboxes.vocabulary import Role


class CheckFailed(Exception):
    """A backend breaks its promise; the text says which."""


def expect(true: object, promise: str, seen: object = "") -> None:
    """Raises CheckFailed unless `true`."""
    if not true:
        raise CheckFailed(f"{promise} Seen: {seen!r}" if seen != "" else promise)


class Ground:
    """A backend to be tried; everything made here is gone afterwards."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.label = f"conformance-{time.time_ns()}"
        self._made: list[Sandbox] = []
        self._snapshots: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for sandbox in self._made:
            sandbox.kill()
        for snapshot in self._snapshots:
            self.backend.delete_snapshot(snapshot)

    def make(self, role: Role = Role.WORK, **more: Any) -> Sandbox:
        """A sandbox that carries this ground's label."""
        labels = {"check": self.label, **more.pop("labels", {})}
        sandbox = self.backend.create(role=role, labels=labels, **more)
        self._made.append(sandbox)
        return sandbox

    def save(self, sandbox: Sandbox, *, seal: bool) -> str:
        """The id of a new snapshot."""
        info = sandbox.snapshot(seal=seal)
        self._snapshots.append(info.id)
        return info.id


def follow(command: Exec, seconds: float = 30, until: bytes | None = None) -> bytes:
    """Reads a command to its end, or until its output holds `until`."""
    out = b""
    deadline = time.monotonic() + seconds
    while not command.ended and not (until and until in out):
        expect(time.monotonic() < deadline, "A command's stream moves on.", out[-200:])
        select.select([command], [], [], 1)
        out += command.read()
    return out


# --- files and commands ----------------------------------------------------------------------------------------------


def bytes_come_back_as_they_were_written(ground: Ground) -> None:
    box = ground.make()
    data = bytes(range(256)) * 5000
    box.write("/workspace/deep/er/data.bin", data)
    expect(box.read("/workspace/deep/er/data.bin") == data, "A file holds exactly the bytes that were written.")
    box.write("run.sh", b"#!/bin/sh\necho ran\n", mode=0o755)
    expect(box.run(["./run.sh"]).stdout == b"ran\n", "The mode is set, and relative paths start at /workspace.")
    names = {entry.name: (entry.kind, entry.size) for entry in box.list("/workspace/deep/er")}
    expect(names == {"data.bin": ("file", len(data))}, "A listing names kinds and sizes.", names)


def a_refused_path_says_why(ground: Ground) -> None:
    box = ground.make()
    for path, wanted in (("/workspace/nothing", "ENOENT"), ("/workspace", "EISDIR")):
        try:
            box.read(path)
        except errors.FileRefused as e:
            expect(e.errno_name == wanted, f"Reading {path} says {wanted}.", e.errno_name)
        else:
            raise CheckFailed(f"Reading {path} is refused.")
    box.run("mkfifo pipe; ln -s /dev/zero zero; head -c 3000 /dev/zero > big")
    for path in ("pipe", "zero"):
        try:
            box.read(path)
        except errors.FileRefused:
            continue
        raise CheckFailed(f"Reading a {path} is refused rather than waited for.")
    try:
        box.read("big", limit=2999)
    except errors.OutputTooLarge:
        pass
    else:
        raise CheckFailed("A file beyond the limit is refused.")
    expect(len(box.read("big", limit=3000)) == 3000, "A file of exactly the limit is read.")


def a_command_has_its_code_and_both_streams(ground: Ground) -> None:
    box = ground.make()
    result = box.run("echo out; echo err >&2; exit 7")
    expect((result.code, result.stdout, result.stderr) == (7, b"out\n", b"err\n"), "Code and streams arrive.", result)
    expect(box.run(["cat"], stdin=b"x\0y").stdout == b"x\0y", "stdin is passed through.")
    expect(box.run(["sh", "-c", "kill -9 $$"]).code == 137, "A signal is 128 + its number.")
    expect(box.run(["no-such-program"]).code == 127, "A missing program is code 127, not an exception.")
    seen = box.run('echo "$A $PWD"', env={"A": "b c"}, cwd="/tmp").stdout
    expect(seen == b"b c /tmp\n", "Environment and folder are set.", seen)
    expect(box.run("echo x > /dev/stderr; echo y > /dev/stdout").stderr == b"x\n", "/dev/stderr can be opened.")


def a_command_ends_when_its_time_is_up(ground: Ground) -> None:
    box = ground.make()
    started = time.monotonic()
    result = box.run("echo before; (setsid sleep 60 &); sleep 60", timeout=0.5)
    expect(result.timed_out and result.code is None, "A timeout is told apart from a failure.", result)
    expect(result.stdout == b"before\n", "What it wrote before is kept.", result.stdout)
    expect(time.monotonic() - started < 10, "A timeout is on time.")
    left = box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
    expect(b"sleep 60" not in left, "Nothing that it started survives, not even in a session of its own.", left)


def output_is_bounded(ground: Ground) -> None:
    box = ground.make()
    result = box.run("head -c 3000000 /dev/zero", output_limit=1000)
    expect(result.code == 0 and result.truncated and len(result.stdout) == 1000, "Output is cut, the command ends.")
    expect(not box.run("echo x", output_limit=1000).truncated, "A short output is not called cut.")


def background_processes_outlive_the_command_that_started_them(ground: Ground) -> None:
    box = ground.make()
    started = time.monotonic()
    expect(box.run("sleep 30 & echo $! > pid").code == 0, "The command ends.")
    expect(time.monotonic() - started < 10, "A background process does not hold up the command.")
    expect(box.run("kill -0 $(cat pid)").code == 0, "The background process lives.")


# --- started commands ------------------------------------------------------------------------------------------------


def a_started_command_survives_its_client(ground: Ground) -> None:
    box = ground.make()
    command = box.start("echo one; sleep 0.5; echo two; echo why >&2; exit 4", exec_id="job")
    expect(follow(command, until=b"one\n") == b"one\n", "Output arrives as it is written.")
    command.close()
    again = ground.backend.attach(box.id).reattach("job", offset=0)
    out = follow(again)
    expect(out == b"one\ntwo\n", "All output is replayed, then followed.", out)
    expect((again.code, again.reason, again.stderr_tail) == (4, "exit", b"why\n"), "Its fate is known.", again.reason)
    expect(again.offset == len(out), "The offset counts bytes.")
    late = box.reattach("job", offset=4)
    expect(follow(late) == b"two\n", "An ended command can be read again, from any offset.")
    try:
        box.reattach("nobody")
    except errors.ExecNotFound:
        return
    raise CheckFailed("A command that was never started is not found.")


def a_started_command_takes_stdin(ground: Ground) -> None:
    box = ground.make()
    command = box.start(["sh", "-c", "while read x; do echo got $x; done; echo end"], exec_id="in", stdin=True)
    command.write(b"a\n")
    expect(follow(command, until=b"a\n") == b"got a\n", "A line goes in while the command runs.")
    command.write(b"b\n")
    command.close_stdin()
    expect(follow(command) == b"got b\nend\n", "The end of stdin reaches it.")


def a_started_command_is_killed_with_its_descendants(ground: Ground) -> None:
    box = ground.make()
    command = box.start("setsid sh -c 'sleep 61 & sleep 61' & echo up; sleep 61", exec_id="tree")
    follow(command, until=b"up\n")
    command.kill()
    follow(command)
    expect((command.code, command.reason) == (None, "killed"), "A killed command says so.", command.reason)
    left = box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
    expect(b"sleep 61" not in left, "Nothing that it started survives.", left)
    timed = box.start("sleep 61", exec_id="timed", timeout=0.3)
    follow(timed)
    expect(timed.reason == "timeout", "A started command has a time of its own.", timed.reason)


def much_output_arrives_whole(ground: Ground) -> None:
    box = ground.make()
    command = box.start("seq 1 200000", exec_id="much")
    out = follow(command)
    expect(out == b"".join(b"%d\n" % i for i in range(1, 200001)), "No line is lost, doubled or torn.", len(out))


# --- isolation -------------------------------------------------------------------------------------------------------


def the_environment_is_clean(ground: Ground) -> None:
    box = ground.make()
    result = box.run("env; cat /proc/1/environ /proc/self/environ 2>/dev/null | tr '\\0' '\\n'")
    names = {line.partition(b"=")[0] for line in result.stdout.splitlines() if b"=" in line}
    for word in (b"DATABASE", b"REDIS", b"SECRET", b"AWS_ACCESS", b"API_KEY", b"DJANGO", b"BENCHWRIGHT_"):
        expect(not [n for n in names if word in n], "No variable of the host's is inside.", sorted(names))


def the_network_leads_nowhere(ground: Ground) -> None:
    box = ground.make(network=Network(mode="allow"))
    code = (
        "import socket\n"
        "for where in (('169.254.169.254', 80), ('10.0.0.1', 22), ('1.1.1.1', 53), ('127.0.0.1', 22)):\n"
        "    s = socket.socket(); s.settimeout(3)\n"
        "    try:\n"
        "        s.connect(where); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
        "        print('OPEN' if s.recv(100) else 'closed', where)\n"
        "    except OSError as e: print('closed', where)\n"
    )
    out = box.run(["sh", "-c", '"${BW_PYTHON:-python3}" -c "$0"', code]).stdout
    expect(out.count(b"closed") == 4 and b"OPEN" not in out, "No address answers but through the policy.", out)


def a_refused_host_is_told_and_counted(ground: Ground) -> None:
    box = ground.make(network=Network(mode="allow", block=("*.blocked.test",)))
    ask = "import socket\ns=socket.create_connection(('127.0.0.1',3128))\n"
    ask += "s.sendall(b'CONNECT a.blocked.test:443 HTTP/1.1\\r\\n\\r\\n')\nprint(s.recv(4096).decode())"
    for _ in range(3):
        out = box.run(["sh", "-c", '"${BW_PYTHON:-python3}" -c "$0"', ask]).stdout
        expect(b" 403 " in out and b"egress_blocked" in out, "The program is told that policy refused it.", out)
    found = box.refusals()
    expect(len(found) == 1, "Refusals are collected by host and port.", found)
    one = found[0]
    seen = (one.host, one.port, one.role, one.seen_count)
    expect(seen == ("a.blocked.test", 443, Role.WORK, 3), "Each try is counted.", seen)
    expect(one.first_seen <= one.last_seen <= time.time() + 1, "Times are Unix seconds.")
    expect(box.refusals(since=time.time() + 60) == [], "`since` leaves out what was seen before.")


def a_memory_hog_is_killed_and_the_sandbox_lives(ground: Ground) -> None:
    box = ground.make(size=Size(memory_mb=256))
    python = ["sh", "-c", '"${BW_PYTHON:-python3}" -c "$0"']
    started = time.monotonic()
    alone = box.run([*python, "x = b'x' * (600 << 20); import time; time.sleep(20)"], timeout=15)
    expect(alone.code not in (0, None), "A process beyond the limit does not get its memory.", alone)
    herd = "import os, time\npids = []\nfor _ in range(3):\n    pid = os.fork()\n    if not pid:\n"
    herd += "        x = b'x' * (120 << 20); time.sleep(3); os._exit(0)\n    pids.append(pid)\n"
    herd += "print(sorted(os.waitpid(p, 0)[1] for p in pids)[-1])"
    together = box.run([*python, herd], timeout=15)
    expect(together.stdout.strip() not in (b"0", b"") or together.code, "Processes are limited in their sum.", together)
    expect(time.monotonic() - started < 30, "The limit bites at once.")
    expect(box.run("echo alive").stdout == b"alive\n", "The sandbox outlives its hogs.")


def a_fork_bomb_stays_in_its_sandbox(ground: Ground) -> None:
    box = ground.make(size=Size(processes=40))
    bomb = "import os,time\nn=0\ntry:\n    while n < 500:\n        if os.fork() == 0: time.sleep(20); os._exit(0)\n"
    bomb += "        n += 1\nexcept OSError: pass\nprint(n)\n"
    command = box.start(["sh", "-c", '"${BW_PYTHON:-python3}" -uc "$0"', bomb], exec_id="bomb", timeout=20)
    count = int(follow(command, until=b"\n"))
    expect(10 < count < 100, "The number of processes is limited.", count)
    expect(isinstance(box.run("echo ok").code, int), "A full sandbox still answers.")
    expect(box.read("/etc/passwd") != b"", "Its files can still be read.")
    command.kill()
    expect(ground.make().run("echo ok").stdout == b"ok\n", "Other sandboxes do not feel it.")
    expect(box.run("echo ok").stdout == b"ok\n", "Nor does the same one, afterwards.")


# --- snapshots -------------------------------------------------------------------------------------------------------


def a_snapshot_brings_everything_back(ground: Ground) -> None:
    first = ground.make()
    first.run(
        "mkdir -p d/e; echo 1 > d/e/f; echo 2 > gone; ln -s f d/e/link; chmod 750 d; "
        "echo tmp > /tmp/x; echo s > keep.sh; chmod +x keep.sh"
    )
    sealed = ground.save(first, seal=True)
    try:
        first.run("true")
    except errors.SandboxLost:
        pass
    else:
        raise CheckFailed("A sealed sandbox is over.")
    second = ground.make(snapshot=sealed)
    expect(
        second.run("cat d/e/link; ls /tmp | wc -l; test -x keep.sh && echo x").stdout == b"1\n0\nx\n",
        "Files, links and modes.",
    )
    second.run("rm gone; rm -r d; mkdir d; echo 3 > d/new; echo 4 >> keep.sh")
    live = ground.save(second, seal=False)
    second.run("echo later > late")
    third = ground.make(snapshot=live)
    out = third.run("ls -A . d; cat keep.sh").stdout.split()
    expect(out == b".: d keep.sh d: new s 4".split(), "What was removed stays removed.", out)
    fresh = ground.make(snapshot=sealed)
    expect(fresh.run("cat gone d/e/f").stdout == b"2\n1\n", "A snapshot never changes.")


def equal_work_gives_an_equal_digest(ground: Ground) -> None:
    digests = []
    for text in ("same", "same", "other"):
        box = ground.make()
        box.run(f"mkdir d; echo {text} > d/f; ln -s f d/l")
        info = box.snapshot(seal=True)
        ground._snapshots.append(info.id)
        digests.append(info.digest)
    expect(digests[0] == digests[1], "The digest depends on the content alone.", digests)
    expect(digests[0] != digests[2], "Another content has another digest.", digests)


def long_chains_of_snapshots_work(ground: Ground) -> None:
    snapshot = None
    for number in range(20):
        box = ground.make(snapshot=snapshot)
        box.run(f"echo {number} > n{number}; rm -f n{number - 2}; rm -rf d; mkdir d; echo {number} > d/{number}")
        snapshot = ground.save(box, seal=True)
    out = ground.make(snapshot=snapshot).run("ls -A . d").stdout.split()
    expect(out == b".: d n18 n19 d: 19".split(), "Every layer counts, however many.", out)


def an_unknown_snapshot_is_refused(ground: Ground) -> None:
    try:
        ground.make(snapshot="sn-0000000000000000")
    except errors.SnapshotNotFound:
        ground.backend.delete_snapshot("sn-0000000000000000")
        return
    raise CheckFailed("An unknown snapshot is refused.")


# --- life ------------------------------------------------------------------------------------------------------------


def killing_twice_is_no_error(ground: Ground) -> None:
    box = ground.make()
    command = box.start("sleep 60", exec_id="long")
    box.kill()
    box.kill()
    follow(command)
    expect(command.reason == "lost", "Its commands learn of it.", command.reason)
    for call in (lambda: box.run("true"), lambda: ground.backend.attach(box.id), lambda: box.read("x")):
        try:
            call()
        except errors.SandboxLost:
            continue
        raise CheckFailed("A killed sandbox is lost to every call.")


def sandboxes_are_found_by_their_labels(ground: Ground) -> None:
    one, two = ground.make(labels={"n": "1"}), ground.make(Role.DRIVER, labels={"n": "2"})
    mine = {info.id: info.role for info in ground.backend.list({"check": ground.label})}
    expect(mine == {one.id: Role.WORK, two.id: Role.DRIVER}, "A label finds all that carry it.", mine)
    expect([i.id for i in ground.backend.list({"check": ground.label, "n": "2"})] == [two.id], "Labels are and-ed.")
    again = ground.backend.attach(two.id)
    expect((again.id, again.role) == (two.id, Role.DRIVER), "Attach knows the role.")


def a_sandbox_ends_at_its_deadline(ground: Ground) -> None:
    box = ground.make(deadline_s=1)
    kept = ground.make(deadline_s=1)
    kept.extend(60)
    time.sleep(2.5)
    expect(kept.run("echo here").stdout == b"here\n", "An extended one lives.")
    try:
        box.run("true")
    except errors.SandboxLost:
        return
    raise CheckFailed("A sandbox past its deadline is gone.")


def a_paused_sandbox_stands_still(ground: Ground) -> None:
    box = ground.make()
    ticks = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.05; done"
    command = box.start(ticks, exec_id="ticks")
    follow(command, until=b"2\n")
    box.pause()
    box.pause()
    time.sleep(0.2)
    command.read()
    time.sleep(0.5)
    expect(command.read() == b"", "Nothing moves while it is paused.")
    box.resume()
    select.select([command], [], [], 5)
    expect(command.read() != b"", "It goes on afterwards.")


CHECKS: list[Callable[[Ground], None]] = [
    bytes_come_back_as_they_were_written,
    a_refused_path_says_why,
    a_command_has_its_code_and_both_streams,
    a_command_ends_when_its_time_is_up,
    output_is_bounded,
    background_processes_outlive_the_command_that_started_them,
    a_started_command_survives_its_client,
    a_started_command_takes_stdin,
    a_started_command_is_killed_with_its_descendants,
    much_output_arrives_whole,
    the_environment_is_clean,
    the_network_leads_nowhere,
    a_refused_host_is_told_and_counted,
    a_memory_hog_is_killed_and_the_sandbox_lives,
    a_fork_bomb_stays_in_its_sandbox,
    a_snapshot_brings_everything_back,
    equal_work_gives_an_equal_digest,
    long_chains_of_snapshots_work,
    an_unknown_snapshot_is_refused,
    killing_twice_is_no_error,
    sandboxes_are_found_by_their_labels,
    a_sandbox_ends_at_its_deadline,
    a_paused_sandbox_stands_still,
]

_NEEDS_SNAPSHOTS = {
    a_snapshot_brings_everything_back,
    equal_work_gives_an_equal_digest,
    long_chains_of_snapshots_work,
    an_unknown_snapshot_is_refused,
}


def checks_for(capabilities: Capabilities) -> list[Callable[[Ground], None]]:
    """The checks that a backend with these capabilities must pass."""
    out = []
    for check in CHECKS:
        if check in _NEEDS_SNAPSHOTS and not capabilities.snapshots:
            continue
        if check is a_paused_sandbox_stands_still and not capabilities.pause:
            continue
        if check is a_refused_host_is_told_and_counted and capabilities.egress != "enforced+logged":
            continue
        if check is a_memory_hog_is_killed_and_the_sandbox_lives and capabilities.memory_limit == "none":
            continue
        out.append(check)
    return out
