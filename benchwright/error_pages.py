"""Errors outside any view: as a page for people, as JSON under /v1/."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 in the shape that the caller understands."""
    if request.path.startswith("/v1/"):
        error = {
            "code": "not_found",
            "message": f"There is no {request.path}.",
            "hint": "See /v1/docs.",
            "request_id": getattr(request, "request_id", ""),
        }
        return JsonResponse({"error": error}, status=404)
    return render(request, "404.html", status=404)
