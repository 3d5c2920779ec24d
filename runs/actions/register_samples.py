"""The benchmarks that ship with Benchwright, registered as public ones. Doing it again changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchwright.lib.paths import ROOT
from billing.models import Account
from registry.actions import save_upload
from registry.models import Benchmark
from registry.vocabulary import Visibility
from runs.driver.rules.derivation import SourceFile
from runs.phases.analyze import choose, store_subset

FOLDER = ROOT / "registry" / "samples"
READER = ROOT / "runs" / "guest" / "read_rows.py"


def register_samples(account: Account) -> list[str]:
    """The ids of the samples. Their files are ours, so they are read here; a run reads them in its sandbox again."""
    ids = []
    for sample in json.loads((FOLDER / "index.json").read_text())["samples"]:
        path = FOLDER / sample["file"]
        upload = save_upload(account, path.name, path.read_bytes())
        source = {"files": [{"name": upload.name, "sha256": upload.sha256}]}
        benchmark, created = Benchmark.objects.get_or_create(
            id=sample["name"],
            defaults={
                "name": sample["title"],
                "owner": account,
                "visibility": Visibility.PUBLIC,
                "source": source,
                "description": sample["description"],
            },
        )
        ids.append(benchmark.id)
        if created or benchmark.source != source or not benchmark.subsets.exists():
            Benchmark.objects.filter(pk=benchmark.pk).update(source=source)
            _, made = choose(_read(path), sample["description"])
            store_subset(benchmark, made)
    return ids


def _read(path: Path) -> list[SourceFile]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-I", str(READER), folder, str(path)], capture_output=True, check=True)
        reports: list[dict[str, Any]] = json.loads(done.stdout)["files"]
        return [
            SourceFile(r, [json.loads(line) for line in (Path(folder) / r["out"]).read_text().splitlines()])
            for r in reports
        ]
