"""Lets the small shared template tags be found; it has no models."""

from django.apps import AppConfig


class LibConfig(AppConfig):
    name = "benchwright.lib"
    label = "lib"
