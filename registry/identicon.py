"""The tile of a benchmark: a small picture from its id alone, the same everywhere. Pure."""

from __future__ import annotations

import hashlib

# Hues far enough apart to tell neighbours in a grid from each other; each works on a light and on a dark page.
_PAIRS = (
    ("#2f5fd0", "#dbe6ff"),
    ("#0f8f7c", "#d3f2ec"),
    ("#a24bb8", "#f3def8"),
    ("#c25a12", "#fbe3d0"),
    ("#4e7d1e", "#e4f1d2"),
    ("#b93862", "#fadde7"),
    ("#5b55c9", "#e3e1fb"),
    ("#8a6a10", "#f6ecc9"),
)


def identicon(benchmark_id: str, size: int = 40) -> str:
    """An SVG: five by five cells, mirrored left to right, in one of eight colour pairs. The id itself is not in it."""
    digest = hashlib.sha256(benchmark_id.encode()).digest()
    ink, paper = _PAIRS[digest[0] % len(_PAIRS)]
    bits = int.from_bytes(digest[1:3], "big")
    cells = []
    for row in range(5):
        for column in range(3):
            if bits >> (row * 3 + column) & 1:
                cells.append((column, row))
                if column < 2:
                    cells.append((4 - column, row))
    if len(cells) < 5:  # an almost empty tile tells nothing apart
        cells += [(2, row) for row in range(5) if (2, row) not in cells]
    path = "".join(f"M{6 + 4 * x} {6 + 4 * y}h4v4h-4z" for x, y in sorted(cells))
    return (
        f'<svg class="identicon" width="{size}" height="{size}" viewBox="0 0 32 32" aria-hidden="true">'
        f'<rect width="32" height="32" fill="{paper}"/><path d="{path}" fill="{ink}"/></svg>'
    )
