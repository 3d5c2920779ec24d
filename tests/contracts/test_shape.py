"""How the project is laid out: what a reader may count on without opening a file."""

from __future__ import annotations

import ast
import re

import pytest

from tests.contracts.project import APPS, ROOT, files, is_foreign, name_of

LONGEST = 600
# A list of names is what these are for; `benchwright` loads the Celery app.
MAY_LIST_NAMES = (
    "benchwright/__init__.py",
    "sdk/benchwright_client/__init__.py",
    "sdk/benchwright_scoring/__init__.py",
)
OURS = [p for p in files() if p.suffix in {".py", ".js", ".css", ".html", ".sql", ".md", ".sh"} and not is_foreign(p)]


def test_an_init_file_is_a_docstring() -> None:
    wrong = []
    for path in (p for p in files() if p.name == "__init__.py"):
        if path.parent.name == "models" or name_of(path) in MAY_LIST_NAMES:
            continue
        body = ast.parse(path.read_text()).body
        is_text = all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in body)
        if len(body) > 1 or not is_text:
            wrong.append(name_of(path))
    assert not wrong, f"importing a package must run nothing: {wrong}"


def test_every_package_of_an_app_says_what_it_is() -> None:
    silent = [
        name_of(p)
        for p in files()
        if p.name == "__init__.py"
        and name_of(p).startswith(APPS)
        and p.parent.name not in {"migrations", "management", "commands", "templatetags"}
        and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not silent


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(p)
        for p in files()
        if p.suffix == ".py"
        and "/migrations/" not in name_of(p)
        and p.name != "__init__.py"
        and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not silent


def test_no_file_is_longer_than_600_lines() -> None:
    long = {name_of(p): n for p in OURS if (n := len(p.read_text().splitlines())) > LONGEST}
    assert not long


def test_no_file_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "helpers", "common", "misc", "util"}
    assert not [name_of(p) for p in files() if p.stem in drawers or drawers & set(p.relative_to(ROOT).parts)]


# Written apart, so that this file does not hold what it looks for.
UNFINISHED = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "assert " + "True", "mark." + "xfail"]
UNFINISHED += ["raise NotImplemented" + "Error"]
HOLLOW = [
    "seam" + "less",
    "blazing" + "ly",
    "cutting" + "-edge",
    "world" + "-class",
    "game" + "-chang",
    "effort" + "less",
]
HOLLOW += ["revolution" + "ary", "super" + "charge", "best-in" + "-class", "state-of" + "-the-art", "lorem" + " ipsum"]


@pytest.mark.parametrize("word", UNFINISHED)
def test_nothing_is_left_unfinished(word: str) -> None:
    pattern = re.compile(rf"\b{re.escape(word)}\b")
    assert not [name_of(p) for p in OURS if pattern.search(p.read_text())]


@pytest.mark.parametrize("word", HOLLOW)
def test_no_page_praises_itself(word: str) -> None:
    assert not [name_of(p) for p in OURS if word in p.read_text().lower()]


def test_no_path_of_somebodys_machine_is_in_the_project() -> None:
    home = re.compile(r"(?<![\w.])/(?:home|Users)/(?!user\b|somebody\b|you\b)\w+/")
    assert not [name_of(p) for p in OURS if home.search(p.read_text())]


def test_sql_is_in_numbered_files_and_not_in_migrations() -> None:
    migrations = [p for p in files() if "/migrations/" in name_of(p) and p.suffix == ".py"]
    assert not [name_of(p) for p in migrations if "RunSQL" in p.read_text()]
    sql = [p for p in files() if p.suffix == ".sql"]
    assert sql and not [name_of(p) for p in sql if not re.fullmatch(r"\w+\.v\d+\.sql", p.name)]
    named = "\n".join(p.read_text() for p in migrations)
    assert not [p.name for p in sql if p.name not in named and p.stem not in named], "no migration names it"
