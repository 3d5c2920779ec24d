"""What the rules are given and what they give back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

SCORING_VERSION = "1.0.0"


@dataclass(frozen=True)
class SourceFile:
    """One file as the reader left it: its FileReport (see `runs/guest/rows/report.py`) and its canonical rows."""

    report: dict[str, Any]
    rows: list[Row]

    @property
    def name(self) -> str:
        """The file's name, with the member or split it came from."""
        return str(self.report["name"])


@dataclass(frozen=True)
class Reference:
    """What a model that knows the answer says to one row: text, tool calls, or nothing known (both None)."""

    text: str | None = None
    tool_calls: list[dict[str, Any]] | None = None

    def as_json(self) -> dict[str, Any]:
        """{"text", "tool_calls"}, as the oracle control and the proof take it."""
        return {"text": self.text, "tool_calls": self.tool_calls}


@dataclass(frozen=True)
class CannotTell:
    """No scorer can be derived without a person. `question` asks what would decide it; the words of the answer are
    read as part of the prompt at the next try.
    """

    reason: str
    question: str


@dataclass(frozen=True)
class SubsetDerivation:
    """One subset with its scorer. `rows`, `references` and `choices` (where not None) run in parallel."""

    name: str
    shape: str
    files: list[str]
    rows: list[Row]
    field_map: dict[str, Any]
    impl_source: str
    references: list[Reference]
    choices: list[list[str]] | None
    why: str
    notes: list[str] = field(default_factory=list)

    def tasks(self) -> list[dict[str, Any]]:
        """[{row, reference, choices}], as a snapshot stores them."""
        return [
            {
                "row": row,
                "reference": self.references[at].as_json(),
                "choices": self.choices[at] if self.choices is not None else None,
            }
            for at, row in enumerate(self.rows)
        ]


@dataclass(frozen=True)
class Derivation:
    """Every subset that can be scored, those that cannot with the reason, and which one the prompt means.

    `chosen` is None when several fit the prompt equally; then `question` asks which.
    """

    subsets: list[SubsetDerivation]
    cannot: dict[str, CannotTell]
    chosen: str | None
    question: str | None
    why: str

    def subset(self, name: str | None = None) -> SubsetDerivation:
        """The subset of that name, or the chosen one. Raises KeyError."""
        wanted = self.chosen if name is None else name
        for subset in self.subsets:
            if subset.name == wanted:
                return subset
        raise KeyError(wanted)


@dataclass(frozen=True)
class Match:
    """A shape that fits a table: the template and the literals that fill it, and per row what the oracle says."""

    shape: str
    template: str
    values: dict[str, Any]
    rows: list[Row]
    references: list[Reference]
    choices: list[list[str]] | None
    field_map: dict[str, Any]
    why: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Hints:
    """What the prompt says that can decide a doubt."""

    prompt: str
    label: str | None = None
    question: str | None = None
    labels: tuple[str, ...] = ()
    numeric: bool = False
    exact: bool = False
    any_of: bool = False
    ordered: bool = False
    unordered: bool = False
    unproven: bool = False
    index_base: int | None = None
