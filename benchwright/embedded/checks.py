"""`./bw test [TIER] [PYTEST ARGS]`: style, types, import arrows and tests, against embedded services of the tests'
own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchwright.embedded.binaries import ServiceFailed
from benchwright.embedded.services import Services
from benchwright.lib.paths import ROOT, state_dir

# Cheap and telling first: a broken rule is seen in seconds, a broken flow after minutes.
TIERS = ("unit", "db", "sdk", "contracts", "flows", "sandbox", "browser")
SERVICELESS = {"unit"}
NO_TESTS = 5  # pytest's exit code when nothing was collected


def main(argv: list[str]) -> int:
    """0 = all passed. Otherwise the first failing step's exit code."""
    parser = argparse.ArgumentParser(
        prog="./bw test", description="Checks and tests. What follows the tier goes to pytest."
    )
    parser.add_argument("tier", nargs="?", default="all", choices=(*TIERS, "all"))
    parser.add_argument(
        "--data", help="folder of the shared data sets (default: $BENCHWRIGHT_DATA, then ../shared/data)"
    )
    options, rest = parser.parse_known_args(argv)
    if options.data:
        if not Path(options.data).is_dir():
            parser.error(f"--data {options.data}: there is no such folder")
        os.environ["BENCHWRIGHT_DATA"] = str(Path(options.data).resolve())
    # State of its own: tests must never meet the reader's runs, nor stop what `up` started.
    os.environ["BENCHWRIGHT_STATE"] = str(state_dir() / "test")
    os.environ.pop("BENCHWRIGHT_SANDBOXD", None)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    wanted = TIERS if options.tier == "all" else (options.tier,)
    if options.tier in SERVICELESS:
        return _pytest(wanted, rest)
    try:
        with Services(durable=False).used() as env:
            os.environ.update(env)
            return _steps(options.tier, wanted, rest)
    except ServiceFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _steps(tier: str, wanted: tuple[str, ...], rest: list[str]) -> int:
    failed: list[tuple[str, int]] = []
    if tier in ("contracts", "all"):
        for name, command in (
            ("style", ["ruff", "check", "--quiet"]),
            ("import arrows", ["-c", "from importlinter.cli import lint_imports_command as c; c(['--no-cache'])"]),
            ("types", ["mypy"]),
        ):
            if code := _step(name, command):
                failed.append((name, code))
    if code := _pytest(wanted, rest):
        failed.append(("tests", code))
    for name, code in failed:
        print(f"FAILED: {name} (exit {code})")
    return failed[0][1] if failed else 0


def _step(name: str, command: list[str]) -> int:
    began = time.monotonic()
    python = [sys.executable, *([] if command[0] == "-c" else ["-m"])]
    done = subprocess.run(
        [*python, *command], cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    print(f"{name}: {'ok' if not done.returncode else 'FAILED'} ({time.monotonic() - began:.1f} s)", flush=True)
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode


def _pytest(tiers: tuple[str, ...], rest: list[str]) -> int:
    """All tiers in one run of pytest, so that its last line counts them all."""
    chosen = [argument for argument in rest if argument.startswith("tests/")]
    folders = [f"tests/{tier}" for tier in tiers if any((ROOT / "tests" / tier).glob("test_*.py"))]
    if not folders and not chosen:
        print(f"There are no tests in {', '.join(tiers)}.")
        return NO_TESTS
    return subprocess.call([sys.executable, "-m", "pytest", *(rest if chosen else folders + rest)], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
