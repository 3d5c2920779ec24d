"""`./bw bench [NAME] [--json …]`: hands over to `benchmarks/`, with services that hold nobody's runs."""

from __future__ import annotations

import os
import subprocess
import sys

from benchwright.embedded.binaries import ServiceFailed
from benchwright.embedded.services import Services
from benchwright.lib.paths import ROOT, state_dir


def main(argv: list[str]) -> int:
    """The benchmark's exit code."""
    os.environ["BENCHWRIGHT_STATE"] = str(state_dir() / "bench")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        # Durable, as in earnest: a log without fsync would make the figures prettier than the product.
        with Services().used() as env:
            return subprocess.call([sys.executable, "-m", "benchmarks", *argv], cwd=ROOT, env={**os.environ, **env})
    except ServiceFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
