"""What parallel calls with large results cost each other: nothing, because the session's lock reads no payload.

    make bench ARGS="large_results [--calls 100] [--megabytes 1]"

One turn asks for all calls. All are claimed, then each is finished with a large result in a transaction of its own, as tools
workers do. Then the next turn is claimed and reads the history. Before each finish a bare transaction locks a row and inserts the
same result twice, as Assent does: for the model, and as an event. Prints CPU ms of this process and of Postgres, and the ratio to
the bare transaction. If a finish read the results of the calls before it, the last tenth of them would cost many times the first.
The next turn must read every result once.
"""

import argparse
import base64
import os
import statistics
import time
from collections.abc import Callable

import psycopg
from benchmarks.copies import Db
from benchmarks.house import servers
from benchmarks.meters import exact_cpu, spin_ms

_BARE = "INSERT INTO bare (result) VALUES (jsonb_build_array(jsonb_build_object('type', 'text', 'text', %s::text)))"


class Meter:
    """Measures the CPU of this process and of Postgres."""

    def __init__(self, postgres: int) -> None:
        self.postgres = postgres

    def ms(self, work: Callable[[], object]) -> float:
        """Return the CPU milliseconds that `work` takes."""
        before = exact_cpu(self.postgres) + time.process_time()
        work()
        return 1000 * (exact_cpu(self.postgres) + time.process_time() - before)


def bare(db: Db, text: str) -> None:
    """Store a result under a lock, and do nothing else."""
    with db.transaction():
        db.execute("SELECT FROM bare WHERE id = 1 FOR NO KEY UPDATE")
        for _ in ("the result", "its event"):
            db.execute(_BARE, (text,))


def measure(db: Db, meter: Meter, count: int, size: int) -> dict[str, list[float]]:
    """Return the CPU milliseconds of each claim, finish and bare transaction, and of the next turn."""
    from rows.stage import Stage, call  # reads the settings, which name this database

    stage = Stage()
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    calls = stage.reply(session_id, *(call("bash", command=f"echo {number}") for number in range(count)))
    costs: dict[str, list[float]] = {"claim": [], "finish": [], "bare": [], "next turn": []}
    held = []
    for each in calls:
        costs["claim"].append(meter.ms(lambda each=each: held.append(stage.claim_call(each))))
    for number, each in enumerate(held, 1):
        assert each, "the call was claimed"
        if number == count:
            costs["lock"] = [meter.ms(lambda: stage.locked(session_id, lambda locked: locked.session)) for _ in range(10)]
        text = base64.b64encode(os.urandom(size * 3 // 4)).decode()
        costs["bare"].append(meter.ms(lambda text=text: bare(db, text)))
        costs["finish"].append(meter.ms(lambda each=each, text=text: stage.finish_call(each, text)))

    def next_turn() -> None:
        assert stage.claim(session_id), "the next turn is queued"
        messages = stage.history(session_id)
        assert len(messages[-1]["content"]) == count, "the next turn reads every result"

    costs["next turn"].append(meter.ms(next_turn))
    return costs


def show(costs: dict[str, list[float]], count: int) -> None:
    """Print the table."""
    base, tenth = statistics.mean(costs["bare"]), max(1, count // 10)
    lines = {
        "claim": statistics.mean(costs["claim"]),
        "finish, the first tenth": statistics.mean(costs["finish"][:tenth]),
        "finish, the last tenth": statistics.mean(costs["finish"][-tenth:]),
        "finish, all": statistics.mean(costs["finish"]),
        "the lock, before the last": statistics.mean(costs["lock"]),
        "next turn, per call": costs["next turn"][0] / count,
        "a bare transaction": base,
    }
    print(f"{'':28}{'CPU ms':>10}{'over bare':>12}")
    for name, ms in lines.items():
        print(f"{name:28}{ms:10.2f}{ms / base:12.2f}", flush=True)


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=100)
    options.add_argument("--megabytes", type=float, default=1)
    chosen = options.parse_args()
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as db:
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        os.environ |= {"REDIS_URL": on.redis_url, "ANTHROPIC_API_KEY": "none"}
        db.execute("CREATE TABLE bare (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, result jsonb)")
        bare(db, "warm")
        meter = Meter(on.supervisor.pids["postgres"])
        print(f"{chosen.calls} calls of one turn, each with a result of {chosen.megabytes:g} MB; a spin takes {spin_ms()} ms")
        show(measure(db, meter, chosen.calls, int(chosen.megabytes * 1_000_000)), chosen.calls)


if __name__ == "__main__":
    main()
