"""What the launch form offers to choose from."""

from __future__ import annotations

from typing import Any

from benchwright.lib.local_models import local_models as found

CONTROLS = (
    {"id": "oracle", "label": "Oracle", "says": "Answers with the reference. Must score 100%."},
    {"id": "empty", "label": "Empty", "says": "Answers nothing. Must score 0%."},
    {"id": "random", "label": "Random", "says": "Picks at random from a seed: the floor."},
)
VISIBILITIES = (
    {"id": "private", "label": "Private: only your account"},
    {"id": "unlisted", "label": "Unlisted: anyone with the link"},
    {"id": "public", "label": "Public: listed with its benchmark"},
)
HARNESSES = ("benchwright", "inspect", "lmeval", "lighteval", "harbor")
COMPUTES = ("default", "local", "e2b", "sandbox0")
AGGREGATORS = ("any_pass", "all_pass", "mean", "majority_on", "weighted_mean", "min_above")


def choices() -> dict[str, Any]:
    """Lists for the template."""
    return {
        "controls": CONTROLS,
        "visibilities": VISIBILITIES,
        "harnesses": HARNESSES,
        "computes": COMPUTES,
        "aggregators": AGGREGATORS,
        "local_models": local_models(),
        "known_models": (),
    }


def local_models() -> list[dict[str, str]]:
    """Models that this machine serves itself: [{id, label, base_url}]."""
    return list(found())


def defaults() -> dict[str, str]:
    """Start values that depend on the machine."""
    return {"model_kind": "local"} if local_models() else {}
