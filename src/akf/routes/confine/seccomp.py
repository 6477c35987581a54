"""The filter of system calls that a build's command does not need and an attacker does.

Invariants:
- A refused call fails with EPERM and the process goes on: a tool that only asks is not ended.
- No socket of any family is made, beside the network namespace: abstract names and netlink are closed too.
- Memory that no process maps (memfd, System V segments) is refused: the limit of memory could not see it.
- No further namespace is made, nothing is mounted, nobody is traced, nothing is typed into a terminal.
- `clone3`, whose flags a filter cannot read, looks like a kernel that lacks it; a call of another architecture fails.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from akf.routes.confine import kernel

REFUSED: dict[str, tuple[int, int]] = {
    "socket": (41, 198),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
}
_CLONE, _IOCTL, _CLONE3 = (56, 220), (16, 29), (435, 435)
_NAMESPACES = 0x7E020000
_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI types for the user; TIOCLINUX pastes into a console."""
_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_FOREIGN = 0x40000000
"""Numbers from here on are those of x32."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
_SECCOMP_MODE_FILTER = 2


def program() -> bytes:
    """The filter as the kernel reads it.

    Raises:
        OSError: this machine's numbers are not known.
    """
    column = kernel.machine()
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURE[column]),
        _refuse(),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _FOREIGN),
        _refuse(),
        (_EQUAL, 0, 1, _CLONE3[column]),
        _refuse(errno.ENOSYS),
    ]
    for numbers in REFUSED.values():
        code += [(_EQUAL, 0, 1, numbers[column]), _refuse()]
    code += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_BIT, 0, 1, _NAMESPACES),
        _refuse(),
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 4, _IOCTL[column]),
        (_LOAD, 0, 0, _SECOND),
        (_EQUAL, 1, 0, _TERMINAL[0]),
        (_EQUAL, 0, 1, _TERMINAL[1]),
        _refuse(),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *each) for each in code)


def apply(code: bytes) -> None:
    """Put the filter on this process and what it starts; privileges must be given up before."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    held = ctypes.create_string_buffer(code, len(code))
    value = Filter(len(code) // 8, ctypes.cast(held, ctypes.c_void_p))
    kernel.prctl(kernel.PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(value))


def _refuse(number: int = errno.EPERM) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | number)
