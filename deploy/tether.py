"""Runs a command that does not outlive who started it: `python -I tether.py --parent PID [--signal N] [...] -- command ...`.

The command replaces this process, so its pid is the one that the starter knows. When the starter's thread dies, the kernel sends
the signal (Linux; elsewhere the next start ends what was left). Postgres refuses to run as root, so root runs it as somebody else:

  --namespace UID     in a user namespace where root is called UID: no file changes hands, no folder needs opening to others
  --user UID          as that user, where namespaces are forbidden (most containers)

Exits with 3 when that cannot be done, 4 when the starter is gone already. Standard library only, so that it starts in 20 ms.
"""

import argparse
import contextlib
import ctypes
import os
import pwd
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000


def main() -> None:
    """Become the command."""
    options = _options()
    try:
        if options.namespace:
            _enter_namespace(options.namespace)
        if options.user:
            _become(options.user)
    except (OSError, AttributeError) as error:
        print(f"tether: {error}", file=sys.stderr)  # noqa: T201 - read by who asked whether this works
        sys.exit(3)
    # Last: the kernel forgets it whenever the user changes.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, options.signal)
    if os.getppid() != options.parent:
        sys.exit(4)
    os.execvp(options.command[0], options.command)  # noqa: S606 - the command is what this is for


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=int, default=int(signal.SIGTERM))
    parser.add_argument("--namespace", type=int, default=0)
    parser.add_argument("--user", type=int, default=0)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _enter_namespace(uid: int) -> None:
    """Be called `uid` from here on, and stay the same user for everybody else."""
    me, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no user namespaces here")
    with contextlib.suppress(FileNotFoundError):
        Path("/proc/self/setgroups").write_text("deny", "ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {me} 1", "ascii")
    Path("/proc/self/gid_map").write_text(f"{uid} {group} 1", "ascii")


def _become(uid: int) -> None:
    """Give up root for `uid`, for good."""
    group = pwd.getpwuid(uid).pw_gid
    os.setgroups([])
    os.setgid(group)
    os.setuid(uid)


if __name__ == "__main__":
    main()
