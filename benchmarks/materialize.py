"""Tasks a second through sandbox, proxy and log, as ratios to a floor measured in the same run.

    ./bw bench materialize [--json] [--tasks 1000] [--quick]

The floor is a bare client calling the same provider at the same concurrency; the ideal is tasks × latency / in flight.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.client import Api
from benchmarks.cpu import CpuMeter

SHAPES = ((32, 20), (128, 20), (32, 100), (128, 100))


@dataclass
class Figure:
    """One shape. Seconds; `over_ideal`, `over_floor` are ratios of `wall_s`; CPU is over all our processes."""

    in_flight: int
    latency_ms: int
    tasks: int
    ideal_s: float
    floor_s: float
    wall_s: float
    over_ideal: float
    over_floor: float
    cpu_s_per_1000: float
    launch_to_first_call_s: float
    launch_to_receipt_s: float
    worker_mb: float
    requests: int
    cpu_by: dict[str, float]
    run: str


class Provider:
    """The mock provider as a process of its own."""

    def __init__(self, latency_ms: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mock_provider", "--port", "0", "--latency-ms", str(latency_ms)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip().split()[-1]
        self.pid = self._process.pid

    def stats(self) -> dict[str, Any]:
        """What it counted."""
        root = self.url.removesuffix("/v1")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{root}/stats") as answer:
            out: dict[str, Any] = json.load(answer)
            return out

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait()


def rows(count: int) -> bytes:
    """Sums as a dataset: `count` rows."""
    lines = []
    for i in range(count):
        a, b = 13 + i * 7 % 991, 29 + i * 13 % 983
        lines.append(
            json.dumps({"question": f"What is {a} + {b}?", "answer": f"{a} plus {b} makes {a + b}.\n#### {a + b}"})
        )
    return "\n".join(lines).encode()


def prepare(api: Api, count: int) -> dict[str, Any]:
    """Launches the set once with the oracle, so that later launches are pinned and warm. Returns the pinned keys."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sums-{count}.jsonl"
        path.write_bytes(rows(count))
        upload = api.upload(path)
    run = api.wait(
        api.launch(prompt="Sums of two numbers", files=[upload], model="control/oracle", concurrency=128)["id"]
    )
    if run["display_status"] != "ok" or run["score"]["accuracy"] != 1.0:
        raise SystemExit(
            f"the set could not be prepared: {run['url']} {run['display_status']} {run['error'] or run['halt_reason']}"
        )
    return {"benchmark": run["benchmark_id"], "subset": run["subset_id"], "impl": run["impl_id"]}


def measure(api: Api, pinned: dict[str, Any], tasks: int, in_flight: int, latency_ms: int) -> Figure:
    """One shape: the floor first, then the run."""
    provider = Provider(latency_ms)
    try:
        floor = json.loads(
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.floor",
                    provider.url,
                    "--tasks",
                    str(tasks),
                    "--concurrency",
                    str(in_flight),
                ],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        before = provider.stats()["calls"]
        with CpuMeter([provider.pid]) as meter:
            run = api.launch(
                model={"source": "endpoint", "identifier": "mock", "base_url": provider.url},
                concurrency=in_flight,
                **pinned,
            )
            run = api.wait(run["id"], every=0.4)
        requests = provider.stats()["calls"] - before
    finally:
        provider.close()
    if run["display_status"] != "ok" or run["tasks"]["settled"] != tasks:
        raise SystemExit(f"{run['url']}: {run['display_status']} {run['tasks']} {run['error']}")
    events = api.events(
        run["id"], "RunLaunched,MaterializeStarted,MaterializeTaskAggregated,PipelineFinished,ModelProxyArtifact"
    )
    at = {e["type"]: _time(e["at"]) for e in events}  # the last of each type
    wall, ideal = at["MaterializeTaskAggregated"] - at["MaterializeStarted"], tasks * latency_ms / 1000 / in_flight
    return Figure(
        in_flight=in_flight,
        latency_ms=latency_ms,
        tasks=tasks,
        ideal_s=round(ideal, 3),
        floor_s=round(floor["wall_s"], 3),
        wall_s=round(wall, 3),
        over_ideal=round(wall / ideal, 2),
        over_floor=round(wall / floor["wall_s"], 2),
        cpu_s_per_1000=round(meter.seconds * 1000 / tasks, 2),
        launch_to_first_call_s=round(at["ModelProxyArtifact"] - at["RunLaunched"], 2),
        launch_to_receipt_s=round(at["PipelineFinished"] - at["RunLaunched"], 2),
        worker_mb=round(meter.worker_mb, 1),
        requests=requests,
        cpu_by=meter.by_name(),
        run=run["url"],
    )


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def main(argv: list[str] | None = None) -> int:
    """Prints the figures; exit 0."""
    parser = argparse.ArgumentParser(prog="bw bench materialize")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--shapes", help="in flight × latency, such as 32x100,128x20")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    shapes = [tuple(map(int, s.split("x"))) for s in args.shapes.split(",")] if args.shapes else SHAPES
    api = Api()
    pinned, figures = prepare(api, args.tasks), []
    for in_flight, latency_ms in shapes:
        figure = measure(api, pinned, args.tasks, in_flight, latency_ms)
        figures.append(figure)
        if not args.json:
            print(
                f"{in_flight} in flight × {latency_ms} ms: {figure.wall_s:6.2f} s = {figure.over_ideal:4.2f} × ideal, "
                f"{figure.over_floor:5.2f} × floor; CPU {figure.cpu_s_per_1000:5.2f} s/1,000; first call after "
                f"{figure.launch_to_first_call_s} s, receipt after {figure.launch_to_receipt_s} s; {figure.cpu_by}",
                flush=True,
            )
    if args.json:
        print(json.dumps([asdict(f) for f in figures], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
