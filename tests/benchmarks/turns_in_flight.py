"""Model calls in flight on one turns process of the whole product, at 50 tokens per second each: does every lease hold?

    make bench ARGS="turns_in_flight [N ...]"

For each N: N sessions whose model writes for 30 s. Prints the real pace of the replies, lost leases, repeated attempts, how long a
turn waited for its claim, and the CPU of the turns process.
"""

import sys
import time

import psycopg
from benchmarks.driver import Driver, message
from benchmarks.house import House, house, servers
from benchmarks.meters import percentile, tree_cpu

TOKENS, PACE = 1500, 50

_TURNS = """
SELECT status, attempt, losses, extract(epoch FROM ended_at - started_at), extract(epoch FROM started_at - created_at)
FROM turn WHERE session_id = ANY(%s)
"""


def run(at: House, driver: Driver, count: int) -> None:
    """Run `count` sessions at once, and print."""
    driver.session["initial_events"] = [message(f"say {TOKENS} tokens at {PACE}/s")]
    began, cpu = time.monotonic(), tree_cpu(at.pids["turns0"])
    sessions = set(driver.pool.map(lambda _: driver.start(), range(count)))
    open_ = set(sessions)
    while open_ and time.monotonic() - began < 240:
        open_ -= {session for kind, session, _, _ in driver.read() if kind == "D"}
    seconds = time.monotonic() - began
    used = 100 * (tree_cpu(at.pids["turns0"]) - cpu) / seconds
    with psycopg.connect(at.admin_url) as db:
        rows = db.execute(_TURNS, (list(sessions),)).fetchall()
    took = [float(row[3]) for row in rows if row[3] is not None]
    waited = [float(row[4]) for row in rows if row[4] is not None]
    pace = TOKENS / percentile(took, 50) if took else 0
    print(
        f"{count:5} in flight: done {count - len(open_)}, retried {sum(row[1] > 1 for row in rows)}, "
        f"leases lost {sum(row[2] for row in rows)}, "
        f"tokens/s each p50 {pace:.1f} slowest {TOKENS / max(took, default=1e9):.1f}, "
        f"claimed after p99 {percentile(waited or [0], 99):.1f} s, CPU {used:.0f} %",
        flush=True,
    )


def main() -> None:
    """Measure each N in turn, on the same processes."""
    counts = [int(word) for word in sys.argv[1:] or ["100", "200", "300"]]
    with servers() as on, house(on, in_flight=max(counts)) as at:
        driver = Driver(at)
        driver.cycles(20, 4)
        for count in counts:
            run(at, driver, count)


if __name__ == "__main__":
    main()
