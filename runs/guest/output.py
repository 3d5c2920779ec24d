"""What a scorer prints: into a pipe that the supervisor bounds."""

from __future__ import annotations

import os
import sys


def redirect_output(log_fd: int) -> None:
    """Standard input is empty, standard output and error go to the log pipe."""
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(log_fd)
    # They stay open as long as the process lives.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def flush_output() -> None:
    """Best effort: a scorer may have closed or replaced them."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            continue
