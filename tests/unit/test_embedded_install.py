"""The environment beside `bw`: when it is used as it is, when it is repaired, when it starts over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchwright.embedded import install
from benchwright.lib.paths import ROOT


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """Installations that were asked for; each one leaves what a real one leaves."""
    calls: list[tuple[Path, str]] = []

    def fill(venv: Path, lock: str) -> None:
        calls.append((venv, lock))
        python = venv / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            python.symlink_to(sys.executable)
        (venv / install.MARKER).touch()
        (venv / install.STAMP).write_text(json.dumps(install.fingerprint(venv, lock)))
        (venv / install.MARKER).unlink()

    monkeypatch.setattr(install, "_fill", fill)
    monkeypatch.setattr(install, "_runs", lambda python: python.exists())
    return calls


def test_a_second_start_installs_nothing(tmp_path: Path, filled: list[tuple[Path, str]]) -> None:
    home = tmp_path / "with a space"
    first = install.ensure("requirements.txt", home)
    assert install.ensure("requirements.txt", home) == first == str(home / "bin" / "python")
    assert len(filled) == 1


def test_an_environment_for_tests_serves_the_server_too(tmp_path: Path, filled: list[tuple[Path, str]]) -> None:
    install.ensure("requirements-dev.txt", tmp_path / "v")
    install.ensure("requirements.txt", tmp_path / "v")
    assert [lock for _, lock in filled] == ["requirements-dev.txt"]


def test_a_new_lock_does_not_take_the_tests_away(tmp_path: Path, filled: list[tuple[Path, str]]) -> None:
    home = tmp_path / "v"
    install.ensure("requirements-dev.txt", home)
    stamp = json.loads((home / install.STAMP).read_text())
    (home / install.STAMP).write_text(json.dumps({**stamp, "sha256": "older"}))
    install.ensure("requirements.txt", home)
    assert [lock for _, lock in filled] == ["requirements-dev.txt"] * 2


def test_an_installation_that_was_cut_short_starts_over(tmp_path: Path, filled: list[tuple[Path, str]]) -> None:
    home = tmp_path / "v"
    install.ensure("requirements.txt", home)
    (home / install.STAMP).unlink()
    (home / install.MARKER).touch()
    half = home / "half-written"
    half.touch()
    install.ensure("requirements.txt", home)
    assert len(filled) == 2 and not half.exists()


def test_an_environment_made_by_hand_is_completed_and_kept(tmp_path: Path, filled: list[tuple[Path, str]]) -> None:
    home = tmp_path / "v"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(sys.executable)
    own = home / "own"
    own.touch()
    install.ensure("requirements.txt", home)
    assert len(filled) == 1 and own.exists()


def test_an_interpreter_that_leads_elsewhere_is_not_trusted(tmp_path: Path, filled: list[tuple[Path, str]]) -> None:
    home = tmp_path / "v"
    install.ensure("requirements.txt", home)
    (home / "bin" / "python").unlink()
    (home / "bin" / "python").symlink_to("/bin/sh")
    assert not install.serves(home, "requirements.txt")


def test_two_failures_end_with_what_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(venv: Path, lock: str) -> None:
        raise install._Broken("Installing failed.")

    monkeypatch.setattr(install, "_fill", broken)
    with pytest.raises(install.InstallFailed, match="PIP_INDEX_URL"):
        install.ensure("requirements.txt", tmp_path / "v")


def test_a_python_without_ensurepip_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            command, 1, "The virtual environment was not created: ensurepip is missing", ""
        )

    monkeypatch.setattr(install.subprocess, "run", run)
    with pytest.raises(install.InstallFailed, match="apt-get install python3-venv"):
        install._make(tmp_path / "v")


def test_every_line_of_the_locks_is_hashed() -> None:
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-model.txt"):
        pins = [line for line in (ROOT / name).read_text().splitlines() if "==" in line and not line.startswith("#")]
        assert pins and all(line.endswith("\\") for line in pins), name
    assert install.UV.count("--hash=sha256:") == len(install.UV.splitlines()) - 1


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_bare_bw_names_every_command(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, ROOT / "bw", *arguments], capture_output=True, text=True, check=True)
    for name in ("demo", "up", "down", "test", "bench", "doctor", "lock", "manage"):
        assert f"\n  {name} " in done.stdout


def test_an_unknown_command_is_refused() -> None:
    done = subprocess.run([sys.executable, ROOT / "bw", "upp"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "'upp'" in done.stderr
