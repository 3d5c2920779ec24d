"""sandboxd's door: requests of clients on a Unix socket, answered one after the other on each connection.

`start` and `reattach` turn their connection into the stream of that command.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from benchwright.lib.errors import BenchwrightError
from sandboxes.backends.base import Network, Size
from sandboxes.backends.local import wire
from sandboxes.backends.local.box import Box
from sandboxes.backends.local.house import House
from sandboxes.backends.local.jobs import Spooled
from sandboxes.errors import ExecNotFound, FileRefused, SandboxFailed
from sandboxes.vocabulary import ExecEnd, Role

log = logging.getLogger("sandboxd")

_Answer = tuple[dict[str, Any], bytes]


class Rpc:
    """Serves connections until cancelled."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._methods: dict[str, Callable[[dict[str, Any], bytes], Awaitable[_Answer]]] = {
            "capabilities": self._capabilities,
            "create": self._create,
            "attach": self._attach,
            "list": self._list,
            "delete_snapshot": self._delete_snapshot,
            "link_model_port": self._link_model_port,
            "run": self._run,
            "write": self._write,
            "read": self._read,
            "list_files": self._list_files,
            "snapshot": self._snapshot,
            "pause": self._pause,
            "resume": self._resume,
            "extend": self._extend,
            "kill": self._kill,
            "refusals": self._refusals,
        }

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        try:
            if not _is_ours(writer.get_extra_info("socket")):
                return
            while True:
                head, body = await _request(reader)
                if head["op"] in ("start", "reattach"):
                    await self._stream(head, reader, writer)
                    return
                writer.write(wire.pack(*await self._answer(head, body, reader)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except (ValueError, KeyError, TypeError):
            log.exception("a request that is none")
        finally:
            writer.close()

    async def _answer(self, head: dict[str, Any], body: bytes, reader: asyncio.StreamReader) -> _Answer:
        """Runs the method; if the client goes away meanwhile, the work is cancelled."""
        work = asyncio.ensure_future(self._methods[head["op"]](head, body))
        gone = asyncio.ensure_future(_wait_for_end(reader))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                raise ConnectionResetError
            answer, data = work.result()
            return {"ok": True, **answer}, data
        except BenchwrightError as e:
            return _failed(e), b""
        except (OSError, TimeoutError, ValueError, KeyError, TypeError) as e:
            log.exception("%s failed", head["op"])
            return _failed(SandboxFailed(f"{head['op']}: {type(e).__name__}: {e}")), b""
        finally:
            gone.cancel()

    # --- methods -----------------------------------------------------------------------------------------------------

    async def _capabilities(self, _: dict[str, Any], __: bytes) -> _Answer:
        return {"capabilities": asdict(self._house.capabilities)}, b""

    async def _create(self, head: dict[str, Any], _: bytes) -> _Answer:
        net = head["network"]
        box = await self._house.create(
            Role(head["role"]),
            dict(head["labels"]),
            Size(**head["size"]),
            Network(net["mode"], tuple(net["allow"]), tuple(net["block"]), tuple(net["private_ok"])),
            head["snapshot"],
            float(head["deadline_s"]),
            dict(head["env"]),
            bool(head["model_port"]),
        )
        return _about(box), b""

    async def _attach(self, head: dict[str, Any], _: bytes) -> _Answer:
        return _about(self._house.find(head["box"])), b""

    async def _list(self, head: dict[str, Any], _: bytes) -> _Answer:
        wanted = head["labels"].items()
        return {"boxes": [_about(b) for b in self._house.all() if wanted <= b.spec.labels.items()]}, b""

    async def _delete_snapshot(self, head: dict[str, Any], _: bytes) -> _Answer:
        self._house.delete_snapshot(head["snapshot"])
        return {}, b""

    async def _link_model_port(self, head: dict[str, Any], _: bytes) -> _Answer:
        await self._house.link_model_port(head["work"], head["proxy"], head["tag"])
        return {}, b""

    async def _run(self, head: dict[str, Any], body: bytes) -> _Answer:
        box = self._house.find(head["box"])
        result = await box.run(head["argv"], body, head["cwd"], head["env"], head["timeout"], head["limit"])
        answer = asdict(result)
        answer["stdout"] = len(result.stdout)
        del answer["stderr"]
        return answer, result.stdout + result.stderr

    async def _write(self, head: dict[str, Any], body: bytes) -> _Answer:
        await self._house.find(head["box"]).file_job("write", head["path"], data=body, mode=head["mode"])
        return {}, b""

    async def _read(self, head: dict[str, Any], _: bytes) -> _Answer:
        return {}, await self._house.find(head["box"]).file_job("read", head["path"], limit=head["limit"])

    async def _list_files(self, head: dict[str, Any], _: bytes) -> _Answer:
        return {}, await self._house.find(head["box"]).file_job("list", head["path"], limit=16 << 20)

    async def _snapshot(self, head: dict[str, Any], _: bytes) -> _Answer:
        started = time.monotonic()
        # Shielded: a client that gives up must not leave a box half sealed.
        saved = await asyncio.shield(asyncio.ensure_future(self._house.snapshot(head["box"], seal=head["seal"])))
        took = (time.monotonic() - started) * 1000
        return {"id": saved.id, "digest": saved.digest, "bytes": saved.bytes, "duration_ms": took}, b""

    async def _pause(self, head: dict[str, Any], _: bytes) -> _Answer:
        await self._house.find(head["box"]).pause()
        return {}, b""

    async def _resume(self, head: dict[str, Any], _: bytes) -> _Answer:
        await self._house.find(head["box"]).resume()
        return {}, b""

    async def _extend(self, head: dict[str, Any], _: bytes) -> _Answer:
        self._house.find(head["box"]).deadline_at = time.time() + float(head["deadline_s"])
        return {}, b""

    async def _kill(self, head: dict[str, Any], _: bytes) -> _Answer:
        await asyncio.shield(asyncio.ensure_future(self._house.kill(head["box"])))
        return {}, b""

    async def _refusals(self, head: dict[str, Any], _: bytes) -> _Answer:
        return {"refusals": self._house.egress(head["box"]).refusals.since(float(head["since"]))}, b""

    # --- the stream of a command -------------------------------------------------------------------------------------

    async def _stream(self, head: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            box = self._house.find(head["box"])
            if head["op"] == "start":
                spooled = await box.start(
                    head["argv"], head["exec_id"], head["cwd"], head["env"], head["timeout"], head["stdin"]
                )
            else:
                spooled = box.find_exec(head["exec_id"])
        except BenchwrightError as e:
            writer.write(wire.pack(_failed(e)))
            await writer.drain()
            return
        writer.write(wire.pack({"ok": True}))
        orders = asyncio.ensure_future(_orders(box, spooled, reader))
        try:
            await _follow(box, spooled, int(head.get("offset", 0)), writer, orders)
        finally:
            orders.cancel()


async def _follow(
    box: Box, spooled: Spooled, offset: int, writer: asyncio.StreamWriter, orders: asyncio.Future[None]
) -> None:
    """Sends stdout from `offset` on, as fast as the client takes it, and the end once everything was sent."""
    news = spooled.follow()
    orders.add_done_callback(lambda _: news.set())
    job = spooled.job
    assert job
    try:
        while not orders.done():
            await news.wait()
            news.clear()
            # Looked at before the reading: what is written after this moment sets `news` again.
            over = job.reason is not None
            while offset < spooled.size:
                data = spooled.read(offset, 256 << 10)
                if not data:
                    break
                offset += len(data)
                writer.write(wire.pack_chunk(wire.STDOUT, data))
                await writer.drain()
            if over:
                reason, code, tail = job.reason, job.code, spooled.tail.get()
                if job.errno is not None:
                    reason, code = ExecEnd.EXIT, 127
                    tail += f"{os.strerror(job.errno)}\n".encode()
                end = {"code": code, "reason": reason, "stderr": base64.b64encode(tail).decode()}
                writer.write(wire.pack_chunk(wire.END, json.dumps(end).encode()))
                await writer.drain()
                return
    finally:
        spooled.unfollow(news)


async def _orders(box: Box, spooled: Spooled, reader: asyncio.StreamReader) -> None:
    """stdin and kill, until the client leaves."""
    job = spooled.job
    assert job
    try:
        while True:
            kind, size = wire.CHUNK.unpack(await reader.readexactly(wire.CHUNK.size))
            data = await reader.readexactly(min(size, wire.MAX_CHUNK))
            if kind == wire.STDIN and job.stdin:
                job.stdin.write(data)
                await job.stdin.room()
            elif kind == wire.CLOSE_STDIN and job.stdin:
                job.stdin.end()
            elif kind == wire.KILL:
                await box.kill_job(job, ExecEnd.KILLED)
    except (asyncio.IncompleteReadError, ConnectionError):
        return


async def _request(reader: asyncio.StreamReader) -> _Answer:
    head_size, body_size = wire.HEAD.unpack(await reader.readexactly(wire.HEAD.size))
    if head_size > wire.MAX_HEAD or body_size > wire.MAX_BODY:
        raise ValueError("a request beyond all limits")
    head = json.loads(await reader.readexactly(head_size))
    return head, await reader.readexactly(body_size) if body_size else b""


async def _wait_for_end(reader: asyncio.StreamReader) -> None:
    """Returns when the client hangs up. Only `run` and its like take long enough to be cancelled by that."""
    while not reader.at_eof():
        await asyncio.sleep(0.2)


def _about(box: Box) -> dict[str, Any]:
    return {
        "id": box.spec.id,
        "role": box.spec.role,
        "labels": box.spec.labels,
        "created_at": box.created_at,
        "deadline_at": box.deadline_at,
        "state": box.state,
    }


def _failed(error: BenchwrightError) -> dict[str, Any]:
    kind = type(error).__name__ if isinstance(error, ExecNotFound | FileRefused) else ""
    return {
        "ok": False,
        "kind": kind,
        "code": error.code,
        "status": error.status,
        "message": error.message,
        "hint": error.hint,
        "data": error.data,
    }


def _is_ours(sock: socket.socket) -> bool:
    """The folder is closed to others already; this asks the kernel as well."""
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (0, os.geteuid())
