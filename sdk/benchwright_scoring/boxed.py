r"""`\boxed{…}` with the braces counted."""

import re
from typing import Dict, List, Optional

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(\{|(?=[0-9A-Za-z]))")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit|mbox)\s*\{([^{}]*)\}")


def all_boxed(text: str) -> List[str]:
    r"""The contents of every closed `\boxed{…}`, in order. An unclosed box is no answer, not a shorter one."""
    ends = _closing_braces(text)
    out = []
    for box in _BOX.finditer(text):
        if not box.group(1):
            out.append(text[box.end()])
        elif box.end() - 1 in ends:
            out.append(text[box.end() : ends[box.end() - 1]].strip())
    return out


def _closing_braces(text: str) -> Dict[int, int]:
    """Where each opening brace is closed, in one pass: a text of nothing but open boxes must not cost its square."""
    ends: Dict[int, int] = {}
    opened: List[int] = []
    for brace in _BRACE.finditer(text):
        char = brace.group()
        if char == "{":
            opened.append(brace.start())
        elif char == "}" and opened:
            ends[opened.pop()] = brace.start()
    return ends


def last_boxed(text: str) -> Optional[str]:
    """The last closed box's content, or None."""
    boxes = all_boxed(text)
    return boxes[-1] if boxes else None


def unwrap(text: str) -> str:
    r"""`\text{B}` and its like become "B"."""
    return _WRAP.sub(r"\1", text)
