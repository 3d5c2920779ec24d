"""The local backend passes every named check, and keeps hostile programs in."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from benchwright.lib.paths import ROOT
from sandboxes import errors
from sandboxes.backends.base import Network, Sandbox, Size
from sandboxes.backends.conformance import CHECKS, Ground, follow
from sandboxes.backends.local.client import LocalBackend
from sandboxes.vocabulary import Role
from tests.sandbox.conftest import Daemon, new_daemon


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_the_backend_keeps_its_promise(backend: LocalBackend, check: Callable[[Ground], None]) -> None:
    with Ground(backend) as ground:
        check(ground)


@pytest.fixture
def ground(backend: LocalBackend) -> Iterator[Ground]:
    with Ground(backend) as one:
        yield one


@pytest.fixture
def web() -> Iterator[int]:
    """A service of the host on 127.0.0.1; its port."""

    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"path": self.path, "host": self.headers["Host"]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def python(box: Sandbox, code: str, *, timeout: float = 30) -> str:
    """What the code prints in the box, errors included."""
    result = box.run(["sh", "-c", '"$BW_PYTHON" -c "$0"', code], timeout=timeout)
    return (result.stdout + result.stderr).decode(errors="replace")


# --- out of the box --------------------------------------------------------------------------------------------------


def test_host_files_cannot_be_read(ground: Ground) -> None:
    box = ground.make()
    for path in ("/etc/shadow", "/proc/1/environ", "/proc/1/mem", str(ROOT / "manage.py"), "/var/lib", "/proc/kcore"):
        assert box.run(["cat", path]).code != 0, path
    assert box.run(["ls", "/home"]).code != 0
    assert box.run(["ls", "-A", "/proc/1/fd"]).stdout == b""


def test_kernel_settings_cannot_be_written(ground: Ground) -> None:
    box = ground.make()
    code = """
import os
opened = []
for top, _, names in os.walk("/proc/sys"):
    for name in names:
        path = os.path.join(top, name)
        try: os.close(os.open(path, os.O_WRONLY)); opened.append(path)
        except OSError: pass
print(opened)
"""
    assert python(box, code) == "[]\n"
    assert "CapEff:\t0000000000000000" in box.run(["cat", "/proc/self/status"]).stdout.decode()


def test_the_system_is_read_only(ground: Ground) -> None:
    box = ground.make()
    for folder in ("/", "/usr", "/etc", "/dev", "/opt/benchwright", "/run", "/var"):
        assert box.run(["touch", f"{folder}/x"]).code != 0, folder
    assert box.run(["touch", "/workspace/x", "/tmp/x", "/dev/shm/x"]).code == 0


def test_no_socket_of_the_host_is_inside(ground: Ground) -> None:
    box = ground.make()
    assert box.run("find / -type s 2>/dev/null").stdout == b""
    assert box.run(["cat", "/proc/net/unix"]).stdout.count(b"@") == 0


def test_no_new_namespaces_mounts_or_hidden_memory(ground: Ground) -> None:
    box = ground.make()
    code = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def name(r): return "ok" if r == 0 else errno.errorcode[ctypes.get_errno()]
print(name(libc.unshare(0x10000000)), name(libc.unshare(0x20000)), name(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)))
try: os.memfd_create("x"); print("memfd")
except OSError as e: print(errno.errorcode[e.errno])
print(name(libc.ptrace(16, 1, 0, 0)))
"""
    assert python(box, code).split() == ["EPERM", "EPERM", "EPERM", "ENOSYS", "EPERM"]


def test_only_plain_socket_families_can_be_opened(ground: Ground) -> None:
    code = """
import errno, socket
for family in (1, 2, 10, 16, 17, 38, 40):
    try: socket.socket(family, socket.SOCK_STREAM if family < 16 else socket.SOCK_RAW); print("ok")
    except OSError as e: print(errno.errorcode[e.errno])
"""
    assert python(ground.make(), code).split() == ["ok"] * 4 + ["EAFNOSUPPORT"] * 3


