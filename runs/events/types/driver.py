"""What the Driver thought and did."""

from __future__ import annotations

from runs.events.types.base import JSON, Event, Usage


class AgentTextEvent(Event, frozen=True, kw_only=True):
    """The Driver's words."""

    text: str
    usage: Usage | None = None


class ToolCallEvent(Event, frozen=True, kw_only=True):
    """The Driver uses a tool."""

    tool: str
    arguments: JSON
    call_id: str


class ToolResultEvent(Event, frozen=True, kw_only=True):
    """What the tool answered, bounded; the whole text is an artifact file when it is longer."""

    call_id: str
    output: JSON
