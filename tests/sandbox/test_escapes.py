"""Hostile programs stay in their box, and what they are refused is told and counted."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time

import pytest

from benchwright.lib.paths import ROOT
from sandboxes import errors
from sandboxes.backends.base import Network, Size
from sandboxes.backends.conformance import Ground, follow
from sandboxes.vocabulary import Role
from tests.sandbox.conftest import new_daemon, python


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
