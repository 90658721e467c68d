"""System calls that a shell's processes may not make: a seccomp filter, as a second wall behind bubblewrap.

The filter refuses new namespaces, mounts, kernel keys (which no namespace separates), programs and modules for the kernel, changes
of the clock, input for a terminal, and large shared memory, which no limit counts. Of the families of sockets it allows those that
commands need: network namespaces do not separate all others (a virtual machine and its host talk by AF_VSOCK).
"""

import errno
import functools
import platform
import socket
import struct

_NUMBERS = {  # by machine: (the kernel's number of the machine, the numbers of its system calls)
    "x86_64": (
        0xC000003E,
        {
            "clone": 56, "ioctl": 16, "shmget": 29, "clone3": 435, "socket": 41, "socketpair": 53,
            "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "unshare": 272,
            "keyctl": 250, "add_key": 248, "request_key": 249,
            "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "fanotify_init": 300, "open_by_handle_at": 304,
            "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320,
            "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "syslog": 103, "vhangup": 153,
            "settimeofday": 164, "clock_settime": 227, "clock_adjtime": 305, "iopl": 172, "ioperm": 173,
            "migrate_pages": 256, "move_pages": 279, "kcmp": 312, "lookup_dcookie": 212,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "clone": 220, "ioctl": 29, "shmget": 194, "clone3": 435, "socket": 198, "socketpair": 199,
            "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "setns": 268, "unshare": 97,
            "keyctl": 219, "add_key": 217, "request_key": 218,
            "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "fanotify_init": 262, "open_by_handle_at": 265,
            "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104, "kexec_file_load": 294,
            "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "syslog": 116, "vhangup": 58,
            "settimeofday": 170, "clock_settime": 112, "clock_adjtime": 266,
            "migrate_pages": 238, "move_pages": 239, "kcmp": 272, "lookup_dcookie": 18,
        },
    ),
}  # fmt: skip
_NEW = {  # the same number on every machine
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447, "open_tree_attr": 467,
}  # fmt: skip
_BY_ARGUMENT = ("clone", "ioctl", "shmget", "clone3", "socket", "socketpair")
"""System calls with a rule of their own. The filter refuses all others of the lists above."""
_NAMESPACES = 0x7E020000
"""The flags of clone for new namespaces."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""
_SHARED_BYTES = 65_536
"""Size of one System V segment: enough for a lock, such as Postgres takes. The kernel allows 4096 segments."""
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)
"""Families of sockets that a command may open; 16 is AF_NETLINK, by which the C library reads the network's addresses."""

_LOAD, _EQUAL, _MORE, _ANY, _ANSWER = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_AT, _SECOND_AT = 0, 4, 16, 24
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_REFUSE, _UNKNOWN, _NO_FAMILY = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS, _ERROR | errno.EAFNOSUPPORT
"""The kernel's results. After ENOSYS the C library uses another system call."""
_OTHER_ABI = 0x3FFFFFFF


@functools.cache
def syscall_filter() -> bytes | None:
    """Return the filter in the kernel's format; None for an unknown machine."""
    machine_and_numbers = _NUMBERS.get(platform.machine())
    if machine_and_numbers is None:
        return None
    machine, own = machine_and_numbers
    numbers = own | _NEW
    steps = [(_LOAD, 0, 0, _MACHINE_AT), (_EQUAL, 1, 0, machine), (_ANSWER, 0, 0, _UNKNOWN)]
    steps += [(_LOAD, 0, 0, _NUMBER_AT), (_MORE, 0, 1, _OTHER_ABI), (_ANSWER, 0, 0, _UNKNOWN)]
    steps += _when(numbers["clone3"], [(_ANSWER, 0, 0, _UNKNOWN)])
    steps += _when(numbers["clone"], [(_LOAD, 0, 0, _FIRST_AT), (_ANY, 0, 1, _NAMESPACES), (_ANSWER, 0, 0, _REFUSE)])
    pushes = [(_EQUAL, 0, 1, request) for request in _TERMINAL_INPUT]
    steps += _when(numbers["ioctl"], [(_LOAD, 0, 0, _SECOND_AT), *(s for p in pushes for s in (p, (_ANSWER, 0, 0, _REFUSE)))])
    large = [(_LOAD, 0, 0, _SECOND_AT + 4), (_EQUAL, 1, 0, 0), (_ANSWER, 0, 0, _REFUSE)]
    large += [(_LOAD, 0, 0, _SECOND_AT), (_MORE, 0, 1, _SHARED_BYTES), (_ANSWER, 0, 0, _REFUSE)]
    steps += _when(numbers["shmget"], large)
    families = [step for family in _FAMILIES for step in ((_EQUAL, 0, 1, int(family)), (_ANSWER, 0, 0, _ALLOW))]
    for name in ("socket", "socketpair"):
        steps += _when(numbers[name], [(_LOAD, 0, 0, _FIRST_AT), *families, (_ANSWER, 0, 0, _NO_FAMILY)])
    for name, number in numbers.items():
        if name not in _BY_ARGUMENT:
            steps += [(_EQUAL, 0, 1, number), (_ANSWER, 0, 0, _REFUSE)]
    steps.append((_ANSWER, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _when(number: int, steps: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Take these steps for one system call, then allow it; skip them for all others."""
    steps = [*steps, (_ANSWER, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(steps), number), *steps]
