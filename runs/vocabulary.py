"""The words of a run, exactly as API and pages say them."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    """What is stored on the run's row."""

    RUNNING = "running"
    OK = "ok"
    ERROR = "error"


class DisplayStatus(StrEnum):
    """What people and programs are shown: the fold of status, halted and halt_reason."""

    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    KILLED = "killed"
    PAUSED = "paused"
    WAITING = "waiting"
    HALTED = "halted"


class Phase(StrEnum):
    """The pipeline, in order."""

    FORK = "fork"
    FIND = "find"
    FETCH = "fetch"
    ANALYZE = "analyze"
    SETUP = "setup"
    ATTACH = "attach"
    ATOMIZE = "atomize"
    MATERIALIZE = "materialize"


class Mode(StrEnum):
    """The four bodies of a launch."""

    NATURAL_LANGUAGE = "natural_language"
    PINNED = "pinned"
    REPLAY = "replay"
    FORK = "fork"


class Outcome(StrEnum):
    """What became of a task. `running`: no verdict yet."""

    PASS = "pass"  # score >= 1
    FAIL = "fail"  # scored below 1
    ERR = "err"  # could not be scored: never a failure of the model
    RUNNING = "running"


class HarnessName(StrEnum):
    """How the evaluation is executed inside the sandboxes."""

    BENCHWRIGHT = "benchwright"
    INSPECT = "inspect"
    LMEVAL = "lmeval"
    LIGHTEVAL = "lighteval"
    HARBOR = "harbor"


class ModelSource(StrEnum):
    """Where the system under test is reached."""

    LITELLM = "litellm"  # a provider by its LiteLLM name
    ENDPOINT = "endpoint"  # any OpenAI-compatible base URL
    CONTROL = "control"  # built in, labelled, never ranked


# A reason carries a suffix ("operator_kill: by …"): always compare by prefix, with `halt_is`.
KILL_REASONS = ("operator_kill", "admin_kill", "cli_halt")
PAUSE_REASON = "operator_pause"
WAIT_REASONS = ("agent_review", "restart_cap_exceeded")


def halt_is(reason: str, prefixes: str | tuple[str, ...]) -> bool:
    """True when the reason is one of these, whatever its suffix."""
    return reason.startswith(prefixes)


def display_status(status: str, halted: bool, reason: str) -> DisplayStatus:
    """The one status that is ever shown."""
    if not halted:
        return DisplayStatus(status)
    if halt_is(reason, KILL_REASONS):
        return DisplayStatus.KILLED
    if halt_is(reason, PAUSE_REASON):
        return DisplayStatus.PAUSED
    if halt_is(reason, WAIT_REASONS):
        return DisplayStatus.WAITING
    return DisplayStatus.HALTED
