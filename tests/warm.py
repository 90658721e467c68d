"""Starts the product's processes by a fork of a process that has imported their modules. Saves seconds of CPU time per process.

`start` forks instead of running `python -m gunicorn ...` or `python -m celery ...`. The fork then runs the same module with the
same arguments, environment, folder and output, in a session of its own. One process per kind, `web`, `gevent` and `plain`, serves a
whole test run. It has one thread and has read no setting: modules that read settings while they are imported are left to each fork.

The workers of pytest-xdist are forks as well, of the kind `tests`: pytest-xdist starts this file instead of Python. The process of
that kind has collected the tests once, so that no fork has to import or rewrite a test's module.

Tests of the commands themselves do not start their processes here. Nor do tests of what a process imports, or of what `/proc` shows
of it.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import IO
from unittest import mock

HOUSE = Path(__file__).parents[1]
TETHER = HOUSE / "deploy" / "tether.py"
WORKER = ("celery.bin.celery", "celery.worker.worker", "kombu.transport.redis", "models", "workers")
TEST_TOOLS = ("pytest", "hypothesis.strategies", "playwright.sync_api", "anthropic.lib.vertex", "openai", "mcp.client")
PACKAGES = {
    "web": ("gunicorn.workers.ggevent", "celery.app.amqp", "kombu.transport.redis", "models", "api"),
    "gevent": WORKER,
    "plain": WORKER,
    "tests": (*WORKER, "api", "api.cli.main", *TEST_TOOLS),
}
"""What each kind of process imports. Packages of ours are imported whole, but for `UNUSED`."""
UNUSED = ("api.cli", "models.migrations")
PATHS = "ASSENT_TEST_PATHS"
"""Environment variable: the paths of the tests that pytest was started with, as JSON."""


class Ending:
    """Ends a fork as Python ends a process, except that the kernel frees its objects.

    Python would free each object by itself, and so copy all the memory that the fork shares: 0.15 s of CPU time per process.
    """

    def __init__(self) -> None:
        self._code: int | None = None
        atexit.register(self._leave)  # first, so that it is called last, once all threads have ended

    def __enter__(self) -> None:
        """Call before the fork's command runs."""
        self._code = 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Note the exit code. Python prints the error, if there is one."""
        if isinstance(error, SystemExit):
            self._code = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif isinstance(error, KeyboardInterrupt):
            self._code = None  # Python ends by the signal
        elif error is not None:
            self._code = 1

    def _leave(self) -> None:
        if self._code is not None:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(self._code & 255)


class Forked:
    """A process that is a fork. It has the methods of `subprocess.Popen`, and is killed when the test process ends."""

    def __init__(self, connection: socket.socket, pid: int, words: list[str]) -> None:
        self._connection, self.pid, self.args = connection, pid, words
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Returns the exit code."""
        if self.returncode is None:
            ends = select.poll()  # unlike select, it takes descriptors of any number
            ends.register(self._connection, select.POLLIN)
            if not ends.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._connection.recv(20) or signal.SIGKILL))
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


Process = Forked | subprocess.Popen[bytes]


def kind_of(words: list[str]) -> str | None:
    """Return the kind of process that runs a command of Python's, or None for any other command."""
    if words[0] != sys.executable or not hasattr(os, "pidfd_open"):
        return None
    if words[1] == "-m":
        return {"gunicorn": "web", "gevent.monkey": "gevent"}.get(words[2], "plain")
    if words[1:3] == ["-u", "-c"]:
        return "tests"
    if words[1] == "-c":
        return "gevent" if "monkey.patch_all()" in words[2] else "plain"
    return "plain" if words[1].endswith(".py") else None


def start(words: list[str], env: dict[str, str], log: IO[bytes], errors: IO[bytes] | None = None) -> Process:
    """Run a command in the project's folder, by a fork where that is possible. Its output goes to `log`, its errors to `errors`."""
    kind, errors = kind_of(words), errors or log
    if kind is None:
        tether = [sys.executable, "-I", str(TETHER), "--parent", str(os.getpid()), "--signal", str(int(signal.SIGKILL)), "--"]
        return _run([*tether, *words], env, log, errors)
    with Path(os.devnull).open("rb") as nothing:
        return fork(kind, words, env, (nothing.fileno(), log.fileno(), errors.fileno()))


