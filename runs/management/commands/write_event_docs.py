"""`manage.py write_event_docs [--check]`: writes docs/events.md from the event types, which are the truth about it."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandParser

from benchwright.lib.paths import ROOT
from runs.events.types import base
from runs.events.types.union import EVENT_TYPES
from runs.fingerprints.rules import LOAD_BEARING

PAGE = ROOT / "docs" / "events.md"

_HEAD = """\
# Events

This page is generated from `runs/events/types/`. To change it, change the types and run
`./bw manage write_event_docs`; a test fails while the two differ.

A run is its log. Each row has a `seq` (0, 1, 2, … without a gap), a `type`, a time `at` and `data`; this page lists
the fields of `data`. The row's text is canonical JSON of `{at, data, seq, type}`, and `digest` is the SHA-256 of the
previous digest (empty before `seq` 0), a line feed and that text. Rows are only ever added.

- A field without a default is always there. A field with a default is there too; the default says what it holds when
  nothing was given.
- `null` is unknown or absent. It is never zero.
- `JSON` is any JSON value; the sentence above the table says which. A prompt, response, target or meta of more than
  8 kB is kept apart, and the field holds `{"blob": {"sha256", "size", "preview"}}` instead.
- Unknown fields are refused when an event is written. A type that this version does not know is kept and shown raw.
- Names of types and fields are for ever: a new meaning is a new type or a new field with a default.
"""


class Command(BaseCommand):
    help = "Writes docs/events.md; with --check only says whether it is current (exit 1 when it is not)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = events_page()
        current = PAGE.read_text() if PAGE.exists() else ""
        if options["check"]:
            if wanted != current:
                self.stderr.write("docs/events.md is stale: ./bw manage write_event_docs")
                sys.exit(1)
            return
        PAGE.write_text(wanted)
        self.stdout.write(f"docs/events.md: {len(EVENT_TYPES)} event types.")


def events_page() -> str:
    """The whole page. Depends on nothing but the types, so that it can be compared with the stored one."""
    parts = [_HEAD]
    families: dict[str, list[type[base.Event]]] = {}
    for cls in EVENT_TYPES.values():
        families.setdefault(cls.__module__, []).append(cls)
    parts.append("| type | what it says |\n| --- | --- |")
    for cls in EVENT_TYPES.values():
        parts[-1] += f"\n| [`{cls.__name__}`](#{cls.__name__.lower()}) | {_first_sentence(cls)} |"
    for module, classes in families.items():
        doc = inspect.getdoc(sys.modules[module]) or ""
        parts.append(f"## {module.rpartition('.')[2].capitalize()}\n\n{doc}")
        parts += [_section(cls, 3) for cls in classes]
    parts.append("## Shapes inside events")
    parts += [_section(cls, 3) for cls in (base.Usage, base.Body)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _section(cls: type[msgspec.Struct], level: int) -> str:
    lines = [f"{'#' * level} {cls.__name__}", "", inspect.getdoc(cls) or "", ""]
    fields = msgspec.structs.fields(cls)
    counted = LOAD_BEARING.get(cls.__name__, ())
    if fields:
        lines += ["| field | type | default |", "| --- | --- | --- |"]
        lines += [f"| `{f.name}` | {_type(cls.__annotations__[f.name])} | {_default(f)} |" for f in fields]
    else:
        lines.append("No fields.")
    if counted:
        lines += ["", f"In the run fingerprint: {', '.join(f'`{name}`' for name in counted)}."]
    return "\n".join(lines)


_WORDS = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "None": "null"}


def _type(annotation: str) -> str:
    """`str | None` as `text or null`; names of shapes stay."""
    return " or ".join(_WORDS.get(part.strip(), part.strip()) for part in annotation.split("|"))


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return ""
    return f"`{'null' if field.default is None else msgspec.json.encode(field.default).decode()}`"


def _first_sentence(cls: type) -> str:
    text = " ".join((inspect.getdoc(cls) or "").split())
    return text.split(". ")[0].rstrip(".") + "."
