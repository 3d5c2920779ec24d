"""The bwrap command line of a box, and the environment of the commands in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from sandboxes.backends.base import EGRESS_PORT, WORKSPACE, Network, Size
from sandboxes.backends.local.host import Host
from sandboxes.backends.local.launch import AGENT_FD, HUB_FD, SECCOMP_FD
from sandboxes.backends.local.reach import Reach
from sandboxes.vocabulary import Role

_ETC: tuple[str, ...] = (
    "ssl/certs",
    "ssl/openssl.cnf",
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ca-certificates",
)
_ETC += ("localtime", "mime.types", "services", "protocols", "terminfo", "java-17-openjdk", "perl")
_OPT = "/opt/benchwright"


@dataclass(frozen=True)
class BoxSpec:
    """What was asked for."""

    id: str
    role: Role
    labels: dict[str, str]
    size: Size
    network: Network
    env: dict[str, str] = field(default_factory=dict)
    model_port: bool = False


def prepare_etc(root: Path) -> None:
    """The boxes' own /etc: two users, one name server that is us."""
    etc = root / "etc"
    etc.mkdir(exist_ok=True)
    for name, text in {
        "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:user:{WORKSPACE}:/bin/sh\n",
        "group": "root:x:0:\nuser:x:1000:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "resolv.conf": "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }.items():
        (etc / name).write_text(text)
        (etc / name).chmod(0o644)


def bwrap_argv(host: Host, reach: Reach, spec: BoxSpec, folder: Path, layers: list[Path], seccomp: bool) -> list[str]:
    """bwrap and its arguments. `layers` are the lower layers of /workspace, the bottom one first."""
    assert host.bwrap
    shm = max(16, spec.size.memory_mb // 4) << 20
    argv = [reach.program(host.bwrap), "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc"]
    argv += ["--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    argv += ["--as-pid-1", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"]
    argv += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if os.path.islink(f"/{name}"):
            argv += ["--symlink", f"usr/{name}", f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            argv += ["--ro-bind", f"/{name}", f"/{name}"]
    argv += ["--dir", "/etc"]
    for name in _ETC:
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for path in sorted((host.root / "etc").iterdir()):
        argv += ["--ro-bind", str(path), f"/etc/{path.name}"]
    # The settings of a box's own namespaces would be writable in its own /proc/sys.
    argv += [
        "--proc",
        "/proc",
        "--ro-bind",
        "/proc/sys",
        "/proc/sys",
        "--dev",
        "/dev",
        "--size",
        str(shm),
        "--tmpfs",
        "/dev/shm",
        "--remount-ro",
        "/dev",
    ]
    # On disk, not in memory: what a build unpacks here counts as disk, and the watchdog sees it.
    argv += ["--bind", str(folder / "tmp"), "/tmp", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]
    argv += _programs(host, reach, spec)
    for layer in layers:
        argv += ["--overlay-src", str(layer)]
    if layers:
        argv += ["--overlay", str(folder / "upper"), str(folder / "work"), WORKSPACE]
    else:
        argv += ["--bind", str(folder / "upper"), WORKSPACE]
    argv += ["--ro-bind", str(host.root / "agent.pyc"), "/run/bw/agent.pyc", "--remount-ro", "/"]
    if seccomp:
        argv += ["--seccomp", str(SECCOMP_FD)]
    argv += ["--chdir", "/", host.python, "-I", "-S", "/run/bw/agent.pyc", str(AGENT_FD)]
    return [*argv, str(HUB_FD if spec.role is Role.PROXY else -1), str(spec.size.processes + 2)]


def _programs(host: Host, reach: Reach, spec: BoxSpec) -> list[str]:
    """Read-only binds of the interpreter, the guest's code, and for the proxy role the gateway's."""
    wanted: dict[str, str] = {}  # path inside -> path outside
    for prefix in (os.path.realpath(host.base_prefix), host.base_prefix):
        if not _in_usr(prefix):
            wanted[prefix] = prefix
    wanted[f"{_OPT}/benchwright_scoring"] = str(host.repo / "sdk" / "benchwright_scoring")
    wanted[f"{_OPT}/guest"] = str(host.repo / "runs" / "guest")
    if spec.role is Role.PROXY:
        if not _in_usr(host.venv):
            wanted[host.venv] = host.venv
        for part in ("benchwright/__init__.py", "benchwright/lib", "sandboxes"):
            wanted[f"{_OPT}/app/{part}"] = str(host.repo / part)
    elif _may_install(spec):
        for folder in host.pip.folders:
            wanted[folder] = folder
    if host.ca_file:
        wanted[f"{_OPT}/ca.pem"] = str(host.root / "ca.pem")
    argv = []
    for inside, outside in wanted.items():
        if os.path.exists(outside):
            argv += ["--ro-bind", reach.source(outside), inside]
    return argv


def _in_usr(path: str) -> bool:
    return os.path.realpath(path) == "/usr" or os.path.realpath(path).startswith("/usr/")


def _may_install(spec: BoxSpec) -> bool:
    return spec.network.mode == "allow" or bool(spec.network.allow)


def command_env(host: Host, spec: BoxSpec) -> dict[str, str]:
    """The environment of every command in the box. Nothing of the host's own is in it but what is named here."""
    proxy = f"http://127.0.0.1:{EGRESS_PORT}"
    bin_dirs = [f"{WORKSPACE}/.local/bin", os.path.dirname(host.python), "/usr/local/bin", "/usr/bin", "/bin"]
    env = {
        "PATH": ":".join([*bin_dirs, "/usr/local/sbin", "/usr/sbin"]),
        "HOME": WORKSPACE,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
        "BW_PYTHON": host.python,
        "BW_SANDBOX": spec.id,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        env[name] = proxy
    env["no_proxy"] = env["NO_PROXY"] = "127.0.0.1,localhost"
    if host.ca_file:
        ca = (
            "SSL_CERT_FILE",
            "REQUESTS_CA_BUNDLE",
            "PIP_CERT",
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
            "NODE_EXTRA_CA_CERTS",
        )
        env.update(dict.fromkeys(ca, f"{_OPT}/ca.pem"))
    if _may_install(spec):
        env.update(host.pip.env)
    if spec.role is Role.PROXY:
        env["VENV_PYTHON"] = host.venv_python
        env["PYTHONPATH"] = f"{_OPT}/app"
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env["BW_HUB_FD"] = str(HUB_FD)
    env.update(spec.env)
    return env
