"""Rendering a page, or named parts of it for htmx. Only listed parts can be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from benchwright.lib.errors import BenchwrightError


def parts(request: HttpRequest, template: str, names: Iterable[str], context: Mapping[str, Any]) -> HttpResponse:
    """Several parts of one page in one answer; each finds its place by its own id (out of band)."""
    shared = {**context, "oob": True}
    return HttpResponse("".join(render_to_string(f"{template}#{name}", shared, request=request) for name in names))


def refusal(request: HttpRequest, error: BenchwrightError) -> HttpResponse:
    """The page for an error that has no better place to be shown."""
    template = {403: "errors/403.html", 404: "errors/404.html"}.get(error.status, "errors/refused.html")
    context = {"message": error.message, "hint": error.hint, "code": error.status}
    if error.status == 404:
        context = {}  # a thing that is not yours must look exactly like a thing that is not there
    return render(request, template, context, status=error.status)
