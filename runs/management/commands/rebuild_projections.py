"""`manage.py rebuild_projections [run]`: throws the stored projections away and folds the log again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runs.models import Run
from runs.projections.rebuild import rebuild
from runs.queries.access import get_run


class Command(BaseCommand):
    help = "Folds one run's log again, or every ended run's."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", nargs="?")

    def handle(self, *args: Any, **options: Any) -> None:
        runs = [get_run(options["run"])] if options["run"] else list(Run.objects.exclude(status="running"))
        for run in runs:
            rebuild(run)
        self.stdout.write(f"{len(runs)} rebuilt.")
