"""The virtual environment beside `bw`: made, filled from a hash-checked lock, and repaired. Standard library only.

A stamp written last says what the environment holds, so a second start costs one file read. A marker written first
tells an installation that was cut short from one that somebody made by hand: the first is thrown away.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchwright.embedded import indexes
from benchwright.lib.paths import ROOT

STAMP, MARKER = "benchwright.json", "benchwright.installing"
# uv itself, hash-checked like everything else it then installs.
UV = """uv==0.13.9 \\
    --hash=sha256:16963d19594e18d746a70c7fce82237bde4f2cac4cfcf0ca2b84796fe9d0c6e9 \\
    --hash=sha256:2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25 \\
    --hash=sha256:3eeeb51a267a2144640fcd8f38d4a2f63439b39bc47445fd84727c3fc462c843 \\
    --hash=sha256:5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe \\
    --hash=sha256:56ec37616c00220032fc7b8c9d0ef51367fd0d70d9cd6ddd841660f949f84fed \\
    --hash=sha256:66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63 \\
    --hash=sha256:6a44b2ed8111d2f60d2b92627c5dccda3f7ed7570b18ce115e569cd68c28246b \\
    --hash=sha256:6b0c7b9f47a5d011939d61e324d3fe18a8bc155d8dd53add738709a92f290a7c \\
    --hash=sha256:6d5114bba238adddacb32fb11904f2b3ff4e988f8e9ff0d8d3b5e9822cf836b8 \\
    --hash=sha256:7ec1e1dd9b6cb335c301afdf877989df384227313981850755a59561f75e4ab8 \\
    --hash=sha256:a2ee66fe8b6608e1482ab1bde5799da04705c1cb40324c7f66054ecf46ae6e40 \\
    --hash=sha256:a6e845f387e4ed55bb59342957a9179e24a631fcc7668bda3426ae1cef8ed4b9 \\
    --hash=sha256:c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5 \\
    --hash=sha256:c5dbdb7c8737cd183a9dce95b39cfd1f3d54ec2a27a1bb58f160293f9ba2c805 \\
    --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 \\
    --hash=sha256:db5c8df7145c21ffea9c0f74e38823bac3af60cbadf0e26b8633f08627b17bab \\
    --hash=sha256:dd6f4f93ddf8a668c73f0945f3638444b2140a4e15a3912067493fc6335543e4 \\
    --hash=sha256:ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375 \\
    --hash=sha256:eeb92051c2123b9730c46b04cc843cfa4bc7d7b0aec56df431a2215ef4cb0273
"""
# A lock file that also brings everything another one brings: an environment made for tests serves `up` as well.
SUPERSETS = {"requirements.txt": ("requirements-dev.txt",)}


class InstallFailed(Exception):
    """The environment could not be made. The message says what to do."""


def venv_dir() -> Path:
    """`BENCHWRIGHT_VENV`, else `.venv` beside `bw`."""
    return Path(os.environ.get("BENCHWRIGHT_VENV") or ROOT / ".venv").expanduser().absolute()


def any_python() -> str:
    """The environment's Python when there is one, else the one that runs now: for commands that need no library."""
    ours = venv_dir() / "bin" / "python"
    return str(ours) if os.access(ours, os.X_OK) and _runs(ours) else sys.executable


def ensure(lock: str, venv: Path | None = None) -> str:
    """Path of a Python that has everything in `lock` (a file name in the repository). Raises InstallFailed."""
    venv = venv or venv_dir()
    python = venv / "bin" / "python"
    if serves(venv, lock):
        return str(python)
    with _alone():
        if serves(venv, lock):
            return str(python)
        had = _stamp(venv).get("lock", "")
        if had in SUPERSETS.get(lock, ()):
            lock = had  # an environment made for tests stays one: `up` must not take pytest away
        say(f"Setting up {venv.name} from {lock} …")
        _check_disk(venv.parent)
        if (venv / MARKER).exists() or not _runs(python):
            shutil.rmtree(venv, ignore_errors=True)
        try:
            _fill(venv, lock)
        except _Broken as first:
            say(f"{first}\nStarting over with a new environment.")
            shutil.rmtree(venv, ignore_errors=True)
            try:
                _fill(venv, lock)
            except _Broken as second:
                raise InstallFailed(_advice(str(second))) from None
        return str(python)


def fingerprint(venv: Path, lock: str) -> dict[str, str]:
    """What must be the same for the environment to be used as it is."""
    return {
        "lock": lock,
        "sha256": hashlib.sha256((ROOT / lock).read_bytes()).hexdigest(),
        # Where the interpreter's link leads: a system upgrade may turn it to another version without a word.
        "python": os.path.realpath(venv / "bin" / "python"),
        "machine": platform.machine(),
        "path": str(venv),
    }


