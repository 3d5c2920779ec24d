from django.db import migrations

from benchwright.lib.paths import ROOT
from benchwright.lib.sql import run_sql_file


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_tables")]
    operations = [run_sql_file(ROOT / "billing" / "sql" / "ledger_append_only.v1.sql")]
