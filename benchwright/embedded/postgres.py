"""The embedded Postgres: one cluster, on a socket that only we can reach, that survives being killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchwright.embedded.account import Account
from benchwright.embedded.binaries import ServiceFailed, postgres_bin, reachable_copy

USER = DATABASE = "benchwright"
START_SECONDS = 120  # a long log to replay after a crash takes its time
INSTEAD = "Or give a running server: DATABASE_URL=postgresql://user:password@host:5432/name ./bw up"


class Postgres:
    """`data`: the cluster's folder; `socket_dir`: short, ours alone; `durable=False` trades crash safety for speed
    (tests).
    """

    def __init__(self, data: Path, socket_dir: Path, log: Path, account: Account, *, durable: bool = True) -> None:
        self.data, self.socket_dir, self.log, self.account, self.durable = data, socket_dir, log, account, durable
        self.process: subprocess.Popen[bytes] | None = None

    def up(self) -> bool:
        """Does it answer? The only question whose answer can be believed: a pid file outlives its process."""
        return postgres_answers(self.socket_dir)

    def start(self) -> None:
        """Starts it unless it answers already; makes the cluster and the database on first use. Raises
        ServiceFailed.
        """
        if not self.up():
            folder = postgres_bin()
            if self.account.kind == "nobody":
                folder = reachable_copy(folder)
            if not (self.data / "PG_VERSION").exists():
                self._make(folder)
            self._check_version(folder)
            self._write_access()
            self._serve(folder)
        with psycopg.connect(_dsn(self.socket_dir), autocommit=True) as connection:
            if not connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone():
                connection.execute(f"create database {DATABASE}")

    def stop(self, wait: Callable[[Callable[[], bool], float], bool]) -> None:
        """A fast shutdown: sessions are ended, everything is written. `wait(condition, seconds)` may report
        progress.
        """
        pid = self.pid()
        if pid is None:
            return
        try:
            os.kill(pid, signal.SIGINT)
        except ProcessLookupError:
            return
        if not wait(lambda: not self._alive(pid), 60):
            os.kill(pid, signal.SIGQUIT)  # immediate: the next start replays the log
            wait(lambda: not self._alive(pid), 10)

    def pid(self) -> int | None:
        """The server's process: our own child, or, while it answers, the pid file's. A stale file's may be
        anybody's.
        """
        if self.process is not None and self.process.poll() is None and self.account.kind != "userns":
            return self.process.pid
        if not self.up():
            return None
        try:
            return int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def _alive(self, pid: int) -> bool:
        if self.process is not None and self.process.pid == pid:
            return self.process.poll() is None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return (self.data / "postmaster.pid").exists()

    def _environment(self) -> dict[str, str]:
        """Without PG*: a variable meant for another server must not turn this one."""
        return {**{k: v for k, v in os.environ.items() if not k.startswith("PG")}, "LC_ALL": "C"}

    def _make(self, folder: Path) -> None:
        """initdb beside the final place, then a rename: a half-made cluster is never taken for a whole one."""
        fresh = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700, parents=True)
        os.chown(fresh, *self.account.owner)
        locale = "C.UTF-8" if sys.platform == "linux" else "C"
        command = [str(folder / "initdb"), "-D", str(fresh), "-U", USER, "-E", "UTF8", f"--locale={locale}"]
        command += ["--auth-local=peer", "--auth-host=reject", "--no-instructions", "--data-checksums"]
        command += [] if self.durable else ["--no-sync"]
        done = subprocess.run(
            self.account.command(command), capture_output=True, text=True, check=False, cwd="/",
            env=self._environment(), **self.account.options(),
        )  # fmt: skip
        if done.returncode:
            raise ServiceFailed(f"PostgreSQL could not be set up:\n{(done.stdout + done.stderr).strip()}\n{INSTEAD}")
        fresh.rename(self.data)

    def _check_version(self, folder: Path) -> None:
        done = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False)
        have = (self.data / "PG_VERSION").read_text().strip()
        major = done.stdout.split()[-1].split(".")[0] if done.stdout.split() else ""
        if done.returncode:
            raise ServiceFailed(f"PostgreSQL does not run on this machine: {done.stderr.strip()}\n{INSTEAD}")
        if major != have:
            raise ServiceFailed(
                f"The data in {self.data} was written by PostgreSQL {have}; the binaries are {major}.\n"
                f"Point BENCHWRIGHT_PG_BIN at PostgreSQL {have}'s bin folder, dump the data, then start afresh."
            )

    def _write_access(self) -> None:
        """Who may connect: the kernel says who is calling, and only we are let in. Others may run as `nobody` too."""
        me = self.account.name if self.account.kind == "userns" else _own_name()
        owner = self.account.owner
        for name, text in (
            ("pg_hba.conf", "local all all peer map=installation\n"),
            ("pg_ident.conf", f'installation "{me}" {USER}\n'),
        ):
            path = self.data / name
            path.write_text(text)
            os.chown(path, *owner)
            path.chmod(0o600)

    def _serve(self, folder: Path) -> None:
        settings = {"listen_addresses": "", "max_connections": "200", "unix_socket_permissions": "0777"}
        if sys.platform == "linux":
            settings["recovery_init_sync_method"] = "syncfs"
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command = [str(folder / "postgres"), "-D", str(self.data), "-k", str(self.socket_dir), "-p", "5432"]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + START_SECONDS
        tries = 0
        while True:
            tries += 1
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    self.account.command(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                    env=self._environment(), start_new_session=True, **self.account.options(),
                )  # fmt: skip
            while self.process.poll() is None and time.monotonic() < deadline:
                if self.up():
                    return
                time.sleep(0.03)
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGQUIT)
                raise ServiceFailed(
                    f"PostgreSQL did not answer within {START_SECONDS} s. Its log: {self.log}\n{INSTEAD}"
                )
            # Right after a kill -9 the old server's shared memory is still there for a moment.
            if tries >= 12 or time.monotonic() > deadline:
                raise ServiceFailed(f"PostgreSQL ended at once:\n{tail(self.log)}\nIts log: {self.log}\n{INSTEAD}")
            time.sleep(0.1 * tries)


def _dsn(sockets: Path) -> str:
    return f"host={sockets} port=5432 user={USER} dbname=postgres"


def postgres_answers(sockets: Path) -> bool:
    """Does the server whose socket is in that folder let us in?"""
    try:
        psycopg.connect(_dsn(sockets), connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def postgres_url(sockets: Path) -> str:
    """The address of the server whose socket is in that folder, for Django and psycopg alike."""
    return f"postgresql://{USER}@/{DATABASE}?host={sockets}"


def tail(log: Path, lines: int = 8) -> str:
    """The end of a log, for a message."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def _own_name() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
