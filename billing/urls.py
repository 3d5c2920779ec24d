"""Page routes of people and their keys."""

from __future__ import annotations

from django.urls import path

from billing.pages import api_keys, sign_in, sign_in_link, sign_out

urlpatterns = [
    path("sign-in/", sign_in, name="sign_in"),
    path("sign-in/<str:token>/", sign_in_link, name="sign_in_link"),
    path("sign-out/", sign_out, name="sign_out"),
    path("settings/keys/", api_keys, name="api_keys"),
]
