"""A template and its values to the text of `task_impl.py`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from runs.driver.rules.derivation import SCORING_VERSION

_FOLDER = Path(__file__).resolve().parent / "templates"
_SLOT = re.compile(r"\$([A-Z_]+)")


def render(template: str, values: dict[str, Any], *, about: str) -> str:
    """The scorer file. A slot `$NAME` takes the Python literal of its value; `$ABOUT` and `$VERSION` are text.

    Raises KeyError for a slot without a value. What comes from the data can only ever become a literal.
    """
    source = (_FOLDER / f"{template}.py.tmpl").read_text(encoding="utf-8")
    words = " ".join(about.replace("\\", "/").replace('"""', "'''").split())

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "ABOUT":
            return _wrap(words)
        if name == "VERSION":
            return SCORING_VERSION
        return _literal(values[name.lower()])

    return _SLOT.sub(fill, source)


def _literal(value: Any) -> str:
    if isinstance(value, str):
        # JSON's escapes are Python's too; double quotes as the rest of the file has them.
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    return ascii(value)


def _wrap(text: str, width: int = 110) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return "\n".join(lines)
