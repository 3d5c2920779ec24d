"""API v1 as promised: every route is on the page about it, every error has one shape, every code is listed."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from benchwright.api import api
from benchwright.lib.errors import BenchwrightError
from runs.actions.requests import KEYS, MODEL_KEYS, PARAM_KEYS
from tests.contracts.project import APPS, files, name_of, read, table_cells

PAGE = read("docs/api.md")
# Where an answer of the API gets its code: verbs, questions, doors. Phases have a section of their own.
DOORS = re.compile(
    r"(benchwright/(lib/)?\w+|\w+/(api|errors|queries|actions)|runs/(api|actions|queries|limits)/\w+)\.py"
)


def routes() -> set[str]:
    """`METHOD /v1/path` of every operation in the OpenAPI document."""
    return {
        f"{method.upper()} {path}"
        for path, operations in api.get_openapi_schema(path_prefix="/v1/")["paths"].items()
        for method in operations
    }


def subclasses(cls: type[BenchwrightError]) -> set[type[BenchwrightError]]:
    """All below it that the apps' `errors.py` declare."""
    found = set(cls.__subclasses__())
    return found | {c for sub in found for c in subclasses(sub)}


def declared() -> list[type[BenchwrightError]]:
    """Every error class of the product."""
    for app in APPS[1:]:
        __import__(f"{app}.errors")
    return [c for c in subclasses(BenchwrightError) if c.__module__.split(".")[0] in APPS]


def test_every_endpoint_is_on_the_page_and_no_other_is() -> None:
    told = set(re.findall(r"`((?:GET|POST|PATCH|PUT|DELETE) /v1/[^`?]*)`", PAGE))
    assert told == routes()


def test_every_operation_has_a_summary_and_says_what_it_takes() -> None:
    for path, operations in api.get_openapi_schema(path_prefix="/v1/")["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary") and operation.get("description"), f"{method} {path}"


def test_every_key_of_a_launch_is_on_the_page() -> None:
    told = set(table_cells(PAGE.partition("## Launching")[2].partition("\n## ")[0]))
    wanted = {*KEYS, *(f"model.{k}" for k in MODEL_KEYS if k != "params"), "model.params"}
    assert wanted <= told, wanted - told
    assert all(f"`{name}`" in PAGE for name in PARAM_KEYS)


def test_every_error_code_is_on_the_page() -> None:
    in_code = {c.code for c in declared() if not c.__module__.startswith("sandboxes.model_proxy")}
    for path in files():
        if DOORS.fullmatch(name_of(path)):
            in_code |= set(re.findall(r"code ?= ?\"([a-z_]+)\"", path.read_text()))
    told = set(table_cells(PAGE.partition("## Errors")[2]))
    assert in_code - {"error"} <= told, in_code - told


def test_every_reason_for_which_a_run_ends_in_error_is_on_the_page() -> None:
    told = set(table_cells(PAGE.partition("### Why a run ends in error")[2])) | set(table_cells(PAGE))
    raised = {
        code
        for path in files()
        if re.fullmatch(r"runs/(phases|pipeline)/\w+\.py", name_of(path))
        for code in re.findall(r"code ?= ?\"([a-z_]+)\"", path.read_text())
    }
    assert raised <= told, raised - told


def test_no_code_on_the_page_is_made_up() -> None:
    source = "\n".join(p.read_text() for p in files() if p.suffix == ".py" and name_of(p).startswith(APPS))
    told = table_cells(PAGE.partition("## Errors")[2])
    assert not [code for code in told if f'"{code}"' not in source]


def test_every_error_says_what_it_means_in_words() -> None:
    for cls in declared():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", cls.code), cls
        assert 400 <= cls.status < 600, cls
        assert (cls.__doc__ or "").strip() and cls.__doc__ != BenchwrightError.__doc__, cls


def test_each_apps_error_tree_names_all_its_errors() -> None:
    for app in APPS[1:]:
        module = __import__(f"{app}.errors", fromlist=["__doc__"])
        missing = [
            c.__name__ for c in declared() if c.__module__ == f"{app}.errors" and c.__name__ not in module.__doc__
        ]
        assert not missing, f"{app}/errors.py draws its tree without {missing}"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("get", "/v1/runs", 401, "not_signed_in"),
        ("post", "/v1/runs", 401, "not_signed_in"),
        ("get", "/v1/runs/0/tasks/abc", 400, "invalid_request"),
        ("get", "/v1/nowhere", 404, "not_found"),
    ],
)
def test_an_error_has_one_shape_wherever_it_comes_from(method: str, path: str, status: int, code: str) -> None:
    answer = getattr(Client(raise_request_exception=False), method)(path)
    error = json.loads(answer.content)["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert set(error) <= {"code", "message", "field", "hint", "data", "request_id"}
    assert error["message"] and error["request_id"] == answer["X-Request-Id"]


def test_an_error_without_a_key_says_how_to_send_one() -> None:
    answer = Client().get("/v1/runs")
    assert answer["WWW-Authenticate"] == "Bearer"
    assert "bw_" in json.loads(answer.content)["error"]["hint"]
