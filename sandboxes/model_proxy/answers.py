"""What comes back from a provider, in one shape for every kind of route."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from sandboxes.model_proxy.calls import Call, CallKind
from sandboxes.model_proxy.faults import Fault, from_status, malformed
from sandboxes.model_proxy.lenient import printable
from sandboxes.model_proxy.usage import UNKNOWN, Usage, read_usage


@dataclass(slots=True)
class Served:
    """What is known about the answer; of a stream, once it has ended."""

    model: str | None = None
    provider: str | None = None
    usage: Usage = UNKNOWN
    finish_reason: str | None = None


@dataclass(slots=True)
class Answer:
    """A whole answer: the JSON to hand on."""

    body: bytes
    served: Served


@dataclass(slots=True)
class Piece:
    """Bytes of a stream to hand on. `content`: holds what the model said. `last`: to be held back until recorded."""

    data: bytes
    content: bool = True
    last: bool = False


@dataclass(slots=True)
class Stream:
    """A stream that has begun. Iterating raises Fault when it breaks; `served` fills up on the way."""

    pieces: AsyncIterator[Piece]
    served: Served = field(default_factory=Served)


class Upstream(Protocol):
    """A kind of route. One call of `attempt` is one try; faults are raised."""

    provider: str

    async def start(self) -> None:
        """Gets ready: imports, connections."""

    async def close(self) -> None:
        """Lets go."""

    async def attempt(self, call: Call) -> Answer | Stream:
        """Tries once. A Stream is returned once its first event is there, so that a failed start can be tried again."""


def raise_error_inside(document: dict[str, Any], status: int) -> None:
    """Some providers answer 200 with an error inside. Raises it as the Fault it is."""
    error = document.get("error")
    if not error:
        return
    message, code = str(error), None
    if isinstance(error, dict):
        message, code = str(error.get("message") or error), error.get("code")
    inner = code if type(code) is int and 400 <= code <= 599 else None
    if inner is not None:
        raise from_status(inner, message)
    raise malformed(message, status=status)


def read_answer(kind: CallKind, document: Any, served: Served, status: int = 200) -> None:
    """Fills `served` from a whole answer. Raises Fault when the document is no answer of that kind."""
    if not isinstance(document, dict):
        raise malformed("The provider's answer is not a JSON object.", status=status)
    raise_error_inside(document, status)
    if kind is CallKind.EMBEDDINGS:
        if not isinstance(document.get("data"), list):
            raise malformed("The provider's answer holds no embeddings.", status=status)
    elif kind is CallKind.RESPONSES:
        if not isinstance(document.get("output"), list):
            raise malformed("The provider's answer holds no output.", status=status)
        served.finish_reason = response_finish(document)
    else:
        choices = document.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise malformed("The provider's answer holds no choices.", status=status)
        served.finish_reason = word(choices[0].get("finish_reason"))
    note(document, served)


def note(document: dict[str, Any], served: Served) -> None:
    """Takes model, provider and usage from an answer or a chunk."""
    served.model = word(document.get("model")) or served.model
    served.provider = word(document.get("provider")) or served.provider
    if document.get("usage") is not None:
        served.usage = read_usage(document["usage"])


def response_finish(document: dict[str, Any]) -> str | None:
    """The finish reason of a `responses` answer in chat completions' words."""
    status = word(document.get("status"))
    if status == "incomplete":
        details = document.get("incomplete_details")
        reason = word(details.get("reason")) if isinstance(details, dict) else None
        return {"max_output_tokens": "length"}.get(reason or "", reason or "incomplete")
    return "stop" if status == "completed" else status


def word(value: Any) -> str | None:
    """A short text, else None: whatever a provider puts there, the record stays small."""
    return printable(value[:200]) if isinstance(value, str) and value else None


def unfinished(fault_message: str = "The provider's stream ended before the answer was complete.") -> Fault:
    """The fault of a stream that stopped half-way."""
    return malformed(fault_message)
