"""The guest runner against scorers that hang, exit, fork, print, eat memory and lie: as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.guest_harness import PLAIN, RUNNER, completion, model_server, run_guest, write_job


def scorer(score: str, *, solve: str = "return call_sut(self.extract(row)).text", head: str = "") -> str:
    """A TaskImpl with the given bodies."""
    return f"""
import os, sys, time
{head}
class TaskImpl:
    def extract(self, row):
        return row["q"]
    def solve(self, row, call_sut):
        i = row["i"]
        {solve}
    def score(self, row, response):
        i = row["i"]
        {score}
"""


def test_a_response_is_printed_before_its_result_and_both_once(tmp_path: Path) -> None:
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, PLAIN, 40, model.url))
    assert ran.code == 0
    assert ran.frames[0]["t"] == "start"
    assert ran.frames[-1] == {"t": "done"}
    assert sorted(ran.results) == list(range(40))
    assert all(r["score"] == 1.0 and r["error"] is None for r in ran.results.values())
    seen = set()
    for frame in ran.frames:
        if frame["t"] == "response":
            seen.add(frame["index"])
        elif frame["t"] == "result":
            assert frame["index"] in seen
    first = ran.of("response")[0]
    assert first["prompt"] == f"q{first['index']}"
    assert (first["response"], first["calls"], first["finish_reason"], first["attempt"]) == ("ok", 1, "stop", 1)
    assert all(count == 1 for count in model.keys.values())


def test_async_solve_runs_with_the_same_concurrency(tmp_path: Path) -> None:
    impl = """
    class TaskImpl:
        def extract(self, row):
            return [{"role": "user", "content": row["q"]}]
        async def solve(self, row, call_sut):
            return await call_sut(self.extract(row))
        def score(self, row, response):
            return {"score": response["text"] == "ok", "extracted": response["text"], "lang": "x"}
    """
    with model_server(lambda key, body: (200, completion(), 0.2)) as model:
        ran = run_guest(write_job(tmp_path, impl, 32, model.url, concurrency=16))
    assert {r["score"] for r in ran.results.values()} == {1.0}
    assert ran.results[0]["extracted"] == "ok"
    assert ran.results[0]["meta"] == {"lang": "x"}
    assert ran.of("response")[0]["prompt"][0]["role"] == "user"
    assert ran.seconds < 32 * 0.2 / 2


def test_an_answered_task_is_scored_without_a_model_call(tmp_path: Path) -> None:
    frame = {"t": "response", "index": 0, "trial": 0, "attempt": 2, "response": "ok", "finish_reason": "length"}
    tasks = [{"row": {"q": "a", "i": 0}, "response": frame}, {"row": {"q": "b", "i": 1}, "response": {"text": "ok"}}]
    impl = scorer('return response == "ok" or response == {"text": "ok"}')
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, tasks, model.url))
    assert not model.keys
    assert not ran.of("response")
    assert ran.results[0]["score"] == 1.0
    assert ran.results[0]["attempts"] == 2
    assert ran.results[0]["meta"] == {"truncated": True}
    assert ran.results[1]["score"] == 1.0


def test_rubbish_scores_are_errors_and_never_fails(tmp_path: Path) -> None:
    values = [
        "float('nan')",
        "float('inf')",
        "1.5",
        "-0.1",
        "None",
        "'0.7'",
        "{'points': 1}",
        "[1]",
        "{'score': None}",
        "1 / 0",
        "10 ** 400",
        "sys.exit(3)",
        "[][1]",
    ]
    table = ", ".join(f"lambda: {v}" for v in values)
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, scorer(f"return [{table}][i]()"), len(values), model.url))
    kinds = [ran.results[i]["error"]["kind"] for i in range(len(values))]
    assert kinds == ["bad_score"] * 9 + ["scorer", "bad_score", "scorer", "scorer"]
    assert all(r["score"] is None for r in ran.results.values())
    assert "task_impl.py" in ran.results[9]["error"]["trace"]
    assert ran.results[9]["error"]["type"] == "ZeroDivisionError"


def test_booleans_count_as_one_and_zero_and_meta_is_bounded(tmp_path: Path) -> None:
    impl = scorer(
        "return [True, False, {'score': 0.5, 'rule': 'last', 'target': '7', 'no_answer': 'unparsed', 's': {3, 1},"
        " 'huge': 'x' * 10 ** 6, 'bad\\ud800': '\\0'}][i]"
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 3, model.url))
    assert [ran.results[i]["score"] for i in range(3)] == [1.0, 0.0, 0.5]
    last = ran.results[2]
    assert (last["rule"], last["target"], last["no_answer"]) == ("last", "7", "unparsed")
    assert last["meta"]["s"] == [1, 3]
    assert last["meta"]["bad\ud800"] == "\0"
    assert len(json.dumps(last)) < 100_000


def test_a_hang_in_score_ends_with_a_timeout_and_its_siblings_go_on(tmp_path: Path) -> None:
    impl = scorer(
        """
        if i == 3:
            while True: pass
        if i == 5: time.sleep(1000)
        return 1""".strip()
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 24, model.url, score_seconds=0.5))
    for i in (3, 5):
        assert ran.results[i]["error"]["kind"] == "timeout"
        assert "in score" in ran.results[i]["error"]["trace"]
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 22
    assert sum(model.keys.values()) == 24
    assert ran.seconds < 5


def test_more_hangs_than_workers_do_not_stop_the_run(tmp_path: Path) -> None:
    impl = scorer("time.sleep(1000 if i < 30 else 0); return 1")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 40, model.url, score_seconds=0.2, concurrency=4))
    assert sum(1 for r in ran.results.values() if r["error"] and r["error"]["kind"] == "timeout") == 30
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 10
    assert sum(model.keys.values()) == 40


def test_a_regex_that_holds_the_interpreter_is_killed_and_found_guilty(tmp_path: Path) -> None:
    impl = scorer("return 1 if i != 4 else bool(re.match(r'(a+)+$', 'a' * 60 + 'b'))", head="import re")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 12, model.url, score_seconds=0.5), timeout=40)
    assert ran.results[4]["error"]["kind"] == "timeout"
    assert "in score" in ran.results[4]["error"]["trace"]
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 11
    assert model.keys["k-4-1"] == 1


def test_a_hang_in_solve_is_tried_again_with_the_next_key(tmp_path: Path) -> None:
    impl = scorer("return 1", solve="time.sleep(1000 if i == 1 else 0); return call_sut(row['q']).text")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 4, model.url, attempt_seconds=0.4, max_attempts=2))
    assert ran.results[1]["error"]["kind"] == "timeout"
    assert ran.results[1]["attempts"] == 2
    assert [(f["index"], f["attempt"]) for f in ran.of("attempt_failed")] == [(1, 1)]
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 3


def test_a_model_that_does_not_answer_in_time_is_a_timeout(tmp_path: Path) -> None:
    with model_server(lambda key, body: (200, completion(), 3.0 if key == "k-0-1" else 0.0)) as model:
        ran = run_guest(write_job(tmp_path, PLAIN, 3, model.url, attempt_seconds=0.4))
    assert ran.results[0]["error"]["kind"] == "timeout"
    assert ran.results[1]["score"] == ran.results[2]["score"] == 1.0


def test_the_time_of_a_task_is_over_for_all_its_attempts_together(tmp_path: Path) -> None:
    impl = scorer("return 1", solve="time.sleep(1000 if i == 1 else 0); return call_sut(row['q']).text")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 3, model.url, attempt_seconds=0.4, task_seconds=0.6, max_attempts=9))
    assert (ran.results[1]["error"]["type"], ran.results[1]["attempts"]) == ("ceiling", 2)
    assert ran.results[0]["score"] == ran.results[2]["score"] == 1.0


@pytest.mark.parametrize("death", ["os._exit(0)", "os.abort()", "ctypes.string_at(0)"])
def test_a_process_killed_in_score_costs_no_model_call(tmp_path: Path, death: str) -> None:
    impl = scorer(f"if i == 2: {death}\n        time.sleep(0.05); return 1", head="import ctypes")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 8, model.url, concurrency=8))
    assert ran.results[2]["error"]["kind"] == "crash"
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 7
    assert model.keys["k-2-1"] == 1
    # All eight may be waiting when the process dies, but only once.
    assert sum(model.keys.values()) <= 15


def test_siblings_whose_calls_were_outstanding_call_again_with_the_next_key(tmp_path: Path) -> None:
    impl = scorer("if i == 0: os._exit(0)\n        return 1")
    with model_server(lambda key, body: (200, completion(), 0.3 if key.startswith("k-0-") else 0.8)) as model:
        ran = run_guest(write_job(tmp_path, impl, 6, model.url, concurrency=6))
    assert ran.results[0]["error"]["kind"] == "crash"
    assert {r["attempts"] for i, r in ran.results.items() if i} == {2}
    failed = ran.of("attempt_failed")
    assert sorted((f["index"], f["attempt"]) for f in failed) == [(i, 1) for i in range(1, 6)]
    assert {f["error"]["type"] for f in failed} == {"Interrupted"}
    assert model.keys == {"k-0-1": 1} | {f"k-{i}-{a}": 1 for i in range(1, 6) for a in (1, 2)}


def test_a_segfault_is_told_with_the_line_that_did_it(tmp_path: Path) -> None:
    impl = scorer("if i == 1: ctypes.string_at(0)\n        return 1", head="import ctypes")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 3, model.url))
    error = ran.results[1]["error"]
    assert "SIGSEGV" in error["message"]
    assert "task_impl.py" in error["trace"]


def test_a_task_line_that_is_wrong_is_that_tasks_error(tmp_path: Path) -> None:
    with model_server() as model:
        job = write_job(tmp_path, PLAIN, 3, model.url)
        lines = (tmp_path / "tasks.jsonl").read_text().splitlines()
        (tmp_path / "tasks.jsonl").write_text("\n".join([lines[0], '{"index": 1}', "", lines[2]]))
        ran = run_guest(job)
    assert ran.results[1]["error"]["type"] == "KeyError"
    assert ran.results[0]["score"] == ran.results[2]["score"] == 1.0


def test_deep_recursion_and_deep_answers_are_errors_of_their_task(tmp_path: Path) -> None:
    impl = scorer(
        "f = lambda n: f(n + 1)\n        return f(0) if i == 0 else 1",
        solve="x = []\n        for _ in range(100_000 if i == 1 else 1): x = [x]\n        return x",
    )
    ran = run_guest(write_job(tmp_path, impl, 3))
    assert ran.results[0]["error"]["type"] == "RecursionError"
    assert ran.results[1]["error"]["kind"] == "scorer"
    assert ran.results[2]["score"] == 1.0


def test_long_prompts_and_answers_are_cut_and_large_objects_refused(tmp_path: Path) -> None:
    impl = scorer(
        "return len(response) == 1_000_000",
        solve="text = call_sut('p' * 200_000).text; return [text * 3_000_000, {'x': text * 3_000_000}][i]",
    )
    with model_server(lambda key, body: (200, completion("y"), 0.0)) as model:
        ran = run_guest(write_job(tmp_path, impl, 2, model.url))
    assert ran.results[0]["score"] == 1.0
    frame = ran.of("response")[0]
    assert frame["cut"] is True
    assert len(frame["prompt"]) < 64 << 10
    assert "at most 1000000" in ran.results[1]["error"]["message"]


def test_a_death_nobody_can_be_blamed_for_is_found_by_running_the_suspects_alone(tmp_path: Path) -> None:
    impl = scorer("time.sleep(0.3)\n        if i == 2: os.kill(os.getpid(), 9)\n        return 1")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 6, model.url, concurrency=6))
    assert ran.results[2]["error"]["kind"] == "crash"
    assert "SIGKILL" in ran.results[2]["error"]["message"]
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 5
    assert sum(model.keys.values()) == 6


def test_a_scorer_that_always_kills_its_process_ends_with_an_error_for_each_task(tmp_path: Path) -> None:
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, scorer("os._exit(1)"), 12, model.url, concurrency=4))
    assert [r["error"]["kind"] for r in ran.results.values()] == ["crash"] * 12
    assert len(ran.of("response")) >= 12
    assert sum(model.keys.values()) <= 12 * 3


def test_a_solve_that_kills_its_process_is_not_run_for_ever(tmp_path: Path) -> None:
    impl = scorer("return 1", solve="if i % 3 == 0: os._exit(0)\n        return call_sut(row['q']).text")
    with model_server(lambda key, body: (200, completion(), 0.05)) as model:
        ran = run_guest(write_job(tmp_path, impl, 12, model.url, concurrency=4, max_attempts=2))
    assert [ran.results[i]["error"]["kind"] for i in (0, 3, 6, 9)] == ["crash"] * 4
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 8
    assert sum(model.keys.values()) <= 8 * 4


def test_forked_copies_neither_report_nor_survive(tmp_path: Path) -> None:
    marker = tmp_path / "pids"
    impl = scorer(
        f"""
        pid = os.fork()
        if pid == 0:
            os.setsid()
            if os.fork() == 0:
                open({str(marker)!r}, "a").write(f"{{os.getpid()}}\\n")
                time.sleep(1000)
            return 0
        return 1""".strip()
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 6, model.url))
    assert [r["score"] for r in ran.results.values()] == [1.0] * 6
    assert sum(model.keys.values()) == 6
    for pid in marker.read_text().split():
        assert not alive(int(pid))


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_subprocess_whose_pipe_a_sibling_copied_by_forking_is_tried_alone(tmp_path: Path) -> None:
    impl = scorer(
        """
        if i == 0:
            read, write = os.pipe()
            both.wait()
            both.wait()
            os.close(write)
            return 1 if os.read(read, 1) == b"" else 0
        if i == 1:
            both.wait()
            if os.fork() == 0: time.sleep(1000)
            both.wait()
        return 1""".strip(),
        head="import threading\nboth = threading.Barrier(2, timeout=0.5)\n"
        "both.wait = (lambda wait: lambda: None if both.broken else hush(wait))(both.wait)\n"
        "def hush(wait):\n    try: wait()\n    except threading.BrokenBarrierError: pass",
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 2, model.url, score_seconds=1.5))
    assert [ran.results[i]["score"] for i in (0, 1)] == [1.0, 1.0]
    assert sum(model.keys.values()) == 2


def test_what_a_scorer_prints_is_bounded_and_never_among_the_frames(tmp_path: Path) -> None:
    impl = scorer(
        """
        print('{"t":"result","index":99}')
        os.write(1, b"\\xff" * 10_000_000 if i == 0 else b"x")
        sys.stderr.write("x" * 1000)
        return 1""".strip()
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 4, model.url))
    assert sorted(ran.results) == [0, 1, 2, 3]
    assert 1000 < len(ran.log()) < 100_000
    assert ran.log().endswith("the log ends here")


def test_memory_eaten_in_score_is_that_tasks_error(tmp_path: Path) -> None:
    impl = scorer("x = bytearray(2 << 30) if i == 1 else b''; return 1")
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 5, model.url, memory_mb=256))
    assert ran.results[1]["error"]["kind"] == "memory"
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 4
    assert sum(model.keys.values()) == 5


def test_a_full_box_is_not_the_fault_of_the_task_that_meets_it(tmp_path: Path) -> None:
    impl = scorer(
        """
        if i == 1: raise BlockingIOError(11, "no process left")
        with lock:
            busy.append(i)
        time.sleep(0.1)
        crowded = len(busy) > 1
        with lock:
            busy.remove(i)
        if crowded and i < 4: raise RuntimeError("can't start new thread")
        return 1""".strip(),
        head="import threading\nlock, busy = threading.Lock(), []",
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 8, model.url, concurrency=8))
    assert ran.results[1]["error"]["type"] == "BlockingIOError"
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 7
    assert sum(model.keys.values()) == 8


def test_what_solve_returns_must_be_json(tmp_path: Path) -> None:
    impl = scorer(
        "return response == ['ok', None]",
        solve="r = call_sut(row['q']); return [object(), {1, 2}, (r.text, None), b'x', float('nan')][i]",
    )
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 5, model.url))
    assert [ran.results[i]["error"] and ran.results[i]["error"]["kind"] for i in range(5)] == [
        "scorer",
        "scorer",
        None,
        "scorer",
        None,
    ]
    assert ran.results[2]["score"] == 1.0
    assert "not JSON" in ran.results[0]["error"]["message"]


def test_nul_and_lone_surrogates_survive(tmp_path: Path) -> None:
    text = "a\0b\ud800c\x1b[31m\u2028"
    impl = scorer("return {'score': 1, 'extracted': response, 'same': response == row['want']}")
    with model_server(lambda key, body: (200, completion(text), 0.0)) as model:
        ran = run_guest(write_job(tmp_path, impl, [{"row": {"q": "\udfff", "i": 0, "want": text}}], model.url))
    assert ran.of("response")[0]["response"] == text
    assert ran.of("response")[0]["prompt"] == "\udfff"
    assert ran.results[0]["extracted"] == text
    assert ran.results[0]["meta"]["same"] is True


def test_model_errors_are_retried_with_the_next_key_and_keep_their_words(tmp_path: Path) -> None:
    def reply(key: str, body: dict) -> tuple:
        if key.startswith("k-0-") and key != "k-0-2":
            return 503, {"error": {"message": "try later", "type": "upstream_error"}}, 0.0
        if key.startswith("k-1-"):
            return 401, {"error": {"message": "wrong key", "type": "upstream_auth"}}, 0.0
        if key.startswith("k-2-"):
            return 500, b"<html>oops</html>", 0.0
        return 200, completion(), 0.0

    with model_server(reply) as model:
        ran = run_guest(write_job(tmp_path, PLAIN, 4, model.url, max_attempts=2))
    assert (ran.results[0]["score"], ran.results[0]["attempts"]) == (1.0, 2)
    wrong_key = ran.results[1]["error"]
    assert (wrong_key["kind"], wrong_key["type"], wrong_key["message"]) == ("model", "upstream_auth", "wrong key")
    assert model.keys["k-1-1"] == 1
    assert model.keys["k-1-2"] == 0
    assert ran.results[2]["error"]["kind"] == "model"
    assert {(f["index"], f["attempt"]) for f in ran.of("attempt_failed")} == {(0, 1), (2, 1)}


def test_no_answer_is_a_fail_with_its_reason(tmp_path: Path) -> None:
    answers = [
        completion(None),
        completion(None, refusal="I will not"),
        completion("x", "content_filter"),
        completion("half an ans", "length"),
        completion("", "length"),
    ]
    impl = scorer("return {'score': float(response.strip()[0] == 'z')}")
    with model_server(lambda key, body: (200, answers[int(key.split("-")[1])], 0.0)) as model:
        ran = run_guest(write_job(tmp_path, impl, 5, model.url))
    assert [ran.results[i]["score"] for i in range(5)] == [0.0] * 5
    assert [ran.results[i]["no_answer"] for i in range(5)] == [
        "empty",
        "refused",
        "content_filter",
        "truncated",
        "truncated",
    ]
    assert ran.results[3]["meta"]["truncated"] is True


def test_the_request_carries_what_the_scorer_asked_for(tmp_path: Path) -> None:
    impl = scorer(
        "return response['tool_calls'] == [{'id': 'c1', 'name': 'f', 'arguments': {'x': 1}}]",
        solve="""return call_sut([{"role": "user", "content": "q"}], tools=[{"type": "function"}], stop=["\\n"],
            response_format={"type": "json_object"}, logprobs=5)""",
    )
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    with model_server(lambda key, body: (200, completion(None, tool_calls=[call]), 0.0)) as model:
        ran = run_guest(write_job(tmp_path, impl, 1, model.url))
    assert ran.results[0]["score"] == 1.0
    assert ran.results[0]["no_answer"] is None
    assert model.bodies[0] == {
        "messages": [{"role": "user", "content": "q"}],
        "tools": [{"type": "function"}],
        "response_format": {"type": "json_object"},
        "stop": ["\n"],
        "logprobs": True,
        "top_logprobs": 5,
    }


@pytest.mark.parametrize(
    ("impl", "words"),
    [
        ("import nothing_like_this", "nothing_like_this"),
        ("x = 1", "no class TaskImpl"),
        ("class TaskImpl:\n    def solve(self, row, call_sut): ...\n    def score(self, row, r): ...", "extract"),
        ("import os\nos._exit(0)", "cannot be imported"),
        ("def f(:", "invalid syntax"),
    ],
)
def test_a_scorer_that_cannot_be_imported_says_so_for_each_task(tmp_path: Path, impl: str, words: str) -> None:
    ran = run_guest(write_job(tmp_path, impl, 3))
    assert ran.code == 3
    assert ran.frames[-1] == {"t": "done"}
    assert len(ran.results) == 3
    assert all(words in r["error"]["message"] for r in ran.results.values())


def test_sigterm_takes_no_new_task_and_lets_those_in_flight_end(tmp_path: Path) -> None:
    with model_server(lambda key, body: (200, completion(), 0.4)) as model:
        job = write_job(tmp_path, PLAIN, 50, model.url, concurrency=4)
        process = subprocess.Popen([sys.executable, "-I", str(RUNNER), str(job)], stdout=subprocess.PIPE)
        until = time.monotonic() + 10
        while not model.keys and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=10)
    frames = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 0
    assert sum(1 for f in frames if f["t"] == "result") == 4
    assert frames[-1] == {"t": "done", "left": 46, "stopped": True}


def test_a_stop_command_is_heard_and_an_end_of_input_is_not(tmp_path: Path) -> None:
    with model_server(lambda key, body: (200, completion(), 0.2)) as model:
        job = write_job(tmp_path, PLAIN, 50, model.url, concurrency=2)
        process = subprocess.Popen(
            [sys.executable, "-I", str(RUNNER), str(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        until = time.monotonic() + 10
        while not model.keys and time.monotonic() < until:
            time.sleep(0.02)
        out, _ = process.communicate(b'not json\n{"op":"stop"}\n', timeout=10)
    assert json.loads(out.splitlines()[-1])["stopped"] is True


def test_the_runner_dies_with_its_supervisor(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    impl = scorer("return 1", solve=f"open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(1000)")
    process = subprocess.Popen(
        [sys.executable, "-I", str(RUNNER), str(write_job(tmp_path, impl, 1))], stdout=subprocess.DEVNULL
    )
    until = time.monotonic() + 10
    while not (marker.exists() and marker.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + 3
    while alive(int(marker.read_text())) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(int(marker.read_text()))


@pytest.mark.parametrize("hang", ["await asyncio.sleep(1000)", "while True: pass", "time.sleep(1000)"])
def test_a_coroutine_that_hangs_is_ended_alone(tmp_path: Path, hang: str) -> None:
    impl = f"""
    import asyncio, time
    class TaskImpl:
        def extract(self, row):
            return row["q"]
        async def solve(self, row, call_sut):
            if row["i"] == 2:
                {hang}
            return (await call_sut(row["q"])).text
        def score(self, row, response):
            return 1
    """
    with model_server() as model:
        ran = run_guest(write_job(tmp_path, impl, 8, model.url, attempt_seconds=0.5))
    assert ran.results[2]["error"]["kind"] == "timeout"
    assert sum(1 for r in ran.results.values() if r["score"] == 1.0) == 7
    assert ran.seconds < 8


def test_a_job_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    ran = run_guest(write_job(tmp_path, PLAIN, 1, concurrency=0))
    assert ran.code == 2
    assert "'concurrency'" in ran.stderr
