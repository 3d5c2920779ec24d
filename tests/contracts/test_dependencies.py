"""What is installed, and that it is exactly that."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.contracts.project import ROOT, read

LOCKS = sorted(p.name for p in ROOT.glob("requirements*.txt"))
WISHES = sorted(p.name for p in ROOT.glob("requirements*.in"))


def requirements(lock: str) -> dict[str, str]:
    """Each requirement of a lock with the lines that belong to it."""
    out: dict[str, str] = {}
    name = ""
    for line in read(lock).splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*==", line):
            name = match[1].lower().replace("_", "-").replace(".", "-")
            out[name] = line
        elif name and line.startswith((" ", "\t")):
            out[name] += "\n" + line
    return out


def wishes(name: str) -> list[str]:
    """The lines of a wish list that name a package."""
    return [line for line in read(name).splitlines() if line and not line.startswith(("#", "-"))]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_and_checked_by_its_hash(lock: str) -> None:
    found = requirements(lock)
    assert found
    assert not [name for name, text in found.items() if "--hash=sha256:" not in text]


def test_every_wish_list_has_its_lock() -> None:
    assert [w.removesuffix(".in") for w in WISHES] == [lock.removesuffix(".txt") for lock in LOCKS]


@pytest.mark.parametrize("name", WISHES)
def test_every_wish_has_a_reason_and_is_in_its_lock(name: str) -> None:
    locked = requirements(name.replace(".in", ".txt"))
    for line in wishes(name):
        wish, _, reason = line.partition("#")
        assert reason.strip(), f"{name}: say why we depend on {wish.strip()}"
        package = re.match(r"[A-Za-z0-9._-]+", wish)
        assert package and package[0].lower().replace("_", "-").replace(".", "-") in locked, wish


def test_litellm_is_pinned_for_prices_must_not_move_by_themselves() -> None:
    assert re.search(r"^litellm==\d", read("requirements.txt"), re.M)
    assert re.search(r"^litellm==\d", read("requirements.in"), re.M)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_index(lock: str) -> None:
    """Where packages come from is the reader's setting, not ours."""
    assert not re.findall(r"^\s*(?:--(?:extra-)?index-url|-i|--find-links|--trusted-host)\b.*", read(lock), re.M)


def test_the_product_and_its_command_name_the_same_pythons() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    oldest, newest = re.search(r"OLDEST, NEWEST = \((\d+, \d+)\), \((\d+, \d+)\)", read("bw")).groups()  # type: ignore[union-attr]
    low, high = oldest.replace(", ", "."), newest.split(", ")
    assert project["requires-python"] == f">={low},<{high[0]}.{int(high[1]) + 1}"
