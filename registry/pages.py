"""The directory of benchmarks, and the page of one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from benchwright.lib.errors import BenchwrightError
from billing.queries import account_of
from registry.directory import benchmark_page, cards
from registry.official import demote, promote
from registry.queries import impl_by_id
from registry.vocabulary import Act


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


@require_POST
def impl_act(request: HttpRequest, impl_id: str, act: str) -> HttpResponse:
    """POST /registry/impls/<id>/promote/ and …/demote/, from the scorer's form on its subset's page."""
    user = request.user
    if not user.is_authenticated or not user.is_staff or act not in set(Act):
        # Whoever may not do it learns nothing about what there is.
        return render(request, "errors/404.html", {"nav": "registry"}, status=404)
    try:
        impl = impl_by_id(account_of(user), impl_id)
    except BenchwrightError:
        return render(request, "errors/404.html", {"nav": "registry"}, status=404)
    reason = request.POST.get("reason", "")
    try:
        if act == Act.PROMOTE:
            promote(user, impl, reason, override=request.POST.get("override", ""))
            messages.success(request, f"{impl.id} is official now.")
        else:
            demote(user, impl, reason)
            messages.success(request, f"{impl.id} is no longer official.")
    except BenchwrightError as error:
        messages.error(request, f"{error.message} {error.hint or ''}".strip())
    if impl.subset_id is None:
        return redirect("benchmark", impl.benchmark_id)
    return redirect("subset", impl.benchmark_id, impl.subset_id.partition("/")[2])
