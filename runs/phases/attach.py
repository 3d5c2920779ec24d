"""Attach: the proxy sandbox with this launch's credentials, and one call that proves the model is there."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from benchwright.lib.canonical import canonical
from registry.queries import snapshot_rows
from runs.errors import PhaseFailed
from runs.events.types.artifact import ModelProxyArtifact
from runs.events.types.base import Event, Usage
from runs.events.types.driver import AgentTextEvent
from runs.phases.base import Done
from runs.phases.route import route_of
from runs.phases.tasks import snapshot_of
from runs.pipeline.context import Context
from runs.scorer.calls import usage_of
from runs.scorer.frames import Lines
from runs.vocabulary import ModelSource, Phase
from sandboxes.backends.base import Exec, Network, Sandbox
from sandboxes.errors import ExecNotFound, SandboxLost
from sandboxes.model_proxy.ceilings import KNOWN
from sandboxes.model_proxy.config import litellm_yaml, read_route
from sandboxes.model_proxy.keys import make_key
from sandboxes.model_proxy.providers import provider_of
from sandboxes.models import ProviderSecret
from sandboxes.policy import network_to
from sandboxes.vocabulary import Role

GATEWAY = "gateway"
READY_SECONDS = 60
PROBE_INDEX = -1
PROBE_RECORD_SECONDS = 5.0
CONFIG, REFERENCES = "/workspace/gateway.json", "/workspace/references.jsonl"


def attach(ctx: Context) -> Done | None:
    """Starts the proxy, links it to the work sandbox, and makes one live call through it."""
    if "ModelProxyArtifact" in ctx.state.artifacts:
        return Done()
    ctx.start(Phase.ATTACH)
    route = _route(ctx, with_key=False)
    work, gateway = connect(ctx)
    events: list[Event] = []
    if ctx.run.model["source"] != ModelSource.CONTROL:
        _prove_live(ctx, work)
        events.append(AgentTextEvent(text="The model answered a first call.", usage=_probe_usage(gateway)))
    made = ModelProxyArtifact(
        model=ctx.run.model["identifier"], config=litellm_yaml(read_route(route)), mode=ctx.run.model["source"]
    )
    ctx.emit(*events, made)  # in one go: what is on the gateway's record is counted once
    return Done()


def connect(ctx: Context) -> tuple[Sandbox, Exec]:
    """The work sandbox and the running gateway, linked. Whatever a dead worker left is taken over, not made again."""
    work = ctx.work()
    proxy = ctx.attached(Role.PROXY)
    gateway: Exec | None = None
    if proxy is not None:
        try:
            gateway = proxy.reattach(GATEWAY)
            gateway.read()
            if gateway.ended:
                gateway = None
        except (ExecNotFound, SandboxLost):
            gateway = None
        if gateway is None:
            ctx.lost(proxy.id)
            proxy = None
    if proxy is None or gateway is None:
        proxy = ctx.create(Role.PROXY, network=_network(ctx))
        gateway = _start_gateway(ctx, proxy)
    ctx.backend.link_model_port(work.id, proxy.id, "work")
    gateway.close()
    return work, proxy.reattach(GATEWAY)


def _start_gateway(ctx: Context, proxy: Sandbox) -> Exec:
    route = _route(ctx, with_key=True)
    config: dict[str, Any] = {
        "run": str(ctx.run.pk),
        "secret": bytes(ctx.run.key_secret).hex(),
        "route": route,
        "max_concurrency": ctx.run.concurrency,
    }
    if limits := _ceilings(ctx):
        config["limits"] = limits
    if route["kind"] == "control":
        lines = "\n".join(_references(ctx))
        proxy.write(REFERENCES, lines.encode(), mode=0o600)
        config["references"] = REFERENCES
    proxy.write(CONFIG, json.dumps(config).encode(), mode=0o600)
    gateway = proxy.start(
        ["/bin/sh", "-c", f'exec "$VENV_PYTHON" -m sandboxes.model_proxy.gateway {CONFIG}'], exec_id=GATEWAY, stdin=True
    )
    deadline, seen = time.monotonic() + READY_SECONDS, b""
    while b'"ready"' not in seen:
        if gateway.ended or time.monotonic() > deadline:
            why = gateway.stderr_tail.decode(errors="replace").strip()[-600:]
            raise PhaseFailed(f"The model proxy did not start: {why or 'no answer'}", code="proxy_failed")
        select.select([gateway], [], [], 0.5)
        seen += gateway.read()
        ctx.stop_if_halted()
    return gateway


def _ceilings(ctx: Context) -> dict[str, Any]:
    """What the gateway itself holds to, as exact text; `spent`: what the run had cost before."""
    out: dict[str, Any] = {}
    for level, known in KNOWN.items():
        group = {q: str(v) for q, v in ctx.run.limits.get(level, {}).items() if q in known}
        if group:
            out[level] = group
    if "run" in out:
        out["spent"] = str(max(ctx.meter.measure(ctx.state, {}).cost, Decimal(0)))
    return out


def _references(ctx: Context) -> Iterator[str]:
    """What a control may answer, by row. A list without references can't be answered by the oracle."""
    oracle = ctx.run.model["identifier"] == "control/oracle"
    for index, task in enumerate(snapshot_rows(snapshot_of(ctx))):
        reference = task.get("reference")
        if oracle and not reference:
            raise PhaseFailed(
                f"control/oracle has nothing to answer for row {index}: the dataset has no reference there.",
                code="no_reference",
                hint="Use another model.",
            )
        yield canonical({"index": index, "reference": reference, "choices": task.get("choices")})


