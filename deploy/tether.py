"""Runs a command that ends with its parent: `python -I tether.py --parent PID [--signal N] [...] -- command ...`.

The command replaces this process and keeps its pid. When the parent's thread dies, the kernel sends the signal (on Linux;
elsewhere the next start ends the leftovers). Postgres refuses to run as root, so root runs it as another user:

  --namespace UID     in a user namespace that maps root to UID: files keep their owner, folders their permissions
  --user UID          as that user, where namespaces are forbidden (most containers)

Exits with 3 if the change of user fails, 4 if the parent has ended already. Starts in 20 ms, by the standard library alone.
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
    """Replace this process by the command."""
    options = _options()
    try:
        if options.namespace:
            _enter_namespace(options.namespace)
        if options.user:
            _become(options.user)
    except (OSError, AttributeError) as error:
        print(f"tether: {error}", file=sys.stderr)  # noqa: T201 - the parent reads it
        sys.exit(3)
    # After the change of user, which resets this setting.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, options.signal)
    if os.getppid() != options.parent:
        sys.exit(4)
    os.execvp(options.command[0], options.command)  # noqa: S606 - running the command is this program's purpose


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=int, default=int(signal.SIGTERM))
    parser.add_argument("--namespace", type=int, default=0)
    parser.add_argument("--user", type=int, default=0)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _enter_namespace(uid: int) -> None:
    """Enter a user namespace in which this user has the id `uid`. Outside, the process keeps its user."""
    me, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no user namespaces here")
    with contextlib.suppress(FileNotFoundError):
        Path("/proc/self/setgroups").write_text("deny", "ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {me} 1", "ascii")
    Path("/proc/self/gid_map").write_text(f"{uid} {group} 1", "ascii")


def _become(uid: int) -> None:
    """Change from root to the user `uid`, irrevocably."""
    group = pwd.getpwuid(uid).pw_gid
    os.setgroups([])
    os.setgid(group)
    os.setuid(uid)


if __name__ == "__main__":
    main()
