"""Run tasks with a scorer inside a sandbox: `run_tasks.py job.json`, frames as JSON lines on standard output.

Exit codes: 0 done (whatever the tasks gave), 1 nobody reads the frames, 2 the job is unusable, 3 the scorer cannot be
imported (every task says so).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module


def find_package() -> None:
    """Make this folder importable as `guest`, whatever else has that name.

    What lies beside it (the scoring helpers) stays importable, after the standard library and the scorer's packages.
    """
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, beside)
    import_module("guest")
    sys.path.remove(beside)
    sys.path.append(beside)


def main(argv: list[str]) -> int:
    """The command line."""
    if len(argv) != 2:
        print("usage: run_tasks.py job.json", file=sys.stderr)
        return 2
    find_package()
    job = import_module("guest.job")
    supervisor = import_module("guest.supervisor")
    try:
        settings = job.read_job(argv[1])
        # The frames go out by a descriptor of their own: a stray print cannot land among them.
        out_fd = os.dup(1)
        os.dup2(2, 1)
        code: int = supervisor.Supervisor(settings, out_fd).run()
    except (job.BadJob, OSError) as error:
        print(f"run_tasks: {error}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    os._exit(main(sys.argv))
