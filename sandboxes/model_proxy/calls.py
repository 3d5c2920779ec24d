"""A caller's request, checked: what a scorer may set, and what only Attach may."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from sandboxes.model_proxy.faults import Fault, FaultKind
from sandboxes.model_proxy.keys import KeyScope


class CallKind(StrEnum):
    """Which of OpenAI's doors; the value is the path below the base URL."""

    CHAT = "chat/completions"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"


PATHS = {f"{prefix}/{kind}": kind for kind in CallKind for prefix in ("/v1", "")}

_COMMON = frozenset({"model", "stream", "stream_options", "n"})
_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"})
_SHAPE = frozenset({"response_format", "stop", "logprobs", "top_logprobs"})
ALLOWED = {
    CallKind.CHAT: _COMMON | _TOOLS | _SHAPE | {"messages"},
    CallKind.COMPLETIONS: _COMMON | _SHAPE | {"prompt", "suffix", "echo"},
    CallKind.RESPONSES: _COMMON | _TOOLS | _SHAPE | {"input", "instructions", "text", "include", "store"},
    CallKind.EMBEDDINGS: frozenset({"model", "input", "encoding_format", "dimensions"}),
}
_MUST = {
    CallKind.CHAT: ("messages", (list,)),
    CallKind.COMPLETIONS: ("prompt", (str, list)),
    CallKind.RESPONSES: ("input", (str, list)),
    CallKind.EMBEDDINGS: ("input", (str, list)),
}


@dataclass(slots=True)
class Call:
    """One request of a scorer. `body` holds only what the scorer may set, without `model`."""

    kind: CallKind
    key: KeyScope
    body: dict[str, Any]
    model_requested: str | None
    stream: bool
    wants_usage: bool  # the caller itself asked for usage in the stream
    adapted: list[str] = field(default_factory=list)
    attempts: int = 0
    waited_s: float = 0.0
    recorded: bool = False


def read_call(kind: CallKind, key: KeyScope, raw: bytes) -> Call:
    """Parses and checks a request. Raises a `parameter_refused` Fault that names the key."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        raise refused(f"The request is not JSON: {e}") from None
    if not isinstance(body, dict):
        raise refused("The request must be a JSON object.")
    unknown = body.keys() - ALLOWED[kind]
    for name in sorted(unknown):
        if body[name] is not None:
            raise refused(
                f"{name} is set for the whole run, not by a scorer. Set it with the model at launch, or leave it out.",
                param=name[:100],
            )
        del body[name]
    requested = body.pop("model", None)
    stream = body.pop("stream", None) or False
    options = body.pop("stream_options", None)
    if not isinstance(stream, bool):
        raise refused("stream must be true or false.", param="stream")
    if body.pop("n", None) not in (None, 1):
        raise refused("n must be 1: several samples of a task are trials of the run.", param="n")
    name, types = _MUST[kind]
    if not isinstance(body.get(name), types) or not body[name]:
        raise refused(f"{name} is missing or of the wrong type.", param=name)
    return Call(
        kind=kind,
        key=key,
        body=body,
        model_requested=requested[:200] if isinstance(requested, str) else None,
        stream=stream,
        wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def refused(message: str, param: str | None = None) -> Fault:
    """The fault for a request that must be changed by whoever wrote the scorer."""
    return Fault(FaultKind.PARAMETER_REFUSED, message, status=400, param=param)
