"""Snapshots as layers: what a box wrote becomes a read-only folder, and the next box stacks it under its own.

layers/<id>/            one layer; whiteouts (character device 0:0) and `user.overlay.*` attributes and all
snapshots/<id>.json     the layers of a snapshot, the bottom one first, and its digest
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sandboxes.errors import SandboxFailed, SnapshotNotFound

# The kernel takes one page of mount options; a chain of layers is folded into one before that.
MAX_CHAIN = 16
ENTRY_BYTES = 1024  # what an empty file counts: the disk runs out of inodes as well
_OPAQUE = "user.overlay.opaque"


@dataclass(frozen=True)
class Snapshot:
    """One saved workspace."""

    id: str
    layers: list[str]
    digest: str
    bytes: int
    created_at: float


class Layers:
    """The store. Slow work runs in threads; those never fork."""

    def __init__(self, root: Path, uid: int, gid: int, as_root: bool) -> None:
        self._layers = root / "layers"
        self._snapshots = root / "snapshots"
        self._owner = (uid, gid) if as_root else None
        self._known: dict[str, Snapshot] = {}

    def prepare(self) -> None:
        """Makes the folders: the boxes' user passes through the one, and has no business in the other."""
        self._layers.mkdir(exist_ok=True)
        self._layers.chmod(0o711)
        self._snapshots.mkdir(exist_ok=True)
        self._snapshots.chmod(0o700)
        for path in self._snapshots.glob("*.json"):
            self._known[path.stem] = Snapshot(**json.loads(path.read_text()))

    def get(self, snapshot_id: str) -> Snapshot:
        """Raises SnapshotNotFound."""
        snapshot = self._known.get(snapshot_id)
        if snapshot is None:
            raise SnapshotNotFound(snapshot_id)
        return snapshot

    def paths(self, layers: list[str]) -> list[Path]:
        """Where these layers lie."""
        return [self._layers / layer for layer in layers]

    async def save(
        self, snapshot_id: str, upper: Path, below: list[str], parent_digest: str, *, move: bool
    ) -> Snapshot:
        """Makes a snapshot of `upper` on top of the layers `below`; `move` takes the folder itself, else a copy."""
        layer = f"{snapshot_id}-layer"
        target = self._layers / layer
        if move:
            os.rename(upper, target)
        else:
            await copy_tree(upper, target)
        digest, size = await asyncio.to_thread(digest_tree, target, parent_digest)
        layers = [*below, layer]
        if len(layers) > MAX_CHAIN:
            folded = f"{snapshot_id}-fold"
            await asyncio.to_thread(fold, self.paths(layers), self._layers / folded, self._owner)
            layers = [folded]
        snapshot = Snapshot(snapshot_id, layers, digest, size, time.time())
        part = self._snapshots / f".{snapshot_id}"
        part.write_text(json.dumps(asdict(snapshot)))
        os.replace(part, self._snapshots / f"{snapshot_id}.json")
        self._known[snapshot_id] = snapshot
        return snapshot

    def forget(self, snapshot_id: str) -> None:
        """Removes the entry; `unused` then names the layers that nobody needs any more."""
        if self._known.pop(snapshot_id, None):
            (self._snapshots / f"{snapshot_id}.json").unlink(missing_ok=True)

    def unused(self, in_use: set[str]) -> list[Path]:
        """Layers of no snapshot and no live box."""
        needed = set(in_use)
        for snapshot in self._known.values():
            needed.update(snapshot.layers)
        return [path for path in self._layers.iterdir() if path.name not in needed]


def digest_tree(root: Path, parent: str) -> tuple[str, int]:
    """SHA-256 over paths, modes, kinds and contents in a fixed order, chained to the layers below; and the file bytes.

    Times and owners are left out: the same work gives the same digest tomorrow.
    """
    total = hashlib.sha256(parent.encode() + b"\n")
    size = 0
    todo = [(os.fsencode(root), b"")]
    while todo:
        folder, prefix = todo.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name, reverse=True)
        except PermissionError:
            total.update(b"closed\0" + prefix + b"\n")
            continue
        except OSError as e:
            raise SandboxFailed(f"The workspace cannot be saved: {e.strerror}.") from e
        total.update(b"dir\0%s\0%d\n" % (prefix, _opaque(folder)))
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            name = prefix + b"/" + entry.name
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISDIR(info.st_mode):
                total.update(b"%s\0d%o\n" % (name, mode))
                todo.append((entry.path, name))
            elif stat.S_ISREG(info.st_mode):
                size += info.st_size
                total.update(b"%s\0f%o\0%s\n" % (name, mode, _file_digest(entry.path)))
            elif stat.S_ISLNK(info.st_mode):
                total.update(b"%s\0l%s\n" % (name, os.readlink(entry.path)))
            else:
                total.update(b"%s\0%o\0%d\n" % (name, stat.S_IFMT(info.st_mode), info.st_rdev))
    return total.hexdigest(), size


