"""Files as people have them become rows, and what is wrong with them is said by line."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules_harness import ROOT, load

ROW = {"id": 1, "question": "1 + 1?", "answer": "2"}
LINES = "".join(json.dumps({**ROW, "id": n}) + "\n" for n in range(200))


def read(tmp_path: Path, data: bytes | str, name: str = "rows.jsonl") -> Any:
    """One file's SourceFile."""
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    files = load(tmp_path / "out", tmp_path / name)
    assert len(files) == 1
    return files[0]


def zipped(members: dict[str, bytes]) -> bytes:
    """A zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("text", "name", "format_name"),
    [
        ('{"a": 1}\n{"a": 2}\n', "x.jsonl", "jsonl"),
        ('{"a": 1}\r\n\r\n{"a": 2}', "x.json", "jsonl"),
        ('[{"a": 1}, {"a": 2}]', "x.json", "json"),
        ('[{"a": 1},\n {"a": 2}]\n', "x.jsonl", "json"),
        ('{"canary": "x", "examples": [{"a": 1}, {"a": 2}]}', "x.json", "json"),
        ('{"data": {"rows": [{"a": 1}, {"a": 2}]}}', "x.json", "json"),
        ('{"rows": [{"row_idx": 0, "row": {"a": 1}}, {"row_idx": 1, "row": {"a": 2}}]}', "x.json", "json"),
        ('{"a": [1, 2], "b": [3, 4]}', "x.json", "json"),
        ('[["a"], [1], [2]]', "x.json", "json"),
        ('{"a": 1}{"a": 2}', "x.json", "concatenated json"),
        ('{\n "a": 1\n}\n{\n "a": 2\n}\n', "x.json", "concatenated json"),
        ('\ufeff{"a": 1}\n{"a": 2}\n', "x.jsonl", "jsonl"),
    ],
)
def test_json_is_read_in_every_layout(tmp_path: Path, text: str, name: str, format_name: str) -> None:
    file = read(tmp_path, text, name)
    assert file.report["fatal"] is None
    assert file.report["format"] == format_name
    assert [row["a"] for row in file.rows] == [1, 2]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("q,a\r\nx,1\r\ny,2\r\n", "x.csv"),
        ("q\ta\nx\t1\ny\t2\n", "x.tsv"),
        ("q;a\nx;1\ny;2\n", "x.csv"),
        ("q|a\nx|1\ny|2\n", "x.txt"),
        ('"q", "a"\n"x", "1"\n\n"y", "2"', "x.csv"),
    ],
)
def test_delimited_text_is_read_whatever_its_delimiter(tmp_path: Path, text: str, name: str) -> None:
    file = read(tmp_path, text, name)
    assert file.rows == [{"q": "x", "a": "1"}, {"q": "y", "a": "2"}]


def test_a_cell_may_hold_line_ends_quotes_and_delimiters(tmp_path: Path) -> None:
    file = read(tmp_path, 'q,a\r\n"one\r\ntwo, ""three""",1\r\nx,2\r\n', "x.csv")
    assert [row["a"] for row in file.rows] == ["1", "2"]
    assert file.rows[0]["q"] == 'one\ntwo, "three"'


def test_a_header_less_file_of_questions_and_letters_is_read(tmp_path: Path) -> None:
    file = read(tmp_path, "What is 1+1?,1,2,3,4,B\nWhat is 2+2?,1,2,3,4,D\n", "x.csv")
    assert file.rows[0] == {"question": "What is 1+1?", "A": "1", "B": "2", "C": "3", "D": "4", "answer": "B"}
    assert any("header" in w for w in file.report["warnings"])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    file = read(tmp_path, "question,answer\ncafé à Köln,très\nnoël,été\n".encode(encoding), "x.csv")
    assert file.rows == [{"question": "café à Köln", "answer": "très"}, {"question": "noël", "answer": "été"}]


