"""Turn source files into canonical rows: `read_rows.py <out_dir> <file>…`.

For each file (and each member of a zip, each split of a JSON document) one `<out_dir>/<name>.rows.jsonl`: one JSON
object a line, ASCII. Standard output gets one JSON object: {"reader": 1, "files": [FileReport, …]}. A file that cannot
be used has `fatal` = {"message", "fix"} and no rows file. What could not be read is counted and shown, never silently
dropped: a load is fatal when more than 1 % of the rows or more than 100 would be left out, or none remains.

Exit codes: 0 every file was read, 1 some file is fatal (the report says which and why), 2 wrong usage.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import import_module
from typing import Any, Dict, List

READER = 1


def _package() -> str:
    """The name under which the parts are importable: `guest` in the sandbox, a longer one in the project."""
    if __package__:
        return __package__
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, beside)
    import_module("guest")
    sys.path.remove(beside)
    return "guest"


def _out_name(name: str, taken: List[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[-120:] or "file"
    unique, more = f"{base}.rows.jsonl", 2
    while unique in taken:
        unique, more = f"{base}-{more}.rows.jsonl", more + 1
    taken.append(unique)
    return unique


def read_files(out_dir: str, paths: List[str]) -> List[Dict[str, Any]]:
    """Read every file; returns the FileReports in order. Only an unwritable `out_dir` raises (OSError)."""
    os.makedirs(out_dir, exist_ok=True)
    opening = import_module(f"{_package()}.rows.opening")
    taken: List[str] = []
    out: List[Dict[str, Any]] = []
    for path in paths:
        name = os.path.basename(path)
        sha256, size = "", 0
        try:
            sha256, size = opening.digest(path)
            for source in opening.sources(path, name):
                reports = _read_source(source, out_dir, taken)
                for report in reports:
                    report["sha256"], report["bytes"] = sha256, size
                out += reports
        except opening.Unreadable as error:
            out.append(_fatal(name, error.message, error.fix, sha256, size))
        except OSError as error:
            message = f"{name} cannot be read: {error.strerror or error}"
            out.append(_fatal(name, message, "Check that the file is there and readable.", sha256, size))
    return out


def _read_source(source: Any, out_dir: str, taken: List[str]) -> List[Dict[str, Any]]:
    package = _package()
    opening, formats = import_module(f"{package}.rows.opening"), import_module(f"{package}.rows.formats")
    report_module = import_module(f"{package}.rows.report")
    out_name = _out_name(source.name, taken)
    path = os.path.join(out_dir, out_name)
    with open(path, "wb") as out:
        report = report_module.Report(source.name, out, out_name)
        report.compression = source.compression
        parts = None
        try:
            with opening.open_source(source) as stream:
                opening.refuse_what_is_not_data(stream.read(opening.HEAD), source.name)
            encoding = opening.guess_encoding(source)
            report.encoding = encoding.name
            if encoding.warning:
                report.warn(encoding.warning)
            parts = _dispatch(source, encoding, report, formats, opening)
        except opening.Unreadable as error:
            report.fatal = {"message": error.message, "fix": error.fix}
        except (MemoryError, RecursionError):
            report.fatal = {
                "message": f"{source.name} is too large or too deep to read at once",
                "fix": "Give it as JSON Lines, which is read line by line.",
            }
    if parts is None:
        report.close()
        result: Dict[str, Any] = report.as_json()
        if report.fatal is not None:
            os.unlink(path)
        return [result]
    os.unlink(path)
    taken.remove(out_name)
    return [_write_part(source, report, name, rows, out_dir, taken, report_module, formats) for name, rows in parts]


def _dispatch(source: Any, encoding: Any, report: Any, formats: Any, opening: Any) -> Any:
    if formats.looks_like_json(source, encoding):
        return formats.read_json(source, encoding, report)
    bare = source.name.lower()
    for packed in (".gz", ".zip"):
        bare = bare[: -len(packed)] if bare.endswith(packed) else bare
    delimiter = "\t" if bare.endswith((".tsv", ".tab")) else formats.sniff_delimiter(source, encoding)
    if delimiter is None and bare.endswith(".csv"):
        delimiter = ","
    if delimiter is None:
        raise opening.Unreadable(
            f"{source.name} is neither JSON nor delimited text",
            "Give JSON Lines (one object a line), a JSON array of objects, CSV or TSV with a header line.",
        )
    return formats.read_delimited(source, encoding, report, delimiter)


def _write_part(
    source: Any,
    whole: Any,
    name: str,
    rows: List[Any],
    out_dir: str,
    taken: List[str],
    report_module: Any,
    formats: Any,
) -> Dict[str, Any]:
    out_name = _out_name(f"{source.name}.{name}", taken)
    with open(os.path.join(out_dir, out_name), "wb") as out:
        report = report_module.Report(f"{source.name}#{name}", out, out_name)
        report.format, report.encoding, report.compression = whole.format, whole.encoding, whole.compression
        report.warnings = list(whole.warnings)
        formats.add_rows(report, rows)
        report.close()
    if report.fatal is not None:
        os.unlink(os.path.join(out_dir, out_name))
    result: Dict[str, Any] = report.as_json()
    return result


def _fatal(name: str, message: str, fix: str, sha256: str, size: int) -> Dict[str, Any]:
    return {
        "name": name, "format": "", "encoding": "", "compression": "", "bytes": size, "sha256": sha256, "rows": 0,
        "dropped": 0, "columns": {}, "faults": [], "fault_counts": {}, "warnings": [],
        "fatal": {"message": message, "fix": fix}, "out": None, "rows_sha256": "", "rows_bytes": 0,
    }  # fmt: skip


def main(argv: List[str]) -> int:
    """The command line."""
    if len(argv) < 3:
        print("usage: read_rows.py <out_dir> <file>…", file=sys.stderr)
        return 2
    reports = read_files(argv[1], argv[2:])
    json.dump({"reader": READER, "files": reports}, sys.stdout)
    sys.stdout.write("\n")
    return 1 if any(report["fatal"] for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
