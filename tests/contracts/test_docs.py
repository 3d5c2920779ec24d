"""The documents list what exists, and what they point at is there."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from runs.management.commands.write_event_docs import events_page
from runs.trials.aggregators import AGGREGATORS
from tests.contracts.project import APPS, ROOT, code_blocks, files, name_of, pages, read, table_cells

PAGES = [name_of(p) for p in pages()]


def prose(text: str) -> str:
    """A page without its fenced blocks, in which nothing is a link."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that a page's headings make."""
    heads = re.findall(r"^#+\s+(.*)$", prose(path.read_text()), re.M)
    return frozenset(re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads)


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", prose(read(page))):
        link = target[0] or target[1]
        if re.match(r"[a-z]+:", link):
            continue
        path_text, _, anchor = link.partition("#")
        path = (folder / unquote(path_text)).resolve() if path_text else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            dead.append(link)
    assert not dead


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", read(page)):
        assert (ROOT / path).is_file(), path
        assert not name or re.search(rf"def {name}\b", read(path)), f"{path} has no {name}"


@pytest.mark.parametrize("page", [p for p in PAGES if p.startswith("docs/") or p in ("README.md", "runs/README.md")])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    roots = "|".join((*APPS, "sdk", "docs", "tests", "benchmarks", "static", "templates"))
    named = re.findall(rf"`((?:{roots})/[\w./-]+)`", read(page))
    assert not sorted({n for n in named if not (ROOT / n).exists()})


def test_the_page_of_events_is_what_the_types_say() -> None:
    assert read("docs/events.md") == events_page(), "stale: ./bw manage write_event_docs"


def test_every_page_of_the_docs_is_in_their_list() -> None:
    listed = set(re.findall(r"\]\(([\w./-]+\.md)\)", read("docs/README.md")))
    there = {name_of(p).removeprefix("docs/") for p in pages() if name_of(p).startswith("docs/")} - {"README.md"}
    assert there <= listed, there - listed


def test_every_app_and_benchmarks_have_a_page_of_their_own() -> None:
    for folder in ("billing", "registry", "runs", "sandboxes", "benchmarks", "tests"):
        assert (ROOT / folder / "README.md").is_file(), folder


def test_the_architecture_page_draws_every_package() -> None:
    tree = "\n".join(code_blocks(read("docs/architecture.md")))
    packages = {
        tuple(name_of(p).split("/")[:-1]) for p in files() if p.name == "__init__.py" and name_of(p).startswith(APPS)
    }
    left_out = {"migrations", "management", "commands", "templatetags"}
    wanted = {parts[-1] for parts in packages if not left_out & set(parts)}
    assert not sorted(name for name in wanted if not re.search(rf"(?<!\w){re.escape(name)}/", tree))


def test_the_architecture_page_gives_each_of_the_seven_invariants_a_test() -> None:
    part = read("docs/architecture.md").partition("## The seven invariants")[2].partition("\n## ")[0]
    items = re.findall(r"^\d\. .*(?:\n(?!\d\. |\n).*)*", part, re.M)
    assert len(items) == 7
    assert not [item for item in items if "`tests/" not in item]


def test_every_decision_says_what_was_not_taken() -> None:
    decisions = [p for p in pages() if "docs/decisions/" in name_of(p)]
    assert [p.name[:4] for p in decisions] == [f"{n:04d}" for n in range(1, len(decisions) + 1)]
    for path in decisions:
        text = path.read_text()
        assert all(f"## {part}" in text for part in ("Decision", "Why", "Roads not taken")), path.name


def test_every_scoring_helper_is_on_the_page_about_scoring() -> None:
    sys.path.insert(0, str(ROOT / "sdk"))
    try:
        import benchwright_scoring
    finally:
        sys.path.remove(str(ROOT / "sdk"))
    told = set(re.findall(r"`(\w+)", read("docs/scoring.md")))
    assert set(benchwright_scoring.__all__) <= told, set(benchwright_scoring.__all__) - told


def test_every_aggregator_is_on_the_page_about_scoring() -> None:
    told = table_cells(read("docs/scoring.md").partition("## Trials")[2].partition("\n## ")[0])
    assert set(AGGREGATORS) <= set(told)
