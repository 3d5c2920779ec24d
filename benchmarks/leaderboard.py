"""A leaderboard over a million run summaries: milliseconds at the database, for each way of reading it.

./bw bench leaderboard [--runs 1000000] [--models 500] [--json]

The worst case on purpose: all runs are of one subset. They live in a table of the session's own with the product's
columns and indexes, so nobody's data are touched; the statements are the product's. `floor_ms`: fetching as many rows
by their ids.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any

FILL = """
INSERT INTO benchmark_run_summaries (run_id, account_id, benchmark_id, subset_id, impl_id, model, model_key, status,
  visibility, comparability_key, accuracy, selected, passed, failed, errored, cost_model, finished_at)
SELECT gen_random_uuid(), i %% 50, 'b', 'b/test', 'b:' || r.round %% 3,
  jsonb_build_object('source', 'endpoint', 'identifier', 'm' || i %% %(models)s), 'endpoint:m' || i %% %(models)s, 'ok',
  'public', md5((r.round %% 7)::text), x.passed / x.selected::float8, x.selected, x.passed, x.selected - x.passed, 0,
  CASE WHEN i %% 5 > 0 THEN 0.01 END, timestamptz '2026-01-01' + i * interval '1 second'
FROM generate_series(1, %(runs)s) i
CROSS JOIN LATERAL (SELECT i / %(models)s AS round) r
CROSS JOIN LATERAL (SELECT CASE WHEN r.round %% 4 = 0 THEN 100 ELSE 1000 END AS selected) s
CROSS JOIN LATERAL (
  SELECT s.selected, (s.selected * (0.2 + 0.6 * (i %% 1009 * 7919 %% 1009) / 1009.0))::int AS passed
) x
"""


def _median(cursor: Any, text: str, given: dict[str, Any], times: int = 7) -> tuple[float, int]:
    """Milliseconds of a statement with all its rows fetched, and how many there were."""
    took, found = [], 0
    for _ in range(times):
        began = time.perf_counter()
        cursor.execute(text, given)
        found = len(cursor.fetchall())
        took.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(took), 1), found


def main(argv: list[str] | None = None) -> int:
    """Prints the figures; exit 0."""
    parser = argparse.ArgumentParser(prog="bw bench leaderboard")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwright.settings")
    import django

    django.setup()
    from django.db import connection

    from registry.leaderboard import BEST, MEAN, parameters, statement

    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "best": (BEST, {}),
        "best of one impl": (BEST, {"impl_id": "b:1"}),
        "best on one ruler": (BEST, {"comparability_key": "x"}),
        "mean on one ruler": (MEAN, {"comparability_key": "x"}),
        "best of an account's own": (BEST, {"account_id": 7}),
    }
    out: dict[str, Any] = {"runs": args.runs, "models": args.models, "rows": {}}
    with connection.cursor() as cursor:
        cursor.execute("SET temp_buffers = '1GB'")  # a session's own table is not in the shared cache
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'benchmark_run_summaries'")
        indexes = [line for (line,) in cursor.fetchall() if "UNIQUE" not in line]
        cursor.execute(
            "CREATE TEMP TABLE benchmark_run_summaries (LIKE public.benchmark_run_summaries INCLUDING DEFAULTS)"
        )
        cursor.execute(FILL, {"runs": args.runs, "models": args.models})
        for line in indexes:
            cursor.execute(line.replace(" ON public.", " ON pg_temp."))
        cursor.execute("VACUUM ANALYZE benchmark_run_summaries")
        cursor.execute("SELECT min(comparability_key) FROM benchmark_run_summaries")
        ruler = cursor.fetchone()[0]
        for name, (form, extra) in ways.items():
            where = {"subset_id": "b/test"}
            where |= {} if "account_id" in extra else {"visibility": "public"}
            where |= {key: ruler if value == "x" else value for key, value in extra.items()}
            text, given = statement(form, list(where)), parameters(where, 1000)
            took, found = _median(cursor, text, given)
            out["rows"][name] = {"median_ms": took, "answered": found}
        cursor.execute(
            "SELECT array_agg(run_id) FROM (SELECT run_id FROM benchmark_run_summaries LIMIT %s) s", [2 * args.models]
        )
        ids = cursor.fetchone()[0]
        cursor.execute("CREATE INDEX ON benchmark_run_summaries (run_id)")
        out["floor_ms"] = _median(
            cursor, "SELECT * FROM benchmark_run_summaries WHERE run_id = ANY(%(ids)s)", {"ids": ids}
        )[0]
    print(json.dumps(out, indent=1))
    return 0
