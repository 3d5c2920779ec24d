"""The command `benchwright`.

Exit codes: 0 ok · 1 the run or a check ended in error or mismatch · 2 refused (bad input, not found) · 3 halted or
killed · 4 waiting or paused · 5 not signed in or not allowed · 6 server unreachable · 130 interrupted (a watched run
goes on).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click
import httpx

from benchwright_client.calls import VERSION
from benchwright_client.cli import checks, launch, runs
from benchwright_client.cli.screen import complain
from benchwright_client.cli.session import Session
from benchwright_client.errors import (
    ClientError,
    NotAllowed,
    NotLoggedIn,
    NotSignedIn,
    RateLimited,
    ServerFault,
    Unreachable,
)

INTERRUPTED = 130


def code_of(error: ClientError) -> int:
    """The exit code of an error."""
    if isinstance(error, NotLoggedIn | NotSignedIn | NotAllowed):
        return 5
    if isinstance(error, Unreachable | RateLimited):
        return 6
    if isinstance(error, ServerFault):
        return 1 if error.status == 500 else 6  # 502 to 504: something before it can't reach it
    return 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="benchwright")
def cli() -> None:
    """Launch runs, follow them, and check their receipts.

    Exit codes: 0 ok, 1 error or mismatch, 2 refused or not found, 3 halted or killed, 4 waiting or paused, 5 not signed
    in or not allowed, 6 server unreachable.
    """


for command in (checks.login, launch.run, runs.runs, checks.verify, checks.registry, checks.doctor):
    cli.add_command(command)


def main(argv: Sequence[str] | None = None, *, transport: httpx.BaseTransport | None = None) -> int:
    """Runs the command; the exit code. `transport` stands for the network in tests."""
    try:
        code = cli.main(argv, "benchwright", standalone_mode=False, obj=Session(transport=transport))
    except ClientError as e:
        complain(e)
        return code_of(e)
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.ctx.get_help() if e.ctx else "")
        return 2
    except click.ClickException as e:
        e.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough; Python must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def entry() -> None:
    """The installed command."""
    sys.exit(main())
