"""The tile of a benchmark."""

from __future__ import annotations

from xml.etree import ElementTree

from registry.identicon import identicon


def test_the_same_benchmark_has_the_same_tile_everywhere() -> None:
    assert identicon("gsm8k") == identicon("gsm8k")
    assert len({identicon(f"b{i}") for i in range(200)}) > 190


def test_a_hostile_id_cannot_get_into_the_picture() -> None:
    svg = identicon('"><script>alert(1)</script>')
    assert "script" not in svg
    ElementTree.fromstring(svg)


def test_a_tile_is_mirrored_and_never_almost_empty() -> None:
    for i in range(300):
        path = ElementTree.fromstring(identicon(f"x{i}"))[1].attrib["d"]
        cells = {tuple(map(int, part[: part.index("h")].split())) for part in path.split("M")[1:]}
        assert len(cells) >= 5
        assert all((28 - x, y) in cells for x, y in cells)
