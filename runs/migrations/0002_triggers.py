from django.db import migrations

from benchwright.lib.paths import ROOT
from benchwright.lib.sql import run_sql_file

SQL = ROOT / "runs" / "sql"


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_tables"), ("registry", "0001_tables")]
    operations = [
        run_sql_file(SQL / "trace_events_append_only.v1.sql"),
        run_sql_file(SQL / "trace_events_notify.v1.sql"),
        run_sql_file(SQL / "traces_cost.v1.sql"),
        run_sql_file(SQL / "benchmark_run_summaries.v1.sql"),
    ]
