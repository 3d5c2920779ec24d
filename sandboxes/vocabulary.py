"""The words of the sandboxes; each value is exactly what the API shows and what a label holds."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a sandbox is for. It decides which credentials it may hold and what it may reach."""

    DRIVER = "driver"  # the Driver's own shell and scratch files
    WORK = "work"  # sources, dependencies, task_impl.py; shared by all phases
    PROXY = "proxy"  # the model proxy: the only one that holds a real provider key
    TASK = "task"  # one task in fanout, restored from the snapshot that Atomize left
    TEMPLATE_PROBE = "template_probe"  # looks at the base image of an environment run
    HARBOR_ORCHESTRATOR = "harbor_orchestrator"  # drives Harbor
    HARBOR_TASK_ENV = "harbor_task_env"  # the environment of one Harbor task


class BackendName(StrEnum):
    """Where sandboxes run. `default` is the operator's choice, resolved by `backends.choose`."""

    LOCAL = "local"
    SANDBOX0 = "sandbox0"
    E2B = "e2b"
    DEFAULT = "default"


class DefaultMode(StrEnum):
    """What happens to a host that no rule names."""

    ALLOW = "allow"
    DENY = "deny"


class ExecEnd(StrEnum):
    """Why a started command is over."""

    EXIT = "exit"  # it ended by itself; its code says how
    TIMEOUT = "timeout"  # its time was up
    KILLED = "killed"  # somebody, or a limit, killed it
    LOST = "lost"  # the sandbox died under it
