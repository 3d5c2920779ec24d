"""The whole URL map."""

from __future__ import annotations

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path

from benchwright.api import api


def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process serves."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """200 once the database answers; 503 says what is missing."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as e:
        return JsonResponse({"ready": False, "database": str(e).splitlines()[0]}, status=503)
    return JsonResponse({"ready": True})


urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("v1/", api.urls),
    path("", include("billing.urls")),
    path("", include("registry.urls")),
    path("", include("runs.urls")),
]
handler404 = "benchwright.error_pages.not_found"
