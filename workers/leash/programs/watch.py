"""Measures a running command's use of its folder, disk, memory and processes. Part of the keeper's program.

It keeps the promise that a command stays inside its limits, without control groups, which most containers may not make.
"""

from __future__ import annotations

import os
import time

from . import processes, quota

TYPE_CHECKING = False  # the import of typing takes longer than all others
if TYPE_CHECKING:
    from collections.abc import Mapping

_REST_SECONDS = 0.5
"""Least pause between two measurements of the folder. Measurements take at most a tenth of the time."""


class Watch:
    """The measurements of one command. `walls` has the fields of `Walls`."""

    def __init__(self, walls: Mapping[str, int | str]) -> None:
        self._folder = str(walls["folder"])
        self._bytes, self._files, self._free, self._processes, self._memory = (
            int(walls[name]) for name in ("bytes", "files", "free", "processes", "memory")
        )
        self._shallow = bool(walls["shallow"])
        self._device = os.stat(self._folder).st_dev  # noqa: PTH116 - pathlib is slow to import
        self._next = 0.0

    def problem(self) -> str | None:
        """The limit that the command exceeds, as a sentence; None for none."""
        try:
            return self._problem()
        except OverflowError as error:
            return str(error)
        except FileNotFoundError:
            return "the working directory is gone"

    def _problem(self) -> str | None:
        pids, threads = processes.family(self._processes)
        if threads > self._processes:
            return f"it had more than the {self._processes} processes and threads that it may"
        if (size := processes.memory(pids, self._memory)) > self._memory:
            return self._too_much_memory(size)
        begun = time.monotonic()
        if begun >= self._next:
            if problem := self._measured(pids):
                return problem
            ended = time.monotonic()
            self._next = ended + max(_REST_SECONDS, 10 * (ended - begun))
        return quota.disk_problem(self._folder, self._free)

    def _measured(self, pids: list[int]) -> str | None:
        """The slower measurements."""
        use = quota.used(self._folder, self._bytes, self._files)
        disk, held = processes.nameless(pids, self._device)
        use.bytes += disk
        use.deep &= self._shallow
        if (files := processes.temporary_files(pids)) > self._files:
            return f"its files in /tmp and /dev/shm were {files}, more than the {self._files} that they may"
        if held and (size := held + processes.memory(pids, self._memory - held)) > self._memory:
            return self._too_much_memory(size)
        return use.problem(self._bytes, self._files)

    def _too_much_memory(self, size: int) -> str:
        return f"it used {size} bytes of memory, more than the {self._memory} that it may"
