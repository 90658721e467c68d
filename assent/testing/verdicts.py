"""Verdicts of the server's rules, without a server: one process of `assent policy judge` judges all calls."""

import atexit
import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from assent.testing.server import command


@dataclass(frozen=True)
class Verdict:
    """What a policy says about a call."""

    effect: Literal["allow", "ask", "deny"]
    rule: str
    """The rule or the default that decided, in words."""


def judge(policy: str | Mapping[str, Any], tool: str, input: Mapping[str, Any]) -> Verdict:  # noqa: A002 - the wire's word
    """Return the verdict on a call of `tool` with this input.

    The policy is that of a tool, a toolset, an agent or a workspace, such as `"always_ask"` or `{"type": "rules", ...}`. No other
    level has a policy, and nothing is granted. Raises ValueError for a policy that Assent would refuse, and ServerMissing.
    """
    whole = {"type": policy} if isinstance(policy, str) else dict(policy)
    line = _judge().ask(json.dumps({"policy": whole, "tool": tool, "input": dict(input)}))
    verdict = json.loads(line)
    if "error" in verdict:
        raise ValueError(verdict["error"])
    return Verdict(verdict["effect"], verdict["rule"])


class _Judge:
    """A process that judges, one call after the other."""

    def __init__(self) -> None:
        words = command("policy", "judge")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, encoding="utf-8")  # noqa: S603 - the server's command
        self._lock = threading.Lock()
        atexit.register(self._close)

    def ask(self, line: str) -> str:
        """Send a line, and return the line that it gets. Raises RuntimeError if the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            stdin.write(f"{line}\n")
            stdin.flush()
            if result := stdout.readline():
                return result
        raise RuntimeError(f"`assent policy judge` ended with exit code {self._process.wait()}; its error output says why")

    def _close(self) -> None:
        with self._process:  # closes its pipes, at which it ends, and waits for it
            pass


@cache
def _judge() -> _Judge:
    return _Judge()