def _opaque(folder: bytes) -> int:
    try:
        return int(os.getxattr(folder, _OPAQUE, follow_symlinks=False) == b"y")
    except OSError:
        return 0


def _file_digest(path: bytes) -> bytes:
    one = hashlib.sha256()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"unreadable"
    with open(fd, "rb", buffering=0) as f:
        while chunk := f.read(1 << 20):
            one.update(chunk)
    return one.hexdigest().encode()


def fold(layers: list[Path], target: Path, owner: tuple[int, int] | None) -> None:
    """Merges a chain, the bottom layer first, into one. Files are linked, not copied: layers never change."""
    target.mkdir()
    for number, layer in enumerate(layers):
        _merge(os.fsencode(layer), os.fsencode(target), owner, bottom=number == 0)
    _like(os.fsencode(layers[-1]), os.fsencode(target), owner)


def _merge(source: bytes, target: bytes, owner: tuple[int, int] | None, *, bottom: bool) -> None:
    todo = [(source, target)]
    folders = []
    while todo:
        src, dst = todo.pop()
        folders.append((src, dst))
        if not bottom and _opaque(src):
            _empty(dst)
        for entry in os.scandir(src):
            info = entry.stat(follow_symlinks=False)
            there = os.path.join(dst, entry.name)
            whiteout = stat.S_ISCHR(info.st_mode) and info.st_rdev == 0
            if stat.S_ISDIR(info.st_mode):
                if os.path.lexists(there) and (os.path.islink(there) or not os.path.isdir(there)):
                    os.unlink(there)
                if not os.path.lexists(there):
                    os.mkdir(there)
                todo.append((entry.path, there))
                continue
            if os.path.lexists(there):
                _remove(there)
            if not whiteout:
                os.link(entry.path, there, follow_symlinks=False)
    for src, dst in reversed(folders):
        _like(src, dst, owner)


def _like(src: bytes, dst: bytes, owner: tuple[int, int] | None) -> None:
    info = os.lstat(src)
    if owner:
        os.chown(dst, *owner)
    os.chmod(dst, stat.S_IMODE(info.st_mode))
    os.utime(dst, ns=(info.st_atime_ns, info.st_mtime_ns))


def _remove(path: bytes) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        _empty(path)
        os.rmdir(path)
    else:
        os.unlink(path)


def _empty(folder: bytes) -> None:
    for entry in list(os.scandir(folder)):
        _remove(entry.path)


async def copy_tree(source: Path, target: Path) -> None:
    """`cp -a`: keeps whiteouts and attributes, follows no link."""
    process = await asyncio.create_subprocess_exec(
        "/bin/cp", "-a", "--reflink=auto", "--", str(source), str(target),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, errors = await process.communicate()
    if process.returncode:
        await remove_tree(target)
        text = errors.decode(errors="replace").strip()[-300:]
        raise SandboxFailed(f"The workspace cannot be copied: {text}")


async def remove_tree(path: Path, *, as_root: bool = True) -> None:
    """`rm -rf`, which copes with any depth; an ordinary user first takes back the permissions that a box withdrew."""
    commands = [["/bin/rm", "-rf", "--", str(path)]]
    if not as_root:
        commands.insert(0, ["/bin/chmod", "-R", "u+rwX", "--", str(path)])
    for argv in commands:
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*argv, stdin=quiet, stdout=quiet, stderr=quiet)
        await process.wait()


def disk_usage(folders: list[Path]) -> int:
    """Bytes that these folders occupy, much as `du` counts them; what vanishes meanwhile counts nothing."""
    total = 0
    todo = [os.fsencode(f) for f in folders]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    links = info.st_nlink if stat.S_ISREG(info.st_mode) else 1
                    total += max(ENTRY_BYTES, info.st_blocks * 512) // max(1, links)
                    if stat.S_ISDIR(info.st_mode):
                        todo.append(entry.path)
        except OSError:
            continue
    return total
