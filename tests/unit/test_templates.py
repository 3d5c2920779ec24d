"""Templates keep to the Content-Security-Policy, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
CSS = "\n".join(path.read_text() for path in (ROOT / "static" / "css").glob("*.css"))


def _all() -> list[tuple[str, str]]:
    return [(str(path.relative_to(ROOT)), path.read_text()) for path in TEMPLATES]


def test_no_template_holds_what_the_policy_blocks() -> None:
    for name, text in _all():
        assert not re.search(r"<[^>]*\sstyle\s*=", text), f"{name}: a style attribute"
        assert not re.search(r"<[^>]*\son\w+\s*=", text), f"{name}: an inline handler"
        assert not re.search(r"<script(?![^>]*\ssrc=)[^>]*>", text), f"{name}: an inline script"
        assert "javascript:" not in text, f"{name}: a javascript: address"
        assert "hx-on" not in text and "js:" not in text, f"{name}: htmx would have to eval"


def test_nothing_is_fetched_from_another_host() -> None:
    for name, text in _all():
        for attribute in re.findall(r"""(?:src|href|action|hx-get|hx-post)="([^"]*)\"""", text):
            assert not attribute.startswith(("http:", "https:", "//")), f"{name}: {attribute}"
    assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", CSS)


def test_untrusted_text_is_never_marked_safe_in_a_template() -> None:
    for name, text in _all():
        assert "|safe" not in text and "autoescape off" not in text, name


def test_every_icon_that_is_used_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'<symbol id="i-([\w-]+)"', (ROOT / "templates/components/icons.html").read_text()))
    used = set()
    for _, text in _all():
        used |= set(re.findall(r'{% icon "([\w-]+)"', text))
    tags = (ROOT / "benchwright/lib/templatetags/bw.py").read_text()
    used |= set(re.findall(r'": "(\w+)",', tags[tags.index("PILL_ICONS") : tags.index("OUTCOMES")]))
    assert used <= sprite, used - sprite


def test_every_static_file_that_is_named_exists() -> None:
    for name, text in _all():
        for path in re.findall(r'{% static "([^"]+)" %}', text):
            assert (ROOT / "static" / path).is_file(), f"{name}: {path}"


def test_colours_and_sizes_that_are_used_are_defined() -> None:
    defined = set(re.findall(r"(--[\w-]+)\s*:", CSS))
    used = set(re.findall(r"var\((--[\w-]+)", CSS))
    assert used <= defined, used - defined


def _contrast(a: str, b: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_reaches_4_5_to_1_and_marks_3_to_1_in_light_and_dark() -> None:
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)
    token = {name: (light, dark) for name, light, dark in found}
    text = [
        ("ink", "bg"),
        ("ink-2", "surface"),
        ("ink-2", "hover"),
        ("ink-3", "bg"),
        ("ink-3", "surface"),
        ("ink-3", "sunken"),
        ("ink-3", "err-soft"),
        ("ink-3", "fail-soft"),
        ("ink-3", "wait-soft"),
        ("accent", "surface"),
        ("accent", "accent-soft"),
        ("pass-text", "pass-soft"),
        ("fail-text", "fail-soft"),
        ("err-text", "err-soft"),
        ("run-text", "run-soft"),
        ("wait-text", "wait-soft"),
        ("on-primary", "primary"),
        ("on-primary", "primary-hover"),
        ("code-comment", "code-bg"),
        ("code-keyword", "code-bg"),
        ("code-string", "code-bg"),
        ("code-number", "code-bg"),
        ("code-name", "code-bg"),
    ]
    marks = [
        ("pass", "surface"),
        ("fail", "surface"),
        ("fail", "fail-soft"),
        ("err", "err-soft"),
        ("run", "run-soft"),
        ("control", "surface"),
        ("control", "bg"),
        ("focus", "bg"),
        ("idle", "surface"),
    ]
    for pairs, least in ((text, 4.5), (marks, 3.0)):
        for front, back in pairs:
            for mode in (0, 1):
                ratio = _contrast(token[front][mode], token[back][mode])
                assert ratio >= least, f"{front} on {back} ({('light', 'dark')[mode]}): {ratio:.2f}"