def test_names_that_cannot_be_are_refused_politely(ground: Ground) -> None:
    box = ground.make()
    assert box.run(["echo", "a\0b"]).code == 126
    with pytest.raises(errors.FileRefused, match="Invalid argument"):
        box.read("a\0b")
    assert box.run(["printf", "%s", "\udcff"]).stdout == b"\xff"
    assert box.run(["true", "x" * 120_000], env={"A": "y" * 100_000}).code == 0


def test_neither_its_own_process_1_nor_another_sandbox_can_be_killed(ground: Ground) -> None:
    box, other = ground.make(), ground.make()
    box.run("kill -9 1; kill -2 1; kill -17 1; kill -15 1")
    box.run("kill -9 -1")
    assert box.run("echo here").stdout == b"here\n"
    pids = box.run("ls /proc | grep -c '^[0-9]'").stdout
    assert int(pids) < 10
    assert other.run("echo here").stdout == b"here\n"


def test_a_command_that_kills_its_supervisor_is_killed_itself(ground: Ground) -> None:
    box = ground.make()
    command = box.start("setsid sleep 62 & echo up; kill -9 $PPID; sleep 62", exec_id="x")
    follow(command)
    assert command.reason == "killed"
    time.sleep(0.1)
    assert b"sleep 62" not in box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout


def test_services_of_the_host_cannot_be_reached(ground: Ground, web: int) -> None:
    box = ground.make(network=Network(mode="allow"))
    code = f"""
import socket, urllib.request
try: socket.create_connection(("127.0.0.1", {web}), 2); print("open")
except OSError: print("closed")
for host in ("127.0.0.1:{web}", "[::1]:{web}", "0.0.0.0:{web}", "2130706433:{web}", "169.254.169.254"):
    try: print(urllib.request.urlopen(f"http://{{host}}/", timeout=5).status)
    except OSError as e: print(getattr(e, "code", e))
"""
    ask = code.replace("urllib.request.urlopen(", "opener.open(").replace(
        "import socket, urllib.request",
        "import socket, urllib.request\nopener = urllib.request.build_opener("
        "urllib.request.ProxyHandler({'http': 'http://127.0.0.1:3128'}))\n"
        "import os; os.environ.pop('no_proxy'); os.environ.pop('NO_PROXY')",
    )
    assert python(box, ask).split() == ["closed", *["403"] * 5]
    refused = {(r.host, r.port) for r in box.refusals()}
    assert {("127.0.0.1", web), ("169.254.169.254", 80)} <= refused


def test_a_program_that_ignores_the_proxy_is_refused_and_counted_too(ground: Ground) -> None:
    box = ground.make(network=Network(mode="deny"))
    code = """
import socket
for host in ("169.254.169.254", "tracker.test"):
    try:
        s = socket.create_connection((host, 80), 5)
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(100))
    except ConnectionResetError: print("reset")
"""
    assert python(box, code).split() == ["reset", "reset"]
    assert {(r.host, r.port) for r in box.refusals()} == {("169.254.169.254", 80), ("tracker.test", 80)}


def test_a_trusted_host_is_reached_through_the_proxy_and_without(ground: Ground, web: int) -> None:
    box = ground.make(network=Network(mode="deny", allow=(f"localhost:{web}",)))
    code = f"""
import os, urllib.request
for name in ("no_proxy", "NO_PROXY"): os.environ.pop(name)
print(urllib.request.urlopen("http://localhost:{web}/a?b=c", timeout=5).read().decode())
import http.client
c = http.client.HTTPConnection("127.0.0.1", 3128); c.set_tunnel("localhost", {web}); c.request("GET", "/tunnel")
print(c.getresponse().read().decode())
"""
    first, second = map(json.loads, python(box, code).splitlines())
    assert first == {"path": "/a?b=c", "host": f"localhost:{web}"}
    assert second["path"] == "/tunnel"
    assert box.refusals() == []


def test_a_name_that_leads_to_a_private_address_is_refused(ground: Ground) -> None:
    name = socket.gethostname()
    box = ground.make(network=Network(mode="allow", private_ok=()))
    code = f"""
import urllib.request
try: urllib.request.urlopen("http://{name}/", timeout=5)
except OSError as e: print(e.code)
"""
    try:
        socket.getaddrinfo(name, 80)
    except OSError:
        pytest.skip("this machine does not know its own name")
    assert python(box, code) == "403\n"


