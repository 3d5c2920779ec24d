"""Host in, verdict out. Pure: it opens no socket and no database, and whoever asks is told the reason.

Two questions are asked of every connection, in this order: may this name be reached (`judge_host`), and may the address
that it resolved to be reached (`judge_address`)? The caller connects to exactly the address it asked about, so a name
that changes its address in between (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_LABELS = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")

# Never reachable, whatever a rule says: whoever answers there hands out the host's own credentials.
_METADATA = frozenset(
    ipaddress.ip_address(a) for a in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Verdict:
    """`why` is a short sentence part for people ("no rule allows it"); empty when allowed."""

    allowed: bool
    why: str = ""


ALLOWED = Verdict(True)


@dataclass(frozen=True)
class Pattern:
    """`host` is exact, or a suffix that starts with a dot when `wild`; an empty wild suffix matches everything."""

    host: str
    port: int | None
    wild: bool

    def matches(self, host: str, port: int | None) -> bool:
        """True when the rule speaks about this host; a rule with a port is only about that port."""
        if self.port is not None and port != self.port:
            return False
        return host.endswith(self.host) if self.wild else host == self.host

    def __str__(self) -> str:
        host = f"*{self.host}" if self.wild else self.host
        if ":" in host:
            host = f"[{host}]"
        return host if self.port is None else f"{host}:{self.port}"


def parse_pattern(text: str) -> Pattern:
    """`host`, `*.domain`, `*`, each with an optional `:port`; IPv6 in brackets. Raises ValueError in plain words."""
    given = text.strip()
    host, port = given, None
    if given.startswith("["):
        inner, bracket, rest = given[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not a host: the bracket is not closed.")
        host, port_text = inner, rest[1:]
    elif given.count(":") == 1:
        host, _, port_text = given.partition(":")
    else:
        port_text = ""
    if port_text:
        if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65536):
            raise ValueError(f"{text!r} has no valid port: it must be 1 to 65535.")
        port = int(port_text)
    if host == "*":
        return Pattern("", port, True)
    if host.startswith("*."):
        suffix = normalise_host(host[2:])
        if as_address(suffix) is not None:
            raise ValueError(f"{text!r}: a wildcard stands before a domain, not before an address.")
        return Pattern(f".{suffix}", port, True)
    if "*" in host:
        raise ValueError(f"{text!r}: a wildcard is only possible as the whole first part, as in *.example.org.")
    return Pattern(normalise_host(host), port, False)


def normalise_host(host: str) -> str:
    """Lower case, without brackets and closing dot, Unicode as punycode, addresses in their usual form.

    Raises ValueError for what cannot be a host name.
    """
    text = host.strip().removeprefix("[").removesuffix("]")
    address = as_address(text)
    if address is not None:
        return str(address)
    text = text.removesuffix(".")
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError(f"{host!r} is not a host name.") from None
    text = text.lower()
    if len(text) > 253 or not _LABELS.fullmatch(text):
        raise ValueError(f"{host!r} is not a host name.")
    return text


def as_address(host: str) -> Address | None:
    """The address that a literal means, also in the old forms that resolvers accept (`127.1`, `0x7f000001`)."""
    text = host.partition("%")[0]
    try:
        return _unwrap(ipaddress.ip_address(text))
    except ValueError:
        pass
    if not text or not re.fullmatch(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?", text):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text.removesuffix(".")))
    except OSError:
        return None


def _unwrap(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, so that no disguise passes."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address


@dataclass(frozen=True)
class HostPolicy:
    """The rules of one sandbox, parsed. Build it with `host_policy`."""

    mode: Literal["allow", "deny"]
    allow: tuple[Pattern, ...]
    block: tuple[Pattern, ...]
    private_ok: tuple[Pattern, ...]

    def judge_host(self, host: str, port: int) -> Verdict:
        """May this name be asked for at all? `host` is what the program wrote, in any form."""
        try:
            name = normalise_host(host)
        except ValueError:
            return Verdict(False, "it is not a host name")
        if _any(self.block, name, port):
            return Verdict(False, "a block rule names it")
        if self.mode != "allow" and not _any(self.allow, name, port):
            return Verdict(False, "no rule allows it")
        address = as_address(name)
        if address is None:
            return ALLOWED
        if not _any(self.private_ok, name, port):
            return Verdict(False, "a bare address is refused; use a host name")
        return self.judge_address(name, port, str(address))

    def judge_address(self, host: str, port: int, address: str) -> Verdict:
        """May the address be reached to which this (already judged) name resolved?"""
        parsed = as_address(address)
        if parsed is None:
            return Verdict(False, "it has no usable address")
        if parsed in _METADATA or parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified:
            return Verdict(False, "it leads to a link-local or metadata address")
        if parsed.is_global and not parsed.is_reserved:
            return ALLOWED
        if _any(self.private_ok, normalise_host(host), port):
            return ALLOWED
        return Verdict(False, "it leads to a private address")


def host_policy(
    mode: str = "deny",
    allow: Iterable[str] = (),
    block: Iterable[str] = (),
    private_ok: Iterable[str] = (),
) -> HostPolicy:
    """Parses the rules. Raises ValueError with the pattern that is wrong."""
    if mode not in ("allow", "deny"):
        raise ValueError(f"The default mode is allow or deny, not {mode!r}.")
    return HostPolicy(
        "allow" if mode == "allow" else "deny",
        tuple(map(parse_pattern, allow)),
        tuple(map(parse_pattern, block)),
        tuple(map(parse_pattern, private_ok)),
    )


def _any(patterns: tuple[Pattern, ...], host: str, port: int) -> bool:
    return any(p.matches(host, port) for p in patterns)
