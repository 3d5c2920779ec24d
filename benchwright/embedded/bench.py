"""`./bw bench [NAME] [--json …]`: hands over to `benchmarks/`, with a state that holds nobody's runs."""

from __future__ import annotations

import os
import subprocess
import sys

from benchwright.lib.paths import ROOT, state_dir


def main(argv: list[str]) -> int:
    """The benchmark's exit code."""
    env = {**os.environ, "BENCHWRIGHT_STATE": str(state_dir() / "bench"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    try:
        return subprocess.call([sys.executable, "-m", "benchmarks", *argv], cwd=ROOT, env=env)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
