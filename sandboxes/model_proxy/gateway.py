"""The process in the proxy box: `python -m sandboxes.model_proxy.gateway gateway.json`.

With BW_HUB_FD set it gets listeners and connections over the hub; with `--listen host:port` it opens them itself.
Records go to stdout, orders come on stdin, both as JSON lines.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop
from aiohttp import web

from benchwright.lib.errors import BenchwrightError
from sandboxes.model_proxy.adapt import Adaptations
from sandboxes.model_proxy.answers import Upstream
from sandboxes.model_proxy.config import GatewayConfig, RouteRefused, read_config
from sandboxes.model_proxy.hub import Hub, HubConnector, tls_context
from sandboxes.model_proxy.records import Records
from sandboxes.model_proxy.redaction import RedactingStream, Redactor
from sandboxes.model_proxy.serve import REQUEST_LIMIT, Service

KEEPALIVE_S = 60.0


class Gateway:
    """Listeners, the way upstream, and the orders on stdin of one run."""

    def __init__(self, config: GatewayConfig, records: Records, redactor: Redactor) -> None:
        self._config = config
        self._records = records
        self._redactor = redactor
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._server: web.Server | None = None
        self._hub: Hub | None = None
        self._early: list[socket.socket] = []

    async def run(self, listen: str | None) -> None:
        """Serves until told to stop. Raises RouteRefused before `ready`."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stopping.set)
        hub_fd = os.environ.pop("BW_HUB_FD", None)
        if hub_fd is not None and listen is None:
            self._hub = Hub(int(hub_fd), self._on_listener, self._stopping.set)
        elif listen is None:
            raise RouteRefused("There is neither a hub nor an address to listen on.", field="listen")
        adapt = Adaptations()
        upstream = self._upstream(adapt)
        await upstream.start()
        service = Service(self._config, upstream, self._records, self._redactor, adapt)
        self._server = web.Server(service.handle, request_factory=_request, access_log=None)
        ready: dict[str, Any] = {"t": "ready"}
        if listen is not None:
            host, _, port = listen.rpartition(":")
            server = await self._loop.create_server(
                self._server, host.strip("[]") or "127.0.0.1", int(port), backlog=1024
            )
            self._servers.append(server)
            ready["port"] = server.sockets[0].getsockname()[1]
        for sock in self._early:
            await self._listen(sock)
        self._read_orders()
        gc.collect()
        gc.freeze()  # what start-up made lives for ever; collections need not walk it
        await self._records.put(ready)
        await self._stopping.wait()
        for open_server in self._servers:
            open_server.close()
        await self._server.shutdown(0.5)
        await upstream.close()
        if self._hub is not None:
            self._hub.close()
        self._records.write()

    def _upstream(self, adapt: Adaptations) -> Upstream:
        config = self._config
        if config.route.kind == "control":
            from sandboxes.model_proxy.control import Control

            return Control(config.route)
        if config.route.kind == "litellm":
            from sandboxes.model_proxy.litellm_route import LiteLLM

            if self._hub is not None:
                # A model on the host's own 127.0.0.1 is reached through the egress proxy too: this box has none there.
                for name in ("NO_PROXY", "no_proxy"):
                    os.environ.pop(name, None)
            return LiteLLM(config.route, config.timeout_s, self._redactor, adapt)
        from sandboxes.model_proxy.passthrough import Passthrough

        # No limit on connections: admission bounds the calls, the pool needn't.
        connector: aiohttp.BaseConnector
        if self._hub is not None:
            connector = HubConnector(self._hub.dial, tls_context(), limit=0, keepalive_timeout=KEEPALIVE_S)
        else:
            connector = aiohttp.TCPConnector(ssl=tls_context(), limit=0, keepalive_timeout=KEEPALIVE_S)
        return Passthrough(config.route, connector, config.timeout_s, self._redactor, adapt)

    def _on_listener(self, sock: socket.socket, tag: str) -> None:
        if self._server is None:
            self._early.append(sock)
        else:
            self._loop.create_task(self._listen(sock))

    async def _listen(self, sock: socket.socket) -> None:
        assert self._server is not None
        self._servers.append(await self._loop.create_server(self._server, sock=sock, backlog=1024))

    def _read_orders(self) -> None:
        rest = b""

        def readable() -> None:
            nonlocal rest
            try:
                data = os.read(0, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._loop.remove_reader(0)  # the worker went away; the next one attaches to the same process
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._obey(line)

        try:
            os.set_blocking(0, False)
            self._loop.add_reader(0, readable)
        except (OSError, ValueError):
            return  # stdin is a file or closed: there is nobody to give orders

    def _obey(self, line: bytes) -> None:
        try:
            order = orjson.loads(line)
            op = order["op"]
        except (ValueError, KeyError, TypeError):
            return
        if op == "sync":
            self._records.put({"t": "synced", "id": order.get("id")})
        elif op == "stop":
            self._stopping.set()


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=REQUEST_LIMIT)


async def _main(config: GatewayConfig, out: int, listen: str | None, redactor: Redactor) -> None:
    records = Records(out, asyncio.get_running_loop())
    await Gateway(config, records, redactor).run(listen)


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 stopped, 2 the configuration is refused (one JSON line on stderr says which field)."""
    parser = argparse.ArgumentParser(prog="gateway", description="The model proxy of one run.")
    parser.add_argument("config", help="path of gateway.json")
    parser.add_argument("--listen", help="host:port to listen on instead of the hub's listeners; port 0 picks one")
    options = parser.parse_args(argv)
    # Whatever a library prints must not end up between the records.
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        raw = orjson.loads(Path(options.config).read_bytes())
        config = read_config(raw)
        redactor = Redactor([*config.route.secrets(), config.secret.hex()])
        sys.stderr = RedactingStream(sys.stderr, redactor)
        sys.stdout = sys.stderr
        uvloop.run(_main(config, out, options.listen, redactor))
    except BenchwrightError as e:
        print(orjson.dumps(e.as_dict()).decode(), file=sys.stderr, flush=True)
        return 2
    except (OSError, orjson.JSONDecodeError) as e:
        print(orjson.dumps({"code": "gateway_config", "message": f"{options.config}: {e}"}).decode(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
