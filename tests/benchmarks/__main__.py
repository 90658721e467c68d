"""`make bench` runs every benchmark, each shortened to a minute or two, or one benchmark at full length.

make bench                                all of them, short
make bench ARGS="parked"                  one, at full length
make bench ARGS="gated_cycle --peers DIR" one, with its own options; `--help` lists them
"""

import subprocess
import sys
from pathlib import Path

SHORT = {
    "gated_cycle": ["--seconds", "5", "--repeat", "2"],
    "user_cycle": ["--seconds", "5", "--repeat", "1"],
    "shell": ["--calls", "50", "--rounds", "3"],
    "beside_peers": ["--seconds", "3", "--repeat", "1"],
    "start": ["--rounds", "1"],
    "processes": ["--seconds", "2"],
    "growth": ["--turns", "10"],
    "long_sessions": [],
    "parked": ["2000", "--idle", "20"],
    "least_bytes": ["--cycles", "100"],
    "exchange": ["500"],
    "archive": ["100"],
    "sweep": ["--rows", "100000", "--rounds", "1"],
    "million_waiting": ["--rows", "20000", "--rounds", "5"],
    "backlog": ["--turns", "500", "--rows", "100000"],
    "queries": ["--rows", "100000", "--rounds", "10"],
    "decisions": ["--cycles", "20"],
    "dead_rows": ["--cycles", "3000", "--rounds", "10"],
    "hot_rows": ["--cycles", "20", "--rounds", "1"],
    "parallel": ["--nap", "0.2"],
    "sub_agents": ["--rounds", "3", "--calls", "3"],
    "large_results": ["--calls", "40"],
    "policy": [],
    "insights": ["--events", "1000000", "--rounds", "8"],
    "audit": [],
    "turns_in_flight": ["100"],
    "streams_in_flight": ["100", "300"],
    "idle_streams": ["1000"],
    "open_pages": ["500"],
    "inbox": ["--rounds", "40", "--events", "100000", "--sessions", "20000"],
    "deliveries": ["--count", "300", "--rounds", "1"],
}
"""The benchmarks, and the options that make them short."""


def main() -> int:
    """Run one benchmark or all. Returns 1 or more if a benchmark failed, 2 if the name is unknown."""
    name, *options = sys.argv[1:] or [""]
    if name in SHORT:
        return _run(name, options)
    if name:
        print(f"unknown benchmark {name!r}; use one of", ", ".join(SHORT), file=sys.stderr)
        return 2
    return sum(_run(each, short) != 0 for each, short in SHORT.items())


def _run(name: str, options: list[str]) -> int:
    print(f"\n== {name} {' '.join(options)}", flush=True)
    return subprocess.call([sys.executable, str(Path(__file__).with_name(f"{name}.py")), *options])


if __name__ == "__main__":
    sys.exit(main())