def run(*words: str, seconds: float = 60, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of Python's to its end. Returns its exit code, its output and its errors; raises after so many seconds."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = start([sys.executable, *words], os.environ | env, output, errors)
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(words, code, output.read().decode(), errors.read().decode())


def fork(kind: str, words: list[str], env: dict[str, str], descriptors: tuple[int, int, int]) -> Forked:
    """Run a command of Python's in a fork, with these three descriptors as its input, output and errors."""
    address = _address(kind)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as requests, there:
        requests.connect(address)
        socket.send_fds(requests, [json.dumps([words, env]).encode()], [there.fileno(), *descriptors])
    return Forked(here, int(here.recv(20)), words)


def _run(words: list[str], env: dict[str, str] | None, log: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, cwd=HOUSE, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=errors, start_new_session=True)


def begin(kind: str) -> Path:
    """Start the process of this kind unless a test process has done so. Does not wait for it. Returns its address."""
    folder, _, pytest_pid = os.environ["ASSENT_TEST_RUN"].rpartition(":")
    address = Path(folder) / kind
    log = address.with_suffix(".log")
    with address.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            with log.open("wb") as output:
                process = _run([sys.executable, __file__, kind, str(address), pytest_pid], None, output, output)
            process.returncode = 0  # suppresses Popen's warning that the process still runs
    return address


def _address(kind: str) -> str:
    """Return the address of the process that forks, once it does."""
    address = begin(kind)
    ready, log = address.with_suffix(".ready"), address.with_suffix(".log")
    deadline = time.monotonic() + 110  # below the time limit of a test
    while not ready.exists():
        assert time.monotonic() < deadline, log.read_text()
        assert "Error" not in log.read_text(), log.read_text()
        time.sleep(0.02)
    return str(address)


class Forks:
    """Forks on request, and tells the requesters when their forks end. Uses nothing that gevent patches later."""

    def __init__(self, address: str, pytest_pid: int) -> None:
        self._fork, self._waitpid = os.fork, os.waitpid
        self._requests = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._requests.bind(address)
        self._pytest = os.pidfd_open(pytest_pid)
        self._pids: dict[int, int] = {}
        """The forks, by descriptors that are readable once they have ended."""
        self._ends: dict[int, int] = {}
        """Those descriptors, by the requesters' descriptors."""

    def serve(self) -> tuple[list[str], dict[str, str], list[int]]:
        """Fork until pytest ends. Returns in each fork: its command, its environment and its three descriptors."""
        self._poll = select.poll()
        for descriptor in (self._pytest, self._requests.fileno()):
            self._poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._requests.fileno():
                    data, (requester, *descriptors), _, _ = socket.recv_fds(self._requests, 1 << 20, 4)
                    if self._fork_for(requester):
                        words, env = json.loads(data)
                        return words, env, descriptors
                    close(*descriptors)
                elif descriptor in self._pids:
                    self._tell_end(descriptor)
                elif descriptor in self._ends:
                    os.kill(self._pids[self._ends[descriptor]], signal.SIGKILL)  # the requester has ended
                    self._poll.unregister(descriptor)
                elif descriptor == self._pytest:
                    for pid in self._pids.values():
                        os.kill(pid, signal.SIGKILL)
                    os._exit(0)

    def _fork_for(self, requester: int) -> bool:
        """Fork. Returns True in the fork, where all descriptors of this object are closed."""
        pid = self._fork()
        if not pid:
            self._requests.close()
            close(requester, self._pytest, *self._pids, *self._ends)
            return True
        end = os.pidfd_open(pid)
        self._pids[end], self._ends[requester] = pid, end
        self._poll.register(end, select.POLLIN)
        self._poll.register(requester, select.POLLIN)
        os.write(requester, str(pid).encode())
        return False

    def _tell_end(self, end: int) -> None:
        """Tell the requester that its fork has ended."""
        _, status = self._waitpid(self._pids.pop(end), 0)
        [requester] = [descriptor for descriptor, other in self._ends.items() if other == end]
        del self._ends[requester]
        for descriptor in (requester, end):
            with contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)
        with contextlib.suppress(OSError):
            os.write(requester, str(status).encode())
        close(requester, end)


