"""As whom the embedded servers run. Postgres refuses root, so root hands it to `nobody`."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from benchwright.embedded.binaries import ServiceFailed


@dataclass(frozen=True)
class Account:
    """The user of a server process: `kind` is self, nobody (a real drop) or userns (nobody, but only inside)."""

    kind: str
    uid: int
    gid: int
    name: str

    def command(self, argv: list[str]) -> list[str]:
        """The command line that runs `argv` as this account."""
        if self.kind == "userns":
            return ["unshare", "--user", f"--map-user={self.uid}", f"--map-group={self.gid}", *argv]
        return argv

    def options(self) -> dict[str, Any]:
        """What subprocess needs beside the command line."""
        if self.kind == "nobody":
            return {"user": self.uid, "group": self.gid, "extra_groups": []}
        return {}

    @property
    def owner(self) -> tuple[int, int]:
        """Who must own the files, as the host sees it."""
        return (self.uid, self.gid) if self.kind == "nobody" else (os.geteuid(), os.getegid())


def choose(base_writable: bool) -> Account:
    """The account for this process's rights. `base_writable`: can root keep data outside the checkout?"""
    if os.geteuid() != 0:
        try:
            name = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            if _userns():
                return _nobody("userns")
            raise ServiceFailed(
                f"User id {os.geteuid()} has no name in /etc/passwd, and PostgreSQL insists on one.\n"
                "Add the user, or give a running server: DATABASE_URL=postgresql://… ./bw up"
            ) from None
        return Account("self", os.geteuid(), os.getegid(), name)
    if base_writable and not os.environ.get("BENCHWRIGHT_PG_USERNS"):
        return _nobody("nobody")
    if _userns():
        return _nobody("userns")
    raise ServiceFailed(
        "PostgreSQL refuses to run as root, /var/lib can't be written and user namespaces are closed.\n"
        "Run ./bw as an ordinary user, or give a running server: DATABASE_URL=postgresql://… ./bw up"
    )


def _nobody(kind: str) -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise ServiceFailed(
            "There is no user `nobody` here to run PostgreSQL as.\n"
            "Run ./bw as an ordinary user, or give a running server: DATABASE_URL=postgresql://… ./bw up"
        ) from None
    return Account(kind, entry.pw_uid, entry.pw_gid, "nobody")


def _userns() -> bool:
    """May we map ourselves to `nobody` in a user namespace? Nothing is dropped on the host: the last resort only."""
    if not shutil.which("unshare"):
        return False
    return _nobody_maps()


def _nobody_maps() -> bool:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return False
    command = ["unshare", "--user", f"--map-user={entry.pw_uid}", f"--map-group={entry.pw_gid}", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
