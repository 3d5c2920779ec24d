"""Replays and forks at the door: what is taken from the reference, and what never gets into the log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from registry.actions import publish_impl, save_subset
from registry.models import Benchmark
from runs.actions.launch import launch
from runs.actions.requests import launch_request
from runs.errors import LaunchRefused
from runs.events.log import append, read
from runs.events.types.artifact import (
    AnalyzeArtifact,
    AtomizeArtifact,
    BenchmarkResolved,
    DatasetTasksArtifact,
    FetchArtifact,
    SetupArtifact,
)
from runs.models import Run
from runs.phases.setup import scoring_identity
from sandboxes.models import ProviderSecret
from tests.factories.runs import make_person, make_run

pytestmark = pytest.mark.django_db
ENDPOINT = {"source": "endpoint", "identifier": "m", "base_url": "http://127.0.0.1:9/v1"}
ROWS = [{"row": {"q": n}, "reference": None, "choices": None} for n in range(5)]


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.pipeline.dispatch.dispatch", lambda run_id: None)


def reference(scoring: str = "", **given: Any) -> Run:
    """A run whose phases have all left something."""
    user, account = make_person()
    benchmark = Benchmark.objects.create(id="sums", name="Sums", owner=account, source={"files": []})
    subset, snapshot = save_subset(benchmark, "default", ROWS, field_map={})
    impl = publish_impl(benchmark, subset, "class TaskImpl: pass", proof={}, run_id=None)
    run = make_run(
        account, user, **{"model": ENDPOINT, "sample": {"limit": 3}, "limits": {"run": {"tokens": 9}}, **given}
    )
    append(
        run.pk,
        [
            BenchmarkResolved(benchmark_id="sums", source={"files": []}, why="named"),
            FetchArtifact(sources=[]),
            AnalyzeArtifact(files=[], subsets=[], shape="", field_map={}, why=""),
            DatasetTasksArtifact(subset_id=subset.id, snapshot_digest=snapshot.digest, count=5, selected=[0, 1, 2]),
            SetupArtifact(
                python="3", scoring_version="1", scoring_digest=scoring or scoring_identity()[1], requirements=[]
            ),
            AtomizeArtifact(invocation=1, impl_id=impl.id, sha256=impl.impl_fingerprint, source=impl.source, proof={}),
        ],
    )
    return run


def again(run: Run, **body: Any) -> Run:
    """A launch by the reference's owner."""
    return launch(run.user, run.account, launch_request(body))


def test_a_replay_takes_model_key_selection_trials_and_limits_from_its_reference() -> None:
    first = reference()
    secret = ProviderSecret(account=first.account, name="model", run_id=first.pk)
    secret.seal("sk-very-secret")
    secret.save()
    run = again(first, replay=str(first.pk))
    assert (run.model, run.sample, run.limits) == (ENDPOINT, {"limit": 3}, {"run": {"tokens": 9}})
    assert run.parent_id == first.pk and run.trials_config["plan"] == first.trials_config["plan"]
    assert ProviderSecret.objects.get(run_id=run.pk).open() == "sk-very-secret"


def test_another_model_does_not_get_the_key_of_the_reference() -> None:
    first = reference()
    secret = ProviderSecret(account=first.account, name="model", run_id=first.pk)
    secret.seal("sk-very-secret")
    secret.save()
    run = again(first, replay=str(first.pk), model={**ENDPOINT, "base_url": "http://127.0.0.1:10/v1"})
    assert not ProviderSecret.objects.filter(run_id=run.pk).exists()


def test_a_key_given_in_overrides_is_sealed_and_not_in_the_log() -> None:
    first = reference()
    run = again(first, fork=str(first.pk), overrides={"model": {**ENDPOINT, "api_key": "sk-very-secret"}})
    assert "sk-very-secret" not in json.dumps([row.data for row in read(run.pk)])
    assert ProviderSecret.objects.get(run_id=run.pk).open() == "sk-very-secret"


def test_setup_with_other_scoring_helpers_is_not_passed_off_as_the_same() -> None:
    first = reference(scoring="0" * 64)
    with pytest.raises(LaunchRefused, match="scoring helpers have changed"):
        again(first, replay=str(first.pk))
    assert again(first, fork=str(first.pk), rewind_to="setup").rewind_phase == "setup"


def test_the_page_of_a_fork_leads_to_its_parent() -> None:
    first = reference()
    run = again(first, fork=str(first.pk), rewind_to="atomize", instructions="Be strict.")
    browser = Client()
    browser.force_login(first.user)
    page = browser.get(f"/runs/{run.pk}/").content.decode()
    assert f"/runs/{first.pk}/" in page and "at atomize" in page
    assert run.launch["instructions"] == "Be strict." and "Be strict." in run.prompt
