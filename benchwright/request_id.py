"""Every answer carries the id under which the server logged it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse


class RequestId:
    """Sets `request.request_id` and the `X-Request-Id` header. Works in both the sync and the async chain."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        request.request_id = "req_" + secrets.token_hex(8)  # type: ignore[attr-defined]
        if self.is_async:
            return self._async(request)
        response = self.get_response(request)
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined,index]
        return response

    async def _async(self, request: HttpRequest) -> HttpResponse:
        response = await self.get_response(request)  # type: ignore[misc]
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        return response
