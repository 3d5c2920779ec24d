"""Load a scorer file and put it under limits. Runs in the process that the scorer may take down."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Sequence
from typing import Any


class BadImpl(Exception):
    """The scorer file has no usable TaskImpl; the message says what is missing."""


def load_impl(path: str, extra_path: Sequence[str] = ()) -> Any:
    """Import the file and make its TaskImpl. Raises whatever the file raises, and BadImpl."""
    for entry in (*extra_path, os.path.dirname(os.path.abspath(path))):
        if entry not in sys.path:
            sys.path.append(entry)
    with open(path, "rb") as file:
        source = file.read()
    module = types.ModuleType("task_impl")
    module.__file__ = path
    sys.modules["task_impl"] = module
    # Never from a cache: a scorer written anew in the same second, of the same size, would be taken for the old one.
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    made = getattr(module, "TaskImpl", None)
    if not isinstance(made, type):
        raise BadImpl("the file defines no class TaskImpl")
    impl = made()
    for name in ("extract", "solve", "score"):
        if not callable(getattr(impl, name, None)):
            raise BadImpl(f"TaskImpl has no method {name}")
    return impl


def is_async(function: Any) -> bool:
    """Whether it is an `async def`, behind decorators too."""
    while True:
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & 0x80:
            return True
        if not hasattr(function, "__wrapped__"):
            return False
        function = function.__wrapped__


def limit_memory(megabytes: int, threads: int, stack_bytes: int) -> None:
    """Bound the process's data, so that a greedy scorer meets MemoryError and not the kernel."""
    import resource

    with open("/proc/self/statm") as file:
        now = int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    limit = now + (megabytes << 20) + threads * stack_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def prefer_oom_victim() -> None:
    """When the kernel must kill something, it is the scorer and not the process that reports about it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def prctl(option: int, value: int) -> None:
    """One Linux process control; where it cannot be had, things go on without it."""
    try:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
