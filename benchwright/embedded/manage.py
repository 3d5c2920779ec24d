"""`./bw manage COMMAND …`: manage.py with the services running, started for the occasion when nothing is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from benchwright.embedded import runfiles
from benchwright.embedded.binaries import ServiceFailed
from benchwright.embedded.services import Services
from benchwright.lib.paths import ROOT, state_dir


def main(argv: list[str]) -> int:
    """manage.py's exit code."""
    # Ctrl-C reaches manage.py as well; we wait for its end and then let go of the services.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with Services().used() as env:
            env["BENCHWRIGHT_STATE"] = str(state_dir())
            # Links that a command prints must lead to the server that is up, whichever port it found.
            if runfiles.supervisor_pid() and (url := runfiles.read_status().get("url")):
                env["BENCHWRIGHT_BASE_URL"] = str(url)
            return subprocess.call([sys.executable, str(ROOT / "manage.py"), *argv], env={**os.environ, **env})
    except ServiceFailed as failure:
        print(failure, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
