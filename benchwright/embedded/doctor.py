"""`./bw doctor`: what this machine has, what is missing, and how to mend it. Changes nothing.

Runs before anything is installed, so whatever needs a library is tried, and its absence is a finding like any other.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchwright.embedded import install, runfiles
from benchwright.embedded.logs import colours_wanted
from benchwright.lib.paths import runtime_dir, sandboxd_socket, state_dir

if TYPE_CHECKING:
    from sandboxes.backends.base import Capabilities

PROVIDER_KEYS = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY",
    "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY",
    "XAI_API_KEY", "COHERE_API_KEY", "CEREBRAS_API_KEY", "AZURE_API_KEY", "HF_TOKEN", "E2B_API_KEY",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """`state`: ok, note (works without) or bad (does not work until mended). `mend`: what to do, for the last two."""

    state: str
    what: str
    said: str
    mend: str = ""


def main() -> int:
    """0 = nothing is in the way; 1 = something is."""
    findings = [finding for check in CHECKS for finding in _guarded(check)]
    colour = colours_wanted()
    marks = {"ok": ("✓", 32), "note": ("·", 33), "bad": ("✗", 31)}
    for finding in findings:
        mark, number = marks[finding.state]
        shown = f"\x1b[{number}m{mark}\x1b[0m" if colour else mark
        print(f"{shown} {finding.what:<14} {finding.said}")
        if finding.mend:
            print(f"  {'':<14} → {finding.mend}")
    bad = [finding for finding in findings if finding.state == "bad"]
    print("\nNothing is in the way." if not bad else f"\nIn the way: {', '.join(finding.what for finding in bad)}.")
    return 1 if bad else 0


def _guarded(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """A check that breaks is a finding too; the others still run."""
    try:
        return list(check())
    except Exception as error:
        return [Finding("bad", check.__name__.strip("_"), f"could not be checked: {type(error).__name__}: {error}")]


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        yield Finding("ok", "Python", f"{version} ({sys.executable})")
    else:
        yield Finding("bad", "Python", version, "Install Python 3.11, 3.12 or 3.13.")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        yield Finding(
            "bad", "venv", "this Python can't make environments", "Debian, Ubuntu: apt-get install python3-venv"
        )


def _environment() -> Iterator[Finding]:
    home = install.venv_dir()
    if _installed():
        yield Finding("ok", "environment", f"{home} holds what the lock says")
    elif home.exists():
        yield Finding("note", "environment", f"{home} differs from the lock", "The next ./bw up brings it up to date.")
    else:
        yield Finding("note", "environment", "not made yet", "./bw up makes it.")


def _installed() -> bool:
    return any(install.serves(install.venv_dir(), lock) for lock in ("requirements.txt", "requirements-dev.txt"))


def _disk() -> Iterator[Finding]:
    folder = _existing(state_dir())
    free = shutil.disk_usage(folder).free
    enough = free > 1_500_000_000
    advice = "Free some space, or set BENCHWRIGHT_STATE to a folder on another disk."
    yield Finding("ok" if enough else "bad", "disk", f"{free / 1e9:.1f} GB free in {folder}", "" if enough else advice)
    if len(str(runtime_dir())) > 80:
        yield Finding("bad", "socket folder", f"{runtime_dir()} is too long a path", "Set TMPDIR to a short path.")


def _state() -> Iterator[Finding]:
    folder = _existing(state_dir())
    if not os.access(folder, os.W_OK):
        yield Finding("bad", "state", f"{folder} can't be written", "Set BENCHWRIGHT_STATE to a folder of yours.")
    pid = runfiles.supervisor_pid()
    if pid is None:
        yield Finding("note", "running", "nothing is up", "./bw up")
    else:
        yield Finding("ok", "running", f"{runfiles.read_status().get('url', 'starting')} (process {pid})")


def _services() -> Iterator[Finding]:
    given_postgres, given_redis = os.environ.get("DATABASE_URL"), os.environ.get("REDIS_URL")
    try:
        from benchwright.embedded import account, binaries
        from benchwright.embedded.services import Services
    except ImportError:
        yield Finding("note", "services", "checked once the environment is there", "./bw up")
        return
    try:
        if given_postgres:
            import psycopg

            with psycopg.connect(given_postgres, connect_timeout=5) as connection:
                yield Finding("ok", "PostgreSQL", f"DATABASE_URL answers ({connection.info.server_version // 10000})")
        else:
            who = account.choose(os.access("/var/lib", os.W_OK))
            yield Finding(
                "ok", "PostgreSQL", f"embedded, {_version(binaries.postgres_bin() / 'postgres')}, as {who.name}"
            )
    except Exception as error:
        yield Finding("bad", "PostgreSQL", *_split(error, "Check DATABASE_URL."))
    try:
        if given_redis:
            import redis

            redis.Redis.from_url(given_redis, socket_timeout=5, socket_connect_timeout=5).ping()
            yield Finding("ok", "Valkey", "REDIS_URL answers")
        else:
            yield Finding("ok", "Valkey", f"embedded, {_version(binaries.valkey_server())}")
    except Exception as error:
        yield Finding("bad", "Valkey", *_split(error, "Check REDIS_URL."))
    if runfiles.supervisor_pid() is not None:
        missing = Services().unreachable()
        for name in missing:
            yield Finding(
                "bad", name, "does not answer", f"See {state_dir() / 'logs'}; ./bw down and ./bw up start it afresh."
            )


def _sandbox() -> Iterator[Finding]:
    try:
        from sandboxes.backends.local.client import LocalBackend
        from sandboxes.backends.local.host import read_host
        from sandboxes.backends.local.probe import obstacle
    except ImportError as error:
        yield Finding("note", "sandbox", f"checked once the environment is there ({error.name})", "./bw up")
        return
    host = read_host()
    if host.bwrap is None and not _installed():
        yield Finding("note", "sandbox", "checked once the environment is there: bubblewrap comes with it", "./bw up")
        return
    found: Capabilities | None = obstacle(host)
    if found is None and sandboxd_socket().exists():
        found = LocalBackend(sandboxd_socket()).capabilities()
    if found is None:
        found = _try_a_box()
    if found is None:
        yield Finding("ok", "sandbox", "a box with namespaces of its own starts here")
    elif found.available:
        said = f"isolation {found.isolation}, memory {found.memory_limit}, processor {found.cpu_limit}"
        said += f", network {found.egress}"
        yield Finding("ok", "sandbox", said)
    else:
        yield Finding("bad", "sandbox", found.reason or "not available", found.fix or "")


def _try_a_box() -> Capabilities | None:
    """sandboxd is not up: a bare box tells whether namespaces may be made at all. None = yes."""
    from sandboxes.backends.local.host import find_bwrap
    from sandboxes.backends.local.probe import explain

    bwrap = find_bwrap()
    command = [
        str(bwrap),
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "true",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return None if done.returncode == 0 else explain(done.stderr)


def _chromium() -> Iterator[Finding]:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            yield Finding("ok", "Chromium", path)
            return
    yield Finding(
        "note",
        "Chromium",
        "not here; only the browser tests need it",
        "Debian: apt-get install chromium fonts-dejavu-core",
    )


def _keys() -> Iterator[Finding]:
    present = [name for name in PROVIDER_KEYS if os.environ.get(name)]
    if present:
        yield Finding("ok", "provider keys", ", ".join(present))
    else:
        yield Finding(
            "note", "provider keys", "none in the environment", "export OPENAI_API_KEY=…, or give a key with the launch"
        )


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _version(binary: Path) -> str:
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=20, check=False)
    words = (done.stdout or done.stderr).split()
    numbers = [word.removeprefix("v=") for word in words if word.removeprefix("v=")[:1].isdigit()]
    return numbers[0] if numbers else f"{binary.name} does not run: {done.stderr.strip()[:200]}"


def _split(error: Exception, advice: str) -> tuple[str, str]:
    first, _, rest = str(error).strip().partition("\n")
    return first, " ".join(rest.split()) or advice


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python, _environment, _disk, _state, _services, _sandbox, _chromium, _keys,
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
