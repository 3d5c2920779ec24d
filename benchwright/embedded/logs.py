"""What the processes print: prefixed on the terminal, whole in files, files kept small. Standard library only."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

ROTATE_BYTES = 8 << 20
KEEP = 3
LINE_LIMIT = 16 << 10  # a line without end must not fill the memory
_COLOURS = {"web": 36, "worker": 33, "beat": 35, "sandboxd": 34, "bw": 32, "migrate": 32}


def rotate(path: Path, limit: int = ROTATE_BYTES) -> None:
    """At start: a log over `limit` bytes becomes `.1`, older ones move on, the oldest goes."""
    try:
        if path.stat().st_size < limit:
            return
    except OSError:
        return
    for number in range(KEEP, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        newer = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if newer.exists():
            newer.replace(older)


def colours_wanted() -> bool:
    """Colours on a terminal, unless NO_COLOR says otherwise."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Terminal:
    """Lines with the name of who said them. A closed terminal is no reason to die."""

    def __init__(self, width: int = 8, colours: bool | None = None) -> None:
        self.width = width
        self.colours = colours_wanted() if colours is None else colours
        self.open = True

    def line(self, name: str, text: str) -> None:
        """Prints one line; control characters are shown, not obeyed: what is printed may come from a model."""
        if not self.open:
            return
        safe = "".join(c if c >= " " or c == "\t" else "\ufffd" for c in text)
        label = f"{name:<{self.width}} │"
        if self.colours:
            label = f"\x1b[{_COLOURS.get(name, 37)}m{label}\x1b[0m"
        try:
            sys.stdout.write(f"{label} {safe}\n")
            sys.stdout.flush()
        except (OSError, ValueError):
            self.open = False


class LineSink:
    """Cuts a byte stream into lines; each goes to the process's own file and to the terminal."""

    def __init__(self, name: str, path: Path, terminal: Terminal) -> None:
        rotate(path)
        self.name, self.terminal = name, terminal
        self.file: BinaryIO = path.open("ab")
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """More output, in pieces of any size."""
        self.file.write(data)
        self.file.flush()
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._show(line)

    def close(self) -> None:
        """Shows an unfinished last line."""
        if self._rest:
            self._show(self._rest)
        self._rest = b""
        self.file.close()

    def _show(self, line: bytes) -> None:
        text = line[:LINE_LIMIT].decode("utf-8", "replace").rstrip()
        if text:
            self.terminal.line(self.name, text)
