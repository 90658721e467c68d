"""`make bench`: every benchmark, one after the other, each shortened to a minute or two; or one of them, as it is.

make bench                                all of them, short
make bench ARGS="parked"                  one, at full length
make bench ARGS="gated_cycle --peers DIR" one, with its own options; `--help` lists them
"""

import subprocess
import sys
from pathlib import Path

SHORT = {
    "gated_cycle": ["--seconds", "5", "--repeat", "2"],
    "growth": ["--turns", "10"],
    "long_sessions": [],
    "parked": ["2000", "--idle", "20"],
    "least_bytes": ["--cycles", "100"],
    "exchange": ["500"],
    "sweep": ["--rows", "100000", "--rounds", "1"],
    "decisions": ["--cycles", "20"],
    "parallel": ["--nap", "0.2"],
    "large_results": ["--calls", "40"],
    "policy": [],
    "audit": [],
    "turns_in_flight": ["100"],
    "streams_in_flight": ["100", "300"],
    "idle_streams": ["1000"],
    "open_pages": ["500"],
    "inbox": ["--rounds", "40", "--events", "100000"],
    "deliveries": ["--count", "300", "--rounds", "1"],
}
"""The benchmarks, and what makes them short."""


def main() -> int:
    """Run what was asked for. Returns how many failed."""
    name, *options = sys.argv[1:] or [""]
    if name in SHORT:
        return _run(name, options)
    if name:
        print(__doc__, "\nThey are:", ", ".join(SHORT), file=sys.stderr)
        return 2
    return sum(_run(each, short) != 0 for each, short in SHORT.items())


def _run(name: str, options: list[str]) -> int:
    print(f"\n== {name} {' '.join(options)}", flush=True)
    return subprocess.call([sys.executable, str(Path(__file__).with_name(f"{name}.py")), *options])


if __name__ == "__main__":
    sys.exit(main())
