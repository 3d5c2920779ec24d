"""Every event type by its name."""

from __future__ import annotations

from runs.events.types import artifact, driver, materialize, phase, run, sandbox
from runs.events.types.base import Event

EVENT_TYPES: dict[str, type[Event]] = {
    cls.__name__: cls
    for module in (run, phase, sandbox, driver, artifact, materialize)
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, Event) and cls is not Event
}
