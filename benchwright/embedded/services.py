"""Postgres and Valkey for this installation: where their data lies, who uses them, when they may stop.

Given by `DATABASE_URL` or `REDIS_URL`, a server is used as it is and its embedded twin is left alone.
Users of the services hold a shared lock; whoever leaves last stops them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis

from benchwright.embedded import account, logs
from benchwright.embedded.binaries import ServiceFailed
from benchwright.embedded.postgres import Postgres, postgres_answers, postgres_url
from benchwright.embedded.valkey import Valkey, valkey_answers, valkey_url
from benchwright.lib.paths import runtime_dir, state_dir, state_key


class Services:
    """The servers of the installation whose state is `state_dir()`. `durable=False`: fast and forgetful, for tests."""

    def __init__(self, *, durable: bool = True) -> None:
        self.durable = durable
        self.state = state_dir()
        self.own_postgres = not os.environ.get("DATABASE_URL")
        self.own_valkey = not os.environ.get("REDIS_URL")
        self.postgres: Postgres | None = None
        self.valkey: Valkey | None = None

    def start(self) -> dict[str, str]:
        """Starts what is needed and returns the variables that lead to it. Raises ServiceFailed."""
        prepare_state(self.state)
        with self._changing():
            if self.own_postgres:
                self.postgres = self._postgres()
                self.postgres.start()
            if self.own_valkey:
                self.valkey = self._valkey()
                self.valkey.start()
        return self.addresses()

    def stop(self, progress: Callable[[], None] = lambda: None) -> None:
        """Stops our own servers, each as gently as it can be. Servers given by URL are nobody's to stop."""

        def wait(condition: Callable[[], bool], seconds: float) -> bool:
            deadline = time.monotonic() + seconds
            while not condition():
                if time.monotonic() > deadline:
                    return False
                progress()
                time.sleep(0.02)
            return True

        with self._changing():
            if self.own_valkey:
                (self.valkey or self._valkey()).stop(wait)
            if self.own_postgres:
                (self.postgres or self._postgres()).stop(wait)

    def check_given(self, seconds: float = 10.0) -> None:
        """Do the servers given by URL answer? One that is just starting is waited for. Raises ServiceFailed."""
        for name, url, ask in (
            ("DATABASE_URL", os.environ.get("DATABASE_URL"), _ask_postgres),
            ("REDIS_URL", os.environ.get("REDIS_URL"), _ask_redis),
        ):
            deadline = time.monotonic() + seconds
            while url and (refusal := ask(url)):
                if time.monotonic() > deadline:
                    raise ServiceFailed(
                        f"The server of {name} does not let us in: {refusal}\nWithout {name} ./bw starts one."
                    )
                time.sleep(0.2)

    def addresses(self) -> dict[str, str]:
        """The variables that lead to the services while somebody else keeps them running."""
        sockets = runtime_dir()
        return {
            "DATABASE_URL": os.environ.get("DATABASE_URL") or postgres_url(sockets / "pg"),
            "REDIS_URL": os.environ.get("REDIS_URL") or valkey_url(sockets / "valkey.sock"),
        }

    @property
    def embedded(self) -> bool:
        """Is any of them our own?"""
        return self.own_postgres or self.own_valkey

    def dead(self) -> list[str]:
        """Names of our own servers that don't answer any more."""
        gone = []
        if self.postgres is not None and not self.postgres.up():
            gone.append("PostgreSQL")
        if self.valkey is not None and not self.valkey.up():
            gone.append("Valkey")
        return gone

    @contextmanager
    def used(self) -> Iterator[dict[str, str]]:
        """The services running for as long as the block does, and longer when somebody else uses them too."""
        prepare_state(self.state)
        with (self.state / "run" / "services.users").open("a") as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            try:
                yield self.start()
            finally:
                fcntl.flock(users, fcntl.LOCK_UN)
                self.stop_unused()

    def unreachable(self) -> list[str]:
        """Names of our own servers that don't answer, asked from outside, starting and making nothing."""
        sockets = runtime_dir()
        gone = []
        if self.own_postgres and not postgres_answers(sockets / "pg"):
            gone.append("PostgreSQL")
        if self.own_valkey and not valkey_answers(sockets / "valkey.sock"):
            gone.append("Valkey")
        return gone

    def stop_unused(self) -> list[str]:
        """Stops our own servers unless somebody uses them. Names of those that were running and no longer are."""
        if not (self.state / "installation").exists():
            return []  # never started
        with (self.state / "run" / "services.users").open("a") as users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return []
            postgres, valkey = self.postgres, self.valkey
            if self.own_postgres and postgres is None:
                postgres = self.postgres = self._postgres()
            if self.own_valkey and valkey is None:
                valkey = self.valkey = self._valkey()
            names = [n for n, one in (("PostgreSQL", postgres), ("Valkey", valkey)) if one is not None and one.up()]
            self.stop()
            return names

    def _postgres(self) -> Postgres:
        base = Path("/var/lib")
        who = account.choose(os.access(base, os.W_OK))
        home = self._home(base / f"benchwright-{state_key()}") if who.kind == "nobody" else self.state
        sockets = private_runtime_dir(who.kind == "nobody") / "pg"
        sockets.mkdir(mode=0o700, exist_ok=True)
        os.chown(sockets, *who.owner)
        sockets.chmod(0o700)
        if len(str(sockets / ".s.PGSQL.5432")) > 100:
            raise ServiceFailed(f"The path of the socket folder is too long: {sockets}. Set TMPDIR to a short path.")
        log = self.state / "logs" / "postgres.log"
        logs.rotate(log)
        return Postgres(home / "pgdata", sockets, log, who, durable=self.durable)

    def _valkey(self) -> Valkey:
        log = self.state / "logs" / "valkey.log"
        logs.rotate(log)
        return Valkey(self.state / "valkey", private_runtime_dir() / "valkey.sock", log, durable=self.durable)

    def _home(self, home: Path) -> Path:
        """Root's data folder outside the checkout, tied to this state folder.

        A checkout that was deleted and made again at the same path must not wake up with the old one's data.
        """
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o711)  # to be passed through, not to be listed
        mark, ours = home / "installation", (self.state / "installation").read_text()
        if mark.exists() and mark.read_text() != ours and (home / "pgdata").exists():
            if self.durable:
                aside = home / f"pgdata.{time.strftime('%Y%m%dT%H%M%S')}"
                (home / "pgdata").rename(aside)
                print(f"Data of an earlier installation at this path was put aside: {aside}", flush=True)
            else:
                shutil.rmtree(home / "pgdata")
        mark.write_text(ours)
        return home

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One start or stop at a time."""
        with (self.state / "run" / "services.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def prepare_state(state: Path) -> None:
    """The state folder with its subfolders, for our eyes only, and the mark that tells this installation from the
    next.
    """
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o700)
    for name in ("run", "logs"):
        (state / name).mkdir(mode=0o700, exist_ok=True)
    mark = state / "installation"
    if not mark.exists():
        fresh = mark.with_name(f"installation.{os.getpid()}")
        fresh.write_text(secrets.token_hex(16))
        try:
            os.link(fresh, mark)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()


def private_runtime_dir(traversable: bool = False) -> Path:
    """The folder of the sockets. /tmp is everybody's: a folder that somebody else put there is refused.

    `traversable`: another user (Postgres as nobody) must get through to a folder of its own inside; it lists nothing.
    """
    folder = runtime_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if folder.is_symlink() or not folder.is_dir() or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ServiceFailed(f"{folder} belongs to somebody else or is open to others. Remove it, or set TMPDIR.")
    if traversable:
        folder.chmod(0o711)
    return folder


def _ask_postgres(url: str) -> str:
    """Why it refuses, or nothing. Spellings that only Django knows are Django's to try."""
    if not url.startswith(("postgres://", "postgresql://")):
        return ""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as error:
        return " ".join(str(error).split())
    return ""


def _ask_redis(url: str) -> str:
    try:
        with contextlib.closing(redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5)) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        return str(error)
    return ""
