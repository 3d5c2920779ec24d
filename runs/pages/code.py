"""task_impl.py as highlighted HTML: classes only, so that the Content-Security-Policy can stay strict."""

from __future__ import annotations

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

from benchwright.lib.inert import inert

LONGEST = 200_000  # characters; a longer file is shown cut, and downloaded whole


def highlighted(source: str) -> SafeString:
    """Python as spans with classes. Pygments escapes the text; what it can't lex stays text."""
    shown = inert(source[:LONGEST])
    if len(source) > LONGEST:
        shown += "\n# the rest is not shown here: download the file\n"
    html = highlight(shown, PythonLexer(), HtmlFormatter(nowrap=True, classprefix=""))
    return mark_safe(f"<pre>{html}</pre>")
