"""A program that runs for long under a keeper: no process that it starts outlives it."""

import os
import selectors
import time
from pathlib import Path

from workers.tools.sandbox.keeper import END_SECONDS
from workers.tools.sandbox.leash import SLACK_SECONDS, Command, Leash, killed_by_sentinel

_FOR_EVER = 1e9


class Program(Leash):
    """One running program."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: Path, fd: int) -> None:
        """Start the program, which inherits the descriptor `fd`. Errors: OSError."""
        super().__init__((fd,))
        for stream in ("stdout", "stderr"):  # a read never waits
            os.set_blocking(self.outputs[stream], False)
        self.order(Command(argv, env, cwd, {"RLIMIT_CORE": 0}, fds=(fd,)), _FOR_EVER)

    def kill(self) -> None:
        """Kill the program with all its descendants, and wait until the keeper reports the end."""
        self.cancel()
        deadline = time.monotonic() + END_SECONDS + SLACK_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.outputs["report"], selectors.EVENT_READ)
            while not self.over and selector.select(max(deadline - time.monotonic(), 0)):
                self.look()
        self.over = True

    @property
    def how(self) -> str:
        """How the program ended, in words."""
        if self.report is None:
            return "its keeper died"
        ended, status, left, _ = self.report
        if left:
            return f"{left} of its processes could not be killed"
        code = os.waitstatus_to_exitcode(status)
        if killed_by_sentinel(ended, code):
            return "killed, as its worker did not renew its lease in time"
        return "killed by the worker" if ended == "cancelled" else f"signal {-code}" if code < 0 else f"exit code {code}"
