"""Compiles the environment in the background, once after each installation.

uv writes no bytecode, and the model gateway runs in a sandbox that sees the environment read-only: without this, every
run would compile its libraries anew and throw the result away (12 s instead of 4 for the largest).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchwright.embedded.install import STAMP
from benchwright.lib.paths import ROOT

DONE = "benchwright.compiled"
# What every run's gateway imports comes first, then the largest library, then whatever else there is.
FIRST = ("aiohttp", "yarl", "multidict", "aiosignal", "frozenlist", "attr", "httpx", "openai", "pydantic", "litellm")


def start() -> subprocess.Popen[bytes] | None:
    """A process of lowest priority that does it, in a group of its own; None when there is nothing to do."""
    home = Path(sys.prefix)
    packages = home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    try:
        stamp = (home / STAMP).read_text()
    except OSError:
        return None  # an environment made by hand is its maker's business
    if _done(home, stamp) or not os.access(packages, os.W_OK):
        return None
    folders = [str(ROOT / "sandboxes"), *(str(packages / name) for name in FIRST if (packages / name).is_dir())]
    code = (
        "import compileall, os, sys; os.nice(19); home, stamp, *folders = sys.argv[1:]\n"
        "for folder in folders: compileall.compile_dir(folder, quiet=2)\n"
        f"open(os.path.join(home, {DONE!r}), 'w').write(stamp)"
    )
    return subprocess.Popen(
        [sys.executable, "-I", "-c", code, str(home), stamp, *folders, str(packages)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
    )  # fmt: skip


def _done(home: Path, stamp: str) -> bool:
    try:
        return bool(json.loads((home / DONE).read_text()) == json.loads(stamp))
    except (OSError, ValueError):
        return False
