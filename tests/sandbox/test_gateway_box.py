"""The gateway where it belongs: in a proxy sandbox, between a work sandbox and a provider on the host."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from sandboxes.backends.base import Exec, Network, Sandbox, Size
from sandboxes.backends.conformance import Ground, follow
from sandboxes.model_proxy.keys import make_key
from sandboxes.vocabulary import Role
from tests.fakes.provider import FakeProvider, Reply
from tests.sandbox.conftest import Daemon, python

SECRET, RUN, KEY = bytes(32), "run-00000001", "sk-real-in-a-box-0123456789"
ASK = """
import json, urllib.request
body = {"messages": [{"role": "user", "content": "hi"}]}
request = urllib.request.Request(
    "http://127.0.0.1:4000/v1/chat/completions", json.dumps(body).encode(), {"Authorization": "Bearer %s"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(json.loads(opener.open(request, timeout=60).read())["choices"][0]["message"]["content"])
"""


def run_gateway(ground: Ground, provider: FakeProvider, route: dict[str, Any]) -> tuple[Sandbox, Exec]:
    endpoint = urlsplit(provider.url).netloc
    network = Network(mode="deny", allow=(endpoint,), private_ok=(endpoint,))
    proxy = ground.make(Role.PROXY, network=network, size=Size(memory_mb=1024))
    config = {"run": RUN, "secret": SECRET.hex(), "route": {"model": "m", "api_key": KEY, **route}}
    proxy.write("/workspace/gateway.json", json.dumps(config).encode(), mode=0o600)
    command = 'exec "$VENV_PYTHON" -m sandboxes.model_proxy.gateway /workspace/gateway.json'
    gateway = proxy.start(["sh", "-c", command], exec_id="gateway", stdin=True)
    seen = follow(gateway, until=b'"ready"', seconds=60)
    assert b'"ready"' in seen, gateway.stderr_tail
    return proxy, gateway


@pytest.mark.parametrize("kind", ["endpoint", "litellm"])
def test_a_work_sandbox_reaches_the_model_and_never_sees_the_key(own_daemon: Daemon, kind: str) -> None:
    reply = Reply("hello from outside", usage={"prompt_tokens": 7, "completion_tokens": 3})
    with FakeProvider(lambda _: reply, key=KEY) as provider, Ground(own_daemon.backend) as ground:
        model = "m" if kind == "endpoint" else "openai/m"
        route = {"kind": kind, "model": model, "base_url": provider.base_url}
        proxy, gateway = run_gateway(ground, provider, route)
        work = ground.make(model_port=True)
        ground.backend.link_model_port(work.id, proxy.id, "work-1")
        key = make_key(SECRET, RUN, 1, 5, 0, 1)
        assert python(work, ASK % key, timeout=90) == "hello from outside\n"
        assert provider.requests[0].headers["Authorization"] == f"Bearer {KEY}"
        seen = follow(gateway, until=b'"call"')
        call = json.loads(seen.splitlines()[-1])
        assert call["key"]["index"] == 5 and call["usage"]["input"] == 7
        gateway.write(b'{"op": "sync", "id": 1}\n{"op": "stop"}\n')
        assert b'"synced"' in follow(gateway)
        assert gateway.code == 0
