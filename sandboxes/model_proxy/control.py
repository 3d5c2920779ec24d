"""Controls: answers that need no model. The reference, nothing, or chance: what must score 1, 0 and a guess."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from sandboxes.model_proxy.answers import Answer, Piece, Served, Stream
from sandboxes.model_proxy.calls import Call, CallKind, refused
from sandboxes.model_proxy.config import Route, RouteRefused
from sandboxes.model_proxy.faults import Fault, FaultKind
from sandboxes.model_proxy.keys import PROBE_INDEX, KeyScope, proof_row

PROBE_TEXT = "ready"
_SYLLABLES = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]


class Control:
    """Answers by the key's task index alone: never by what the prompt says."""

    provider = "control"

    def __init__(self, route: Route) -> None:
        self._route = route
        self._rows: dict[int, dict[str, Any]] = {}

    async def start(self) -> None:
        """Reads the references. Raises RouteRefused when the file is not what it should be."""
        if self._route.references:
            self._rows = read_references(Path(self._route.references))

    async def close(self) -> None:
        """Nothing to let go."""

    async def attempt(self, call: Call) -> Answer | Stream:
        """The answer, at once. Raises Fault where there is no reference."""
        if call.kind is CallKind.EMBEDDINGS:
            raise refused("A control does not make embeddings.")
        text, tools = self._say(call)
        finish = "tool_calls" if tools else "stop"
        served = Served(model=f"control/{self._route.control}", provider=self.provider, finish_reason=finish)
        document = _document(call, served, text, tools)
        if call.stream:
            return Stream(_pieces(call, document), served)
        return Answer(orjson.dumps(document), served)

    def _say(self, call: Call) -> tuple[str, list[dict[str, Any]]]:
        key = call.key
        if key.index == PROBE_INDEX:
            return PROBE_TEXT, []
        if self._route.control == "empty":
            return "", []
        row = proof_row(key.index)
        entry = self._rows.get(key.index if row is None else row)
        if self._route.control == "random":
            return self._guess(key, entry), []
        reference = entry.get("reference") if entry else None
        if not isinstance(reference, dict):
            message = f"The oracle has no reference for task {key.index}."
            raise Fault(FaultKind.UPSTREAM_ERROR, message, status=422)
        tools = reference.get("tool_calls") or []
        before = call.body.get("messages") or [None]
        if tools and isinstance(before[-1], dict) and before[-1].get("role") == "tool":
            tools = []  # its calls are done; saying them again would go on for ever
        return reference.get("text") or "", tools

    def _guess(self, key: KeyScope, entry: dict[str, Any] | None) -> str:
        seed = hashlib.sha256(f"{self._route.seed}:{key.index}:{key.trial}".encode()).digest()
        chance = random.Random(seed)
        choices = entry.get("choices") if entry else None
        if choices:
            return str(chance.choice(choices))
        words = ("".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(chance.randint(3, 12)))
        return " ".join(words)


def read_references(path: Path) -> dict[int, dict[str, Any]]:
    """Task index → entry of references.jsonl. Raises RouteRefused naming the line."""
    rows: dict[int, dict[str, Any]] = {}
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):  # noqa: B007 - named in the refusal
                if line.strip():
                    entry = orjson.loads(line)
                    rows[int(entry["index"])] = entry
    except OSError as e:
        raise RouteRefused(f"The references can't be read: {e.strerror}.", field="route.references") from None
    except (ValueError, KeyError, TypeError):
        raise RouteRefused(f"Line {number} of the references is not one.", field="route.references") from None
    return rows


def _document(call: Call, served: Served, text: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    key = call.key
    name = f"{key.invocation}-{key.index}-{key.trial}-{key.attempt}"
    made: list[dict[str, Any]] = [
        {
            "id": f"call_{name}_{n}",
            "type": "function",
            "function": {"name": tool.get("name", ""), "arguments": _arguments(tool.get("arguments"))},
        }
        for n, tool in enumerate(tools)
    ]
    if call.kind is CallKind.RESPONSES:
        output: list[dict[str, Any]] = [
            {
                "type": "function_call",
                "id": tool["id"],
                "call_id": tool["id"],
                "status": "completed",
                **tool["function"],
            }
            for tool in made
        ]
        if text or not made:
            said = {"type": "output_text", "text": text, "annotations": []}
            output.insert(
                0,
                {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed", "content": [said]},
            )
        return {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": served.model,
            "output": output,
            "usage": None,
        }
    choice: dict[str, Any] = {"index": 0, "finish_reason": served.finish_reason, "logprobs": None}
    if call.kind is CallKind.COMPLETIONS:
        choice["text"] = text
    else:
        choice["message"] = {"role": "assistant", "content": text if text or not made else None}
        if made:
            choice["message"]["tool_calls"] = made
    return {
        "id": f"cmpl-{name}",
        "object": "chat.completion" if call.kind is CallKind.CHAT else "text_completion",
        "created": int(time.time()),
        "model": served.model,
        "choices": [choice],
        "usage": None,
    }


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value or {}).decode()


async def _pieces(call: Call, document: dict[str, Any]) -> AsyncIterator[Piece]:
    if call.kind is CallKind.RESPONSES:
        yield Piece(
            _named({"type": "response.created", "response": {**document, "status": "in_progress", "output": []}})
        )
        for place, item in enumerate(document["output"]):
            for said in item.get("content", []):
                yield Piece(
                    _named(
                        {
                            "type": "response.output_text.delta",
                            "item_id": item["id"],
                            "output_index": place,
                            "content_index": 0,
                            "delta": said["text"],
                        }
                    )
                )
            yield Piece(_named({"type": "response.output_item.done", "output_index": place, "item": item}))
        yield Piece(_named({"type": "response.completed", "response": document}), content=False, last=True)
        return
    [choice] = document["choices"]
    head = {**document, "object": "chat.completion.chunk" if call.kind is CallKind.CHAT else "text_completion"}
    if call.kind is CallKind.CHAT:
        delta = dict(choice["message"])
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": n, **tool} for n, tool in enumerate(delta["tool_calls"])]
        first: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": None}
        final: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    else:
        first = {**choice, "finish_reason": None}
        final = {**choice, "text": ""}
    yield Piece(b"data: " + orjson.dumps({**head, "choices": [first]}) + b"\n\n")
    yield Piece(b"data: " + orjson.dumps({**head, "choices": [final]}) + b"\n\n", content=False)
    yield Piece(b"data: [DONE]\n\n", content=False, last=True)


def _named(event: dict[str, Any]) -> bytes:
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n"
