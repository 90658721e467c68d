"""Workers of tests as processes of their own that start at once: forks of a program that has imported the tools."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerProcess
from typing import Any

from workers import leash

Call = tuple[str, dict[str, Any]]
"""A tool's name and the fields of its input."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["workers.tools.execution", "workers.tools.sandbox.workdir", "workers.leash"])
_started: list[ForkServerProcess] = []


def start_worker(*calls: Call, seconds: float = 60, lease_seconds: float | None = None) -> ForkServerProcess:
    """A process in a session of its own that runs the calls at the same time, within the time limit and an unrenewed lease.

    Nothing of the calls is in its command line.
    """
    variables = {name: value for name, value in os.environ.items() if name.startswith("ASSENT_")}
    process = _context.Process(target=_work, args=(calls, seconds, lease_seconds, variables))
    process.start()
    _started.append(process)
    return process


def end_all() -> None:
    """Kill the workers that a test left. A frozen worker would otherwise keep the test process from its end."""
    while _started:
        process = _started.pop()
        process.kill()
        process.join()


def _work(calls: tuple[Call, ...], seconds: float, lease_seconds: float | None, variables: dict[str, str]) -> None:
    from workers.leash import lease
    from workers.tools import execution
    from workers.tools.builtin.agent_toolset import AGENT_TOOLSET
    from workers.tools.kinds import ToolContext
    from workers.tools.sandbox import bubblewrap, workdir

    os.setsid()
    os.environ.update(variables)
    root = workdir.session_root("sesn_1")
    if lease_seconds is not None:
        assert bubblewrap.shell_problem() is None
        assert lease.mark()
        leash.extend(leash.now() + lease_seconds)

    def run(call: Call) -> None:
        tool = AGENT_TOOLSET[call[0]]
        assert tool is not None
        execution.execute(tool, ToolContext("sevt_call", "sesn_1", root, seconds), call[1])

    if len(calls) == 1:
        run(calls[0])  # in the main thread, as in a process of Celery's pool
        return
    with ThreadPoolExecutor(len(calls)) as threads:
        list(threads.map(run, calls))
