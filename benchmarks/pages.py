"""The run page with many tasks: time to the first byte, bytes, and how soon a committed event is on the stream.

./bw bench pages [--tasks 10000] [--json]
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import threading
import time
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from benchmarks.client import Api
from benchmarks.materialize import prepare


def first_byte(api: Api, path: str, cookie: str, times: int = 7) -> dict[str, float]:
    """Milliseconds to the first byte (median of several) and bytes of the page; and the same for /healthz, the
    floor.
    """

    def ask(target: str) -> tuple[float, int]:
        parts = urlsplit(api.url)
        conn = http.client.HTTPConnection(parts.hostname or "", parts.port)
        began = time.perf_counter()
        conn.request("GET", target, headers={"Cookie": cookie})
        answer = conn.getresponse()
        first = answer.read(1)
        took = (time.perf_counter() - began) * 1000
        size = len(first + answer.read())
        conn.close()
        if answer.status != 200:
            raise SystemExit(f"{target} answered {answer.status}")
        return took, size

    ask(path)
    took = [ask(path) for _ in range(times)]
    floor = statistics.median(ask("/healthz")[0] for _ in range(times))
    median = statistics.median(t for t, _ in took)
    return {
        "first_byte_ms": round(median, 1),
        "bytes": took[0][1],
        "floor_ms": round(floor, 1),
        "over_floor": round(median / floor, 1),
    }


def event_delay(api: Api, pinned: dict[str, Any]) -> dict[str, float]:
    """Milliseconds from an event's commit stamp to its arrival on the API's stream, over a whole run."""
    run = api.launch(model="control/oracle", concurrency=8, **pinned)
    delays: list[float] = []

    def listen() -> None:
        parts = urlsplit(api.url)
        conn = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        conn.request("GET", f"/v1/runs/{run['id']}/events/stream", headers={"Authorization": f"Bearer {api.key}"})
        answer = conn.getresponse()
        for line in answer:
            if line.startswith(b"event: end"):
                return
            if line.startswith(b"data: {"):
                at = datetime.fromisoformat(json.loads(line[6:])["at"].replace("Z", "+00:00")).timestamp()
                delays.append((time.time() - at) * 1000)

    thread = threading.Thread(target=listen)
    thread.start()
    api.wait(run["id"])
    thread.join(30)
    delays.sort()
    return {
        "events": len(delays),
        "median_ms": round(statistics.median(delays), 1),
        "p99_ms": round(delays[int(len(delays) * 0.99)], 1),
    }


def main(argv: list[str] | None = None) -> int:
    """Prints the figures; exit 0."""
    parser = argparse.ArgumentParser(prog="bw bench pages")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    api = Api()
    pinned = prepare(api, args.tasks)
    run = api.call("GET", f"/runs?benchmark={pinned['benchmark']}&limit=1")["data"][0]
    path = urlsplit(run["url"]).path
    out = {
        "tasks": args.tasks,
        "run": run["url"],
        "page": first_byte(api, path, _session(api)),
        "stream": event_delay(api, prepare(api, 300)),
    }
    print(json.dumps(out, indent=1))
    return 0


def _session(api: Api) -> str:
    """A signed-in browser's cookie, through a one-time link."""
    import subprocess

    link = subprocess.run(
        [sys.executable, "bw", "manage", "sign_in_link"], capture_output=True, text=True, check=True
    ).stdout.strip()
    parts, target = urlsplit(api.url), urlsplit(link).path
    conn = http.client.HTTPConnection(parts.hostname or "", parts.port)
    conn.request("GET", target)
    answer = conn.getresponse()
    body = answer.read().decode()
    cookies = [v.split(";")[0] for k, v in answer.getheaders() if k.lower() == "set-cookie"]
    if not any(c.startswith("bw_session") for c in cookies):
        token = body.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        headers = {
            "Cookie": "; ".join(cookies),
            "Content-Type": "application/x-www-form-urlencoded",
            "Referer": api.url,
        }
        conn = http.client.HTTPConnection(parts.hostname or "", parts.port)
        conn.request("POST", target, f"csrfmiddlewaretoken={token}", headers)
        cookies = [v.split(";")[0] for k, v in conn.getresponse().getheaders() if k.lower() == "set-cookie"]
    return "; ".join(cookies)


if __name__ == "__main__":
    sys.exit(main())
