"""What a phase may touch: its run, the log, the sandboxes. Nothing else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NoReturn

from django.utils.functional import cached_property

from benchwright.lib.errors import BenchwrightError
from benchwright.lib.money import text
from runs.errors import AlreadyEnded, PhaseFailed
from runs.events.log import append, read
from runs.events.types.base import Event, Usage
from runs.events.types.driver import AgentTextEvent
from runs.events.types.phase import PhaseStarted
from runs.events.types.sandbox import HostBlocked, SandboxCreated, SandboxKilled, SnapshotCreated
from runs.limits.halt import request_halt
from runs.limits.watch import CLOCK_EVENTS
from runs.models import Run
from runs.pipeline.lease import Lease
from runs.pipeline.meter import Meter
from runs.projections.fold import PipelineState, fold
from sandboxes.backends.base import Backend, Network, Sandbox, Size
from sandboxes.backends.choose import open_backend
from sandboxes.errors import SandboxLost, SnapshotNotFound
from sandboxes.policy import network_for
from sandboxes.rates import sandbox_cost
from sandboxes.vocabulary import Role

# The per-task events of a sweep are many and don't change where the pipeline stands.
SWEEP_EVENTS = ("MaterializeTaskResult", "MaterializeTaskAggregated", "MaterializeResponse", "AttemptFailed")
MAX_RESTORES = 3
SANDBOX_DEADLINE_S = 24 * 3600
# Code-running scorers start a process for each task in flight, and threads count as processes.
WORK_SIZE = Size(cpus=2, memory_mb=2048, processes=1024)


class Halted(Exception):
    """The run is to stop now. `reason` is what the row says."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NeedsReview(Exception):
    """Only a person can decide: the run is parked with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Context:
    """One worker's hold of one run."""

    def __init__(self, run: Run, lease: Lease) -> None:
        self.run = run
        self.lease = lease
        self.state: PipelineState = fold((r.seq, r.type, r.data) for r in read(run.pk, without=SWEEP_EVENTS))
        self._boxes: dict[str, Sandbox] = {}
        self._born: dict[str, float] = {}
        self.meter = Meter(run)
        self._busy: Sandbox | None = None  # the sandbox whose command this worker waits for
        self._stopped: set[str] = set()
        lease.on_beat = self._beat

    @cached_property
    def backend(self) -> Backend:
        """The run's sandbox backend. Raises SandboxUnavailable with the reason and the fix."""
        return open_backend(self.run.backend)

    def emit(self, *events: Event) -> int:
        """Appends under this worker's lease and moves the state on; returns the last seq. Raises StaleWorker."""
        self.lease.check()
        last = append(self.run.pk, events, epoch=self.lease.epoch)
        for seq, event in enumerate(events, last - len(events) + 1):
            kind = type(event).__name__
            if kind not in SWEEP_EVENTS:
                self.state.apply(seq, kind, _builtins(event))
            if kind in CLOCK_EVENTS:
                self.meter.phase_began()
        return last

    def start(self, phase: str) -> None:
        """Says that a phase begins to work, unless an earlier worker said so already."""
        if self.state.started != phase:
            self.emit(PhaseStarted(phase=phase))

    def say(self, text: str) -> None:
        """The Driver's words, in the log."""
        self.emit(AgentTextEvent(text=text))

    def stop_if_halted(self) -> None:
        """Raises Halted when somebody stopped the run or it passed a limit, StaleWorker when another worker has it."""
        self.lease.check()
        if self.lease.halt_reason:
            raise Halted(self.lease.halt_reason)
        if (limit := self.meter.passed(self.state, self._born)) is not None:
            self.halt_at(limit)

    def halt_at(self, limit: str) -> NoReturn:
        """Halts the run at a ceiling, `<level>.<quantity>`. Raises Halted; with the reason of whoever was faster."""
        reason = f"limit_exceeded:{limit}"
        try:
            request_halt(self.run, reason, by="limits", epoch=self.lease.epoch)
        except AlreadyEnded:
            reason = self.lease.look() or reason
        raise Halted(reason)

    @contextlib.contextmanager
    def interruptible(self, box: Sandbox) -> Iterator[None]:
        """Around one long command: a halt or a passed limit kills the sandbox under it. Raises Halted."""
        self._busy = box
        try:
            yield
        except BenchwrightError:
            if not self.lease.halt_reason:
                raise
        finally:
            self._busy = None
        self.stop_if_halted()

    def _beat(self) -> None:
        """In the lease's thread: looks for what the worker can't see while it waits for a command."""
        box = self._busy
        if box is None:
            return
        with contextlib.suppress(BenchwrightError):
            if not self.lease.halt_reason and (limit := self.meter.passed(self.state, self._born)) is not None:
                request_halt(self.run, f"limit_exceeded:{limit}", by="limits", epoch=self.lease.epoch)
                self.lease.look()
            if self.lease.halt_reason:
                self._stopped.add(box.id)
                box.kill()

    def network(self) -> Network:
        """The account's host policy as one sandbox gets it."""
        return network_for(self.run.account_id)

    # -- sandboxes ---------------------------------------------------------------------------------------------------

    def work(self) -> Sandbox:
        """The work sandbox: the living one, else restored from the newest snapshot there is, else a fresh one."""
        live = self.attached(Role.WORK)
        if live is not None:
            return live
        for phase in ("atomize", "setup", "fetch"):
            snapshot = self.state.snapshots.get(phase)
            if snapshot is None:
                continue
            try:
                return self.create(Role.WORK, snapshot=snapshot, network=self.network(), model_port=True)
            except SnapshotNotFound:
                self.say(f"The snapshot after {phase} is no longer on this host; building the workspace again.")
        box = self.create(Role.WORK, network=self.network(), model_port=True)
        if "FetchArtifact" in self.state.artifacts:
            from runs.phases.fetch import put_sources

            put_sources(self, box, self.state.artifacts["FetchArtifact"]["sources"])
        return box

    def attached(self, role: Role) -> Sandbox | None:
        """The living sandbox of this role, or None. A lost one is written into the log."""
        held = self._boxes.get(role)
        live = self.state.sandbox(role)
        if live is None:
            return None
        if held is not None and held.id == live.id:
            return held
        try:
            box = self.backend.attach(live.id)
        except SandboxLost:
            self.lost(live.id)
            return None
        self._boxes[role] = box
        self._born[box.id] = box.created_at
        return box

    def lost(self, sandbox_id: str) -> None:
        """A sandbox died under us. After the third time the run is parked with `sandbox_lost`."""
        for role, box in list(self._boxes.items()):
            if box.id == sandbox_id:
                del self._boxes[role]
        if sandbox_id in self.state.sandboxes:
            self.emit(SandboxKilled(sandbox_id=sandbox_id, duration_ms=0.0, reason="lost"))
        if self.state.restores > MAX_RESTORES:
            raise PhaseFailed(
                "The sandbox was lost again and again.",
                code="sandbox_lost",
                hint="See the sandbox daemon's log; the run can be launched again.",
            )

    def create(
        self,
        role: Role,
        *,
        network: Network,
        snapshot: str | None = None,
        model_port: bool = False,
        size: Size | None = None,
    ) -> Sandbox:
        """A new sandbox, in the log before anything runs in it."""
        size = size or (WORK_SIZE if role is Role.WORK else Size())
        box = self.backend.create(
            role=role,
            labels={"benchwright_role": role.value, "benchwright_run": str(self.run.pk)},
            size=size,
            network=network,
            snapshot=snapshot,
            deadline_s=SANDBOX_DEADLINE_S,
            model_port=model_port,
        )
        self._boxes[role] = box
        self._born[box.id] = time.time()
        self.emit(
            SandboxCreated(
                sandbox_id=box.id,
                backend=box.backend,
                size=asdict(size),
                snapshot_id=snapshot,
                metadata={"benchwright_role": role.value, "isolation": self.backend.capabilities().isolation},
            )
        )
        return box

    def save(self, box: Sandbox, phase: str) -> str:
        """Snapshots the workspace after a phase; the sandbox goes on. Returns the snapshot's id."""
        snapshot = box.snapshot(seal=False)
        self.emit(SnapshotCreated(snapshot_id=snapshot.id, phase=phase, digest=snapshot.digest, bytes=snapshot.bytes))
        return snapshot.id

    def close(self, reason: str) -> None:
        """Kills every sandbox of this run and writes down what their time cost."""
        for live in list(self.state.sandboxes.values()):
            duration = 0.0
            lost = False
            try:
                box = self._boxes.get(live.role)
                if box is None or box.id != live.id:
                    box = self.backend.attach(live.id)
                self._refusals(box)
                duration = max(0.0, time.time() - box.created_at)
                box.kill()
            except SandboxLost:
                lost = live.id not in self._stopped
            self._boxes.pop(live.role, None)
            cost = sandbox_cost(live.backend, duration)
            usage = Usage(pays="sandbox", cost_usd=text(cost))
            self.emit(
                SandboxKilled(
                    sandbox_id=live.id, duration_ms=duration * 1000, reason="lost" if lost else reason, usage=usage
                )
            )

    def _refusals(self, box: Sandbox) -> None:
        from sandboxes.actions import record_refusals

        new = []
        for r in box.refusals():
            if self.state.blocked.get((r.host, r.port, r.role.value), 0) < r.seen_count:
                new.append(HostBlocked(host=r.host, port=r.port, role=r.role.value, seen_count=r.seen_count))
        if new:
            self.emit(*new)
            record_refusals(self.run.account_id, self.run.pk, box.refusals())


def _builtins(event: Event) -> dict[str, Any]:
    import msgspec

    return {f: msgspec.to_builtins(getattr(event, f)) for f in event.__struct_fields__}
