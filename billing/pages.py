"""Signing in and out, and the keys of an account."""

from __future__ import annotations

from django.contrib.auth import authenticate, login, logout
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from benchwright.lib.canonical import sha256
from benchwright.lib.errors import BenchwrightError
from billing.actions import make_key, revoke_key, use_sign_in_link
from billing.models import ApiKey
from billing.queries import account_of, role_in
from billing.vocabulary import MemberRole

BACKEND = "django.contrib.auth.backends.ModelBackend"
MOST_TRIES, TRIES_SECONDS = 10, 300  # wrong passwords for one name from one address


def _next(request: HttpRequest) -> str:
    """Where to go afterwards: only to a page of this site."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    hosts = {request.get_host()}
    return target if url_has_allowed_host_and_scheme(target, hosts, require_https=request.is_secure()) else ""


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """GET shows the form; POST signs in with a name and a password. Too many wrong tries: 429 for a while."""
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(_next(request) or "launch")
        return render(request, "billing/sign_in.html", {"next": _next(request)})
    name, password = request.POST.get("username", "").strip(), request.POST.get("password", "")
    tries = f"sign-in:{sha256(name.lower())[:32]}:{request.META.get('REMOTE_ADDR', '')}"
    if (cache.get(tries) or 0) >= MOST_TRIES:
        wait = {"next": _next(request), "username": name[:150], "error": "Too many tries. Wait five minutes."}
        return render(request, "billing/sign_in.html", wait, status=429)
    user = authenticate(request, username=name, password=password)
    if user is None:
        cache.add(tries, 0, TRIES_SECONDS)
        cache.incr(tries)
        # The same words for a wrong name and a wrong password: the page does not say who has an account.
        context = {
            "next": _next(request),
            "username": name[:150],
            "error": "That name and password don't go together.",
            "hint": "Check both, or use a one-time link.",
        }
        return render(request, "billing/sign_in.html", context, status=403)
    login(request, user)
    return redirect(_next(request) or "launch")


@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET asks, POST spends the link. A mere fetch (a mail scanner, a link preview) must not use it up."""
    if request.method != "POST":
        return render(request, "billing/sign_in.html", {"token": token, "next": _next(request)})
    try:
        user = use_sign_in_link(token)
    except BenchwrightError as error:
        context = {"error": error.message, "hint": error.hint}
        return render(request, "billing/sign_in.html", context, status=error.status)
    login(request, user, backend=BACKEND)
    return redirect(_next(request) or "launch")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """POST only, so that no link or picture can sign anyone out."""
    logout(request)
    return redirect("sign_in")


@never_cache
@require_http_methods(["GET", "POST"])
def api_keys(request: HttpRequest) -> HttpResponse:
    """The keys of the account: make one (shown once), revoke one."""
    user = request.user
    account = account_of(user) if user.is_authenticated else None
    if account is None or not user.is_authenticated:
        return redirect(f"/sign-in/?next={request.path}")
    if request.method == "POST" and role_in(user, account.pk) in (None, MemberRole.VIEWER):
        return render(request, "errors/403.html", status=403)
    context: dict[str, object] = {"nav": "keys"}
    if request.method == "POST" and request.POST.get("act") == "revoke":
        key = request.POST.get("key", "")
        if key.isdigit() and len(key) < 19:
            revoke_key(account, int(key))
        return redirect("api_keys")
    if request.method == "POST":
        name = request.POST.get("name", "").strip()
        if name:
            context["new_key"] = make_key(user, account, name)
        else:
            context["error"] = BenchwrightError("A key needs a name.", hint="Say what it is for.")
    context["keys"] = ApiKey.objects.filter(account=account).order_by("revoked_at", "-created_at")
    return render(request, "billing/api_keys.html", context)
