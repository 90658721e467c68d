"""bubblewrap around a shell: no network unless the settings allow it, no other processes, no files but the session's."""

import functools
import os
import shutil
import tempfile
import threading
from pathlib import Path

from models.settings import settings
from workers import leash
from workers.tools.sandbox import git
from workers.tools.sandbox.syscalls import syscall_filter

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    # Never the folders above: root could read the keys next to the certificates.
    "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
_ETC_NETWORK = ("gai.conf", "nsswitch.conf", "protocols", "resolv.conf", "services")
_STRICT = ("--unshare-user", "--disable-userns")
"""The sandbox cannot make namespaces of its own. A container with a read-only /proc/sys may refuse these options."""
_PROBE_SECONDS = 10
CURL_HOME = "/etc/assent-curl"
"""Holds an empty `.curlrc`, which curl reads instead of the session's."""
_PASSWD, _GROUP, _HOSTS, _FILTER, _GIT, _CURLRC = 248, 247, 246, 245, 244, 243
"""Descriptors from which bubblewrap reads replacements for files of /etc."""


def shell_problem() -> str | None:
    """Return None if shell calls can run here under the current settings, else the reason in a sentence. Probes once per
    process."""
    if program("bash") is None:
        return "The shell tool cannot run: bash is not installed."
    if settings().shell == "bare":
        return None if settings().environment == "development" else _BARE_IN_PRODUCTION
    return None if _options() is not None else _NO_BUBBLEWRAP


def exposure() -> str | None:
    """Return a warning if commands share the machine's network, else None. Browsers send a cookie to every port of its host."""
    if settings().shell != "bare" and not settings().shell_network:
        return None
    return (
        "Commands of agents can serve pages on this machine's addresses (ASSENT_SHELL=bare, or ASSENT_SHELL_NETWORK). A browser "
        "that is signed in under the same host name sends its cookie to such a page, whatever the port. Open none in that browser."
    )


_NO_BUBBLEWRAP = (
    "The shell tool cannot run: bubblewrap (bwrap) is missing or does not work here, and ASSENT_SHELL=bubblewrap "
    "refuses to run a shell without it. Install bubblewrap and allow user namespaces; in a container, allow mounts and "
    "the whole of /proc as well (docs/deployment.md says how). In development only, ASSENT_SHELL=bare runs without any sandbox."
)
_BARE_IN_PRODUCTION = (
    "The shell tool cannot run: ASSENT_SHELL=bare has no sandbox, and production refuses it. Install bubblewrap and set "
    "ASSENT_SHELL=bubblewrap, or, on your own machine, set ASSENT_ENVIRONMENT=development."
)


def bash() -> str:
    """Return the absolute path of bash. Call `shell_problem` first."""
    return program("bash") or "/bin/bash"


def wrapped(argv: list[str], root: Path, cwd: Path) -> tuple[list[str], dict[int, bytes]]:
    """Return the command inside a sandbox with `root/files` at its own path, and the contents of the descriptors that it reads.

    The sandbox hides everything else beside the session's files, also the session's own `state/`.
    """
    return _arguments(argv, root, cwd, _options() or ()), _files(root)


def process_limit() -> str:
    """Return a shell statement that limits the number of its processes; empty without a sandbox. The kernel does not limit root.

    The kernel counts a sandbox's processes apart from all others. The limit is twice the keeper's, so that the
    keeper ends the command first and reports the reason.
    """
    return f"ulimit -u {2 * settings().shell_processes}; " if settings().shell == "bubblewrap" else ""


def _files(root: Path) -> dict[int, bytes]:
    files = {
        _PASSWD: f"agent:x:{os.getuid()}:{os.getgid()}::{root / 'files'}:/bin/bash\n".encode(),
        _GROUP: f"agent:x:{os.getgid()}:\n".encode(),
        _HOSTS: b"127.0.0.1 localhost\n::1 localhost\n",
        _CURLRC: b"",
        _GIT: git.system_file(root / "files"),
    }
    if program := syscall_filter():
        files[_FILTER] = program
    return files


def _arguments(argv: list[str], root: Path, cwd: Path, options: tuple[str, ...]) -> list[str]:
    size = ["--size", str(settings().shell_temporary_bytes)]
    network = settings().shell_network
    words = [program("bwrap") or "bwrap", "--unshare-all", *options]
    words += [*(["--share-net"] if network else []), "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--seccomp", str(_FILTER)] if syscall_filter() else []
    words += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.exists():
            words += ["--ro-bind", str(folder), str(folder)]
    for name in (*_ETC, *(_ETC_NETWORK if network else ())):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    replacements = ((_PASSWD, "/etc/passwd"), (_GROUP, "/etc/group"), (_HOSTS, "/etc/hosts"), (_GIT, git.SYSTEM_FILE))
    for fd, place in (*replacements, (_CURLRC, f"{CURL_HOME}/.curlrc")):
        words += ["--file", str(fd), place]  # on a root that becomes read-only below; a bind would cost another mount
    # Inside, root still owns all of /proc, and bubblewrap leaves much of /proc writable. The folders that bubblewrap
    # makes are in memory, where no quota counts: only folders with a size may be written.
    words += ["--remount-ro", "/proc", *size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev", *size, "--tmpfs", "/tmp"]  # noqa: S108
    files = str(root / "files")
    # The empty folder first: the sessions may lie below a folder that is bound above.
    words += ["--tmpfs", str(root.parent), "--bind", files, files, "--remount-ro", str(root.parent), "--remount-ro", "/"]
    return [*words, "--chdir", str(cwd), "--", *argv]


def program(name: str) -> str | None:
    """Return the absolute path of a program on the commands' PATH, None if there is none."""
    return shutil.which(name, path=PATH)


@functools.cache
def _options() -> tuple[str, ...] | None:
    """Return the strictest options under which bubblewrap works on this machine; None if bubblewrap does not work."""
    if program("bwrap") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "session"
        (root / "files").mkdir(parents=True)
        return next((options for options in (_STRICT, ()) if _works(root, options)), None)


def _works(root: Path, options: tuple[str, ...]) -> bool:
    argv = _arguments([bash(), "-c", "true"], root, root / "files", options)
    probe = leash.Command(argv, env={}, cwd=Path("/"), limits={}, files=_files(root), sandboxed=True)
    try:
        end = leash.run(probe, _PROBE_SECONDS, threading.Event(), lambda _stream, _data: None)
    except (leash.NotStarted, leash.MayBeAlive):
        return False
    return end.how == "exited" and end.code == 0
