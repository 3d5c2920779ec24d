"""A migration operation that runs a numbered .sql file: triggers are reviewed as SQL, not as strings in Python."""

from __future__ import annotations

from pathlib import Path

from django.db import migrations


def run_sql_file(path: Path) -> migrations.RunSQL:
    """Runs the whole file as one statement list. A new meaning is a new file with a new version."""
    return migrations.RunSQL(path.read_text(), migrations.RunSQL.noop)