def _route(ctx: Context, *, with_key: bool) -> dict[str, Any]:
    route = route_of(ctx.run.model)
    if with_key and (key := _key(ctx)):
        route["api_key"] = key
    if with_key and (headers := _sealed(ctx, "headers")):
        route["headers"] = json.loads(headers)
    return route


def _key(ctx: Context) -> str | None:
    given = _sealed(ctx, "model")
    if given is None and ctx.run.model["source"] == ModelSource.LITELLM:
        provider = provider_of(ctx.run.model["identifier"])
        return os.environ.get(provider.key_variable) if provider else None
    return given


def _sealed(ctx: Context, name: str) -> str | None:
    """What this launch brought and only this run may use."""
    secret = ProviderSecret.objects.filter(run_id=ctx.run.pk, name=name).first()
    if secret is None:
        return None
    value = secret.open()
    if value is None:
        raise PhaseFailed(
            "The key given with this launch can no longer be read: the installation's secret has changed.",
            code="secret_unreadable",
            hint="Launch again with the key.",
        )
    return value


def _network(ctx: Context) -> Network:
    model = ctx.run.model
    if model["source"] == ModelSource.CONTROL:
        return Network(mode="deny")
    if model.get("base_url"):
        parts = urlsplit(model["base_url"])
        return network_to(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    provider = provider_of(model["identifier"])
    if provider is None:
        raise PhaseFailed(
            f"Benchwright does not know where {model['identifier']!r} is served.",
            code="provider_unknown",
            hint="Give model.base_url with the launch.",
        )
    return network_to(provider.host, 443)


def _prove_live(ctx: Context, work: Sandbox) -> None:
    key = make_key(bytes(ctx.run.key_secret), str(ctx.run.pk), 0, PROBE_INDEX, 0, 1)
    command = 'exec "$BW_PYTHON" -I /opt/benchwright/guest/probe.py "$0"'
    with ctx.interruptible(work):
        done = work.run(["/bin/sh", "-c", command, key], timeout=180)
    try:
        answer = json.loads(done.stdout.decode() or "{}")
    except ValueError:
        answer = {}
    if answer.get("ok"):
        return
    kind = answer.get("kind") or "model_unreachable"
    if kind == "ceiling":
        ctx.say(f"The first call does not fit under the run's ceiling: {answer.get('message')}")
        ctx.halt_at("run.cost")
    hints = {
        "upstream_auth": "The provider refuses the key. Launch again with another one.",
        "model_not_found": "Check the model's name as its provider spells it.",
        "upstream_unreachable": "Check the base URL, and that the server is up.",
        "rate_limited": "The provider limits this key. Try again later.",
    }
    raise PhaseFailed(
        f"The model did not answer: {answer.get('message') or _tail(done.stderr) or 'nothing came back'}",
        code=kind,
        hint=hints.get(kind, "See the message; the run can be launched again."),
    )


def _probe_usage(gateway: Exec) -> Usage | None:
    """What the first call used: it is charged like any other."""
    gateway.write(b'{"op": "sync", "id": 0}\n')
    lines, found, until = Lines(), [], time.monotonic() + PROBE_RECORD_SECONDS
    while time.monotonic() < until and not gateway.ended:
        select.select([gateway], [], [], 0.25)
        for record in lines.feed(gateway.read()):
            if record.get("t") == "call" and (record.get("key") or {}).get("index") == PROBE_INDEX:
                found.append(record)
            elif record.get("t") == "synced":
                until = 0.0
    return usage_of(found) if found else None


def _tail(text: bytes) -> str:
    return text.decode(errors="replace").strip()[-300:]
