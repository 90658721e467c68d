"""The data folder: its lock, its files, and the processes that an earlier start left behind."""

import fcntl
import json
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import psutil

MARK = "ASSENT_UP"
"""Environment variable of every process that `assent up` starts; its value is the data folder."""


class CannotStart(Exception):
    """Assent cannot start. The message is one line with the remedy."""


class Folder:
    """A data folder, locked for this process. Entering it raises CannotStart if another process holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: IO[str] | None = None

    def __enter__(self) -> "Folder":
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path = self.path.resolve()
            lock = (self.path / "lock").open("a+", encoding="ascii")
        except OSError as error:
            raise CannotStart(f"the data folder {self.path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with lock:
                lock.seek(0)
                pid = lock.read().strip() or "unknown"
            raise CannotStart(
                f"the data folder {self.path} is in use by process {pid}: stop it, or name another --data-dir"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._lock:
            self._lock.close()

    def write(self, name: str, text: str) -> None:
        """Write a file atomically, readable by its owner only."""
        new = self.path / f".{name}.new"
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / name)

    def read(self, name: str) -> str | None:
        """Return a file's content, or None if it does not exist."""
        try:
            return (self.path / name).read_text("utf-8")
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        (self.path / name).unlink(missing_ok=True)

    def secret(self, name: str) -> str:
        """Return the password with this name. The first use creates and stores the password."""
        passwords = self._json("secrets.json")
        if name not in passwords:
            passwords[name] = secrets.token_urlsafe(24)
            self.write("secrets.json", json.dumps(passwords, indent=1))
        return str(passwords[name])

    def port(self, name: str, wish: int | None = None) -> int:
        """Return a free loopback port for `name`: the port of the previous start if it is free, else `wish`, else any."""
        ports = self._json("ports.json")
        candidates = [ports.get(name), wish]
        port = next((p for p in candidates if p and is_free(p)), None) or free_port(ports_in_use=ports.values())
        if ports.get(name) != port:
            self.write("ports.json", json.dumps({**ports, name: port}, indent=1))
        return port

    def _json(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.read(name) or "{}")
        return content


def is_free(port: int) -> bool:
    """True if a server can listen on this loopback port."""
    return why_taken(port) is None


def why_taken(port: int) -> OSError | None:
    """Return the error that keeps a server from listening on this loopback port, or None."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error
    return None


_RANDOM = random.SystemRandom()
"""Two processes never choose the same ports by the same seed, which a test or a fork may set."""


def free_port(ports_in_use: Iterable[int] = ()) -> int:
    """Return a free port below the range of outgoing connections, so that it is probably free at the next start as well."""
    ports_in_use = set(ports_in_use)
    while True:
        port = _RANDOM.randint(20_000, 32_000)
        if port not in ports_in_use and is_free(port):
            return port


def end_leftovers(path: Path, seconds: float = 5) -> int:
    """End the processes that a killed `assent up` of this folder left behind. Returns their number.

    The caller holds the folder's lock. The variable `MARK` in their environment identifies them.
    """
    leftovers = [p for p in psutil.process_iter() if p.pid != os.getpid() and _is_marked(p, path)]
    end(leftovers, signal.SIGTERM, seconds)
    return len(leftovers)


def end(processes: Iterable[psutil.Process], how: signal.Signals, seconds: float) -> None:
    """Send the signal, wait for `seconds`, then kill the remaining processes. Returns once all have ended."""
    survivors = [p for p in processes if _send(p, how)]
    _, survivors = psutil.wait_procs(survivors, timeout=seconds)
    for process in survivors:
        _send(process, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while any(_alive(p) for p in survivors) and time.monotonic() < deadline:
        time.sleep(0.02)


def _send(process: psutil.Process, how: signal.Signals) -> bool:
    try:
        process.send_signal(how)
    except psutil.Error:
        return False
    return True


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _is_marked(process: psutil.Process, path: Path) -> bool:
    try:
        return process.environ().get(MARK) == str(path)
    except (psutil.Error, OSError):
        return False
