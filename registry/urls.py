"""Page routes of the registry."""

from __future__ import annotations

from django.urls import path

from registry.pages import benchmark, directory, impl_act

urlpatterns = [
    path("registry/", directory, name="registry"),
    path("registry/impls/<str:impl_id>/<slug:act>/", impl_act, name="impl_act"),
    path("registry/<slug:benchmark_id>/", benchmark, name="benchmark"),
]
