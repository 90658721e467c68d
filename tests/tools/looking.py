"""How tests of tools look at results and processes."""

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from workers.tools.kinds import ToolResult


def text(result: ToolResult) -> str:
    """All that the model reads of a result."""
    return "\n".join(block["text"] for block in result.content)


def until(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """Wait until something is so; what it said. Fails after that many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.03)
    return found


def keepers() -> list[int]:
    """This process's own keepers."""
    return alive("/keeper.", psutil.Process().children())


def alive(mark: str, among: Iterable[psutil.Process] | None = None) -> list[int]:
    """Processes with the mark in their command line. Zombies have no command line."""
    found = []
    for pid in psutil.pids() if among is None else [process.pid for process in among]:
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " "):
                found.append(pid)
    return found
