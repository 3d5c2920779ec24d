"""The README: its commands run, its table of variables is whole, its map is of this folder."""

from __future__ import annotations

import ast
import re

import pytest

from sandboxes.model_proxy.providers import PROVIDERS
from tests.contracts.project import APPS, ROOT, code_blocks, files, name_of, read, table_cells

README = read("README.md")
CODE = [
    p
    for p in files()
    if (p.suffix == ".py" or p.name == "bw")
    and (name_of(p).startswith((*APPS, "benchmarks")) or p.name in ("bw", "manage.py"))
    and not name_of(p).startswith("runs/guest/")  # runs inside a sandbox, where the operator's variables are not
]
# Set by us for our own children, or read in a sandbox: not the operator's to set.
OURS_ALONE = {
    "BW_HUB_FD",
    "BW_PYTHON",
    "BW_SANDBOX",
    "VENV_PYTHON",
    "DJANGO_SETTINGS_MODULE",
    "PYTHONPATH",
    "HOME",
    "PATH",
    "TERM",
}
READERS = {"get", "pop", "flag", "integer", "words", "getenv"}
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def test_the_test_command_is_bw_test() -> None:
    lines = [line.strip() for block in code_blocks(README) for line in block.splitlines()]
    assert "./bw test" in lines and "./bw demo" in lines
    assert re.search(r"^exec \./bw test", read(".ci/run"), re.M), "CI does what the README says"


def test_every_command_that_a_page_shows_exists() -> None:
    known = set(re.findall(r"^    \(\"(\w+)\", \"", read("bw"), re.M))
    assert "test" in known
    shown = {c for p in files() if p.suffix == ".md" for c in re.findall(r"\./bw (\w+)", p.read_text())}
    assert shown <= known, shown - known


def test_every_management_command_that_a_page_shows_exists() -> None:
    own = {p.stem for p in files() if "/management/commands/" in name_of(p)}
    known = own | {"migrate", "collectstatic", "createsuperuser", "changepassword", "shell"}
    shown = {
        c
        for p in files()
        if p.suffix == ".md"
        for c in re.findall(r"(?:\./bw manage|manage\.py) ([a-z]\w*)", p.read_text())
    }
    assert shown <= known, shown - known


def variables() -> dict[str, str]:
    """Each environment variable that the code reads, with a file that does."""
    found: dict[str, str] = {}
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            for name in _read_by(node):
                found.setdefault(name, name_of(path))
    return found


def _read_by(node: ast.AST) -> list[str]:
    """Names in `os.environ.get("X")`, `env["X"]`, `env.flag("X")`; and whatever begins with BENCHWRIGHT_."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.findall(r"^BENCHWRIGHT_[A-Z0-9_]+$", node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS and node.args:
        owner, given = node.func.value, node.args[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        owner, given = node.value, node.slice
    else:
        return []
    if not re.search(r"\b_?env(iron)?$", ast.unparse(owner)) and ast.unparse(owner) != "os":
        return []
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
        return []
    return [given.value] if VARIABLE.fullmatch(given.value) else []


def told() -> set[str]:
    """The variables that the README's tables name."""
    return {
        name
        for name in table_cells(README.partition("## Settings")[2].partition("\n## ")[0])
        if VARIABLE.fullmatch(name)
    }


def test_every_variable_that_the_code_reads_is_in_the_table() -> None:
    missing = {
        name: where
        for name, where in variables().items()
        if name not in OURS_ALONE
        and name not in told()
        and not (name.endswith("_") and any(t.startswith(name) for t in told()))
    }
    assert not missing


def test_no_variable_in_the_table_is_made_up() -> None:
    source = "\n".join(p.read_text() for p in files() if p.suffix in {".py", ".sh"} or p.name in {"bw", "run"})
    stems = [name for name in variables() if name.endswith("_")]
    made_up = [n for n in told() if n not in source and not any(n.startswith(stem) for stem in stems)]
    assert not made_up


def test_every_providers_key_is_in_the_table() -> None:
    assert {p.key_variable for p in PROVIDERS.values()} <= told()


def test_the_map_shows_every_folder_and_no_other() -> None:
    part = README.partition("## What is where")[2].partition("\n## ")[0]
    there = {name_of(p).split("/")[0] for p in files() if "/" in name_of(p)}
    mapped = {name.rstrip("/") for name in table_cells(part) if name.endswith("/")}
    assert mapped == {name for name in there if not name.startswith(".")}


@pytest.mark.parametrize("tier", ["unit", "db", "sdk", "contracts", "flows", "sandbox", "browser"])
def test_every_tier_of_tests_is_named(tier: str) -> None:
    assert f"`{tier}`" in README and (ROOT / "tests" / tier).is_dir()


def test_the_licence_is_there_and_named() -> None:
    assert "Apache License" in read("LICENSE") and "Apache-2.0" in README
