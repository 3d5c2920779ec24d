"""Getting a program out of a reply.

Two kinds of reply have to work: a chat model's (prose, fences, whole functions) and a base model's (the raw
continuation of the prompt, which runs on into the next thing).
"""

import re
from typing import List, NamedTuple, Optional, Sequence

# A reply that does not compile is cut at this many places at most, and a longer one is not compiled to look.
_CUTS = 50
_COMPILED_CHARACTERS = 200_000

STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+.#-]*)[^\n`]*$", re.MULTILINE)
_TAIL_MARK = re.compile(r"\n?<\|[a-z_]+\|>.*\Z|<EOT>.*\Z", re.DOTALL)


class Block(NamedTuple):
    """One fenced block: its language tag ("" when none) and its text, which ends with a newline."""

    language: str
    text: str


def code_blocks(text: str) -> List[Block]:
    """The closed fenced blocks of a reply, in order, and an opened one that the reply ends in.

    A lone fence with nothing after it is noise, not the start of an empty block.
    """
    out: List[Block] = []
    marks = list(_FENCE.finditer(text))
    at = 0
    while at < len(marks):
        opened = marks[at]
        closing = next(
            (
                i
                for i in range(at + 1, len(marks))
                if marks[i].group(1).startswith(opened.group(1)) and not marks[i].group(2)
            ),
            None,
        )
        if closing is None:
            body = text[opened.end() + 1 :]
            if body.strip():
                out.append(Block(opened.group(2).lower(), body))
            break
        body = text[opened.end() + 1 : marks[closing].start()]
        if body.strip():
            out.append(Block(opened.group(2).lower(), body))
        at = closing + 1
    return out


def _without_fences(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not _FENCE.match(line.rstrip("\r\n")))


def extract_code(text: str, *, opened: bool = False, defines: str = "") -> str:
    """The program in a reply, "" only when the reply is blank.

    `opened=True`: the prompt ended inside a fence, so the reply starts as code and ends at the first fence.
    `defines`: the name that the program must define; the last block that defines it is taken, with the blocks before
    it that define other things it may need. Without it: all Python-like blocks joined when there are several, else
    the one block, else the whole text with stray fences removed.
    """
    if not text or not text.strip():
        return ""
    if opened:
        # Join what the prompt opened; a language tag is only a tag when a newline follows it.
        text = "```\n" + text
    blocks = code_blocks(text)
    if opened and blocks:
        return blocks[0].text
    python = [b for b in blocks if b.language in ("", "python", "py", "python3", "py3", "pycon", "ipython")]
    chosen = python or blocks
    if not chosen:
        return _without_fences(text)
    if defines:
        defining = [i for i, b in enumerate(chosen) if _defines(b.text, defines)]
        if defining:
            return chosen[defining[-1]].text
        # A body without its head: the longest block is the likeliest answer.
        return max(chosen, key=lambda b: len(b.text)).text
    return max(chosen, key=lambda b: len(b.text)).text if len(chosen) == 1 else "\n".join(b.text for b in chosen)


def _defines(code: str, name: str) -> bool:
    name = re.escape(name)
    pattern = rf"^(?:async\s+def|def|class)\s+{name}\b|^{name}\s*="
    return re.search(pattern, code, re.MULTILINE) is not None


def cut_at_stops(text: str, stops: Sequence[str] = STOPS) -> str:
    """The text up to the first of the stops: where a base model's continuation leaves the function it was writing."""
    end = min((at for at in (text.find(stop) for stop in stops) if at >= 0), default=len(text))
    return text[:end]


def compiles(source: str) -> bool:
    """Whether it is Python at all. Null bytes, absurd nesting and absurd length are False."""
    import warnings

    if len(source) > _COMPILED_CHARACTERS:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, "program.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return False
    return True


def complete_function(prompt: str, reply: str, entry_point: str, *, stops: Sequence[str] = STOPS) -> Optional[str]:
    """The program that a prompt (imports, helpers, the head of a function) and a reply make together.

    - A reply that defines `entry_point` itself (fenced or not) is put after what stands before that function's head
      in the prompt, so that imports and helpers of the prompt stay there.
    - Anything else is the function's body: the prompt, then the reply cut at the first stop. A body whose first line
      lost its indentation gets it back.

    None when the reply holds no code.
    """
    code = extract_code(reply, defines=entry_point)
    code = _TAIL_MARK.sub("", code).replace("\r\n", "\n")
    if not code.strip():
        return None
    head = re.search(r"^[ \t]*(?:async\s+)?def\s+" + re.escape(entry_point) + r"\b", prompt, re.MULTILINE)
    first = re.search(r"\S.*", code)
    if _defines(code, entry_point) and first is not None and not code.startswith((" ", "\t")):
        before = prompt[: head.start()] if head else ""
        return before + "\n" + _whole(code)
    body = cut_at_stops(code.lstrip("\n") if not code.startswith("\n ") else code, stops)
    program = _joined(prompt, body)
    if not compiles(program):
        for repaired in (_reindent_first(body), _reindent_all(body)):
            if repaired != body and compiles(_joined(prompt, repaired)):
                return _joined(prompt, repaired)
    return program


def _joined(prompt: str, body: str) -> str:
    glue = "" if not prompt or prompt.endswith(("\n", " ")) or body.startswith("\n") else "\n"
    return prompt + glue + body


def _whole(code: str) -> str:
    """A whole program; a raw one that a truncated or chatty tail keeps from compiling is cut at a later line."""
    if compiles(code):
        return code
    lines = code.split("\n")
    # The longest start that is a program. Only top-level line starts can end one.
    ends = [at for at in range(1, len(lines)) if lines[at][:1] not in ("", " ", "\t", ")", "]", "}")]
    for end in reversed(ends[-_CUTS:]):
        if compiles("\n".join(lines[:end])):
            return "\n".join(lines[:end]) + "\n"
    return code


def _reindent_first(body: str) -> str:
    lines = body.lstrip("\n").split("\n")
    if not lines or lines[0].startswith((" ", "\t")):
        return body
    return "    " + "\n".join(lines)


def _reindent_all(body: str) -> str:
    return "\n".join("    " + line if line.strip() else line for line in body.split("\n"))
