"""A share of the processor for each box, by the cpu controller of cgroup v1 where root may use it.

Only groups of our own, below the group that sandboxd itself is in, are made, and only of this one controller. Elsewhere
(an ordinary user, cgroup v2 without a delegated subtree) boxes are merely nice, and `cpu_limit` says advisory.
"""

from __future__ import annotations

import os
from pathlib import Path

PERIOD_US = 100_000


class CpuGroups:
    """Makes and clears the boxes' groups. `available` is False where that cannot be done."""

    def __init__(self, key: str, as_root: bool) -> None:
        self._top: Path | None = None
        home = _own_group() if as_root else None
        if home is None:
            return
        top = home / f"benchwright-{key}"
        try:
            top.mkdir(exist_ok=True)
            for leftover in top.iterdir():
                if leftover.is_dir():
                    leftover.rmdir()  # its box died with an earlier daemon
        except OSError:
            return
        self._top = top

    @property
    def available(self) -> bool:
        """True when `cpus` is a hard limit."""
        return self._top is not None

    def make(self, box_id: str, cpus: float) -> Path | None:
        """The file into which the box's first process writes itself; None where groups cannot be used."""
        if self._top is None:
            return None
        group = self._top / box_id
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(max(1000, int(PERIOD_US * cpus))))
        return group / "cgroup.procs"

    def remove(self, box_id: str) -> None:
        """Clears the group of a dead box. One that the kernel still holds is cleared at the next start."""
        if self._top is not None:
            try:
                (self._top / box_id).rmdir()
            except OSError:
                pass

    def close(self) -> None:
        """Clears everything."""
        if self._top is not None:
            try:
                self._top.rmdir()
            except OSError:
                pass


def _own_group() -> Path | None:
    """The folder of our own group in the cpu hierarchy of cgroup v1."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    own = None
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            own = path
    if own is None:
        return None
    for line in mounts:
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        root, point = left.split(" ")[3:5]
        if kind == "cgroup" and "cpu" in options.split(",") and (root == "/" or own.startswith(root)):
            inside = own if root == "/" else own[len(root) :]
            folder = Path(point) / inside.lstrip("/")
            return folder if os.access(folder, os.W_OK) else None
    return None
