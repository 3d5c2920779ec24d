"""Opening a source file: compression, bounds, encoding, and files that are not data at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import stat
import zipfile
import zlib
from typing import BinaryIO, Iterator, List, NamedTuple, Optional, Tuple

MAX_BYTES = 1 << 30
MAX_RATIO = 200
RATIO_FROM = 32 << 20
MAX_MEMBERS = 1000
HEAD = 1 << 16

# Members that come along in archives and are no data.
_NOT_DATA = re.compile(
    r"(?:^|/)(?:__MACOSX/|\.|README|LICENSE|NOTICE|CHANGELOG|CITATION)|\.(?:md|py|txt|pdf|png|jpg)$", re.IGNORECASE
)

_MAGIC = (
    (b"PAR1", "a Parquet file", "Export it to JSON Lines or CSV (for example with the data set's viewer or pandas)."),
    (b"ARROW1", "an Arrow file", "Export it to JSON Lines or CSV."),
    (b"%PDF", "a PDF document", "Give the data itself: JSON Lines, JSON, CSV or TSV."),
    (b"\x89PNG", "an image", "Give the data itself: JSON Lines, JSON, CSV or TSV."),
    (b"\xff\xd8\xff", "an image", "Give the data itself: JSON Lines, JSON, CSV or TSV."),
    (b"SQLite format 3", "an SQLite database", "Export the table to CSV."),
    (b"7z\xbc\xaf", "a 7z archive", "Unpack it and give the files, or a .zip or .gz."),
    (b"BZh", "a bzip2 file", "Unpack it and give the file, or a .gz."),
    (b"\xfd7zXZ", "an xz file", "Unpack it and give the file, or a .gz."),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "Unpack it and give the file, or a .gz."),
    (b"Rar!", "a RAR archive", "Unpack it and give the files, or a .zip."),
)

# All bytes but the control characters that no text holds.
_TEXT = bytes(b for b in range(256) if b >= 32 or b in b"\t\n\v\f\r\x1b")


class Unreadable(Exception):
    """The file cannot be used. `fix` says what a person can do."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class Source(NamedTuple):
    """One thing to read rows from: a file, or a member of an archive."""

    name: str
    path: str
    member: Optional[str]
    compression: str
    packed: int


class Encoding(NamedTuple):
    """How to decode a source. `bad_lines`: how many lines are not valid in it."""

    name: str
    warning: Optional[str]


class Bounded(io.RawIOBase):
    """A stream that refuses to unfold past its bounds: the defence against archive bombs."""

    def __init__(self, inner: BinaryIO, packed: int, name: str) -> None:
        self._inner = inner
        self._packed = max(1, packed)
        self._name = name
        self._seen = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer. Raises Unreadable for a bomb or a broken archive."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        try:
            data = self._inner.read(len(view))
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise Unreadable(
                f"{self._name} cannot be unpacked: {error or type(error).__name__}", "Fetch or pack it again."
            ) from None
        self._seen += len(data)
        if self._seen > MAX_BYTES or (self._seen > RATIO_FROM and self._seen > MAX_RATIO * self._packed):
            raise Unreadable(
                f"{self._name} unfolds to more than {self._seen >> 20} MB from {self._packed:,} bytes: "
                f"refused as an archive bomb (at most {MAX_BYTES >> 20} MB, and {MAX_RATIO} times its packed size)",
                "Give the data unpacked, or split it into smaller files.",
            )
        view[: len(data)] = data
        return len(data)


def digest(path: str) -> Tuple[str, int]:
    """(sha256 hex, bytes) of the file as it is."""
    sha, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 20)
            if not piece:
                return sha.hexdigest(), size
            sha.update(piece)
            size += len(piece)


def sources(path: str, name: str) -> List[Source]:
    """What to read in a file: itself, or each data member of a zip archive. Raises Unreadable."""
    with open(path, "rb") as file:
        head = file.read(512)
        packed = file.seek(0, 2)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _members(path, name)
    return [Source(name, path, None, "gzip" if head.startswith(b"\x1f\x8b") else "", packed)]


