r"""`\boxed{…}` with the braces counted."""

import re
from typing import List, Optional

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(\{|(?=[0-9A-Za-z]))")
_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit|mbox)\s*\{([^{}]*)\}")


def all_boxed(text: str) -> List[str]:
    r"""The contents of every closed `\boxed{…}`, in order. An unclosed box is no answer, not a shorter one."""
    out = []
    for box in _BOX.finditer(text):
        if not box.group(1):
            out.append(text[box.end()])
            continue
        depth, at = 1, box.end()
        while at < len(text) and depth:
            char = text[at]
            if char == "\\":
                at += 1
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
            at += 1
        if not depth:
            out.append(text[box.end() : at - 1].strip())
    return out


def last_boxed(text: str) -> Optional[str]:
    """The last closed box's content, or None."""
    boxes = all_boxed(text)
    return boxes[-1] if boxes else None


def unwrap(text: str) -> str:
    r"""`\text{B}` and its like become "B"."""
    return _WRAP.sub(r"\1", text)
