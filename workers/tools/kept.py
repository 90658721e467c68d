"""A program of ours that runs for long under a keeper, so that nothing that it starts outlives it, however it ends.

`leash` runs one command to its end; this hands out the running one.
"""

import contextlib
import logging
import marshal
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path

from workers.tools import keeper
from workers.tools.interpreter import compiled, environment, python
from workers.tools.keeper import END_SECONDS

log = logging.getLogger(__name__)

_KEEPER = compiled(keeper.__file__)
_SLACK_SECONDS = 5.0
_READ = 1 << 16
_PID_AT = slice(1, 11)
_FOR_EVER = 1e9


class Kept:
    """One running program. Closing its keeper's standard input, by design or by our death, has the keeper end all of it."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: Path, fd: int) -> None:
        """Start it, with the descriptor `fd` handed on at its number. Errors: OSError."""
        self._report = bytearray()
        self.over = False
        """Whether it has ended, with all that it started."""
        self.report_fd, keeper_report = os.pipe()
        """To be waited for: something there is worth a `look`."""
        try:
            self._keeper = subprocess.Popen(  # noqa: S603 - our own program
                python(_KEEPER, str(keeper_report)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(keeper_report, fd),
                env=environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            os.close(self.report_fd)
            raise
        finally:
            os.close(keeper_report)
        order = {
            "argv": argv,
            "env": env,
            "cwd": str(cwd),
            "limits": {"RLIMIT_CORE": 0},
            "files": {},
            "fds": (fd,),
            "no_new_privileges": True,
            "seconds": _FOR_EVER,
        }
        data = marshal.dumps(order)
        self._tell(len(data).to_bytes(8, "big") + data)

    @property
    def outputs(self) -> dict[str, int]:
        """The descriptors of its standard output and standard error, by name; reading them never waits."""
        found = {}
        for stream, pipe in (("stdout", self._keeper.stdout), ("stderr", self._keeper.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            found[stream] = pipe.fileno()
        return found

    def look(self) -> None:
        """Take what the keeper reports; waits until it reports something."""
        data = os.read(self.report_fd, _READ)
        self._report += data
        self.over = self.over or not data

    def kill(self) -> None:
        """Have all of it killed, and wait for the proof."""
        self._tell(b"c")
        deadline = time.monotonic() + END_SECONDS + _SLACK_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.report_fd, selectors.EVENT_READ)
            while not self.over and selector.select(max(deadline - time.monotonic(), 0)):
                self.look()
        self.over = True

    @property
    def told(self) -> bool:
        """Whether its keeper lived to say how it ended."""
        return len(self._report) > _PID_AT.stop

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if not self.told:
            return "its keeper died"
        ended, status, left = marshal.loads(self._report[_PID_AT.stop :])[:3]  # noqa: S302 - from our child
        if left:
            return f"{left} of its processes could not be killed"
        code = os.waitstatus_to_exitcode(status)
        return "killed by the worker" if ended == "cancelled" else f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End it with all that is left of it."""
        self.let_go()
        try:
            self._keeper.wait(END_SECONDS + 1)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        if len(self._report) == _PID_AT.stop:
            with contextlib.suppress(OSError):
                os.killpg(int(self._report[_PID_AT]), signal.SIGKILL)

    def forget(self) -> None:
        """In a fork: leave it to the process that started it."""
        self.let_go()
        self._keeper.returncode = 0

    def let_go(self) -> None:
        """Close our ends."""
        for pipe in (self._keeper.stdin, self._keeper.stdout, self._keeper.stderr):
            assert pipe is not None
            pipe.close()
        if self.report_fd >= 0:
            os.close(self.report_fd)
            self.report_fd = -1

    def _tell(self, data: bytes) -> None:
        assert self._keeper.stdin is not None
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # a keeper that is gone shows in its report
            while view:
                view = view[self._keeper.stdin.write(view) or 0 :]
