"""API v1: one place for authentication errors, one shape for every error."""

from __future__ import annotations

import logging

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from benchwright.lib.errors import BenchwrightError
from registry.api import router as registry
from runs.api.boards import router as boards
from runs.api.compare import router as compare
from runs.api.router import router as runs
from sandboxes.api import router as sandboxes

log = logging.getLogger(__name__)
api = NinjaAPI(
    title="Benchwright",
    version="1",
    urls_namespace="v1",
    openapi_url="/openapi.json",
    docs_url="/docs",
    description="Launch runs, read their logs, receipts and scores.",
)
api.add_router("", runs)
api.add_router("", registry)
api.add_router("", sandboxes)
api.add_router("", boards)
api.add_router("", compare)


def _answer(request: HttpRequest, status: int, error: dict[str, object]) -> HttpResponse:
    error["request_id"] = getattr(request, "request_id", "")
    return api.create_response(request, {"error": error}, status=status)


@api.exception_handler(BenchwrightError)
def _ours(request: HttpRequest, error: BenchwrightError) -> HttpResponse:
    response = _answer(request, error.status, error.as_dict())
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0] if error.errors else {}
    field = ".".join(str(part) for part in first.get("loc", ())[1:])
    return _answer(
        request,
        400,
        {
            "code": "invalid_request",
            "message": f"{field or 'The request'}: {first.get('msg', 'is not valid')}.",
            "field": field,
            "hint": "See /v1/docs for what this takes.",
        },
    )


@api.exception_handler(HttpError)
def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    return _answer(
        request, error.status_code, {"code": "bad_request", "message": error.message, "hint": "The body must be JSON."}
    )


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return _answer(request, 404, {"code": "not_found", "message": "There is no such thing."})


@api.exception_handler(Exception)
def _fault(request: HttpRequest, error: Exception) -> HttpResponse:
    log.exception("request %s failed", getattr(request, "request_id", ""))
    return _answer(
        request,
        500,
        {
            "code": "internal",
            "message": "This is a fault of Benchwright; nothing was lost.",
            "hint": "Send the request_id to whoever runs this installation.",
        },
    )
