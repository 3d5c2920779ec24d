"""The web door: pages, API and streams."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwright.settings")
os.environ.setdefault("BENCHWRIGHT_DB_POOL", "16")

from django.core.asgi import get_asgi_application

application = get_asgi_application()
