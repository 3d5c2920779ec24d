"""The job file, and the task lines it names."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple


class BadJob(Exception):
    """The job file cannot be used; the message says which key."""


class Job(NamedTuple):
    """What to run. Times in seconds; `memory_mb` bounds the data of the scorer's process."""

    impl: str
    tasks: str
    base_url: str
    concurrency: int = 32
    attempt_seconds: float = 600.0
    task_seconds: float | None = None  # for all attempts of a trial together
    score_seconds: float = 60.0
    import_seconds: float = 120.0
    memory_mb: int = 1024
    max_attempts: int = 1
    log_bytes: int = 64 << 10
    path: tuple[str, ...] = ()


_NUMBERS = {
    "concurrency": (1, 1024),
    "attempt_seconds": (0.05, 86_400),
    "task_seconds": (0.001, 1e9),
    "score_seconds": (0.05, 86_400),
    "import_seconds": (0.05, 86_400),
    "memory_mb": (64, 1 << 20),
    "max_attempts": (1, 100),
    "log_bytes": (0, 16 << 20),
}


def read_job(path: str) -> Job:
    """Parse and check a job file. Raises BadJob; unknown keys are left to newer runners."""
    try:
        with open(path, encoding="utf-8") as file:
            raw: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise BadJob(f"cannot read {path}: {error}") from None
    if not isinstance(raw, dict):
        raise BadJob("the job is not an object")
    given = {name: raw[name] for name in Job._fields if raw.get(name) is not None}
    for name in ("impl", "tasks", "base_url"):
        if not isinstance(given.get(name), str):
            raise BadJob(f"'{name}' is missing")
    for name, (low, high) in _NUMBERS.items():
        value = given.get(name, low)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise BadJob(f"'{name}' must be a number from {low} to {high}")
    given["path"] = tuple(given.get("path", ()))
    return Job(**given)


class Tasks:
    """Task lines, read when they are needed: only their places are held in memory."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._places: list[tuple[int, int]] = []
        with open(path, "rb") as file:
            at = 0
            for line in file:
                if line.strip():
                    self._places.append((at, len(line)))
                at += len(line)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, item: int) -> dict[str, Any]:
        at, length = self._places[item]
        task: dict[str, Any] = json.loads(os.pread(self._file, length, at))
        return task


def stored_answer(task: dict[str, Any]) -> dict[str, Any]:
    """The response frame that a task line brings along, or {}.

    Either a frame as this runner printed it (it has "response" and "attempt") or the bare value of `solve`.
    """
    if "response" not in task or (task["response"] is None and not task.get("answered")):
        return {}
    answer = task["response"]
    if isinstance(answer, dict) and "response" in answer and "attempt" in answer:
        return answer
    return {"response": answer, "attempt": 1}
