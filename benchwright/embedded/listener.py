"""The web server's listening socket: opened by the supervisor and handed down.

So the port that was found free stays ours, and a restarted web process picks up the connections that waited meanwhile.
"""

from __future__ import annotations

import errno
import os
import socket

TRIES = 100


def open_listener(host: str, port: int) -> socket.socket:
    """A socket listening on the first free port from `port` on (0: any). Raises OSError for a host that is not ours."""
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
        0
    ]
    for number in range(port, port + TRIES) if port else [0]:
        listener = socket.socket(family, kind, proto)
        # Without this a port stays "taken" for a minute after the last stop.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address[0], number, *address[2:]))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES) or number > 65535:
                raise
            continue
        return listener
    raise OSError(errno.EADDRINUSE, f"no free port from {port} to {port + TRIES - 1} on {host}")


def url_of(listener: socket.socket) -> str:
    """The address to open in a browser on this machine, or `BENCHWRIGHT_BASE_URL`."""
    given = os.environ.get("BENCHWRIGHT_BASE_URL")
    if given:
        return given.rstrip("/")
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
