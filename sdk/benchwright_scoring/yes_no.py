"""Yes or no."""

from typing import Any, Optional

from .answers import label_answer
from .found import Found

_YES = {"yes", "true", "y", "1", "correct"}
_NO = {"no", "false", "n", "0", "incorrect"}


def truth(value: Any) -> Optional[bool]:
    """A label column's yes or no: True/False, 1/0, "yes"/"no", "true"/"false"; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    word = str(value).strip().rstrip(".").casefold() if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else None


def yes_no(text: str) -> Optional[Found]:
    """Whether a reply says yes or no ("true" and "false" count as well). `value` is a bool."""
    found = label_answer(text, ("yes", "no", "true", "false"))
    return None if found is None else Found(found.value in ("yes", "true"), found.text, found.rule)
