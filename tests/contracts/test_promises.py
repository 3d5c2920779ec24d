"""Invariants that are about where code stands, and about published things."""

from __future__ import annotations

import re
from typing import Any

import pytest

from billing.actions import open_account
from registry.actions import open_benchmark, publish_impl, save_subset
from registry.models import Benchmark, Impl
from registry.queries import snapshot_rows
from tests.contracts.project import APPS, ROOT, files, name_of, read

BEFORE_ATTACH = ("find", "fetch", "analyze", "setup")
# Verbs of the web, the one way to halt, and the worker's context.
APPENDERS = re.compile(r"runs/actions/\w+\.py|runs/limits/halt\.py|runs/pipeline/context\.py")


def test_only_verbs_and_the_worker_append_to_a_log() -> None:
    importing = re.compile(r"from runs\.events\.log import .*\bappend\b|runs\.events\.log\.append")
    users = {
        name_of(p)
        for p in files()
        if p.suffix == ".py" and name_of(p).startswith(APPS) and importing.search(p.read_text())
    }
    assert users and not [name for name in users if not APPENDERS.fullmatch(name)]


def test_no_phase_before_attach_reads_the_model() -> None:
    assert not [n for n in BEFORE_ATTACH if re.search(r"run\.model\b|ModelProxyArtifact", read(f"runs/phases/{n}.py"))]


def test_the_guest_is_never_imported_by_the_server() -> None:
    importing = re.compile(r"^\s*(?:from|import) (?:runs\.)?guest\b", re.M)
    server = [
        p for p in files() if p.suffix == ".py" and name_of(p).startswith(APPS) and "runs/guest/" not in name_of(p)
    ]
    assert not [name_of(p) for p in server if importing.search(p.read_text())]


def test_no_float_holds_money() -> None:
    models = [p for p in files() if re.search(r"/models/\w+\.py$|/migrations/\w+\.py$", name_of(p))]
    wrong = re.compile(r"(?:cost|amount|usd|price|balance)\w*'?,?\s*[=(:]?\s*models\.FloatField")
    assert not [name_of(p) for p in models if wrong.search(p.read_text())]


def benchmark() -> Benchmark:
    """A fresh one."""
    _, account = open_account("publisher")
    return open_benchmark(account, "Sums", source={"files": []})


def tasks(*questions: str) -> list[dict[str, Any]]:
    """A task list."""
    return [{"row": {"question": q}, "reference": None, "choices": None} for q in questions]


@pytest.mark.django_db
def test_a_changed_scorer_has_a_new_id_and_the_old_one_stays() -> None:
    made = benchmark()
    first = publish_impl(made, None, "class TaskImpl: ...", proof={}, run_id=None)
    again = publish_impl(made, None, "class TaskImpl: ...", proof={}, run_id=None)
    changed = publish_impl(made, None, "class TaskImpl: ... # better", proof={}, run_id=None)
    assert first.id == again.id != changed.id
    assert Impl.objects.get(pk=first.id).source == "class TaskImpl: ..."


@pytest.mark.django_db
def test_a_changed_task_list_is_a_new_snapshot_and_the_old_one_stays() -> None:
    made = benchmark()
    _, first = save_subset(made, "default", tasks("1 + 1?"), field_map={})
    subset, second = save_subset(made, "default", tasks("1 + 1?", "2 + 2?"), field_map={})
    assert first.digest != second.digest and subset.snapshot_id == second.pk
    assert [t["row"]["question"] for t in snapshot_rows(first)] == ["1 + 1?"]


def test_every_sql_file_says_why_it_is_there() -> None:
    assert not [p.name for p in files() if p.suffix == ".sql" and not p.read_text().startswith("-- ")]


def test_ci_runs_on_a_clean_checkout_without_asking() -> None:
    text = read(".ci/run")
    assert text.startswith("#!/bin/sh") and "set -eu" in text and (ROOT / ".ci" / "run").stat().st_mode & 0o111
