"""A house of another checkout: `PYTHONPATH=CHECKOUT:CHECKOUT/tests python -P standing.py NAME=VALUE...`, run in that checkout.

Prints the house as one line of JSON once it stands, and takes it down when its input ends. It uses only what `benchmarks.house` of
any commit since 70c169d offers.
"""

import json
import sys
import threading
from pathlib import Path

from benchmarks.house import house, servers


def main() -> None:
    """Stand until the input ends."""
    settings = dict(word.split("=", 1) for word in sys.argv[1:])
    with servers() as on, house(on, **settings) as at:
        counts = str(at.counts) if hasattr(at, "counts") else None
        threading.Thread(target=drain, args=(at.pipe,), daemon=True).start()
        print(json.dumps({"url": at.url, "key": at.key, "admin_url": at.admin_url, "pids": at.pids, "counts": counts}), flush=True)
        sys.stdin.read()


def drain(pipe: Path) -> None:
    """Read the workers' marks, which block them when the pipe is full."""
    with pipe.open("rb", buffering=0) as marks:
        while marks.read(1 << 16):
            pass


if __name__ == "__main__":
    main()
