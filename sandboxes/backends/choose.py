"""The one door to the backends: a name in, a backend out. A typo is refused, nothing falls back silently."""

from __future__ import annotations

import os
from collections.abc import Callable

from sandboxes.backends.base import Backend
from sandboxes.errors import SandboxUnavailable
from sandboxes.vocabulary import BackendName


def _local() -> Backend:
    from sandboxes.backends.local.client import LocalBackend

    return LocalBackend()


# Each backend is imported only when it is asked for: an installation needs the SDK of no other.
_FACTORIES: dict[BackendName, Callable[[], Backend]] = {BackendName.LOCAL: _local}


def default_backend() -> BackendName:
    """The operator's default: `BENCHWRIGHT_BACKEND`, else `local`. Raises SandboxUnavailable for a misspelt one."""
    name = _known(os.environ.get("BENCHWRIGHT_BACKEND") or BackendName.LOCAL)
    return BackendName.LOCAL if name is BackendName.DEFAULT else name


def open_backend(name: str = BackendName.DEFAULT) -> Backend:
    """The backend of that name. Raises SandboxUnavailable for a name that is unknown or not installed."""
    chosen = _known(name)
    if chosen is BackendName.DEFAULT:
        chosen = default_backend()
    factory = _FACTORIES.get(chosen)
    if factory is None:
        raise SandboxUnavailable(
            f"This installation has no {chosen} backend.", f"Choose one of: {', '.join(sorted(_FACTORIES))}."
        )
    return factory()


def _known(name: str) -> BackendName:
    try:
        return BackendName(name)
    except ValueError:
        raise SandboxUnavailable(
            f"There is no sandbox backend {name!r}.", f"Choose one of: {', '.join(sorted(BackendName))}."
        ) from None