def _members(path: str, name: str) -> List[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        raise Unreadable(f"{name} is a broken zip archive: {error}", "Fetch or pack it again.") from None
    names = {info.filename for info in infos}
    if "xl/workbook.xml" in names:
        raise Unreadable(f"{name} is an Excel workbook", "Save the sheet as CSV (UTF-8) and give that.")
    if len(infos) > MAX_MEMBERS:
        raise Unreadable(
            f"{name} has {len(infos):,} members; at most {MAX_MEMBERS:,}", "Give the data files themselves."
        )
    for info in infos:
        mode = info.external_attr >> 16
        parts = info.filename.replace("\\", "/").split("/")
        if info.filename.startswith(("/", "\\")) or ".." in parts or (mode and stat.S_ISLNK(mode)):
            raise Unreadable(
                f"{name} is refused: its member {info.filename!r} would leave the archive's folder or is a link",
                "Pack it again with plain relative file names.",
            )
        if info.flag_bits & 1:
            raise Unreadable(f"{name} is locked by a password", "Give it without one.")
    total = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    if total > MAX_BYTES or (total > RATIO_FROM and total > MAX_RATIO * max(1, packed)):
        raise Unreadable(
            f"{name} would unfold to {total >> 20:,} MB from {packed:,} bytes: refused as an archive bomb",
            "Give the data unpacked, or split it into smaller files.",
        )
    found = [
        Source(f"{name}/{info.filename}", path, info.filename, "zip", info.compress_size)
        for info in infos
        if not info.is_dir() and not _NOT_DATA.search(info.filename)
    ]
    if not found:
        raise Unreadable(f"{name} holds no data file", "It should hold .jsonl, .json, .csv or .tsv files.")
    return found


def open_source(source: Source) -> BinaryIO:
    """The unpacked bytes, bounded. Raises Unreadable."""
    if source.member is not None:
        archive = zipfile.ZipFile(source.path)
        inner: BinaryIO = archive.open(source.member)  # type: ignore[assignment]
        head = inner.read(2)
        inner.close()
        inner = archive.open(source.member)  # type: ignore[assignment]
        if head == b"\x1f\x8b":
            inner = gzip.GzipFile(fileobj=inner)  # type: ignore[assignment]
    elif source.compression == "gzip":
        inner = gzip.open(source.path, "rb")  # type: ignore[assignment]  # noqa: SIM115 - the caller closes it
    else:
        return open(source.path, "rb")
    return io.BufferedReader(Bounded(inner, source.packed, source.name), 1 << 20)


def refuse_what_is_not_data(head: bytes, name: str) -> None:
    """Say what a file is when it is no data at all. Raises Unreadable."""
    if not head.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise Unreadable(f"{name} is empty", "Check the address or the upload: the file has no content.")
    for magic, what, fix in _MAGIC:
        if head.startswith(magic):
            raise Unreadable(f"{name} is {what}, which is not read here", fix)
    if head[257:262] == b"ustar":
        raise Unreadable(f"{name} is a tar archive", "Unpack it and give the files, or a .zip.")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:4096]
    lowered = start.lower()
    if lowered.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<svg")):
        title = re.search(rb"<title[^>]*>(.{0,200}?)</title>", head, re.IGNORECASE | re.DOTALL)
        shown = f' ("{" ".join(title.group(1).decode("utf-8", "replace").split())}")' if title else ""
        kind = "an XML document" if lowered.startswith((b"<?xml", b"<svg")) else "a web page"
        raise Unreadable(
            f"{name} is {kind}{shown}, not data",
            "Give the address of the raw file (on GitHub: the Raw button; on Hugging Face: resolve/…), "
            "and check that it needs no sign-in.",
        )
    if start.startswith(b"version https://git-lfs.github.com/spec"):
        raise Unreadable(
            f"{name} is a Git LFS pointer, not the file it points to", "Give the address that serves the content."
        )


def guess_encoding(source: Source) -> Encoding:
    """Byte-order mark, else UTF-16 by its zeros, else UTF-8, else Windows-1252. Reads the whole source once."""
    with open_source(source) as stream:
        head = stream.read(HEAD)
        if head.startswith(b"\xef\xbb\xbf"):
            return Encoding("utf-8-sig", None)
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return Encoding("utf-16", None)
        even, odd = head[0::2].count(0), head[1::2].count(0)
        if len(head) >= 4 and max(even, odd) > len(head) // 5 and min(even, odd) * 10 < max(even, odd):
            name = "utf-16-le" if odd > even else "utf-16-be"
            return Encoding(name, f"read as {name.upper()} (no byte-order mark)")
        if len(head.translate(None, _TEXT)) > max(4, len(head) // 50):
            raise Unreadable(
                f"{source.name} is binary, not text", "Give the data as text: JSON Lines, JSON, CSV or TSV."
            )
        valid = invalid = 0
        for line in _raw_lines(head, stream):
            if line.isascii():
                continue
            try:
                line.decode("utf-8")
                valid += 1
            except UnicodeDecodeError:
                invalid += 1
    if not invalid or valid > invalid:
        return Encoding("utf-8", None)
    return Encoding("cp1252", "not UTF-8: read as Windows-1252 (Latin-1)")


def _raw_lines(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    rest = head
    while True:
        lines = rest.split(b"\n")
        rest = lines.pop()
        yield from lines
        piece = stream.read(1 << 20)
        if not piece:
            if rest:
                yield rest
            return
        rest += piece


def lines_of(source: Source, encoding: Encoding) -> Iterator[Tuple[int, str, bool]]:
    """(line number from 1, text without its line end, whether it decoded cleanly). Splits at newlines only.

    Other characters that some readers take for line ends (U+2028, U+0085) belong to the text.
    """
    with open_source(source) as stream:
        if encoding.name.startswith("utf-16"):
            wide = io.TextIOWrapper(stream, encoding=encoding.name, errors="replace", newline="\n")
            for number, text in enumerate(wide, 1):
                yield number, text.rstrip("\n").rstrip("\r").lstrip("\ufeff"), "\ufffd" not in text
            return
        for number, raw in enumerate(_raw_lines(b"", stream), 1):
            if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                raw = raw[3:]
            if raw.endswith(b"\r"):
                raw = raw[:-1]
            if encoding.name == "cp1252":
                yield number, raw.decode("cp1252", "replace"), True
                continue
            try:
                yield number, raw.decode("utf-8"), True
            except UnicodeDecodeError:
                yield number, raw.decode("utf-8", "replace"), False


def whole_text(source: Source, encoding: Encoding) -> str:
    """All of a source at once, for documents that are one JSON value."""
    with open_source(source) as stream:
        name = "utf-8" if encoding.name == "utf-8-sig" else encoding.name
        return stream.read().decode(name, "replace").lstrip("\ufeff")
