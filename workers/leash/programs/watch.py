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
        """Return the limit that the command exceeds, as a sentence; None for none."""
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
        start_time = time.monotonic()
        if start_time >= self._next:
            if problem := self._measure(pids):
                return problem
            end_time = time.monotonic()
            self._next = end_time + max(_REST_SECONDS, 10 * (end_time - start_time))
        return quota.disk_problem(self._folder, self._free)

    def _measure(self, pids: list[int]) -> str | None:
        """Return the limit that a slower measurement finds exceeded, as a sentence; None for none."""
        use = quota.measure(self._folder, self._bytes, self._files)
        disk_bytes, memory_bytes = processes.nameless(pids, self._device)
        use.bytes += disk_bytes
        use.deep &= self._shallow
        if (files := processes.temporary_files(pids)) > self._files:
            return f"its files in /tmp and /dev/shm were {files}, more than the {self._files} that they may"
        if memory_bytes and (size := memory_bytes + processes.memory(pids, self._memory - memory_bytes)) > self._memory:
            return self._too_much_memory(size)
        return use.problem(self._bytes, self._files)

    def _too_much_memory(self, size: int) -> str:
        return f"it used {size} bytes of memory, more than the {self._memory} that it may"
