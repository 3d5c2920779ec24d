"""The API as the client reaches it in tests: httpx on one side, Django's test client on the other, no network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import httpx
from django.test import Client as DjangoClient

from benchwright.lib.sse import HEARTBEAT, frame
from runs.api.schemas import event_json
from runs.events.log import read
from runs.models import Run

STREAM = re.compile(r"/v1/runs/([0-9a-f-]+)/events/stream")


class Door(httpx.BaseTransport):
    """Takes each request to the real API. `launched` is called with each run that a request made.

    A stream is what the log holds, in the server's frames; following a growing log is the server's test.
    """

    def __init__(self, launched: Callable[[Run], object] | None = None) -> None:
        self.launched = launched
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        path, body = request.url.raw_path.decode(), request.read()
        if found := STREAM.match(path):
            return self._stream(found[1], int(request.headers["Last-Event-ID"]))
        headers = {k: v for k, v in request.headers.items() if k not in ("host", "content-length", "content-type")}
        kind = request.headers.get("content-type", "application/octet-stream")
        answer = DjangoClient(raise_request_exception=False).generic(
            request.method, path, body, content_type=kind, headers=headers
        )
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        if self.launched and request.method == "POST" and path == "/v1/runs" and answer.status_code == 201:
            self.launched(Run.objects.get(pk=json.loads(content)["id"]))
        return httpx.Response(answer.status_code, headers=dict(answer.items()), content=content)

    def _stream(self, run_id: str, after: int) -> httpx.Response:
        rows = read(Run.objects.get(pk=run_id).pk, after=after)
        text = HEARTBEAT + b"".join(frame(json.dumps(event_json(r)), event=r.type, id=r.seq) for r in rows)
        return httpx.Response(200, content=text + frame("", event="end"))
