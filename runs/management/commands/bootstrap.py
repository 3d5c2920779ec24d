"""`manage.py bootstrap`: the local admin, a sign-in link, the sample benchmarks. Running it again changes nothing."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from billing.actions import make_key, make_sign_in_link, open_account
from billing.models import ApiKey
from runs.actions.register_samples import register_samples


class Command(BaseCommand):
    help = "Makes the local admin and registers the sample benchmarks; prints a one-time sign-in link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print {url, sign_in, api_key, samples}; the key is new each time"
        )
        parser.add_argument("--no-link", action="store_true", help="only prepare")

    def handle(self, *args: Any, **options: Any) -> None:
        user, account = open_account("admin", admin=True)
        samples = register_samples(account)
        if options["no_link"]:
            return
        link = f"{settings.BASE_URL}/sign-in/{make_sign_in_link(user)}/"
        if options["json"]:
            ApiKey.objects.filter(account=account, name="local setup").delete()
            key = make_key(user, account, "local setup")
            self.stdout.write(
                json.dumps({"url": settings.BASE_URL, "sign_in": link, "api_key": key, "samples": samples})
            )
        else:
            self.stdout.write(f"Sign in once with {link}")
