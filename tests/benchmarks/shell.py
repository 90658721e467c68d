"""What one shell call costs above a built-in tool's, without a task, a database or a model.

    make bench ARGS="shell [--calls 200] [--rounds 5] [--bare]"

Runs calls of `glob` and of `bash` through `execution.execute`, in turn, and prints the CPU of one call: of this process, and of the
processes that it starts, also of those that have ended. Below stand the floors: bash alone, and bash in the same sandbox, each
started by this process. Compare figures of one run only.
"""

import argparse
import os
import statistics
import tempfile

import psutil
from benchmarks.meters import own_cpu, spin_ms, tree_cpu

from models.settings import settings
from workers import leash
from workers.leash import lease
from workers.leash.programs import keeper, processes
from workers.tools import execution
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET
from workers.tools.builtin.shell import confined, walls_of
from workers.tools.kinds import ToolContext
from workers.tools.sandbox import bubblewrap, workdir

INPUTS = {"glob": {"pattern": "*"}, "bash": {"command": "true"}}


def main() -> None:
    """Measure in turn, and print the medians."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=200)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--bare", action="store_true", help="no sandbox")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "ASSENT_WORKDIR_ROOT": folder,
            "ASSENT_SHELL": "bare" if chosen.bare else "bubblewrap",
            "ASSENT_ENVIRONMENT": "development",
        }
        settings.cache_clear()
        measure(chosen.calls, chosen.rounds)


def measure(calls: int, rounds: int) -> None:
    """Print the cost of one call."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in INPUTS}
    for name in INPUTS:
        repeat(name, 10)
    for _ in range(rounds):
        for name in INPUTS:
            costs[name].append(cost(name, calls))
    print(f"spin {spin_ms()} ms; CPU ms of one call, medians of {rounds} rounds of {calls}")
    print("         this process   its processes     sum")
    for name, pairs in costs.items():
        own, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"  {name:6} {own:12.2f}   {theirs:13.2f}   {own + theirs:5.2f}")
    above = statistics.median(sum(shell) - sum(other) for shell, other in zip(costs["bash"], costs["glob"], strict=True))
    print(f"  bash above glob: {above:.2f}")
    context = new_context()
    bash = [bubblewrap.bash(), "--noprofile", "--norc", "-c", "true"]
    print(f"  floor, bash alone: {floor(leash.Command(bash, env={}, cwd=context.workdir, limits={}), calls):.2f}")
    sandboxed = confined(context, bash, context.workdir, walls_of(context.workdir)[0], {})
    print(f"  floor, bash in its sandbox: {floor(sandboxed, calls):.2f}")
    for pid in helpers():
        memory, words = psutil.Process(pid).memory_full_info(), " ".join(psutil.Process(pid).cmdline())
        name = "keeper" if "import keeper;" in words else "sentinel"
        print(f"  memory of the {name}: {memory.rss / 1e6:.1f} MB, {memory.uss / 1e6:.1f} MB of its own")


def new_context() -> ToolContext:
    """Return the context of a call."""
    return ToolContext("sevt_call", "sesn_1", workdir.session_root("sesn_1"), settings().tool_seconds)


def repeat(name: str, calls: int) -> None:
    """Call a tool so many times."""
    tool = AGENT_TOOLSET[name]
    assert tool
    for _ in range(calls):
        result = execution.execute(tool, new_context(), INPUTS[name])
        assert not result.is_error, result


def cost(name: str, calls: int) -> tuple[float, float]:
    """Return the CPU milliseconds of one call: of this process, and of the processes that it starts."""
    own, theirs = own_cpu(), children_cpu()
    repeat(name, calls)
    return 1000 * (own_cpu() - own) / calls, 1000 * (children_cpu() - theirs) / calls


def helpers() -> list[int]:
    """Return the keeper and the sentinel, which is no child of this process."""
    return processes.with_argument(os.fsencode(lease.mark()))


def children_cpu() -> float:
    """Return the CPU seconds of all processes that this one started, also of ended ones."""
    return sum(os.times()[2:4]) + sum(tree_cpu(pid) for pid in helpers())


def floor(command: leash.Command, calls: int) -> float:
    """Return the CPU milliseconds of a command that this process itself starts and collects, without a keeper."""
    keeper.prctl(keeper.SET_SUBREAPER, 1)  # a sandbox's first process may outlive bubblewrap for a moment
    others = set(processes.children(os.getpid()))
    before = sum(os.times()[2:4])
    for _ in range(calls):
        files = {}
        for fd, data in command.files.items():
            files[fd] = os.memfd_create("input")
            os.write(files[fd], data)
            os.lseek(files[fd], 0, os.SEEK_SET)
        actions = [(os.POSIX_SPAWN_DUP2, file, fd) for fd, file in files.items()]
        pid = os.posix_spawn(command.argv[0], command.argv, command.env, file_actions=actions)
        for file in files.values():
            os.close(file)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        while left := set(processes.children(os.getpid())) - others:
            os.waitpid(left.pop(), 0)
    return 1000 * (sum(os.times()[2:4]) - before) / calls


if __name__ == "__main__":
    main()
