"""All boxes of this host: made, found, saved, linked and cleared away."""

from __future__ import annotations

import asyncio
import logging
import os
import py_compile
import shutil
import time
from typing import Any

from benchwright.lib import paths
from sandboxes.backends.base import Capabilities, Network, Size
from sandboxes.backends.local import agent, probe, seccomp
from sandboxes.backends.local.box import Box, new_id
from sandboxes.backends.local.command import BoxSpec, prepare_etc
from sandboxes.backends.local.cpu import CpuGroups
from sandboxes.backends.local.dial import Dialler
from sandboxes.backends.local.egress import EgressProxy
from sandboxes.backends.local.host import Host
from sandboxes.backends.local.hub import Hub
from sandboxes.backends.local.layers import Layers, Snapshot, remove_tree
from sandboxes.backends.local.reach import Reach, Unreachable
from sandboxes.backends.local.watchdog import Watchdog
from sandboxes.egress.policy import host_policy
from sandboxes.errors import SandboxFailed, SandboxLost, SandboxUnavailable
from sandboxes.vocabulary import Role

log = logging.getLogger("sandboxd")


class House:
    """One per daemon."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.layers = Layers(host.root, host.uid, host.gid, host.as_root)
        self.capabilities: Capabilities = probe.capabilities(
            False, "sandboxd is still starting.", "Try again in a moment."
        )
        self._reach = Reach(host.root / "reach", host.as_root)
        self._filter = seccomp.program()
        self._cpu = CpuGroups(paths.state_key(), host.as_root)
        self._boxes: dict[str, Box] = {}
        self._egress: dict[str, EgressProxy] = {}
        self._hubs: dict[str, Hub] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sealing: set[str] = set()  # dead boxes whose folder is still wanted
        self._pending_layers: set[str] = set()  # layers of boxes and snapshots in the making

    # --- start and end -----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Clears what an earlier daemon left (its boxes died with it), keeps snapshots, and tries a box."""
        root = self.host.root
        root.mkdir(parents=True, exist_ok=True)
        if self.host.as_root:
            root.parent.chmod(0o711)
        root.chmod(0o711)
        for name in ("boxes", "reach"):
            leftover = root / name
            if leftover.exists():
                trash = root / f".old-{time.time_ns()}"
                leftover.rename(trash)
            leftover.mkdir(mode=0o711)
            leftover.chmod(0o711)
        for trash in root.glob(".old-*"):
            self._spawn(remove_tree(trash, as_root=self.host.as_root))
        self.layers.prepare()
        prepare_etc(root)
        (root / "etc").chmod(0o755)
        py_compile.compile(agent.__file__, cfile=str(root / "agent.pyc"), doraise=True)
        (root / "agent.pyc").chmod(0o644)
        if self.host.ca_file:
            shutil.copyfile(self.host.ca_file, root / "ca.pem")
            (root / "ca.pem").chmod(0o644)
        for name in self.host.pip.dropped:
            log.warning("%s holds a password: sandboxes do not get it", name)
        self._collect_layers()
        self.capabilities = await self._probe()
        if self.capabilities.available:
            log.info("boxes run here, as uid %d", self.host.uid)
        else:
            log.error("no boxes here: %s %s", self.capabilities.reason, self.capabilities.fix)

    async def _probe(self) -> Capabilities:
        found = probe.obstacle(self.host)
        if found is not None:
            return found
        first: Snapshot | None = None
        try:
            box = await self._make(Role.TEMPLATE_PROBE, {}, Size(), Network(), None, 60, {}, False)
            first = await self.snapshot(box.spec.id, seal=True)
            box = await self._make(Role.TEMPLATE_PROBE, {}, Size(), Network(), first.id, 60, {}, False)
            result = await box.run([self.host.python, "-I", "-S", "-c", "print(42)"], b"", None, {}, 20, 1000)
            await self.kill(box.spec.id)
        except SandboxUnavailable as e:
            return probe.capabilities(False, e.reason, e.fix) if e.fix else probe.explain(e.reason)
        except (SandboxFailed, SandboxLost, OSError) as e:
            return probe.explain(str(e))
        finally:
            if first is not None:
                self.delete_snapshot(first.id)
        if result.stdout != b"42\n":
            return probe.explain(f"{self.host.python} does not run in a box: {result.stderr.decode(errors='replace')}")
        return probe.capabilities(True, hard_cpu=self._cpu.available)

    async def close(self) -> None:
        """Ends every box."""
        await asyncio.gather(*(self.kill(name) for name in list(self._boxes)), return_exceptions=True)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=10)
        self._cpu.close()

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    # --- boxes -------------------------------------------------------------------------------------------------------

    def find(self, box_id: str) -> Box:
        """Raises SandboxLost."""
        box = self._boxes.get(box_id)
        if box is None or box.dead.is_set():
            raise SandboxLost(box_id, box.why_dead if box else "")
        return box

    def all(self) -> list[Box]:
        """Every live box."""
        return [box for box in self._boxes.values() if not box.dead.is_set()]

    def egress(self, box_id: str) -> EgressProxy:
        """The policy proxy of a box. Raises SandboxLost."""
        self.find(box_id)
        return self._egress[box_id]

    async def create(
        self,
        role: Role,
        labels: dict[str, str],
        size: Size,
        network: Network,
        snapshot: str | None,
        deadline_s: float,
        env: dict[str, str],
        model_port: bool,
    ) -> Box:
        """A new box. Raises SandboxUnavailable or SnapshotNotFound."""
        if not self.capabilities.available:
            raise SandboxUnavailable(self.capabilities.reason or "No boxes here.", self.capabilities.fix)
        return await self._make(role, labels, size, network, snapshot, deadline_s, env, model_port)

    async def _make(
        self,
        role: Role,
        labels: dict[str, str],
        size: Size,
        network: Network,
        snapshot: str | None,
        deadline_s: float,
        env: dict[str, str],
        model_port: bool,
    ) -> Box:
        trusted = (*network.private_ok, *self.host.trusted)
        try:
            policy = host_policy(network.mode, network.allow, network.block, trusted)
        except ValueError as e:
            raise SandboxFailed(str(e), code="bad_host_pattern", status=400) from None
        saved = self.layers.get(snapshot) if snapshot else None
        spec = BoxSpec(new_id("sb"), role, labels, size, network, env, model_port)
        folder = self.host.root / "boxes" / spec.id
        folder.mkdir(mode=0o711)
        folder.chmod(0o711)
        box = Box(self.host, spec, folder, list(saved.layers) if saved else [], deadline_s)
        box.parent_digest = saved.digest if saved else ""
        self._boxes[spec.id] = box
        dialler = Dialler(self.host.proxies)
        egress = self._egress[spec.id] = EgressProxy(policy, dialler, role)
        try:
            cpu_group = self._cpu.make(spec.id, size.cpus)
            await box.launch(self._reach, self.layers.paths(box.layers), self._filter, cpu_group)
            assert box.egress_listener and box.dns_listener
            box.closers.append(egress.close)
            await egress.serve(box.egress_listener, box.dns_listener, box.direct_listeners)
            if box.hub is not None:
                hub = self._hubs[spec.id] = Hub(box.hub, policy, dialler, egress.refusals)
                box.closers.append(hub.close)
        except Unreachable as e:
            self._drop(box)
            raise SandboxUnavailable(
                str(e),
                "Install Benchwright and its Python where every user may read them, or run it as an ordinary user.",
            ) from None
        except BaseException:
            await asyncio.shield(box.kill("it did not start"))
            self._drop(box)
            raise
        self._spawn(self._watch(box))
        return box

    async def _watch(self, box: Box) -> None:
        def bury(why: str) -> None:
            box.why_dead = box.why_dead or why

        await Watchdog(box, bury).watch()
        if not box.dead.is_set():
            await box.kill(box.why_dead)
        if box.spec.id in self._boxes and box.spec.id not in self._sealing:
            await box.kill(box.why_dead)
            self._drop(box)

    def _drop(self, box: Box) -> None:
        """Forgets a dead box and clears its folder in the background."""
        if self._boxes.pop(box.spec.id, None) is None:
            return
        self._egress.pop(box.spec.id, None)
        self._hubs.pop(box.spec.id, None)
        self._cpu.remove(box.spec.id)
        trash = self.host.root / f".old-{box.spec.id}"
        try:
            os.rename(box.folder, trash)
        except FileNotFoundError:
            return
        self._spawn(remove_tree(trash, as_root=self.host.as_root))
        self._collect_layers()

    async def kill(self, box_id: str, why: str = "it was killed") -> None:
        """Ends a box; unknown ones are no error."""
        box = self._boxes.get(box_id)
        if box is not None:
            await box.kill(why)
            self._drop(box)

    # --- snapshots ---------------------------------------------------------------------------------------------------

    async def snapshot(self, box_id: str, *, seal: bool) -> Snapshot:
        """Saves a box's workspace; with `seal` the box is over afterwards, even when the saving fails."""
        box = self.find(box_id)
        snapshot_id = new_id("sn")
        held = {*box.layers, f"{snapshot_id}-layer", f"{snapshot_id}-fold"}
        self._pending_layers |= held
        upper = box.folder / "upper"
        try:
            if seal:
                self._sealing.add(box_id)
                try:
                    await box.kill("it was sealed into a snapshot")
                    return await self.layers.save(snapshot_id, upper, box.layers, box.parent_digest, move=True)
                finally:
                    self._sealing.discard(box_id)
                    self._drop(box)
            was_paused = box.state == "paused"
            await box.pause()
            try:
                return await self.layers.save(snapshot_id, upper, box.layers, box.parent_digest, move=False)
            finally:
                if not was_paused and not box.dead.is_set():
                    await box.resume()
        finally:
            self._pending_layers -= held

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Forgets a snapshot; layers that others stand on stay."""
        self.layers.forget(snapshot_id)
        self._collect_layers()

    def _collect_layers(self) -> None:
        in_use = set(self._pending_layers)
        for box in self._boxes.values():
            in_use.update(box.layers)
        for path in self.layers.unused(in_use):
            trash = self.host.root / f".old-{path.name}"
            os.rename(path, trash)
            self._spawn(remove_tree(trash, as_root=self.host.as_root))

    # --- the model port ----------------------------------------------------------------------------------------------

    async def link_model_port(self, work_id: str, proxy_id: str, tag: str) -> None:
        """Hands the model port of one box to the gateway in another."""
        work, proxy = self.find(work_id), self.find(proxy_id)
        hub = self._hubs.get(proxy.spec.id)
        if work.model_listener is None:
            raise SandboxFailed(f"Sandbox {work_id} was made without a model port.", code="no_model_port", status=409)
        if hub is None:
            raise SandboxFailed(f"Sandbox {proxy_id} has not the role proxy.", code="not_a_proxy", status=409)
        try:
            await hub.listener(tag, work.model_listener)
        except (OSError, TimeoutError) as e:
            raise SandboxFailed(f"The gateway in {proxy_id} does not answer: {e}") from None
