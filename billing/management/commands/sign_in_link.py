"""`manage.py sign_in_link [username]`: a one-time link."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.actions import make_sign_in_link
from billing.models import User


class Command(BaseCommand):
    help = "Prints a one-time sign-in link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", nargs="?", default="admin")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['username']!r}.")
        self.stdout.write(f"{settings.BASE_URL}/sign-in/{make_sign_in_link(user)}/")
