"""What the API answers, typed. Every object keeps the whole answer in `raw`: new keys lose nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

ENDED = frozenset({"ok", "error", "killed", "halted"})
PARKED = frozenset({"waiting", "paused"})  # a person can make them go on


@dataclass(frozen=True)
class Score:
    """`accuracy` = passed / (passed + failed); None before anything could be scored. `interval`: 95 %, Wilson.

    `coverage` = settled / selected. `band`: the rate if every error were a fail, and if every error were a pass.
    """

    accuracy: float | None
    interval: tuple[float, float] | None
    n: int
    passed: int
    failed: int
    errored: int
    mean: float | None
    stderr: float | None
    coverage: float | None
    band: tuple[float | None, float | None]


@dataclass(frozen=True)
class Cost:
    """Dollars, exact; None is unknown, never zero."""

    model: Decimal | None
    driver: Decimal | None
    sandbox: Decimal | None
    incurred: Decimal | None
    unknown_calls: int
    requests: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Counts:
    """Tasks of the latest sweep."""

    selected: int = 0
    settled: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0


@dataclass(frozen=True)
class RunData:
    """One run, as it was when it was asked for. `status` is the one to show: running, ok, error, killed, paused,
    waiting or halted.
    """

    id: str
    title: str
    url: str
    status: str
    model: str
    created_at: datetime
    finished_at: datetime | None
    score: Score | None
    cost: Cost
    counts: Counts
    raw: dict[str, Any] = field(repr=False)

    @property
    def ended(self) -> bool:
        """Nothing more will happen."""
        return self.status in ENDED

    @property
    def parked(self) -> bool:
        """It waits for a person."""
        return self.status in PARKED

    @property
    def question(self) -> str | None:
        """What it asks while it waits."""
        return self.raw.get("review_reason")

    @property
    def error(self) -> dict[str, Any] | None:
        """{phase, type, detail, hint} of a run that ended in error."""
        return self.raw.get("error")


@dataclass(frozen=True)
class Event:
    """One event of a log. `digest` is its link in the chain."""

    seq: int
    type: str
    at: datetime
    data: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class Task:
    """One task of the latest sweep. `outcome`: pass, fail, err or running."""

    index: int
    outcome: str
    score: float | None
    latency_ms: float | None
    raw: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Upload:
    """A file that a launch can name in `files`."""

    id: str
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Benchmark:
    """A registered benchmark."""

    id: str
    name: str
    description: str
    visibility: str
    subsets: tuple[dict[str, Any], ...]
    raw: dict[str, Any] = field(repr=False)


def time_of(text: str) -> datetime:
    """From ISO 8601 with `Z`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def money_of(text: str | None) -> Decimal | None:
    """Exact; None stays unknown."""
    return None if text is None else Decimal(text)


def score_of(given: dict[str, Any] | None) -> Score | None:
    """The typed score of an answer."""
    if given is None:
        return None
    interval = given.get("interval")
    low, high = given.get("band") or (None, None)
    return Score(
        accuracy=given["accuracy"],
        interval=(interval[0], interval[1]) if interval else None,
        n=given["n"],
        passed=given["passed"],
        failed=given["failed"],
        errored=given["errored"],
        mean=given.get("mean"),
        stderr=given.get("stderr"),
        coverage=given.get("coverage"),
        band=(low, high),
    )


def cost_of(given: dict[str, Any]) -> Cost:
    """The typed cost of an answer."""
    return Cost(
        model=money_of(given.get("model_usd")),
        driver=money_of(given.get("driver_usd")),
        sandbox=money_of(given.get("sandbox_usd")),
        incurred=money_of(given.get("incurred_usd")),
        unknown_calls=int(given.get("unknown_calls") or 0),
        requests=int(given.get("requests") or 0),
        tokens_in=int(given.get("tokens_in") or 0),
        tokens_out=int(given.get("tokens_out") or 0),
    )


def run_fields(given: dict[str, Any]) -> dict[str, Any]:
    """What `RunData` is made of, from a run or a row of the list."""
    tasks = given.get("tasks") or {}
    score = score_of(given.get("score"))
    names = ("selected", "settled", "passed", "failed", "errored")
    known = tasks or ({n: getattr(score, n) for n in ("passed", "failed", "errored")} if score else {})
    return {
        "id": given["id"],
        "title": given["title"],
        "url": given["url"],
        "status": given["display_status"],
        "model": given["model"]["identifier"],
        "created_at": time_of(given["created_at"]),
        "finished_at": time_of(given["finished_at"]) if given.get("finished_at") else None,
        "score": score,
        "cost": cost_of(given["cost"]),
        "counts": Counts(**{n: int(known.get(n) or 0) for n in names}),
        "raw": given,
    }


def event_of(given: dict[str, Any]) -> Event:
    """The typed event of an answer."""
    return Event(given["seq"], given["type"], time_of(given["at"]), given["data"], given["digest"])


def task_of(given: dict[str, Any]) -> Task:
    """The typed task of an answer."""
    return Task(given["index"], given["outcome"], given["score"], given.get("latency_ms"), given)


def upload_of(given: dict[str, Any]) -> Upload:
    """The typed upload of an answer."""
    return Upload(given["id"], given["name"], given["bytes"], given["sha256"])


def benchmark_of(given: dict[str, Any]) -> Benchmark:
    """The typed benchmark of an answer."""
    subsets = tuple(given.get("subsets") or ())
    return Benchmark(
        given["id"], given["name"], given.get("description") or "", given.get("visibility") or "", subsets, given
    )
