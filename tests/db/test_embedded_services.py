"""The embedded Postgres and Valkey, for real, in a state folder of the test's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from benchwright.embedded import account, binaries, services
from benchwright.embedded.binaries import ServiceFailed
from benchwright.embedded.services import Services
from benchwright.lib.paths import ROOT, runtime_dir, state_key


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder whose name holds a space; all that grew from it is taken away, the servers first."""
    folder = Path(tempfile.mkdtemp(prefix="bw t "))
    monkeypatch.setenv("BENCHWRIGHT_STATE", str(folder))
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    yield folder
    Services(durable=False).stop_unused()
    for left in (folder, runtime_dir(), Path(f"/var/lib/benchwright-{state_key()}")):
        shutil.rmtree(left, ignore_errors=True)


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def test_both_servers_start_from_nothing_and_are_gone_afterwards(state: Path) -> None:
    one = Services(durable=False)
    with one.used() as env:
        assert rows(env["DATABASE_URL"], "select current_database(), current_user") == [("benchwright", "benchwright")]
        with contextlib.closing(redis.Redis.from_url(env["REDIS_URL"])) as client:
            assert client.ping()
        pids = [one.postgres.pid(), one.valkey.pid()] if one.postgres and one.valkey else []
    assert all(pids) and not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert Services().unreachable() == ["PostgreSQL", "Valkey"]


def test_a_killed_server_comes_back_with_every_committed_row(state: Path) -> None:
    one = Services()
    with one.used() as env:
        rows(env["DATABASE_URL"], "create table kept as select generate_series(1, 1000) as n")
        with contextlib.closing(redis.Redis.from_url(env["REDIS_URL"])) as client:
            client.set("kept", 1)
            time.sleep(1.2)  # the append-only file is synced every second
        assert one.postgres is not None and one.valkey is not None
        for server in (one.postgres, one.valkey):
            pid = server.pid()
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert server.process is not None
            server.process.wait()
        assert one.dead() == ["PostgreSQL", "Valkey"]
        one.start()
        assert rows(env["DATABASE_URL"], "select count(*) from kept") == [(1000,)]
        with contextlib.closing(redis.Redis.from_url(env["REDIS_URL"])) as client:
            assert client.get("kept") == b"1"


def test_the_last_user_stops_the_servers_and_no_earlier_one(state: Path) -> None:
    code = "from benchwright.embedded.services import Services\nwith Services(durable=False).used(): print('in')"
    with Services(durable=False).used() as env:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "in\n"
        assert rows(env["DATABASE_URL"], "select 1") == [(1,)]
    assert Services().unreachable() == ["PostgreSQL", "Valkey"]


def test_a_server_given_by_url_is_used_and_not_doubled(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone@elsewhere/theirs")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere:6379/0")
    one = Services()
    with one.used() as env:
        assert env == {"DATABASE_URL": "postgresql://someone@elsewhere/theirs", "REDIS_URL": "redis://elsewhere:6379/0"}
        assert one.postgres is None and one.valkey is None and not one.embedded


def test_a_cluster_that_was_only_half_made_is_made_again(state: Path) -> None:
    services.prepare_state(state)
    half = (Path(f"/var/lib/benchwright-{state_key()}") if os.geteuid() == 0 else state) / "pgdata.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with Services(durable=False).used() as env:
        assert rows(env["DATABASE_URL"], "select 1") == [(1,)]


def test_a_folder_that_somebody_else_put_in_the_way_is_refused(state: Path) -> None:
    services.prepare_state(state)
    elsewhere = state / "elsewhere"
    elsewhere.mkdir()
    runtime_dir().symlink_to(elsewhere)
    try:
        with pytest.raises(ServiceFailed, match="belongs to somebody else"):
            services.private_runtime_dir()
    finally:
        runtime_dir().unlink()


def test_missing_binaries_say_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_package", lambda name: None)
    monkeypatch.setattr(binaries.os, "access", lambda *a: False)
    with pytest.raises(ServiceFailed, match="DATABASE_URL"):
        binaries.postgres_bin()
    with pytest.raises(ServiceFailed, match="REDIS_URL"):
        binaries.valkey_server()


def test_data_of_another_major_version_are_not_touched(state: Path) -> None:
    with Services(durable=False).used():
        pass
    home = Path(f"/var/lib/benchwright-{state_key()}") if os.geteuid() == 0 else state
    (home / "pgdata" / "PG_VERSION").write_text("11\n")
    with pytest.raises(ServiceFailed, match="written by PostgreSQL 11"), Services(durable=False).used():
        pass
    (home / "pgdata" / "PG_VERSION").write_text("18\n")


if os.geteuid() == 0:  # only root may become somebody else, and only its data lie outside the state folder

    def test_no_other_user_can_connect_not_even_another_daemon_run_as_nobody(state: Path) -> None:
        with Services(durable=False).used() as env:
            host = env["DATABASE_URL"].partition("host=")[2]
            psql = binaries.reachable_copy(binaries.postgres_bin()) / "psql"
            for user in (65534, 1234):
                done = subprocess.run(
                    [psql, "-h", host, "-U", "benchwright", "-c", "select 1"],
                    user=user, group=user, extra_groups=[], cwd="/", capture_output=True,
                    text=True, check=False, env={"LC_ALL": "C"},
                )  # fmt: skip
                assert done.returncode != 0
                assert "Peer authentication failed" in done.stderr or "Permission denied" in done.stderr

    def test_a_checkout_made_again_at_the_same_path_does_not_wake_up_with_old_data(state: Path) -> None:
        with Services().used() as env:
            rows(env["DATABASE_URL"], "create table old ()")
        shutil.rmtree(state)
        state.mkdir()
        with Services().used() as env:
            assert rows(env["DATABASE_URL"], "select to_regclass('old')") == [(None,)]
        assert list(Path(f"/var/lib/benchwright-{state_key()}").glob("pgdata.2*")), (
            "the old data are put aside, not deleted"
        )


if os.geteuid() == 0 and account._userns():

    def test_root_without_a_data_folder_uses_a_user_namespace(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BENCHWRIGHT_PG_USERNS", "1")
        one = Services(durable=False)
        with one.used() as env:
            assert rows(env["DATABASE_URL"], "select 1") == [(1,)]
            assert one.postgres is not None and one.postgres.account.kind == "userns"
        assert "PostgreSQL" in Services().unreachable()