def test_gzip_and_zip_are_unpacked(tmp_path: Path) -> None:
    assert len(read(tmp_path, gzip.compress(LINES.encode()), "x.jsonl.gz").rows) == 200
    (tmp_path / "x.zip").write_bytes(
        zipped({"d/test.jsonl": LINES.encode(), "d/train.csv": b"q,a\nx,1\n", "README.md": b"x"})
    )
    files = load(tmp_path / "out", tmp_path / "x.zip")
    assert [(f.name, len(f.rows)) for f in files] == [("x.zip/d/test.jsonl", 200), ("x.zip/d/train.csv", 1)]


def test_each_split_of_a_document_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"train": [ROW], "test": [ROW, ROW]}))
    files = load(tmp_path / "out", tmp_path / "x.json")
    assert [(f.name, len(f.rows)) for f in files] == [("x.json#train", 1), ("x.json#test", 2)]


def test_a_malformed_row_is_left_out_counted_and_named_by_line(tmp_path: Path) -> None:
    file = read(tmp_path, LINES + '{"id": 7, broken\n' + LINES.replace('"id": ', '"id": 9'))
    report = file.report
    assert report["fatal"] is None
    assert (report["rows"], report["dropped"]) == (400, 1)
    assert report["faults"][0]["line"] == 201 and report["faults"][0]["kind"] == "malformed row"
    assert any("left out" in w for w in report["warnings"])


def test_too_many_malformed_rows_end_the_load_and_the_policy_is_said(tmp_path: Path) -> None:
    report = read(tmp_path, LINES + "nonsense\n" * 3).report
    assert report["out"] is None
    assert "line 201" in report["fatal"]["message"] and "at most 1 %" in report["fatal"]["message"]
    assert report["fatal"]["fix"]


def test_a_huge_row_is_refused_alone(tmp_path: Path) -> None:
    report = read(tmp_path, LINES + json.dumps({"id": "x", "question": "x" * 2_000_000, "answer": "1"}) + "\n").report
    assert report["rows"] == 200 and report["fault_counts"]["huge row"] == 1


def test_duplicate_ids_nulls_and_odd_columns_are_told(tmp_path: Path) -> None:
    rows = [{**ROW, "answer": None}, ROW, {"id": 2, "question": "?", "answer": "x", "more": 1}]
    report = read(tmp_path, "".join(json.dumps(r) + "\n" for r in rows)).report
    assert report["fault_counts"]["duplicate id"] == 1
    assert report["columns"]["answer"]["nulls"] == 1 and report["columns"]["more"]["missing"] == 2
    assert any("other columns" in w for w in report["warnings"])
    assert report["rows"] == 3


def test_a_row_with_too_many_cells_is_not_guessed(tmp_path: Path) -> None:
    text = "q,a\n" + "x,1\n" * 150 + "an, unquoted comma,2\n"
    report = read(tmp_path, text, "x.csv").report
    assert (report["rows"], report["dropped"]) == (150, 1)
    assert report["faults"][0] == {
        "line": 152, "kind": "inconsistent columns", "message": "3 cells, the header has 2", "dropped": True,
    }  # fmt: skip


