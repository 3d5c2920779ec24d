"""The guest runner where it belongs: in a work sandbox, with a scorer that attacks the box."""

from __future__ import annotations

import json

from sandboxes.backends.base import Network
from sandboxes.backends.local.client import LocalBackend
from sandboxes.vocabulary import Role

HOSTILE = """
import ctypes, os, subprocess, time

class TaskImpl:
    def extract(self, row):
        return "q"

    def solve(self, row, call_sut):
        return "ok"

    def score(self, row, response):
        i = row["i"]
        if i == 1:
            os._exit(3)
        if i == 2:
            ctypes.string_at(0)
        if i == 3:
            bytearray(3 << 30)
        if i == 4 and os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        if i == 5:
            return subprocess.run(["/bin/echo", "hi"], capture_output=True).stdout == b"hi\\n"
        if i == 19:
            time.sleep(1)  # the others are through by then: what is to be seen is that the box survives
            while True:
                os.fork()
        return 1
"""


def test_a_scorer_that_attacks_its_box_costs_only_its_own_tasks(backend: LocalBackend) -> None:
    work = backend.create(role=Role.WORK, labels={"test": "guest"}, network=Network("deny", (), (), ()))
    try:
        tasks = [json.dumps({"index": i, "trial": 0, "row": {"i": i}, "keys": ["k"]}) for i in range(20)]
        job = {
            "impl": "/workspace/task_impl.py",
            "tasks": "/workspace/.bw/1/tasks.jsonl",
            "concurrency": 8,
            "base_url": "http://127.0.0.1:4000/v1",
            "score_seconds": 15,
            "memory_mb": 600,
        }
        work.write("/workspace/task_impl.py", HOSTILE.encode())
        work.write("/workspace/.bw/1/tasks.jsonl", "\n".join(tasks).encode())
        work.write("/workspace/.bw/1/job.json", json.dumps(job).encode())
        done = work.run(
            'exec "$BW_PYTHON" -I /opt/benchwright/guest/run_tasks.py /workspace/.bw/1/job.json', timeout=120
        )
        frames = [json.loads(line) for line in done.stdout.splitlines()]
        results = {f["index"]: f for f in frames if f["t"] == "result"}
        assert done.code == 0, done.stderr
        assert sorted(results) == list(range(20))
        kinds = {i: r["error"]["kind"] for i, r in results.items() if r["error"]}
        assert {i: kinds.pop(i, None) for i in (1, 2, 3)} == {1: "crash", 2: "crash", 3: "memory"}
        assert set(kinds) == {19}
        assert all(r["score"] == 1.0 for i, r in results.items() if i not in (1, 2, 3, 19))
        left = work.run("ls /proc | grep -c '^[0-9]'").stdout
        assert int(left) < 10, "what the scorer forked is still there"
    finally:
        work.kill()
