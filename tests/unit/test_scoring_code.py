"""A program is cut out of a reply and run under limits."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit import rules_harness  # noqa: F401 - puts the scoring helpers on the path

# isort: split
from benchwright_scoring import complete_function, extract_code, run_in_out, run_program, run_tests

HEAD = 'import math\n\ndef helper(x):\n    return x\n\n\ndef inc(n):\n    """Add one."""\n'
BODY = "    return n + 1\n"
WHOLE = "def inc(n):\n    return n + 1\n"


def test_a_lone_closing_fence_is_noise() -> None:
    assert extract_code("def inc(n):\n    return n + 1\n```") == WHOLE


def test_the_fence_that_the_prompt_opened_is_joined() -> None:
    assert extract_code("def inc(n):\n    return n + 1\n```\nThat is all.", opened=True) == WHOLE


@pytest.mark.parametrize("tag", ["python", "py", "Python3", ""])
def test_a_block_is_code_whatever_its_tag(tag: str) -> None:
    assert extract_code(f"Sure:\n```{tag}\n{WHOLE}```\nDone.") == WHOLE


def test_the_block_that_defines_the_function_is_taken() -> None:
    before = "```bash\npip install x\n```\n```python\nprint(1)\n```\n"
    reply = before + f"```python\n{WHOLE}```\n```python\nassert inc(1) == 2\n```"
    assert extract_code(reply, defines="inc") == WHOLE


def test_a_block_cut_off_by_the_limit_is_still_code() -> None:
    assert extract_code(f"```python\n{WHOLE}") == WHOLE


@pytest.mark.parametrize(
    "reply",
    [
        BODY,
        BODY.strip(),
        "return n + 1",
        BODY + "\n\ndef other():\n    return unknown\n",
        BODY + "\n\nprint(inc(1)",
        BODY + "\n# a comment\nif __name__ == '__main__':\n    boom()\n",
        WHOLE,
        WHOLE + "\n\nprint(inc(",
        f"Here you are:\n\n```python\n{WHOLE}```\n\nIt adds one.",
        f"```python\n{HEAD}{BODY}```",
        f"```\n{BODY}```",
        WHOLE.replace("\n", "\r\n"),
        "from typing import List\n\ndef inc(n):\n    return helper(n) + 1",
        BODY + "<|endoftext|>more",
    ],
)
def test_body_and_whole_function_both_complete_the_prompt(reply: str) -> None:
    program = complete_function(HEAD, reply, "inc")
    assert program is not None
    assert run_tests(program, "assert inc(4) == 5").ok, program


@pytest.mark.parametrize("reply", ["", "  \n ", "```python\n```"])
def test_a_reply_without_code_completes_nothing(reply: str) -> None:
    program = complete_function(HEAD, reply, "inc")
    assert program is None or not run_tests(program, "assert inc(4) == 5").ok


def test_code_and_tests_share_one_namespace() -> None:
    assert not run_tests("def add(a, b):\n    return a - b", "assert add(2, 2) == 4").ok
    assert run_tests("def add(a, b):\n    return a + b", "assert add(2, 2) == 4").ok


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "raise SystemExit",
        "exit()",
        "quit(0)",
        "import os\nos.kill(os.getpid(), 9)",
    ],
)
def test_leaving_early_does_not_pass(code: str) -> None:
    result = run_tests(code, "assert False")
    assert not result.ok
    assert result.reason in ("early_exit", "crash", "failed")


def test_a_program_in_one_endless_c_call_is_stopped() -> None:
    started = time.monotonic()
    result = run_tests(
        "def size(n):\n    return (7 ** (7 ** n)).bit_length()", "assert size(12) > 0", seconds=1, memory_mb=512
    )
    assert result.reason in ("timeout", "memory_limit")
    assert time.monotonic() - started < 5
    assert run_program("print('next')").ok


def test_a_sleeper_is_stopped_by_the_wall_clock() -> None:
    assert run_program("import time\ntime.sleep(60)", seconds=0.2).reason == "timeout"


def test_memory_is_bounded() -> None:
    assert run_program("x = bytearray(10**10)", memory_mb=256).reason == "memory_limit"


def test_output_is_bounded_and_said_to_be_cut() -> None:
    result = run_program("while True: print('x' * 1000)", seconds=1, output_limit=10_000)
    assert len(result.stdout) == 10_000 and result.cut and not result.ok


def test_nothing_that_a_program_starts_outlives_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(file)!r}, 'w').write(str(child.pid))\n"
    )
    assert run_program(code).ok
    pid = int(file.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_gets_real_bytes_on_its_standard_input() -> None:
    code = "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))"
    assert run_in_out(code, "4 5 6\n", "15").ok
    assert not run_in_out(code, "4 5 6\n", "16").ok
    assert run_in_out("print(input())\nimport sys\nsys.exit(0)", "a  \n", "a").ok


def test_the_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "1")
    assert run_program("import os\nassert 'A_SECRET' not in os.environ").ok


def test_the_same_program_ends_the_same_way_twice() -> None:
    code = "import random\nprint(random.random(), list({'a', 'b', 'c', 'd', 'e'}))"
    assert run_program(code).stdout == run_program(code).stdout


def test_a_program_sees_itself_as_main_and_may_use_dataclasses() -> None:
    code = "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    code += "assert __name__ == '__main__' and P(1) == P(1)"
    assert run_program(code).ok


@pytest.mark.parametrize("code", ["def (:", "\x00", "x" * 10 + "(" * 500, "import nothing_like_this", "\ud800"])
def test_what_is_no_program_fails_and_raises_nothing(code: str) -> None:
    assert not run_tests(code, "").ok


def test_programs_may_be_run_from_many_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: run_program(f"print({n})").stdout, range(40)))
    assert results == [f"{n}\n" for n in range(40)]


def test_a_program_that_kills_its_supervisor_fails_and_the_next_one_runs() -> None:
    assert not run_program("import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(1)").ok
    assert run_program("print(1)").ok