def close(*descriptors: int) -> None:
    """Close these descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def main() -> None:
    """Import the modules, serve, and become the command in each fork. With the arguments of Python: run a fork with them."""
    if sys.argv[1] in {"-u", "-m", "-c"}:
        sys.exit(stand_for_a_fork(sys.argv[1:]))
    kind, address, pytest_pid = sys.argv[1:]
    sys.path[0] = str(HOUSE)
    ending = Ending()
    forks = Forks(address, int(pytest_pid))
    if kind in {"web", "gevent"}:
        from gevent import monkey

        monkey.patch_all()
    if kind == "tests":
        warnings.simplefilter("error")  # as pytest has it for what it imports itself
        warnings.filterwarnings("ignore", "'imghdr' is deprecated", DeprecationWarning)
    gc.disable()
    load(PACKAGES[kind])
    warnings.resetwarnings()
    if kind == "tests":
        collect(json.loads(os.environ[PATHS]))
    if kind == "plain":
        announcing = importlib.import_module("workers.announcing")
        announcing.PROGRAM = standing("-c", "from workers import announcing; announcing.main()")
    gc.freeze()
    gc.enable()
    Path(address).with_suffix(".ready").touch()
    command = forks.serve()
    with ending:
        become(*command)


def load(packages: tuple[str, ...]) -> None:
    """Import packages whole, except for the modules that read settings while they are imported."""
    import models.settings

    with mock.patch.object(models.settings.Settings, "__init__", side_effect=ModuleNotFoundError):
        for name in packages:
            package = importlib.import_module(name)
            ours = package.__path__ if name in {"models", "workers", "api"} else ()
            for module in pkgutil.walk_packages(ours, f"{name}.", onerror=lambda _: None):
                if not module.name.startswith(UNUSED) and not module.name.endswith("__main__"):
                    with contextlib.suppress(ModuleNotFoundError):
                        importlib.import_module(module.name)
    assert models.settings.settings.cache_info().currsize == 0
    assert threading.active_count() == 1, threading.enumerate()


def collect(paths: list[str]) -> None:
    """Import the modules of these tests as pytest does. A module that cannot be imported is left to the forks, which say why."""
    import pytest

    from models.settings import settings

    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        pytest.main(["-n", "0", "--collect-only", "--capture=no", "-p", "no:cacheprovider", *paths])
    settings.cache_clear()
    if sys.platform == "linux":  # a fork has none of the threads of a library, such as Helm's, and would wait for them for ever
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
        assert threads == 1, f"{threads} threads: a module of the tests must load no library with threads while it is imported"


def stand_for_a_fork(words: list[str]) -> int:
    """Run a command in a fork, and pass on its input and output. Returns its exit code."""
    command = [sys.executable, *words]
    process = fork(kind_of(command) or "plain", command, dict(os.environ), (0, 1, 2))
    close(0, 1)  # the end of the fork ends its output
    return process.wait() & 255


def standing(*words: str) -> tuple[str, ...]:
    """Return the command line of a small process that runs these words of Python's in a fork, and ends with the fork."""
    return (sys.executable, "-I", "-S", __file__, *words) if hasattr(os, "pidfd_open") else (sys.executable, *words)


def become(words: list[str], env: dict[str, str], descriptors: list[int]) -> None:
    """Run the command as Python would: `python -m MODULE ...`, `python FILE ...` or `python -c PROGRAM ...`."""
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(env)
    words = words[1:]
    if words[:3] == ["-m", "gevent.monkey", "--module"]:
        words = ["-m", *words[3:]]
    words = words[words[0] == "-u" :]
    sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.modules["__main__"] = main_module = ModuleType("__main__")
        exec(words[1], main_module.__dict__)
        return
    module, sys.argv = words[0] == "-m", words[words[0] == "-m" :]
    sys.path[0] = str(HOUSE if module else Path(sys.argv[0]).parent)
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
