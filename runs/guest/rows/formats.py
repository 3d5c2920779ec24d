"""JSON in its many layouts, and delimited text."""

from __future__ import annotations

import csv
import json
import re
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .opening import HEAD, Encoding, Source, Unreadable, lines_of, open_source, whole_text
from .report import MAX_ROW_BYTES, Report

_ERROR_KEYS = {"error", "errors", "message", "detail", "status", "statuscode", "code", "documentation_url", "msg"}
_DELIMITERS = ",\t;|"


class _Loader:
    """Strict JSON where it can be had; what was forgiven is noted."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.line = 0

    def _pairs(self, pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        out = dict(pairs)
        if len(out) != len(pairs):
            self.report.fault(self.line, "repeated key", "an object has a key twice; the last value is kept")
        return out

    def _constant(self, name: str) -> None:
        self.report.fault(self.line, "not JSON", f"{name} is not JSON; read as null")

    def loads(self, text: str, line: int) -> Any:
        """One value. Raises ValueError, RecursionError."""
        self.line = line
        try:
            return json.loads(text, object_pairs_hook=self._pairs, parse_constant=self._constant)
        except ValueError as error:
            if "control character" not in str(error):
                raise
            value = json.loads(text, strict=False, object_pairs_hook=self._pairs, parse_constant=self._constant)
            self.report.fault(line, "control character", "a raw control character inside a string; kept")
            return value


def read_json(source: Source, encoding: Encoding, report: Report) -> Optional[List[Tuple[str, List[Any]]]]:
    """Rows of JSON text go to the report; splits of one document come back as (name, rows) instead.

    Lines are tried first, whatever the file is called: many `.json` files are JSON Lines.
    """
    if _is_lines(source, encoding):
        report.format = "jsonl"
        _read_lines(source, encoding, report)
        return None
    report.format = "json"
    text = whole_text(source, encoding)
    loader = _Loader(report)
    try:
        values = [loader.loads(text, 1)]
    except RecursionError:
        raise Unreadable(f"{source.name} is nested too deeply", "Give flat rows.") from None
    except ValueError as error:
        values = _concatenated(text, report, loader, error, source.name)
        report.format = "concatenated json"
    if len(values) > 1:
        _add(report, list(enumerate(values, 1)))
        return None
    parts = _split(values[0], source.name)
    if len(parts) == 1:
        _add(report, list(enumerate(parts[0][1], 1)))
        return None
    return parts


def _is_lines(source: Source, encoding: Encoding) -> bool:
    """Whether the first lines are whole JSON values, one each (one bad line among them does not change that)."""
    good = bad = 0
    for _, text, _ in lines_of(source, encoding):
        text = text.strip()
        if not text:
            continue
        if len(text) > 64 * MAX_ROW_BYTES:
            return False
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            bad += 1
        else:
            if good == bad == 0 and isinstance(value, list) and value and isinstance(value[0], (dict, list)):
                # A JSON array on one line is a document.
                return False
            good += 1 if isinstance(value, dict) or not text.startswith(("{", "[")) else 0
        if good + bad >= 8:
            break
    if good == 1 and bad == 0:
        # One object: a document that may wrap its rows, or a file of one row. The document reader tells them apart.
        return False
    return good > 0 and good >= bad


def _read_lines(source: Source, encoding: Encoding, report: Report) -> None:
    loader = _Loader(report)
    for number, text, clean in lines_of(source, encoding):
        if not text.strip():
            continue
        if not clean:
            report.fault(number, "bad encoding", "the line is not valid UTF-8", dropped=True)
            continue
        if len(text) > 6 * MAX_ROW_BYTES:
            report.fault(number, "huge row", f"{len(text):,} characters; at most {MAX_ROW_BYTES:,} bytes", dropped=True)
            continue
        try:
            value = loader.loads(text, number)
        except (ValueError, RecursionError) as error:
            report.fault(number, "malformed row", f"not JSON: {_reason(error)}", dropped=True)
            continue
        _add(report, [(number, value)])


def _reason(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _add(report: Report, items: List[Tuple[int, Any]]) -> None:
    for line, value in items:
        if isinstance(value, dict):
            if value:
                report.row(value, line)
            else:
                report.fault(line, "empty row", "an object without any key", dropped=True)
        elif isinstance(value, str):
            report.warn("rows are bare texts; read as the column 'text'")
            report.row({"text": value}, line)
        else:
            report.fault(line, "malformed row", "not an object", dropped=True)


def add_rows(report: Report, rows: List[Any]) -> None:
    """Rows of one split, numbered from 1."""
    _add(report, list(enumerate(rows, 1)))


def _concatenated(text: str, report: Report, loader: _Loader, error: ValueError, name: str) -> List[Any]:
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=loader._pairs, parse_constant=loader._constant)
    values: List[Any] = []
    at = 0
    gap = re.compile(r"[\s,;]*")
    while True:
        at = gap.match(text, at).end()  # type: ignore[union-attr]
        if at >= len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as inner:
            if len(values) < 2:
                raise Unreadable(
                    f"{name} is not JSON: {_reason(error)}"
                    + (f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""),
                    "Mend it at that place, or give JSON Lines, where one bad line costs one row.",
                ) from None
            report.fault(text.count("\n", 0, at) + 1, "malformed row", f"not JSON: {_reason(inner)}", dropped=True)
            newline = text.find("\n", at)
            if newline < 0:
                break
            at = newline
            continue
        values.append(value)
    return values


def _split(value: Any, name: str) -> List[Tuple[str, List[Any]]]:
    """The rows of one JSON document: (split name, rows) pairs; one pair named "" when it has no splits."""
    if isinstance(value, list):
        if value and all(isinstance(v, list) for v in value) and all(isinstance(c, str) for c in value[0]):
            header = value[0]
            return [("", [_row(header, row) for row in value[1:]])]
        return [("", value)]
    if not isinstance(value, dict):
        raise Unreadable(f"{name} is a single JSON value, not rows", "Give a list of objects.")
    _refuse_errors(value, name)
    lists = {k: v for k, v in value.items() if isinstance(v, list) and v and all(isinstance(i, dict) for i in v)}
    if lists:
        return [(key if len(lists) > 1 else "", [_inner(item) for item in items]) for key, items in lists.items()]
    columns = [v for v in value.values() if isinstance(v, list)]
    if len(columns) == len(value) > 1 and len({len(c) for c in columns}) == 1:
        return [("", [_row(list(value), [c[at] for c in columns]) for at in range(len(columns[0]))])]
    if len(value) > 1 and all(isinstance(v, dict) for v in value.values()):
        nested = {k: _try_split(v, name) for k, v in value.items()}
        if all(n is not None for n in nested.values()):
            return [(k, n) for k, n in nested.items() if n is not None]
        keyed = [v if "id" in v else {"id": k, **v} for k, v in value.items()]
        return [("", keyed)]
    if len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, dict):
            return _split(only, name)
    return [("", [value])]


def _row(names: List[str], cells: List[Any]) -> Any:
    """A row of named cells; an empty one is left as it is, to be reported."""
    return {name: cells[at] if at < len(cells) else None for at, name in enumerate(names)} if cells else cells


def _try_split(value: Dict[str, Any], name: str) -> Optional[List[Any]]:
    lists = [v for v in value.values() if isinstance(v, list) and v and all(isinstance(i, dict) for i in v)]
    return lists[0] if len(lists) == 1 else None


def _inner(item: Dict[str, Any]) -> Dict[str, Any]:
    """A row as the data set viewer wraps it."""
    if "row_idx" in item and isinstance(item.get("row"), dict):
        row: Dict[str, Any] = item["row"]
        return row
    return item


def _refuse_errors(value: Dict[str, Any], name: str) -> None:
    keys = {str(k).lower() for k in value}
    if keys and keys <= _ERROR_KEYS and any(isinstance(v, str) for v in value.values()):
        text = next(v for v in value.values() if isinstance(v, str))
        raise Unreadable(
            f"{name} is a server's message, not data: {text[:200]!r}", "Check the address and whether it needs sign-in."
        )


def read_delimited(source: Source, encoding: Encoding, report: Report, delimiter: str) -> None:
    """Rows of CSV or TSV with a header line. An empty cell is null."""
    report.format = "tsv" if delimiter == "\t" else "csv"
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(_csv_lines(source, encoding, report), delimiter=delimiter, skipinitialspace=delimiter != "\t")
    header: Optional[List[str]] = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            report.fault(line, "malformed row", str(error), dropped=True)
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header, is_data = _header(cells, report)
            if not is_data:
                continue
        if len(cells) > len(header):
            if any(cell.strip() for cell in cells[len(header) :]):
                message = f"{len(cells)} cells, the header has {len(header)}"
                report.fault(line, "inconsistent columns", message, dropped=True)
                continue
            cells = cells[: len(header)]
        elif len(cells) < len(header):
            report.fault(line, "inconsistent columns", f"{len(cells)} cells of {len(header)}; the rest is null")
        row = {name: cells[at] if at < len(cells) and cells[at] != "" else None for at, name in enumerate(header)}
        report.row(row, line)


def _csv_lines(source: Source, encoding: Encoding, report: Report) -> Iterator[str]:
    for number, text, clean in lines_of(source, encoding):
        if not clean:
            report.fault(number, "bad encoding", "not valid UTF-8; the bad characters are shown as \ufffd")
        if "\0" in text:
            report.fault(number, "NUL character", "replaced by \ufffd")
            text = text.replace("\0", "\ufffd")
        yield text + "\n"


def _header(cells: List[str], report: Report) -> Tuple[List[str], bool]:
    """(column names, whether the first line is already data)."""
    names = [cell.strip() for cell in cells]
    if len(names) >= 4 and names[-1] in ("A", "B", "C", "D", "E") and len(names[0]) > 1:
        options = "ABCDEFGH"[: len(names) - 2]
        report.warn("no header line: read as question, the options, answer")
        return ["question", *options, "answer"], True
    out: List[str] = []
    for at, name in enumerate(names, 1):
        base = name or f"column_{at}"
        unique, more = base, 2
        while unique in out:
            unique, more = f"{base}_{more}", more + 1
        if unique != name:
            report.warn(f"column {at} has {'no name' if not name else 'a name that is taken'}; it is called {unique!r}")
        out.append(unique)
    return out, False


def sniff_delimiter(source: Source, encoding: Encoding) -> Optional[str]:
    """The delimiter that gives the most columns alike in the first records, or None when nothing does."""
    sample: List[str] = []
    size = 0
    for _, text, _ in lines_of(source, encoding):
        sample.append(text.replace("\0", "\ufffd") + "\n")
        size += len(text)
        if size > HEAD:
            break
    best: Tuple[float, Optional[str]] = (0.0, None)
    for delimiter in _DELIMITERS:
        try:
            widths = [len(r) for r in csv.reader(iter(sample), delimiter=delimiter, skipinitialspace=True) if r]
        except csv.Error:
            continue
        if len(sample) > 3 and size > HEAD and len(widths) > 1:
            widths.pop()
        if not widths or widths[0] < 2:
            continue
        alike = sum(1 for width in widths if width == widths[0]) / len(widths)
        score = alike * (1 + 0.01 * min(widths[0], 20))
        if alike > 0.6 and score > best[0]:
            best = (score, delimiter)
    return best[1]


def looks_like_json(source: Source, encoding: Encoding) -> bool:
    """Whether the first character that is not blank opens a JSON value of rows."""
    with open_source(source) as stream:
        name = "utf-8" if encoding.name == "utf-8-sig" else encoding.name
        head = stream.read(4096).decode(name, "replace").lstrip("\ufeff \t\r\n\0")
    return head.startswith(("{", "["))
