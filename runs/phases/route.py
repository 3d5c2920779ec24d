"""A run's model as a route of the proxy."""

from __future__ import annotations

from typing import Any

from runs.vocabulary import ModelSource


def route_of(model: dict[str, Any]) -> dict[str, Any]:
    """The route without its secrets, from the model as the launch froze it."""
    source = model["source"]
    if source == ModelSource.CONTROL:
        return {
            "kind": "control",
            "model": model["identifier"],
            "control": model["identifier"].split("/", 1)[1],
            "seed": model.get("seed", 0),
        }
    route: dict[str, Any] = {
        "kind": "endpoint" if source == ModelSource.ENDPOINT else "litellm",
        "model": model["identifier"],
        "params": model.get("params", {}),
    }
    if model.get("base_url"):
        route["base_url"] = model["base_url"]
    if model.get("headers"):
        route["headers"] = dict.fromkeys(model["headers"], "")
    if model.get("price"):
        route["price"] = model["price"]
    return route
