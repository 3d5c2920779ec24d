"""Text from outside can neither act nor break a page."""

from __future__ import annotations

from benchwright.lib.inert import inert, readable


def test_a_lone_surrogate_does_not_break_the_response() -> None:
    assert inert("a\ud800b").encode() == "a\u27e8U+D800\u27e9b".encode()


def test_a_terminal_escape_and_a_nul_are_seen_and_not_obeyed() -> None:
    assert inert("\x1b[31mred\x00") == "\u241b[31mred\u2400"


def test_a_bidi_override_cannot_reorder_what_is_read() -> None:
    assert "\u202e" not in inert("safe\u202eexe.txt")


def test_newlines_and_tabs_stay() -> None:
    assert inert("a\r\n\tb") == "a\n\tb"


def test_json_is_laid_out_and_text_is_left_alone() -> None:
    assert readable({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'
    assert readable("plain") == "plain"
    assert readable(None) == ""
