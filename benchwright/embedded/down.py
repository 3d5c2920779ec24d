"""`./bw down`: stops what `up` or `demo` started, and what a killed one left behind. Works without the environment
too.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from benchwright.embedded import runfiles
from benchwright.lib.paths import state_dir

STOP_SECONDS = 60.0


def main() -> int:
    """0 = nothing is running now; 1 = something would not stop."""
    pid = runfiles.supervisor_pid()
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while runfiles.supervisor_pid() is not None:
            if time.monotonic() > deadline:
                print(f"The supervisor (process {pid}) has not stopped within {STOP_SECONDS:.0f} s.")
                return 1
            time.sleep(0.05)
        print("Stopped.")
        return 0
    if not state_dir().exists():
        print("Nothing is running.")
        return 0
    orphans = runfiles.end_orphans()
    try:
        from benchwright.embedded.services import Services
    except ModuleNotFoundError:  # no database driver: nothing was ever installed, so no server of ours can run
        services = []
    else:
        services = Services().stop_unused()
    runfiles.clear()
    print(f"Stopped what was left: {', '.join(orphans + services)}." if orphans or services else "Nothing is running.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
