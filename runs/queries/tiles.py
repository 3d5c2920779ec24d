"""The heat map of a run as one string: a sign for each task of the list."""

from __future__ import annotations

from django.db import connection

from runs.models import Run

SIGNS = {"pass": "p", "fail": "f", "err": "e", "running": "r"}


def tiles(run: Run, total: int, selected: list[int] | None) -> str:
    """p f e r; `.` not begun, `-` not selected."""
    signs = ["."] * total
    if selected is not None:
        chosen = set(selected)
        signs = ["." if i in chosen else "-" for i in range(total)]
    if run.invocation:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT index, outcome FROM trace_tasks WHERE run_id = %s AND invocation = %s", [run.pk, run.invocation]
            )
            for index, outcome in cursor.fetchall():
                if index < total:
                    signs[index] = SIGNS[outcome]
    return "".join(signs)
