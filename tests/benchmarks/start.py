"""What the start of each process costs: `make bench ARGS="start [--rounds 3]"`.

Starts each line of the Procfile until the process is ready, and the command line for its help. Prints medians of the CPU seconds
until then, with those of child processes, and the memory at that moment, in which shared pages count in parts.
"""

import argparse
import os
import resource
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from benchmarks.house import BIN, ROOT, Servers, answers, environment, servers
from benchmarks.meters import spin_ms, tree_cpu

from deploy import procfile
from deploy.folder import free_port

PROCESSES = ("web", "turns", "tools", "sweeps", "deliver", "beat")
LONGEST_SECONDS = 60


def main() -> None:
    """Start each process so many times, in turn, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    rounds = options.parse_args().rounds
    costs: dict[str, list[tuple[float, float]]] = {}
    with servers() as on:
        for _ in range(rounds):
            for name in PROCESSES:
                costs.setdefault(name, []).append(start(on, name))
    costs["assent"] = [(command_line(), 0) for _ in range(rounds)]
    print(f"spin {spin_ms()} ms; medians of {rounds}")
    for name, pairs in costs.items():
        cpu, memory = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"  {name:8} {cpu:5.2f} s CPU" + (f"   {memory:4.0f} MB" if memory else ""), flush=True)


def start(on: Servers, name: str) -> tuple[float, float]:
    """Start a process, and stop it once it is ready. Returns its CPU seconds and its memory in MB."""
    port = free_port()
    probes = on.folder.path / "probes"
    variables = {"ASSENT_PROBE_FOLDER": str(probes), "PORT": str(port), "ASSENT_WORKDIR_ROOT": str(on.folder.path / "workdirs")}
    model = {"ANTHROPIC_BASE_URL": on.model_url, "ANTHROPIC_API_KEY": "stand-in"} if name == "turns" else {}
    probe = probes / ("beat.alive" if name == "beat" else f"{name}.ready")
    probe.unlink(missing_ok=True)
    line = procfile.with_own_interpreter(procfile.lines()[name])
    with (on.folder.path / f"{name}.log").open("ab") as log:
        env = environment(on) | variables | model
        process = subprocess.Popen(["/bin/sh", "-c", f"exec {line}"], cwd=ROOT, env=env, stdout=log, stderr=log)
    try:
        wait_for(process, (lambda: answers(f"http://127.0.0.1:{port}")) if name == "web" else probe.exists, Path(log.name))
        return tree_cpu(process.pid), memory_mb(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LONGEST_SECONDS)


def wait_for(process: "subprocess.Popen[bytes]", condition: Callable[[], bool], log: Path) -> None:
    """Wait until the process is ready."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its descendants."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_full_info().pss for process in family) / 1e6


def command_line() -> float:
    """Return the CPU seconds of `assent --help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([BIN / "assent", "--help"], stdout=subprocess.DEVNULL, check=True, env={"PATH": os.environ["PATH"]})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
