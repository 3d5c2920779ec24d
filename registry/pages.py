"""The directory of benchmarks, and the page of one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from benchwright.lib.errors import BenchwrightError
from billing.queries import account_of
from registry.directory import benchmark_page, cards


@require_GET
def directory(request: HttpRequest) -> HttpResponse:
    """GET /registry/; htmx gets the results alone."""
    account = account_of(request.user) if request.user.is_authenticated else None
    q = request.GET.get("q", "").strip()[:200]
    context = {"nav": "registry", "q": q, "benchmarks": cards(account, q)}
    name = "registry/list.html#results" if getattr(request, "htmx", False) else "registry/list.html"
    return render(request, name, context)


@require_GET
def benchmark(request: HttpRequest, benchmark_id: str) -> HttpResponse:
    """GET /registry/<id>/."""
    account = account_of(request.user) if request.user.is_authenticated else None
    try:
        found = benchmark_page(account, benchmark_id)
    except BenchwrightError:
        return render(request, "errors/404.html", {"nav": "registry"}, status=404)
    return render(request, "registry/benchmark.html", {"nav": "registry", "benchmark": found})