def say(text: str) -> None:
    """Progress goes to standard error: standard output belongs to the command."""
    print(text, file=sys.stderr, flush=True)


def tool_environment(python: Path) -> dict[str, str]:
    """The environment for uv: pip's settings in uv's words."""
    done = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False, env=_clean_environment()
    )
    env = _clean_environment()
    env.update(indexes.uv_environment(indexes.parse_config(done.stdout), env))
    return env


def _clean_environment() -> dict[str, str]:
    drop = {"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PIP_REQUIRE_VIRTUALENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"}
    return {**{k: v for k, v in os.environ.items() if k not in drop}, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


class _Broken(Exception):
    """This try failed; a new environment may work."""


def _stamp(venv: Path) -> dict[str, str]:
    try:
        found = json.loads((venv / STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def serves(venv: Path, lock: str) -> bool:
    """Does this environment hold what `lock` says, or more?"""
    stamp = _stamp(venv)
    return any(
        (ROOT / name).exists() and stamp == fingerprint(venv, name) for name in (lock, *SUPERSETS.get(lock, ()))
    ) and os.access(venv / "bin" / "python", os.X_OK)


def _runs(python: Path) -> bool:
    """Does this interpreter start, fit, and find its own packages? An upgraded base Python leaves a dead or a wrong
    link.
    """
    code = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
    try:
        return subprocess.run([python, "-I", "-c", code], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


@contextmanager
def _alone() -> Iterator[None]:
    """One installation at a time for this checkout; the second waits and then finds the work done."""
    fd = os.open(ROOT / "requirements.txt", os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another ./bw is installing here; waiting for it …")
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _fill(venv: Path, lock: str) -> None:
    python = venv / "bin" / "python"
    if not python.exists():
        _make(venv)
    else:
        (venv / MARKER).touch()
    (venv / STAMP).unlink(missing_ok=True)
    requirements = ROOT / lock
    if _have_uv(python):
        command: list[str | Path] = [python, "-m", "uv", "pip", "sync", "--quiet", "--require-hashes"]
        command += ["--python", python, requirements]
        env = tool_environment(python)
    else:
        say("uv is not to be had here; using pip, which takes about a minute.")
        command = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "-r", requirements]
        env = _clean_environment()
    done = subprocess.run(command, env=env, check=False, stdout=sys.stderr.fileno())
    if done.returncode:
        raise _Broken(f"Installing {lock} failed (exit {done.returncode}); the reason is above.")
    (venv / STAMP).write_text(json.dumps(fingerprint(venv, lock)))
    (venv / MARKER).unlink()


def _make(venv: Path) -> None:
    try:
        venv.mkdir(parents=True, exist_ok=True)
        (venv / MARKER).touch()
        done = subprocess.run(
            [sys.executable, "-m", "venv", venv], capture_output=True, text=True, check=False, env=_clean_environment()
        )
    except OSError as error:
        raise InstallFailed(
            f"Can't make {venv}: {error}.\nSet BENCHWRIGHT_VENV to a folder you may write to."
        ) from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        shutil.rmtree(venv, ignore_errors=True)
        if "ensurepip" in said or "No module named venv" in said:
            version = ".".join(map(str, sys.version_info[:2]))
            raise InstallFailed(
                f"This Python ({sys.executable}) can't make virtual environments: its venv part is packaged apart.\n"
                f"Debian, Ubuntu: apt-get install python3-venv   (or python{version}-venv), then run ./bw again."
            )
        raise InstallFailed(f"Making {venv} failed:\n{said}\nSet BENCHWRIGHT_VENV to a folder you may write to.")


def _have_uv(python: Path) -> bool:
    if os.environ.get("BENCHWRIGHT_INSTALLER") == "pip":
        return False
    wanted = UV.split()[0].partition("==")[2]
    have = subprocess.run([python, "-m", "uv", "--version"], capture_output=True, text=True, check=False)
    if have.returncode == 0 and have.stdout.split()[1:2] == [wanted]:
        return True
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "uv.txt"
        listed.write_text(UV)
        command: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        command += ["-r", listed]
        # Out of sight: where uv has no wheel pip says so at length, and its own way works just as well.
        done = subprocess.run(
            [*command, "--only-binary", "uv"], env=_clean_environment(), capture_output=True, text=True, check=False
        )
    return done.returncode == 0


def _check_disk(folder: Path) -> None:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < 1_500_000_000:
        raise InstallFailed(f"Only {free / 1e9:.1f} GB are free in {folder}; the environment needs 1.5 GB.")


def _advice(failure: str) -> str:
    return (
        f"{failure}\n"
        "If packages can't be reached: behind a mirror set PIP_INDEX_URL (or pip.conf), behind a proxy HTTPS_PROXY,\n"
        "with a certificate of your own SSL_CERT_FILE. BENCHWRIGHT_INSTALLER=pip leaves uv out. Then run ./bw again."
    )
