"""Extraction and comparison helpers for scorers. Standard library only, Python 3.9 and later.

A scorer pins the version it was written for: `require("1.0.0")`. Every helper takes hostile text and never raises on
it; where there is no answer it says None, which is not the same as a wrong answer.
"""

from .answers import label_answer, phrase_answer, short_answer
from .boxed import all_boxed, last_boxed
from .choices import choice_letter, choice_letters, letters_for
from .code import STOPS, code_blocks, compiles, complete_function, cut_at_stops, extract_code
from .expressions import evaluate, expression_answer, makes
from .found import Found, verdict
from .jsons import NotJson, find_json, parse_json, same_json
from .lists import list_answer, overlap_f1, same_list, same_set, split_items
from .numbers import Number, find_numbers, last_number, number_answer, parse_number, same_number
from .programs import ProgramResult, RunnerBroken, run_in_out, run_program, run_tests, same_output
from .response import answer_text, finish_reason, no_answer, raw_text
from .text import loose, normalise, same_as_any, same_text, strip_answer, without_ansi
from .think import visible
from .tool_calls import (
    Call,
    Match,
    accepts,
    match_call,
    match_calls,
    openai_tools,
    read_calls,
    safe_name,
    same_arguments,
)
from .versions import WrongVersion, require
from .yes_no import truth, yes_no

VERSION = "1.0.0"

__all__ = [
    "STOPS", "VERSION", "Call", "Found", "Match", "NotJson", "Number", "ProgramResult", "RunnerBroken", "WrongVersion",
    "accepts", "all_boxed", "answer_text", "choice_letter", "choice_letters", "code_blocks", "compiles",
    "complete_function", "cut_at_stops", "evaluate", "expression_answer", "extract_code", "find_json", "find_numbers",
    "finish_reason", "label_answer", "last_boxed", "last_number", "letters_for", "list_answer", "loose", "makes",
    "match_call", "match_calls", "no_answer", "normalise", "number_answer", "openai_tools", "overlap_f1", "parse_json",
    "parse_number", "phrase_answer", "raw_text", "read_calls", "require", "run_in_out", "run_program", "run_tests",
    "safe_name", "same_arguments", "same_as_any", "same_json", "same_list", "same_number", "same_output", "same_set",
    "same_text", "short_answer", "split_items", "strip_answer", "truth", "verdict", "visible", "without_ansi", "yes_no",
]  # fmt: skip
