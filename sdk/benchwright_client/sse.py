"""Server-sent events, line by line. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

END = "end"
SILENCE_SECONDS = 45.0  # the server says something every 15
MOST_PAUSE_SECONDS = 15.0


@dataclass
class Frame:
    """One frame: its id, its event's name, its data."""

    id: str = ""
    event: str = ""
    data: str = ""


class Frames:
    """Collects lines; an empty line ends a frame. Comments are passed over."""

    def __init__(self) -> None:
        self._frame, self._begun = Frame(), False

    def line(self, text: str) -> Frame | None:
        """A whole frame when this line ends one."""
        if text == "":
            done, begun = self._frame, self._begun
            self._frame, self._begun = Frame(), False
            return done if begun else None
        if text.startswith(":"):
            return None
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._frame.data = f"{self._frame.data}\n{value}" if self._frame.data else value
        elif name in ("id", "event"):
            setattr(self._frame, name, value)
        self._begun = True
        return None


class Place:
    """Where a reader of a log is: which frames are new, and how long to pause before the next try."""

    def __init__(self, after: int = -1) -> None:
        self.after = after
        self.ended = False
        self.failures = 0

    def take(self, frame: Frame) -> dict[str, Any] | None:
        """The event of a frame that was not seen before."""
        if frame.event == END:
            self.ended = True
            return None
        given = json.loads(frame.data)
        if not isinstance(given, dict) or given["seq"] <= self.after:
            return None
        self.after, self.failures = given["seq"], 0
        return given

    def pause(self) -> float:
        """Seconds to wait after one more failure in a row."""
        self.failures += 1
        return min(MOST_PAUSE_SECONDS, 0.5 * 2.0 ** min(self.failures - 1, 8))
