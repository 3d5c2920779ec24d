"""What a gateway accepts as configuration, what a model costs, and the artifact without secrets."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
import yaml

from sandboxes.model_proxy.config import RouteRefused, litellm_yaml, read_config, read_route
from sandboxes.model_proxy.prices import Price, Rates, amount, find_price
from sandboxes.model_proxy.usage import Usage

ENDPOINT = {"kind": "endpoint", "model": "m", "base_url": "https://host/v1/"}


def test_a_route_is_read_with_its_defaults() -> None:
    config = read_config({"run": "r", "secret": "00" * 16, "route": ENDPOINT})
    assert config.route.base_url == "https://host/v1"
    assert (config.retries.max, config.max_concurrency, config.timeout_s) == (4, 32, 600.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "magic"}, "route.kind"),
        ({"model": ""}, "route.model"),
        ({"base_url": None}, "route.base_url"),
        ({"base_url": "ftp://host"}, "route.base_url"),
        ({"base_url": "https://ho st/"}, "route.base_url"),
        ({"base_url": "https://host:99999/"}, "route.base_url"),
        ({"base_url": "https://user:word@host/"}, "route.base_url"),
        ({"base_url": "https://host/v1?key=1"}, "route.base_url"),
        ({"api_key": "a\nb"}, "route.api_key"),
        ({"headers": {"x": "a\r\nb"}}, "route.headers"),
        ({"headers": {"bad name": "a"}}, "route.headers"),
        ({"params": {"messages": []}}, "route.params.messages"),
        ({"params": []}, "route.params"),
        ({"litellm_params": {"num_retries": 3}}, "route.litellm_params.num_retries"),
        ({"kind": "control", "control": "psychic"}, "route.control"),
        ({"price": {"input_per_token": 0.1, "output_per_token": "1"}}, "route.price.input_per_token"),
        ({"price": {"input_per_token": "1", "output_per_token": "-1"}}, "route.price.output_per_token"),
        ({"price": {"input_per_token": "1"}}, "route.price.output_per_token"),
        ({"pirce": {}}, "route.pirce"),
    ],
)
def test_a_wrong_route_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(RouteRefused) as caught:
        read_route(ENDPOINT | change)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"secret": "zz"}, "secret"),
        ({"secret": "00"}, "secret"),
        ({"retries": {"max": -1}}, "retries.max"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_concurrency": True}, "max_concurrency"),
        ({"what": 1}, "what"),
    ],
)
def test_a_wrong_configuration_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(RouteRefused) as caught:
        read_config({"run": "r", "secret": "00" * 16, "route": ENDPOINT} | change)
    assert caught.value.field == field


def test_the_artifact_is_litellm_yaml_without_a_secret() -> None:
    route = read_route(
        {
            "kind": "litellm",
            "model": "bedrock/x",
            "base_url": "https://host/v1",
            "api_key": "sk-secret-1",
            "headers": {"X-Org-Key": "hdr-secret"},
            "params": {"temperature": 0, "max_tokens": 9},
            "litellm_params": {"aws_region_name": "eu-1", "aws_secret_access_key": "aws-secret"},
            "price": {"input_per_token": "0.5", "output_per_token": "1"},
        }
    )
    text = litellm_yaml(route)
    for secret in ("sk-secret-1", "hdr-secret", "aws-secret"):
        assert secret not in text and secret not in repr(route)
        assert secret in route.secrets()
    params = yaml.safe_load(text)["model_list"][0]["litellm_params"]
    assert params["model"] == "bedrock/x" and params["api_base"] == "https://host/v1"
    assert params["api_key"] == "os.environ/BENCHWRIGHT_MODEL_KEY"
    assert params["extra_headers"] == {"X-Org-Key": "os.environ/BENCHWRIGHT_HEADER_X_ORG_KEY"}
    assert params["aws_secret_access_key"] == "os.environ/BENCHWRIGHT_PARAM_AWS_SECRET_ACCESS_KEY"
    assert (params["aws_region_name"], params["temperature"], params["max_tokens"]) == ("eu-1", 0, 9)
    assert yaml.safe_load(litellm_yaml(read_route(ENDPOINT)))["model_list"][0]["litellm_params"]["model"] == "openai/m"


@pytest.mark.parametrize(
    ("kind", "model", "known"),
    [
        ("litellm", "openai/gpt-4o", True),
        ("litellm", "gpt-4o", True),
        ("litellm", "gemini/gemini-2.5-pro", True),
        ("litellm", "anthropic/gpt-4o", False),
        ("litellm", "openai/no-such-model", False),
        ("litellm", "openai/dall-e-3", False),
        ("endpoint", "gpt-4o", False),
        ("endpoint", "openai/gpt-4o", False),
        ("endpoint", "gemini/gemini-2.5-pro", True),
        ("endpoint", "my/gpt-4o", False),
    ],
)
def test_only_a_known_model_has_a_price(kind: str, model: str, known: bool) -> None:
    price = find_price(read_route({"kind": kind, "model": model, "base_url": "https://host/v1"}))
    assert (price is not None) is known


def test_prices_are_exact_and_longer_prompts_dearer() -> None:
    price = find_price(read_route({"kind": "litellm", "model": "gemini/gemini-2.5-pro"}))
    assert price is not None and price.source.startswith("litellm ")
    assert price.cost(Usage(200_000, 10)) == Decimal("0.2501")
    assert price.cost(Usage(200_001, 10)) == Decimal("200001") * Decimal("0.0000025") + Decimal("0.00015")


def test_another_service_tier_has_no_known_price() -> None:
    route = {"kind": "litellm", "model": "openai/gpt-4o", "params": {"service_tier": "flex"}}
    assert find_price(read_route(route)) is None


def test_an_unknown_part_of_the_usage_makes_the_cost_unknown() -> None:
    price = Price(Rates(Decimal(1), Decimal(2)), "override")
    assert price.cost(Usage(None, 5)) is None and price.cost(Usage(5, None)) is None
    assert price.cost(Usage(5, None), embedding=True) == 5
    assert price.cost(Usage(0, 0)) == 0


def test_cached_tokens_never_cost_below_nothing() -> None:
    price = Price(Rates(Decimal(2), Decimal(3), Decimal(1)), "override")
    assert price.cost(Usage(10, 0, cached=50)) == 10
    assert price.cost(Usage(10, 0, cached=None)) == 20


def test_amounts_are_plain_decimals() -> None:
    values = [Decimal("1E-7"), Decimal("1.500"), Decimal("0E-9"), Decimal(100), None]
    assert [amount(v) for v in values] == ["0.0000001", "1.5", "0", "100", None]


def test_prices_are_read_without_importing_litellm() -> None:
    code = (
        "import sys; from sandboxes.model_proxy.config import read_route; from sandboxes.model_proxy.prices import *;"
        "assert find_price(read_route({'kind': 'litellm', 'model': 'gpt-4o'})); assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
