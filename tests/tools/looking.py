"""Helpers with which tests of tools look at results and processes."""

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from workers.tools.kinds import ToolResult

SECRET = "hidden-from-agents"
"""The content of files that no tool may show."""


def text(result: ToolResult) -> str:
    """All that the model reads of a result."""
    return "\n".join(block["text"] for block in result.content)


def until(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """Wait until the condition is true, and return its value. Fails after the seconds.

    The pauses grow with the wait: many conditions look at all processes of the machine.
    """
    began = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - began
        assert waited < seconds, f"the condition is not true after {seconds} s"
        time.sleep(min(0.01 + waited / 10, 0.2))
    return value


def keepers() -> list[int]:
    """Return the process ids of this process's own keepers. They wait for the next command when one has ended."""
    return alive("import keeper;", psutil.Process().children())


def below_keepers() -> list[psutil.Process]:
    """Return all processes below this process's own keepers, zombies too."""
    return [process for pid in keepers() for process in psutil.Process(pid).children(recursive=True)]


def alive(mark: str, among: Iterable[psutil.Process] | None = None) -> list[int]:
    """Return the ids of processes with the mark in their command lines. Zombies have no command line."""
    pids = []
    for pid in psutil.pids() if among is None else [process.pid for process in among]:
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " "):
                pids.append(pid)
    return pids
