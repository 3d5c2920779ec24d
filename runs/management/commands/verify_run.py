"""`manage.py verify_run <id>`: the digest chain, and stored projections against rebuilt ones. Exit 1 on a
difference.
"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchwright.lib.errors import BenchwrightError
from runs.projections.rebuild import differences
from runs.queries.access import get_run


class Command(BaseCommand):
    help = "Checks a run's log and projections."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = get_run(options["run"])
        except BenchwrightError as e:
            raise CommandError(e.message, returncode=2) from None
        found = list(differences(run))
        for line in found:
            self.stdout.write(line)
        if found:
            sys.exit(1)
        self.stdout.write(f"{run.pk}: {run.next_seq} events, chain whole, projections equal. Head {run.head_digest}")
