"""`./bw bench NAME …`: one benchmark against a Benchwright of its own.

Or against BENCHWRIGHT_URL with BENCHWRIGHT_API_KEY, when they are set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import anchors, leaderboard, materialize, pages
from tests.stack import Stack

NAMES: dict[str, Callable[[list[str]], int]] = {
    "anchors": anchors.main,  # published scores, reproduced
    "leaderboard": leaderboard.main,  # a board over a million run summaries, at the database
    "materialize": materialize.main,  # tasks a second, against ideal and floor
    "pages": pages.main,  # the run page with 10,000 tasks
}


def main(argv: list[str]) -> int:
    """The benchmark's exit code; 2 for a name that is none."""
    if not argv or argv[0] not in NAMES:
        print(f"usage: ./bw bench {{{'|'.join(NAMES)}}} [--json] …", file=sys.stderr)
        return 2
    run, rest = NAMES[argv[0]], argv[1:]
    if os.environ.get("BENCHWRIGHT_URL"):
        return run(rest)
    folder = Path(os.environ["BENCHWRIGHT_STATE"])
    folder.mkdir(parents=True, exist_ok=True)
    with Stack(folder) as stack:
        told = json.loads(stack.manage("bootstrap", "--json").strip().splitlines()[-1])
        os.environ.update(
            BENCHWRIGHT_URL=stack.url,
            BENCHWRIGHT_API_KEY=told["api_key"],
            BENCHWRIGHT_STATE=stack.env["BENCHWRIGHT_STATE"],
        )
        return run(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