def test_allowed_hosts_go_through_the_operators_proxy_and_its_password_stays_outside() -> None:
    seen: list[tuple[str, str | None]] = []

    class Upstream(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            seen.append((f"CONNECT {self.path}", self.headers["Proxy-Authorization"]))
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\ntunnelled")

        def do_GET(self) -> None:
            seen.append((f"GET {self.path}", self.headers["Proxy-Authorization"]))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nfetched")

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://operator:pass-word@127.0.0.1:{server.server_port}"
    daemon = new_daemon(http_proxy=url, HTTPS_PROXY=url)
    try:
        daemon.start()
        box = daemon.backend.create(
            role=Role.WORK, labels={}, network=Network(mode="deny", allow=("mirror.invalid", "10.0.0.1"))
        )
        code = """
import socket, urllib.request
print(urllib.request.urlopen("http://mirror.invalid/simple/", timeout=5).read().decode())
for host in ("mirror.invalid", "other.invalid", "10.0.0.1"):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n".encode())
    print(s.makefile("rb").read().split()[1].decode())
import os; print("pass-word" in str(os.environ))
"""
        assert python(box, code).split() == ["fetched", "200", "403", "403", "False"]
    finally:
        daemon.remove()
        server.shutdown()
        server.server_close()
    password = "Basic b3BlcmF0b3I6cGFzcy13b3Jk"
    assert seen == [("GET http://mirror.invalid/simple/", password), ("CONNECT mirror.invalid:443", password)]


def test_a_package_index_is_known_inside_unless_it_holds_a_password() -> None:
    daemon = new_daemon(
        PIP_INDEX_URL="https://mirror.test/simple", PIP_EXTRA_INDEX_URL="https://me:secret@mirror.test/simple"
    )
    try:
        daemon.start()
        create = daemon.backend.create
        box = create(role=Role.WORK, labels={}, network=Network(mode="allow"))
        lines = box.run("env").stdout.decode().splitlines()
        assert "PIP_INDEX_URL=https://mirror.test/simple" in lines
        assert not [line for line in lines if "secret" in line]
        assert b"mirror.test" not in create(role=Role.WORK, labels={}).run("env").stdout
    finally:
        daemon.remove()


def test_a_full_disk_ends_the_command_and_says_so(ground: Ground) -> None:
    box = ground.make(size=Size(disk_mb=64))
    result = box.run("i=0; while true; do i=$((i+1)); head -c 20M /dev/zero > f$i; sleep 0.1; done", timeout=20)
    assert not result.timed_out and b"on disk, its limit is 64 MiB" in result.stderr


def test_a_memory_hog_is_told_why_it_died(ground: Ground) -> None:
    box = ground.make(size=Size(memory_mb=200))
    code = "import os, time\nif not os.fork():\n    x = b'x' * (90 << 20); time.sleep(9)\n"
    code += "x = b'x' * (130 << 20); time.sleep(9)"
    command = box.start(["sh", "-c", 'exec "$BW_PYTHON" -c "$0"', code], exec_id="x")
    follow(command)
    assert (command.code, command.reason) == (None, "killed")
    assert b"its limit is 200 MiB" in command.stderr_tail


def test_an_unbounded_writer_does_not_fill_the_host(ground: Ground) -> None:
    box = ground.make()
    result = box.run("head -c 700M /dev/zero > big")
    assert result.code != 0
    assert box.list(".")[0].size <= 512 << 20


# --- the proxy role --------------------------------------------------------------------------------------------------

GATEWAY = """
import array, json, os, socket, sys
hub = socket.socket(fileno=int(os.environ["BW_HUB_FD"]))
def receive():
    data, anc, _, _ = hub.recvmsg(65536, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _, _, raw in anc: fds.frombytes(raw)
    return json.loads(data), [socket.socket(fileno=f) for f in fds]
def dial(n, host, port):
    hub.send(json.dumps({"op": "dial", "id": n, "host": host, "port": port}).encode())
    return receive()
ports = json.loads(sys.argv[1])
print(json.dumps(dial(1, "elsewhere.test", 443)[0]), flush=True)
answer, socks = dial(2, "127.0.0.1", ports)
socks[0].sendall(b"GET /dialled HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n")
print(json.dumps([answer, socks[0].makefile().read().split("\\n")[-1]]), flush=True)
answer, socks = receive()
print(json.dumps(answer), flush=True)
peer, _ = socks[0].accept()
peer.recv(1000)
peer.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nfrom the gateway")
peer.close()
"""


def test_a_gateway_dials_within_its_policy_and_serves_another_sandboxs_model_port(ground: Ground, web: int) -> None:
    endpoint = f"127.0.0.1:{web}"
    proxy = ground.make(Role.PROXY, network=Network(mode="deny", allow=(endpoint,), private_ok=(endpoint,)))
    work = ground.make(model_port=True)
    proxy.write("/workspace/g.py", GATEWAY.encode())
    gateway = proxy.start(["sh", "-c", f'exec "$VENV_PYTHON" /workspace/g.py {web}'], exec_id="gateway")
    seen = follow(gateway, until=b"/dialled")
    ground.backend.link_model_port(work.id, proxy.id, "work-1")
    seen += follow(gateway, until=b'"listener"')
    ask = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:4000/v1/models', timeout=5).read())"
    assert python(work, ask) == "b'from the gateway'\n"
    seen += follow(gateway)
    blocked, dialled, listener = map(json.loads, seen.splitlines())
    assert blocked["error"] == "blocked" and blocked["id"] == 1
    assert dialled[0] == {"op": "dialed", "id": 2} and json.loads(dialled[1])["path"] == "/dialled"
    assert listener == {"op": "listener", "tag": "work-1"}
    assert [(r.host, r.role) for r in proxy.refusals()] == [("elsewhere.test", Role.PROXY)]


def test_no_descriptor_of_one_sandbox_reaches_another(ground: Ground) -> None:
    boxes = [ground.make(model_port=True) for _ in range(3)]
    fds = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
    assert [python(box, fds) for box in boxes] == ["[0, 1, 2]\n"] * 3


def test_only_started_commands_of_a_proxy_hold_its_hub(ground: Ground) -> None:
    proxy, work = ground.make(Role.PROXY), ground.make()
    assert b"socket:" not in proxy.run("ls -l /proc/self/fd").stdout
    assert b"socket:" in follow(proxy.start("ls -l /proc/self/fd", exec_id="a"))
    assert b"socket:" not in follow(work.start("ls -l /proc/self/fd", exec_id="a"))


def test_a_proxy_has_the_products_packages_and_a_work_box_has_not(ground: Ground) -> None:
    code = "import sandboxes.errors, benchwright.lib.errors"
    proxy, work = ground.make(Role.PROXY), ground.make()
    result = proxy.run(["sh", "-c", '"$VENV_PYTHON" -c "$0"', code])
    assert result.code == 0, result.stderr
    assert "ModuleNotFoundError" in python(work, code)
    assert proxy.run(["ls", "/opt/benchwright/app/benchwright"]).stdout.split() == [b"__init__.py", b"lib"]


def test_linking_what_cannot_be_linked_is_refused(ground: Ground) -> None:
    proxy, work = ground.make(Role.PROXY), ground.make()
    with pytest.raises(errors.SandboxFailed, match="without a model port"):
        ground.backend.link_model_port(work.id, proxy.id, "x")
    with pytest.raises(errors.SandboxFailed, match="role proxy"):
        ground.backend.link_model_port(ground.make(model_port=True).id, work.id, "x")


# --- the daemon ------------------------------------------------------------------------------------------------------


def test_an_exec_id_cannot_be_used_twice(ground: Ground) -> None:
    box = ground.make()
    box.start("true", exec_id="same").close()
    with pytest.raises(errors.SandboxFailed) as caught:
        box.start("true", exec_id="same")
    assert caught.value.code == "exec_exists"


def test_a_client_that_dies_takes_its_run_with_it_but_not_its_started_command(ground: Ground, daemon: Daemon) -> None:
    box = ground.make()
    code = f"""
import threading
from pathlib import Path
from sandboxes.backends.local.client import LocalBackend
box = LocalBackend(Path({str(daemon.socket)!r})).attach({box.id!r})
box.start("sleep 1; echo survived", exec_id="kept")
threading.Thread(target=lambda: box.run("sleep 63")).start()
print("up", flush=True)
"""
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    assert client.stdout and client.stdout.readline() == b"up\n"
    time.sleep(0.3)
    client.kill()
    client.wait()
    client.stdout.close()
    assert follow(box.reattach("kept")) == b"survived\n"
    assert b"sleep 63" not in box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout


def _alive(uid_marker: str) -> list[int]:
    """Host pids whose command line holds the marker."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    if uid_marker.encode() in f.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_daemon(own_daemon: Daemon, number: int) -> None:
    box = own_daemon.backend.create(role=Role.WORK, labels={})
    marker = f"64.{os.getpid()}{int(number)}"
    box.start(f"setsid sleep {marker} & sleep {marker}", exec_id="x").close()
    time.sleep(0.2)
    assert _alive(marker)
    own_daemon.stop(number)
    deadline = time.monotonic() + 5
    while _alive(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _alive(marker) == []


def test_a_restarted_daemon_keeps_snapshots_and_clears_dead_boxes(own_daemon: Daemon) -> None:
    backend = own_daemon.backend
    box = backend.create(role=Role.WORK, labels={})
    box.write("kept", b"1")
    saved = box.snapshot(seal=False)
    command = box.start("sleep 60", exec_id="x")
    own_daemon.stop(signal.SIGKILL)
    with pytest.raises(errors.SandboxUnavailable):
        while not command.ended:
            command.read()
    own_daemon.start()
    with pytest.raises(errors.SandboxLost):
        box.run("true")
    assert backend.create(role=Role.WORK, labels={}, snapshot=saved.id).read("kept") == b"1"
    assert len(list((own_daemon.root() / "boxes").iterdir())) == 1


def test_a_second_daemon_on_the_same_state_gives_up(own_daemon: Daemon) -> None:
    second = Daemon(own_daemon.folder)
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "BENCHWRIGHT_STATE": str(own_daemon.folder / "state"),
        "BENCHWRIGHT_SANDBOXD": str(second.folder / "other" / "rpc.sock"),
    }
    argv = [sys.executable, "-m", "sandboxes.backends.local.daemon"]
    result = subprocess.run(argv, check=False, env=env, capture_output=True, text=True, timeout=20)
    assert result.returncode == 1 and "another sandboxd" in result.stderr


def test_everything_of_a_killed_box_is_cleared_away(own_daemon: Daemon) -> None:
    backend = own_daemon.backend
    box = backend.create(role=Role.WORK, labels={})
    box.run("d=.; for i in $(seq 300); do d=$d/$i; done; mkdir -p $d; chmod 000 1/2")
    saved = box.snapshot(seal=True)
    backend.create(role=Role.WORK, labels={}, snapshot=saved.id).kill()
    backend.delete_snapshot(saved.id)
    root = own_daemon.root()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and len([p for p in root.iterdir() if p.name.startswith(".old")]):
        time.sleep(0.05)
    left = [p for name in ("boxes", "layers", "snapshots") for p in (root / name).iterdir()]
    assert left == [] and not list(root.glob(".old*"))


def test_an_absent_daemon_is_unavailable_with_a_fix(tmp_path: os.PathLike[str]) -> None:
    backend = LocalBackend(ROOT.__class__(tmp_path) / "none.sock")
    found = backend.capabilities()
    assert not found.available and found.fix and "./bw up" in found.fix
    with pytest.raises(errors.SandboxUnavailable):
        backend.create(role=Role.WORK, labels={})


def test_creating_and_running_is_quick(ground: Ground) -> None:
    box = ground.make()
    creates, runs = [], []
    for _ in range(5):
        started = time.perf_counter()
        ground.make()
        creates.append(time.perf_counter() - started)
    for _ in range(30):
        started = time.perf_counter()
        box.run(["true"])
        runs.append(time.perf_counter() - started)
    # Several times the usual 35 ms and 2.5 ms: this is about mistakes, not about a busy machine.
    assert min(creates) < 0.2
    assert min(runs) < 0.015
