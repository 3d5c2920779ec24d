"""The system calls that no benchmark needs and every escape tries, refused by a classic BPF filter.

`memfd_create` and the System V calls are among them because their memory shows in no process's resident size: without
them the memory watchdog sees everything that a box holds.
"""

from __future__ import annotations

import errno
import platform
import struct

_EPERM_X86 = (
    (29, 64, 68, 155, 163, 165, 166, 167, 168, 169, 175, 176, 179, 246, 248, 249, 250, 272, 298, 303, 304, 308, 313)
    + (320, 321, 323, 425, 426, 427, 428, 429, 430, 431, 432, 433, 442)
)  # fmt: skip
_EPERM_ARM = (
    (39, 40, 41, 60, 89, 97, 104, 105, 106, 142, 186, 190, 194, 217, 218, 219, 224, 225, 241, 264, 265, 268, 273, 280)
    + (282, 294, 425, 426, 427, 428, 429, 430, 431, 432, 433, 442)
)  # fmt: skip
# machine -> (AUDIT_ARCH, refused with EPERM, refused with ENOSYS so that libraries take their other way, socket calls)
_TABLES = {
    "x86_64": (0xC000003E, _EPERM_X86, (319, 447), (41, 53)),
    "aarch64": (0xC00000B7, _EPERM_ARM, (279, 447), (198, 199)),
}
# Unix, IPv4, IPv6, netlink. No others: vsock knows no network namespaces and leads from a virtual machine to its host.
_FAMILIES = (1, 2, 10, 16)

_LOAD, _JEQ, _JGE, _RET = 0x20, 0x15, 0x35, 0x06
_ARG_0 = 16  # the low half of the first argument
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def program(machine: str | None = None) -> bytes | None:
    """The filter as the kernel takes it; None on a machine whose call numbers are not known here."""
    machine = machine or platform.machine()
    table = _TABLES.get(machine)
    if table is None:
        return None
    arch, eperm, enosys, socket_calls = table
    code = [(_LOAD, 0, 0, 4), (_JEQ, 1, 0, arch), (_RET, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":  # the x32 twins of the same calls
        code += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, _ERRNO | errno.ENOSYS)]
    for numbers, error in ((eperm, errno.EPERM), (enosys, errno.ENOSYS)):
        for number in numbers:
            code += [(_JEQ, 0, 1, number), (_RET, 0, 0, _ERRNO | error)]
    for number in socket_calls:
        code += [(_JEQ, 0, len(_FAMILIES) + 3, number), (_LOAD, 0, 0, _ARG_0)]
        code += [(_JEQ, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
        code += [(_RET, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_RET, 0, 0, _ALLOW)]
    code.append((_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in code)
