"""Setup: what the scorer finds installed, pinned."""

from __future__ import annotations

import hashlib
import re

from benchwright.lib.paths import ROOT
from runs.errors import PhaseFailed
from runs.events.types.artifact import SetupArtifact
from runs.phases.base import Done
from runs.phases.fetch import SOURCE_DIR
from runs.pipeline.cache import cell_key, hit, look_up
from runs.pipeline.context import Context
from runs.vocabulary import Phase
from sandboxes.backends.base import Sandbox

SITE = "/workspace/site"
INSTALL_SECONDS = 900
_PINNED = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.!+_-]+$")


def setup(ctx: Context) -> Done | None:
    """Installs the pinned requirements that came with the sources, if any. Never skipped by a pin: it hits or it
    runs.
    """
    if "SetupArtifact" in ctx.state.artifacts:
        return Done() if ctx.state.started == Phase.SETUP else None
    ctx.start(Phase.SETUP)
    version, digest = scoring_identity()
    sources = ctx.state.artifacts["FetchArtifact"]["sources"]
    key = cell_key(
        ctx,
        "setup",
        {"sources": [s["sha256"] for s in sources], "names": [s["name"] for s in sources], "scoring": digest},
    )
    cached = look_up(ctx, "setup", key)
    if cached:
        cell, row = cached
        ctx.emit(SetupArtifact(**{**row.data, "origin": "cached"}))
        return Done(cache_hit=hit(cell))
    box = ctx.work()
    python = box.run('"$BW_PYTHON" -I -c "import platform; print(platform.python_version())"')
    if python.code != 0:
        raise PhaseFailed(
            "There is no Python in the work sandbox.",
            code="no_python",
            hint=python.stderr.decode(errors="replace")[-300:],
        )
    wanted = _requirements(box, [s["name"] for s in sources])
    if wanted:
        _install(ctx, box, wanted)
    snapshot = ctx.save(box, "setup")
    ctx.emit(
        SetupArtifact(
            python=python.stdout.decode().strip(),
            scoring_version=version,
            scoring_digest=digest,
            requirements=wanted,
            snapshot_id=snapshot,
        )
    )
    return Done(cell=key, artifact="SetupArtifact")


def scoring_identity() -> tuple[str, str]:
    """(version, SHA-256 over the files) of the scoring helpers that every work sandbox holds."""
    folder = ROOT / "sdk" / "benchwright_scoring"
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    version = re.search(r'^VERSION\s*(?::\s*str\s*)?=\s*"([^"]+)"', (folder / "__init__.py").read_text(), re.M)
    return (version.group(1) if version else "0"), digest.hexdigest()


def _requirements(box: Sandbox, names: list[str]) -> list[str]:
    if "requirements.txt" not in names:
        return []
    lines = [
        line.split("#")[0].strip()
        for line in box.read(f"{SOURCE_DIR}/requirements.txt").decode(errors="replace").splitlines()
    ]
    wanted = [line for line in lines if line]
    for line in wanted:
        if not _PINNED.match(line):
            raise PhaseFailed(
                f"requirements.txt: {line[:80]!r} is not pinned.",
                code="requirement_not_pinned",
                hint="Write name==version on each line; a score must not depend on the day it was made.",
            )
    return wanted


def _install(ctx: Context, box: Sandbox, wanted: list[str]) -> None:
    ctx.say(f"Installing {', '.join(wanted)}.")
    command = f'exec "$BW_PYTHON" -m pip install --no-input --disable-pip-version-check --target {SITE} "$@"'
    with ctx.interruptible(box):
        done = box.run(["/bin/sh", "-c", command, "pip", *wanted], timeout=INSTALL_SECONDS)
    if done.code != 0:
        text = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise PhaseFailed(
            f"The requirements could not be installed: {text[-600:]}",
            code="install_failed",
            hint="Check names and versions, and that the host policy allows the package index.",
        )
