"""From what `solve` returned to the text that may be graded."""

from typing import Any, Dict, List, Optional

from .think import visible


def raw_text(response: Any) -> str:
    """The reply as it came: of a string, of {"text": …} as `call_sut` results are logged, of None ("")."""
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        text = response.get("text")
        if text is None:
            text = response.get("content")
        return text if isinstance(text, str) else ""
    text = getattr(response, "text", None)
    return text if isinstance(text, str) else ""


def answer_text(response: Any) -> str:
    """The reply without thinking blocks. Null content gives "": the hidden reasoning is never a stand-in."""
    return visible(raw_text(response))


def tool_calls(response: Any) -> List[Dict[str, Any]]:
    """The calls in a response: each {"name", "arguments"} (arguments still text when they were not JSON)."""
    calls = response.get("tool_calls") if isinstance(response, dict) else getattr(response, "tool_calls", None)
    out = []
    for call in calls if isinstance(calls, list) else []:
        if not isinstance(call, dict):
            continue
        inner = call.get("function") if isinstance(call.get("function"), dict) else call
        out.append({"name": inner.get("name"), "arguments": inner.get("arguments")})
    return out


def finish_reason(response: Any) -> Optional[str]:
    """Why the model stopped, where the response says so."""
    if isinstance(response, dict):
        value = response.get("finish_reason")
        return value if isinstance(value, str) else None
    value = getattr(response, "finish_reason", None)
    return value if isinstance(value, str) else None


def no_answer(response: Any) -> Optional[str]:
    """Why there is nothing to grade: "content_filter", "refused", "truncated", "empty"; None when there is text.

    Truncated wins over empty: a thinking block that ate all tokens is a matter of the limit.
    """
    reason = finish_reason(response)
    if reason == "content_filter":
        return "content_filter"
    if reason == "refusal":
        return "refused"
    if answer_text(response).strip() or tool_calls(response):
        return "truncated" if reason == "length" else None
    if reason == "length":
        return "truncated"
    return "empty"
