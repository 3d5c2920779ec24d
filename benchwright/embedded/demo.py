"""`./bw demo`: everything started, one real benchmark launched and followed here, then a place to look around."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchwright.embedded.background import Background, BackgroundFailed
from benchwright.embedded.client import Api, ApiFailed
from benchwright.embedded.follow import Follower, summary, why
from benchwright.embedded.services import prepare_state
from benchwright.embedded.small_model import IDENTIFIER, ModelUnavailable, SmallModel, install
from benchwright.lib.local_models import served
from benchwright.lib.paths import state_dir

BENCHMARK = "sample-arithmetic"
RUN_SECONDS = 600.0
CONTROL = {"source": "control", "identifier": "control/oracle"}


def main(argv: list[str] | None = None) -> int:
    """0 = the run ended ok; 1 = it did not, or nothing started; 130 = interrupted before the end."""
    parser = argparse.ArgumentParser(
        prog="./bw demo", description="Set up, start, run one real benchmark and follow it."
    )
    parser.add_argument("--exit", action="store_true", help="stop everything once the run has ended")
    parser.add_argument(
        "--control", action="store_true", help="don't get the small model; let the labelled oracle answer"
    )
    parser.add_argument("--benchmark", default=BENCHMARK, help=f"a registered benchmark (default {BENCHMARK})")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    prepare_state(state_dir())
    try:
        with contextlib.ExitStack() as stack:
            return _demo(options, stack)
    except (BackgroundFailed, ApiFailed) as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
        return 130


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _demo(options: argparse.Namespace, stack: contextlib.ExitStack) -> int:
    began = time.monotonic()
    print("Starting Benchwright …", flush=True)
    background = stack.enter_context(Background())
    print(f"Benchwright is up at {background.url}" + (" (it was already)." if background.already else "."), flush=True)
    access = background.access()
    model = CONTROL if options.control else stack.enter_context(_small_model())
    api = Api(access.url, access.api_key)
    run = api.launch({
        "benchmark": options.benchmark, "model": model,
        "concurrency": 32 if model is CONTROL else 2,  # the small model has two slots
    })  # fmt: skip
    print(f"\n{options.benchmark} × {model['identifier']}   {run.get('url', '')}", flush=True)
    try:
        ended = Follower(api).follow(str(run["id"]), RUN_SECONDS, lambda: background.alive)
    except KeyboardInterrupt:
        with contextlib.suppress(ApiFailed):
            api.halt(str(run["id"]))
        raise
    if ended is None:
        print(f"\nThe run did not end within {RUN_SECONDS:.0f} s. The log: {background.log}", file=sys.stderr)
        code = 1
    else:
        print()
        for line in summary(ended):
            print(line)
        code = 0 if ended.get("display_status") == "ok" else 1
        if code:
            print(f"The run ended {ended.get('display_status')}: {why(ended)}", file=sys.stderr)
    print(f"\nFrom the command to here: {time.monotonic() - began:.0f} s.", flush=True)
    if options.exit:
        return code
    print(f"Look around: sign in once with {access.sign_in}\nCtrl-C stops everything.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while background.alive:
            time.sleep(0.2)
    print("\nStopping …", flush=True)
    return code


@contextlib.contextmanager
def _small_model() -> Iterator[dict[str, Any]]:
    """The model's launch block: the small real one when this machine can have it, else the labelled oracle."""
    with contextlib.ExitStack() as stack:
        try:
            if not _installed():
                print("Getting a small real model, SmolLM2-135M (about 130 MB, once) …", flush=True)
            server = stack.enter_context(SmallModel(install()))
        except ModelUnavailable as reason:
            print(
                f"No small model here: {reason}.\nThe control `oracle` answers instead: it knows the answers.",
                flush=True,
            )
            yield CONTROL
            return
        stack.enter_context(served(IDENTIFIER, "SmolLM2-135M-Instruct, on this machine", server.base_url))
        print(
            "The model is SmolLM2-135M-Instruct on this machine's CPU: real, but weak. Expect a low score.", flush=True
        )
        yield {
            "source": "endpoint", "identifier": IDENTIFIER, "base_url": server.base_url,
            "params": {"temperature": 0, "max_tokens": 64},
            # It runs on the reader's own machine; nobody sends a bill.
            "price": {"input_per_token": "0", "output_per_token": "0"},
        }  # fmt: skip


def _installed() -> bool:
    return Path(state_dir() / "model-venv" / "benchwright.json").exists()


if __name__ == "__main__":
    sys.exit(main())
