"""Page routes of the registry."""

from __future__ import annotations

from django.urls import path

from registry.pages import benchmark, directory

urlpatterns = [
    path("registry/", directory, name="registry"),
    path("registry/<slug:benchmark_id>/", benchmark, name="benchmark"),
]
