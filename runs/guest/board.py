"""Memory shared by the supervisor and one runner: who does what since when, and a ring of frames.

A frame in the ring outlives the process that wrote it, so a scorer that exits or crashes right after an answer came in
costs no model call. Writing is a copy under the GIL, without a system call: with a hundred threads that is what keeps a
task cheap.
"""

from __future__ import annotations

import mmap
import struct
import threading
import time
from typing import NamedTuple

# Phases of a slot. THINK and CALL share one clock (the attempt's), SCORE has its own.
IDLE, THINK, CALL, SCORE, WAIT = range(5)

# States of a runner.
IMPORTING, RUNNING, ENDED, RECYCLE = range(4)

# Kinds of records. DOUBTFUL: it may be a sibling's doing, so the task is tried alone. CROWDED: the same, out of
# processes, threads or files, so that nothing else may run meanwhile.
RESPONSE, RESULT, FAILED, DOUBTFUL, CROWDED, FATAL = range(1, 7)

MAX_BODY = 4 << 20

_RING = 8 << 20
_HEADER = 128
_SLOT = 64
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")
_F64 = struct.Struct("<d")
_BEGIN = struct.Struct("<qqdq")
_THREAD = struct.Struct("<QQ")
_FULL_SLOT = struct.Struct("<qqdqQQ")
_RECORD = struct.Struct("<IIII")
_AT_HEAD, _AT_TAIL, _AT_STOP, _AT_BEAT, _AT_EXIT, _AT_STATE = 0, 8, 16, 24, 32, 40


class Broken(Exception):
    """The ring does not hold what a runner writes: something else wrote into it."""


class InFlight(NamedTuple):
    """What one worker is doing: `since` is on the monotonic clock, `ident` and `tid` name its thread."""

    slot: int
    item: int
    phase: int
    since: float
    attempt: int
    ident: int
    tid: int


class Record(NamedTuple):
    """One frame out of the ring: `body` is a whole line of JSON."""

    kind: int
    item: int
    attempt: int
    body: bytes


class Board:
    """Made before the fork; the runner writes, the supervisor reads."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._base = _HEADER + slots * _SLOT
        self.map = mmap.mmap(-1, self._base + _RING)
        self._lock = threading.Lock()
        self._head = 0
        self._tail = 0
        _I64.pack_into(self.map, _AT_EXIT, -1)
        _F64.pack_into(self.map, _AT_BEAT, time.monotonic())

    # The runner's side.

    def publish(self, kind: int, item: int, attempt: int, body: bytes) -> None:
        """Put one frame where the supervisor will find it; waits while the ring is full."""
        record = _RECORD.pack(len(body), kind, item, attempt) + body
        need = len(record)
        while True:
            with self._lock:
                head = self._head
                if need <= _RING - (head - _U64.unpack_from(self.map, _AT_TAIL)[0]):
                    at = head % _RING
                    first = min(need, _RING - at)
                    start = self._base + at
                    self.map[start : start + first] = record[:first] if first < need else record
                    if first < need:
                        self.map[self._base : self._base + need - first] = record[first:]
                    self._head = head + need
                    # Last, so that a death in the middle of a copy leaves no torn frame.
                    _U64.pack_into(self.map, _AT_HEAD, self._head)
                    return
            time.sleep(0.001)

    def begin(self, slot: int, item: int, phase: int, attempt: int) -> None:
        """A worker starts on something: its clock starts."""
        _BEGIN.pack_into(self.map, _HEADER + slot * _SLOT, item, phase, time.monotonic(), attempt)

    def phase(self, slot: int, phase: int) -> None:
        """Change the phase, not the clock."""
        _I64.pack_into(self.map, _HEADER + slot * _SLOT + 8, phase)

    def thread(self, slot: int, ident: int, tid: int) -> None:
        """Say which thread works on a slot."""
        _THREAD.pack_into(self.map, _HEADER + slot * _SLOT + 32, ident, tid)

    def beat(self) -> None:
        """The interpreter lock can still be had."""
        _F64.pack_into(self.map, _AT_BEAT, time.monotonic())

    def note_exit(self, slot: int) -> None:
        """The task in `slot` asked the whole process to exit."""
        _I64.pack_into(self.map, _AT_EXIT, slot)

    def set_state(self, state: int) -> None:
        """Where the runner is in its life."""
        _U64.pack_into(self.map, _AT_STATE, state)

    # The supervisor's side.

    def drain(self) -> list[Record]:
        """Every frame published since the last call. Raises Broken."""
        head = _U64.unpack_from(self.map, _AT_HEAD)[0]
        size = head - self._tail
        if size == 0:
            return []
        if not 0 < size <= _RING:
            raise Broken("the ring's head is out of place")
        at = self._tail % _RING
        first = min(size, _RING - at)
        data = self.map[self._base + at : self._base + at + first]
        if first < size:
            data += self.map[self._base : self._base + size - first]
        out: list[Record] = []
        position = 0
        while position < size:
            if size - position < _RECORD.size:
                raise Broken("half a record")
            length, kind, item, attempt = _RECORD.unpack_from(data, position)
            position += _RECORD.size
            body = data[position : position + length]
            position += length
            if position > size or not body.endswith(b"\n") or b"\n" in body[:-1] or not RESPONSE <= kind <= FATAL:
                raise Broken("a record of no known kind")
            out.append(Record(kind, item, attempt, body))
        self._tail = head
        _U64.pack_into(self.map, _AT_TAIL, head)
        return out

    def in_flight(self) -> list[InFlight]:
        """What the workers are doing right now."""
        out = []
        for slot in range(self.slots):
            item, phase, since, attempt, ident, tid = _FULL_SLOT.unpack_from(self.map, _HEADER + slot * _SLOT)
            if phase != IDLE:
                out.append(InFlight(slot, item, phase, since, attempt, ident, tid))
        return out

    def header(self) -> tuple[float, int, int]:
        """(time of the last beat, slot that asked to exit or -1, state)."""
        return (
            _F64.unpack_from(self.map, _AT_BEAT)[0],
            _I64.unpack_from(self.map, _AT_EXIT)[0],
            _U64.unpack_from(self.map, _AT_STATE)[0],
        )

    def stop(self) -> None:
        """Ask the runner to take nothing new."""
        self.map[_AT_STOP] = 1

    def stopping(self) -> bool:
        """Whether nothing new may be taken."""
        return bool(self.map[_AT_STOP])

    def close(self) -> None:
        """Give the memory back."""
        self.map.close()
