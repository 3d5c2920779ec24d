"""What is said about one file: columns, faults, warnings, the end."""

from __future__ import annotations

import hashlib
import json
from typing import Any, BinaryIO, Dict, List, Optional

MAX_ROW_BYTES = 1 << 20
MAX_ROWS = 5_000_000
MAX_DISTINCT = 1000
MAX_FAULTS = 50
MAX_COLUMNS = 1000
MAX_DROPPED = 100
MAX_DROPPED_SHARE = 0.01

_ID_NAMES = ("id", "task_id", "question_id", "qid", "uid", "uuid", "idx", "example_id", "problem_id", "sample_id")


def type_name(value: Any) -> str:
    """The JSON type of a value; whole numbers are told apart from others."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 120 else value[:119] + "…"
    if isinstance(value, (dict, list)):
        text = json.dumps(value)
        return value if len(text) <= 300 else text[:299] + "…"
    return value


class Column:
    """Counts of one column over all rows: null is not a type, and no answer depends on where a file was cut."""

    def __init__(self) -> None:
        self.types: Dict[str, int] = {}
        self.present = 0
        self.nulls = 0
        self.max_length = 0
        self.examples: List[Any] = []
        self.smallest: Optional[float] = None
        self.largest: Optional[float] = None
        self._distinct: Dict[bytes, None] = {}
        self._more = False

    def add(self, value: Any) -> None:
        """One row's value."""
        self.present += 1
        if value is None:
            self.nulls += 1
            return
        name = type_name(value)
        self.types[name] = self.types.get(name, 0) + 1
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, sort_keys=True)
            if name in ("integer", "number"):
                self.smallest = value if self.smallest is None else min(self.smallest, value)
                self.largest = value if self.largest is None else max(self.largest, value)
        self.max_length = max(self.max_length, len(text))
        if not self._more:
            key = hashlib.blake2b((name[0] + text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
            if key not in self._distinct:
                if len(self._distinct) >= MAX_DISTINCT:
                    self._more = True
                else:
                    self._distinct[key] = None
                    if len(self.examples) < 3:
                        self.examples.append(_short(value))

    def as_json(self, rows: int) -> Dict[str, Any]:
        """The column's part of the report. `distinct` is a lower bound when `distinct_more` is true."""
        return {
            "types": self.types,
            "nulls": self.nulls,
            "missing": rows - self.present,
            "distinct": len(self._distinct),
            "distinct_more": self._more,
            "max_length": self.max_length,
            "min": self.smallest,
            "max": self.largest,
            "examples": self.examples,
        }


class Report:
    """Rows of one source go in, the FileReport comes out. Rows are written as they come, one JSON line each."""

    def __init__(self, name: str, out: BinaryIO, out_name: str) -> None:
        self.name = name
        self.out_name = out_name
        self.format = ""
        self.encoding = ""
        self.compression = ""
        self.sha256 = ""
        self.bytes = 0
        self.rows = 0
        self.dropped = 0
        self.faults: List[Dict[str, Any]] = []
        self.fault_counts: Dict[str, int] = {}
        self.warnings: List[str] = []
        self.fatal: Optional[Dict[str, str]] = None
        self.columns: Dict[str, Column] = {}
        self._out = out
        self._rows_sha = hashlib.sha256()
        self._rows_bytes = 0
        self._ids: Dict[str, Dict[str, int]] = {}
        self._keys: Optional[frozenset[str]] = None
        self._odd = 0

    def fault(self, line: int, kind: str, message: str, *, dropped: bool = False) -> None:
        """Note a fault; `dropped`: the row is left out, which is counted and shown."""
        self.fault_counts[kind] = self.fault_counts.get(kind, 0) + 1
        if dropped:
            self.dropped += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append({"line": line, "kind": kind, "message": message[:300], "dropped": dropped})

    def warn(self, message: str) -> None:
        """Note something a reader should know; the same sentence once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def row(self, row: Dict[str, Any], line: int) -> None:
        """Write one row."""
        data = json.dumps(row).encode("ascii") + b"\n"
        if len(data) > MAX_ROW_BYTES:
            self.fault(line, "huge row", f"{len(data):,} bytes; at most {MAX_ROW_BYTES:,}", dropped=True)
            return
        if self.rows >= MAX_ROWS:
            self.fault(line, "too many rows", f"only the first {MAX_ROWS:,} are read", dropped=True)
            return
        self._out.write(data)
        self._rows_sha.update(data)
        self._rows_bytes += len(data)
        self.rows += 1
        for name, value in row.items():
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= MAX_COLUMNS:
                    self.warn(f"more than {MAX_COLUMNS} different columns; the others are not described")
                    continue
                column = self.columns[name] = Column()
            column.add(value)
            if name.lower() in _ID_NAMES and isinstance(value, (str, int)) and not isinstance(value, bool):
                seen = self._ids.setdefault(name, {})
                key = str(value)
                if key in seen:
                    self.fault(line, "duplicate id", f"{name} {key[:80]!r} is also on line {seen[key]}")
                else:
                    seen[key] = line
        keys = frozenset(row)
        if self._keys is None:
            self._keys = keys
        elif keys != self._keys:
            self._odd += 1

    def close(self) -> None:
        """Judge the whole: is what could not be read too much, and is anything left?"""
        if self._odd:
            self.warn(f"{self._odd:,} of {self.rows:,} rows have other columns than the first")
        for name, column in self.columns.items():
            if column.nulls:
                self.warn(f"column {name!r} is null in {column.nulls:,} of {self.rows:,} rows")
        if self.fatal is not None or (self.rows and not self.dropped):
            return
        total = self.rows + self.dropped
        first = next((f for f in self.faults if f["dropped"]), None)
        where = f" First: line {first['line']}: {first['kind']}: {first['message']}." if first else ""
        if not self.rows:
            self.fatal = {
                "message": f"{self.name} has no usable row ({self.dropped:,} could not be read).{where}",
                "fix": "Give JSON Lines (one object a line), a JSON array of objects, CSV or TSV with a header line.",
            }
        elif self.dropped > MAX_DROPPED or self.dropped > MAX_DROPPED_SHARE * total:
            self.fatal = {
                "message": f"{self.dropped:,} of {total:,} rows of {self.name} cannot be read "
                f"({100 * self.dropped / total:.3g} %; at most 1 % and {MAX_DROPPED} rows may be left out).{where}",
                "fix": "Mend or remove those lines and load the file again.",
            }
        else:
            self.warn(
                f"{self.dropped:,} of {total:,} rows could not be read and are left out "
                f"(allowed: 1 % and {MAX_DROPPED} rows)"
            )

    def as_json(self) -> Dict[str, Any]:
        """The FileReport."""
        return {
            "name": self.name,
            "format": self.format,
            "encoding": self.encoding,
            "compression": self.compression,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "rows": self.rows,
            "dropped": self.dropped,
            "columns": {name: column.as_json(self.rows) for name, column in self.columns.items()},
            "faults": self.faults,
            "fault_counts": self.fault_counts,
            "warnings": self.warnings,
            "fatal": self.fatal,
            "out": self.out_name if self.fatal is None else None,
            "rows_sha256": self._rows_sha.hexdigest(),
            "rows_bytes": self._rows_bytes,
        }
