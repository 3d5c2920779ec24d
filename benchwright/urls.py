"""The whole URL map."""

from django.http import HttpRequest, HttpResponse
from django.urls import path


def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process serves."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [path("healthz", healthz)]
