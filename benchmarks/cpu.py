"""CPU seconds of everything that works for a run: every process of the machine but the load generator and the
measuring one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Samples /proc while it is open. A process that ends between samples loses at most one interval.

    `worker_mb`: the largest resident size seen of each Celery process, in MB.
    """

    def __init__(self, exclude: Iterable[int], every: float = 0.2) -> None:
        self._exclude = {os.getpid(), *exclude}
        self._every = every
        self._first: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], float] = {}
        self._names: dict[tuple[int, int], str] = {}
        self.worker_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._born = False

    def __enter__(self) -> CpuMeter:
        self._sample()
        self._born = True
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._sample()

    @property
    def seconds(self) -> float:
        """CPU seconds since the start, over all processes."""
        return sum(last - self._first[key] for key, last in self._last.items())

    def by_name(self) -> dict[str, float]:
        """CPU seconds by what the process is."""
        out: dict[str, float] = {}
        for key, last in self._last.items():
            name = self._names[key]
            out[name] = out.get(name, 0.0) + last - self._first[key]
        return {k: round(v, 2) for k, v in sorted(out.items(), key=lambda kv: -kv[1]) if v >= 0.02}

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._sample()

    def _sample(self) -> None:
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) in self._exclude:
                continue
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                key = (int(folder.name), int(stat[19]))
                used = (int(stat[11]) + int(stat[12])) / _TICK
                if key not in self._names:
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if not line:
                        continue  # a kernel thread
                    self._names[key] = _name(line)
                    self._first[key] = 0.0 if self._born else used
                self._last[key] = used
                if self._names[key] == "worker":
                    self.worker_mb = max(self.worker_mb, int(stat[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
            except (OSError, ValueError, IndexError):
                continue


_NAMES = (
    ("celery", "beat", "beat"),
    ("celery", "", "worker"),
    ("model_proxy.gateway", "", "gateway"),
    ("run_tasks.py", "", "guest"),
    ("local.daemon", "", "sandboxd"),
    ("uvicorn", "", "web"),
    ("postgres", "", "postgres"),
    ("valkey", "", "valkey"),
    ("bwrap", "", "bwrap"),
)


def _name(line: str) -> str:
    for needle, also, name in _NAMES:
        if needle in line and also in line:
            return name
    return line.split(" ")[0].rsplit("/", 1)[-1][:30]