def test_columns_are_described_over_all_rows(tmp_path: Path) -> None:
    rows = [{"a": None}, {"a": 3}, {"a": "x"}, {"a": [1]}, {"a": 2.5}, {"a": True}]
    column = read(tmp_path, "".join(json.dumps(r) + "\n" for r in rows)).report["columns"]["a"]
    assert column["types"] == {"integer": 1, "string": 1, "array": 1, "number": 1, "boolean": 1}
    assert (column["nulls"], column["distinct"], column["min"], column["max"]) == (1, 5, 2.5, 3)


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "x.jsonl", "is empty"),
        (b"\n\n  \n", "x.csv", "is empty"),
        (b"<!DOCTYPE html><html><title>Sign in</title>", "x.jsonl", "a web page (\"Sign in\")"),
        (b"\xef\xbb\xbf  <html>", "x.csv", "a web page"),
        (b"PAR1\x00\x00", "x.parquet", "a Parquet file"),
        (b"%PDF-1.7", "x.pdf", "a PDF"),
        (bytes(range(256)) * 20, "x.jsonl", "is binary"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "x.jsonl", "Git LFS pointer"),
        (b'{"error": "Repository not found"}', "x.json", "a server's message"),
        (b'{"message": "Not Found", "status": "404"}', "x.json", "a server's message"),
        (b"just some words\nand some more\n", "x.txt", "neither JSON nor delimited"),
        (b'{"a": 1, "b": ', "x.json", "is not JSON"),
        (b"[1, 2, 3]", "x.json", "no usable row"),
        (b"[]", "x.json", "no usable row"),
        (b"q,a\n", "x.csv", "no usable row"),
        (b"\x1f\x8b\x08\x00broken", "x.gz", "cannot be unpacked"),
        (b"PK\x03\x04broken", "x.zip", "broken zip"),
        (zipped({"README.md": b"x"}), "x.zip", "holds no data file"),
        (zipped({"../evil.jsonl": b"{}"}), "x.zip", "is refused"),
        (zipped({"xl/workbook.xml": b"x"}), "x.xlsx", "Excel"),
        (("[" * 100_000).encode(), "x.json", "x.json"),
    ],
)  # fmt: skip
def test_what_is_not_data_is_named_with_what_to_do(tmp_path: Path, data: bytes, name: str, message: str) -> None:
    report = read(tmp_path, data, name).report
    assert message in report["fatal"]["message"]
    assert report["fatal"]["fix"]
    assert report["out"] is None
    assert not list((tmp_path / "out").glob("*.rows.jsonl"))


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_an_archive_bomb_is_refused_before_it_unfolds(tmp_path: Path, kind: str) -> None:
    bomb = (b'{"a": "' + b" " * 1000 + b'"}\n') * 60_000
    data = gzip.compress(bomb) if kind == "gz" else zipped({"x.jsonl": bomb})
    report = read(tmp_path, data, f"x.{kind}").report
    assert "archive bomb" in report["fatal"]["message"]


def test_a_link_in_an_archive_refuses_it(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("link.jsonl")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert "is refused" in read(tmp_path, buffer.getvalue(), "x.zip").report["fatal"]["message"]


def test_odd_characters_survive_and_are_told(tmp_path: Path) -> None:
    file = read(tmp_path, b'{"a": "x\\u0000y\\ud800"}\n{"a": "raw\x01control"}\n{"a": NaN}\n')
    assert [row["a"] for row in file.rows] == ["x\0y\ud800", "raw\x01control", None]
    assert set(file.report["fault_counts"]) == {"control character", "not JSON"}
    assert read(tmp_path, b"q,a\nx\0y,1\n", "x.csv").rows == [{"q": "x\ufffdy", "a": "1"}]


def test_a_line_that_is_not_utf8_among_good_ones_is_a_fault(tmp_path: Path) -> None:
    good = "".join(json.dumps({"a": f"é{n}"}, ensure_ascii=False) + "\n" for n in range(300))
    report = read(tmp_path, good.encode() + b'{"a": "\xff"}\n').report
    assert (report["rows"], report["dropped"]) == (300, 1)
    assert report["faults"][0]["kind"] == "bad encoding"


def test_a_missing_file_is_reported_beside_the_others(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(LINES)
    files = load(tmp_path / "out", tmp_path / "gone.jsonl", tmp_path / "x.jsonl")
    assert "cannot be read" in files[0].report["fatal"]["message"]
    assert files[1].report["rows"] == 200


def test_two_files_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").write_text(json.dumps({"from": folder}) + "\n")
    files = load(tmp_path / "out", tmp_path / "one" / "x.jsonl", tmp_path / "two" / "x.jsonl")
    assert [f.rows[0]["from"] for f in files] == ["one", "two"]


def test_it_runs_alone_as_a_script(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(LINES)
    script = tmp_path / "guest"
    script.symlink_to(ROOT / "runs" / "guest")
    argv = [sys.executable, "-I", str(script / "read_rows.py"), str(tmp_path / "out"), str(tmp_path / "x.jsonl")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["files"][0]
    assert report["rows"] == 200
    assert len((tmp_path / "out" / report["out"]).read_text().splitlines()) == 200
