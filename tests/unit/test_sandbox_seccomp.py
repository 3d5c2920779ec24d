"""The box's system call filter, run by a small interpreter of its instructions."""

from __future__ import annotations

import errno
import struct

import pytest

from sandboxes.backends.local.seccomp import program

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(code: bytes, arch: int, number: int, first: int = 0) -> int:
    """What the kernel would return for this call."""
    data = struct.pack("=IIQQ", number, arch, 0, first)
    lines = list(struct.iter_unpack("=HBBI", code))
    at, value = 0, 0
    while True:
        op, yes, no, k = lines[at]
        at += 1
        if op == 0x20:
            (value,) = struct.unpack_from("=I", data, k)
        elif op == 0x06:
            return k
        else:
            at += yes if (value == k if op == 0x15 else value >= k) else no


@pytest.mark.parametrize(
    ("machine", "arch", "mount", "memfd", "socket", "read"),
    [("x86_64", X86, 165, 319, 41, 0), ("aarch64", ARM, 40, 279, 198, 63)],
)
def test_the_filter_refuses_what_escapes_need_and_nothing_else(
    machine: str, arch: int, mount: int, memfd: int, socket: int, read: int
) -> None:
    code = program(machine)
    assert code
    assert verdict(code, arch, mount) == ERRNO | errno.EPERM
    assert verdict(code, arch, memfd) == ERRNO | errno.ENOSYS
    assert verdict(code, arch, read) == ALLOW
    assert [verdict(code, arch, socket, family) for family in (1, 2, 10, 16)] == [ALLOW] * 4
    assert [verdict(code, arch, socket, f) for f in (0, 17, 38, 40)] == [ERRNO | errno.EAFNOSUPPORT] * 4
    assert verdict(code, arch ^ 1, read) == KILL


def test_the_x32_twins_are_refused() -> None:
    code = program("x86_64")
    assert code and verdict(code, X86, 0x40000000 | 165) == ERRNO | errno.ENOSYS


def test_an_unknown_machine_has_no_filter() -> None:
    assert program("riscv64") is None
