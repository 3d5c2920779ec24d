"""One run on the terminal: phases as they end, a bar that moves, the score at the end. Standard library only."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, TextIO

from benchwright.embedded.client import Api, ApiFailed, ApiObject
from benchwright.embedded.logs import colours_wanted

# Nothing more will happen by itself. A waiting run would start when what it waits for is there; a demo does not wait.
ENDED = {"ok", "error", "killed", "halted"}
STANDING = {"paused", "waiting"}
STANDING_SECONDS = 5.0
POLL_SECONDS = 0.3
BAR = 28
_MARKS = {"ok": "✓", "cached": "✓", "failed": "✗", "skipped": "·"}


class Follower:
    """Prints to `out`; on a terminal the last line is redrawn in place, elsewhere only what is new is printed."""

    def __init__(self, api: Api, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.api, self.clock = api, clock
        self.out = out or sys.stdout
        self.live = self.out.isatty()
        self.colour = colours_wanted() if out is None else False
        self._told: set[str] = set()
        self._tenths = -1

    def follow(self, run_id: str, seconds: float, alive: Callable[[], bool] = lambda: True) -> ApiObject | None:
        """Until the run has ended; its last state, or None when time ran out or the server went away."""
        deadline = self.clock() + seconds
        silent_since: float | None = None
        standing_since: float | None = None
        while self.clock() < deadline and alive():
            try:
                run = self.api.run(run_id)
            except ApiFailed as failure:
                if failure.status is not None and failure.status < 500:
                    raise
                silent_since = silent_since or self.clock()
                if self.clock() - silent_since > 30:  # a restarted web process is back long before that
                    return None
            else:
                silent_since = None
                self._show(run)
                status = str(run.get("display_status"))
                standing_since = (standing_since or self.clock()) if status in STANDING else None
                if status in ENDED or (standing_since and self.clock() - standing_since > STANDING_SECONDS):
                    self._clear()
                    return run
            time.sleep(POLL_SECONDS)
        self._clear()
        return None

    def _show(self, run: ApiObject) -> None:
        for phase in run.get("phases") or []:
            self._phase(phase)
        tasks = run.get("tasks") or {}
        total, settled = tasks.get("selected") or tasks.get("total"), tasks.get("settled") or 0
        if not total:
            current = next((p["phase"] for p in run.get("phases") or [] if p.get("status") == "running"), "starting")
            if self.live:
                self._redraw(f"  … {current}")
            return
        text = bar(int(settled), int(total)) + counts(tasks)
        if self.live:
            self._redraw(text)
        elif int(settled) * 10 // int(total) != self._tenths:
            self._tenths = int(settled) * 10 // int(total)
            self._print(text)

    def _phase(self, phase: ApiObject) -> None:
        status, name = str(phase.get("status")), str(phase.get("phase"))
        if status not in _MARKS or name in self._told:
            return
        self._told.add(name)
        self._clear()
        took = phase.get("duration_ms")
        extra = "from cache" if phase.get("cache_hit") else "" if took is None else f"{took / 1000:.1f} s"
        note = clean(str(phase.get("note") or ""))[:70]
        self._print(f"  {_MARKS.get(status, '·')} {name:<12} {extra:<11} {note}".rstrip())

    def _redraw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self.out.write("\r\x1b[K" + text[:width])
        self.out.flush()

    def _clear(self) -> None:
        if self.live:
            self.out.write("\r\x1b[K")
            self.out.flush()

    def _print(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()


def bar(settled: int, total: int) -> str:
    """`  ███▌······  12/100`."""
    eighths = min(settled * BAR * 8 // max(total, 1), BAR * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
    return f"  {drawn:·<{BAR}} {settled}/{total}"


def counts(tasks: ApiObject) -> str:
    """` · 9 passed · 2 failed · 1 errored`; what is unknown is left out."""
    names = ("passed", "failed", "errored")
    return "".join(f" · {tasks[name]} {name}" for name in names if tasks.get(name) is not None)


def summary(run: ApiObject) -> list[str]:
    """Score, interval, cost and receipt, one line each. What is unknown is called unknown, never zero."""
    lines = []
    score = run.get("score") or {}
    if score.get("accuracy") is None:
        lines.append("Score     none")
    else:
        text = f"Score     {percent(score['accuracy'])} of {score.get('n')}"
        if interval := score.get("interval"):
            text += f"   (95 % interval {percent(interval[0])} to {percent(interval[1])})"
        lines.append(text)
    cost = run.get("cost") or {}
    lines.append(f"Cost      {dollars(cost.get('model_usd'))} for the model")
    lines.append(f"Receipt   {run.get('url')}")
    return lines


def percent(value: Any) -> str:
    """0.4567 → 45.7 %."""
    return f"{float(value) * 100:.1f} %"


def dollars(value: Any) -> str:
    """Exact text in, exact text out: a price is never rounded away."""
    if value is None:
        return "unknown"
    try:
        amount = Decimal(str(value)).normalize()
    except InvalidOperation:
        return "unknown"
    return f"${amount:f}"


def why(run: ApiObject) -> str:
    """Why a run did not end well, in the API's own words."""
    error = run.get("error") or {}
    words = [error.get("detail"), error.get("hint"), run.get("review_reason"), run.get("halt_reason")]
    return clean(" ".join(str(word) for word in words if word)) or "no reason was given"


def clean(text: str) -> str:
    """Model output is hostile: no control character of it reaches the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
