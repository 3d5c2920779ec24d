"""The launch form says the same as the API's body."""

from __future__ import annotations

import pytest

from runs.pages import launch_form
from runs.pages.launch_form import FormError, LaunchForm


def test_an_untouched_advanced_section_adds_nothing_to_the_launch() -> None:
    body = launch_form.body(LaunchForm(prompt="GSM8K", litellm_model="openai/gpt-4o"))
    assert body == {
        "prompt": "GSM8K",
        "model": {"source": "litellm", "identifier": "openai/gpt-4o"},
        "visibility": "private",
    }


def test_a_registry_launch_carries_no_prompt_left_over_from_the_other_tab() -> None:
    form = LaunchForm(
        source="registry", prompt="typed before", benchmark="gsm8k", model_kind="control", control="empty"
    )
    body = launch_form.body(form)
    assert "prompt" not in body
    assert body["benchmark"] == "gsm8k"
    assert body["model"] == {"source": "control", "identifier": "control/empty"}


def test_an_endpoint_takes_its_own_key_and_not_the_providers() -> None:
    form = LaunchForm(
        model_kind="endpoint", endpoint_model="m", base_url="http://h/v1", endpoint_key="a", litellm_key="b"
    )
    assert launch_form.body(form)["model"] == {
        "source": "endpoint",
        "identifier": "m",
        "base_url": "http://h/v1",
        "api_key": "a",
    }


def test_limits_trials_and_sample_get_the_shapes_of_the_api() -> None:
    form = LaunchForm(
        prompt="x",
        litellm_model="m",
        limit_run_cost="5",
        limit_attempt_duration="600",
        limit_task_attempts="2",
        trials_k="5",
        aggregator="majority_on",
        aggregator_field="extracted",
        sample_limit="1,000",
        sample_seed="0",
        metadata="team = a=b\n\n",
    )
    body = launch_form.body(form)
    assert body["limits"] == {"run": {"cost": 5.0}, "attempt": {"duration": 600.0}, "task": {"attempts": 2}}
    assert body["trials"] == {"plan": {"k": 5}, "aggregator": {"name": "majority_on", "field": "extracted"}}
    assert body["sample"] == {"limit": 1000, "seed": 0}
    assert body["metadata"] == {"team": "a=b"}


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"limit_run_cost": "lots"}, "limits.run.cost"),
        ({"limit_run_cost": "nan"}, "limits.run.cost"),
        ({"sample_limit": "0"}, "sample.limit"),
        ({"trials_k": "two"}, "trials"),
        ({"metadata": "no key"}, "metadata"),
    ],
)
def test_what_cannot_be_read_names_its_field(typed: dict[str, str], field: str) -> None:
    with pytest.raises(FormError) as caught:
        launch_form.body(LaunchForm(litellm_model="m", **typed))
    assert caught.value.field == field


def test_a_local_model_is_an_endpoint_of_this_machine() -> None:
    form = LaunchForm(model_kind="local", local_model="smol")
    model = launch_form.body(form, {"smol": "http://127.0.0.1:9/v1"})["model"]
    assert model == {"source": "endpoint", "identifier": "smol", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(FormError):
        launch_form.body(form)


def test_advanced_is_open_only_when_something_in_it_was_set() -> None:
    assert not LaunchForm(prompt="x", idempotency_key="k").advanced_open
    assert LaunchForm(concurrency="4").advanced_open
