"""bubblewrap around a shell: no network, no other process, nothing to see or write but the session's files."""

import functools
import os
import shutil
import tempfile
import threading
from pathlib import Path

from models.settings import settings
from workers.tools.kinds import OutcomeUnknown, ToolError
from workers.tools.leash import Command, run_kept
from workers.tools.output import OutputSoFar

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "ssl", "ca-certificates", "pki")
_STRICT = ("--unshare-user", "--disable-userns")
"""bubblewrap 0.8 and later: nothing inside may make namespaces of its own."""
_PROBE_SECONDS = 10
_PASSWD, _GROUP, _HOSTS = 248, 247, 246
"""Descriptors by which bubblewrap is given what stands in for files of /etc."""


def shell_ready() -> str | None:
    """None if shell calls can run here as the settings want them, else a sentence why not. Asked once per process."""
    if _program("bash") is None:
        return "The shell tool cannot run: bash is not installed."
    if settings().shell == "bare":
        return None if settings().environment == "development" else _BARE_IN_PRODUCTION
    return None if _options() is not None else _WHY


_WHY = (
    "The shell tool cannot run: bubblewrap (bwrap) is missing or does not work here, and ASSENT_SHELL=bubblewrap "
    "refuses to run a shell without it. Install bubblewrap and allow user namespaces; in development only, ASSENT_SHELL=bare "
    "runs without any sandbox."
)
_BARE_IN_PRODUCTION = (
    "The shell tool cannot run: ASSENT_SHELL=bare has no sandbox, and production refuses it. Install bubblewrap and set "
    "ASSENT_SHELL=bubblewrap, or, on your own machine, set ASSENT_ENVIRONMENT=development."
)


def bash() -> str:
    """The absolute path of bash; `shell_ready` has said that there is one."""
    return _program("bash") or "/bin/bash"


def wrapped(argv: list[str], root: Path, cwd: Path) -> tuple[list[str], dict[int, bytes]]:
    """The command inside a sandbox that holds `root/files` at its own path, and the files that this needs.

    All that is next to the session, its own `state/` included, is hidden.
    """
    return _arguments(argv, root, cwd, _options() or ()), _files(root)


def _files(root: Path) -> dict[int, bytes]:
    return {
        _PASSWD: f"agent:x:{os.getuid()}:{os.getgid()}::{root / 'files'}:/bin/bash\n".encode(),
        _GROUP: f"agent:x:{os.getgid()}:\n".encode(),
        _HOSTS: b"127.0.0.1 localhost\n::1 localhost\n",
    }


def _arguments(argv: list[str], root: Path, cwd: Path, options: tuple[str, ...]) -> list[str]:
    bwrap = _program("bwrap") or "bwrap"
    words = [bwrap, "--unshare-all", *options, "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    # A worker that is root stays the owner of sysctls inside, and bubblewrap leaves them writable.
    words += ["--ro-bind-try", "/proc/sys", "/proc/sys"]
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.exists():
            words += ["--ro-bind", str(folder), str(folder)]
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for fd, name in ((_PASSWD, "passwd"), (_GROUP, "group"), (_HOSTS, "hosts")):
        words += ["--ro-bind-data", str(fd), f"/etc/{name}"]
    files = str(root / "files")
    # The empty folder first: the sessions may lie below a folder that is bound above.
    words += ["--tmpfs", str(root.parent), "--bind", files, files, "--remount-ro", str(root.parent)]
    return [*words, "--chdir", str(cwd), "--", *argv]


def _program(name: str) -> str | None:
    return shutil.which(name, path=PATH)


@functools.cache
def _options() -> tuple[str, ...] | None:
    """The strictest options under which bubblewrap works on this machine; None if under none."""
    if _program("bwrap") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "session"
        (root / "files").mkdir(parents=True)
        return next((options for options in (_STRICT, ()) if _works(root, options)), None)


def _works(root: Path, options: tuple[str, ...]) -> bool:
    argv = _arguments([bash(), "-c", "true"], root, root / "files", options)
    probe = Command(argv, env={}, cwd=Path("/"), limits={}, files=_files(root), no_new_privileges=False)
    try:
        ended = run_kept(probe, _PROBE_SECONDS, threading.Event(), OutputSoFar())
    except (ToolError, OutcomeUnknown):
        return False
    return ended.how == "exited" and ended.code == 0
