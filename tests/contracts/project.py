"""The files of the project, for tests that read them."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("benchwright", "billing", "registry", "runs", "sandboxes")
# Made by others, byte for byte: their words and lengths are not ours.
FOREIGN = ("LICENSE", "static/fonts/", "static/vendor/")
_LEFT_OUT = {
    ".git",
    ".venv",
    ".benchwright",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
}


@cache
def files() -> tuple[Path, ...]:
    """Everything that is in the repository, whether this is a clone or an unpacked archive."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        found = [ROOT / name for name in listed.split("\0") if name]
    else:
        found = [p for p in ROOT.rglob("*") if p.is_file() and not _LEFT_OUT & set(p.relative_to(ROOT).parts)]
    return tuple(sorted(p for p in found if p.is_file()))


def name_of(path: Path) -> str:
    """The path from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def is_foreign(path: Path) -> bool:
    """Whether somebody else wrote it."""
    return name_of(path).startswith(FOREIGN) or re.fullmatch(r"requirements[a-z-]*\.txt", name_of(path)) is not None


def pages() -> list[Path]:
    """Every Markdown page."""
    return [p for p in files() if p.suffix == ".md" and not is_foreign(p)]


def read(name: str) -> str:
    """A file's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def code_blocks(text: str, language: str = "") -> list[str]:
    """The fenced blocks of a page, those of one language or all."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    return [body for name, body in blocks if not language or name == language]


def table_cells(text: str, column: int = 0) -> list[str]:
    """What stands in backticks in one column of all tables of a text."""
    cells = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [word for row in cells if len(row) > column for word in re.findall(r"`([^`]+)`", row[column])]
