"""What the audit costs: `make bench ARGS="audit"`.

1. An act that is hashed and inserted, and the same insert without a hash: client CPU and time.
2. A whole gated cycle (message, turn, approval, decision, tool, turn), verb by verb: how much of it is hashing.
3. Sweeps that seal 10,000 changed sessions, 10 changed sessions, and none.
4. A verification of all of it, and of its export: acts per second, and memory.

All in one process on an embedded Postgres with fsync on. Ratios say more than figures: the machine may be busy.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.house import servers
from benchmarks.meters import spin_ms
from rows.stage import Stage, call, say

from models.audit import acts as audit
from models.audit import seal_key, seal_sweep, signed_heads
from models.audit import verifying as auditing
from models.database import clock, ids, transactions
from models.session.row import Session
from models.settings import settings

DETAILS = {"result": "allow", "rule": "ask: default", "input_sha256": "0" * 64}


@dataclass
class Carrier:
    """The columns of a session's row that a chain needs."""

    id: str
    audit_seq: int = 0
    audit_head: str = audit.GENESIS


def microseconds(act: Callable[[], object], count: int) -> tuple[float, float]:
    """Return the mean CPU and wall microseconds of `count` calls."""
    cpu, began = time.process_time(), time.perf_counter()
    for _ in range(count):
        act()
    return 1e6 * (time.process_time() - cpu) / count, 1e6 * (time.perf_counter() - began) / count


@contextmanager
def unchained() -> Iterator[None]:
    """Give acts a constant instead of a hash."""
    link = audit.link
    audit.link = lambda _before, _act: "0" * 64
    try:
        yield
    finally:
        audit.link = link


def acts(stage: Stage, batch: int, count: int) -> tuple[float, float]:
    """Write `count` transactions of `batch` acts, as a session does. Returns CPU and wall microseconds per act."""
    carrier = Carrier(ids.new("sesn"))

    def write() -> None:
        with transactions.transaction(stage.workspace_id) as handle:
            now = clock.now(handle)
            rows = [audit.entry(carrier, stage.principal, "approval.decided", carrier.id, DETAILS, now) for _ in range(batch)]
            handle.insert_many(audit.Audit, [act for act, _ in rows])

    cpu, wall = microseconds(write, count)
    return cpu / batch, wall / batch


def one_act(stage: Stage, repeat: int) -> None:
    """Print the cost of an act with and without the chain, by turns, and of the hash alone."""
    print("\n1. an act, client CPU (wall) in microseconds")
    for batch in (1, 4):
        chained_runs, plain_runs = [], []
        for _ in range(repeat):
            chained_runs.append(acts(stage, batch, 200))
            with unchained():
                plain_runs.append(acts(stage, batch, 200))
        chained, plain = ([statistics.median(part) for part in zip(*runs, strict=True)] for runs in (chained_runs, plain_runs))
        print(
            f"  {batch} in a transaction: chained {chained[0]:.0f} ({chained[1]:.0f})  without {plain[0]:.0f} ({plain[1]:.0f})",
            end="",
        )
        print(f"  the chain adds {chained[0] - plain[0]:.0f} ({chained[0] / plain[0] - 1:+.0%} CPU)")
    carrier, now = Carrier(ids.new("sesn")), datetime.now(UTC)
    alone, _ = microseconds(lambda: audit.entry(carrier, stage.principal, "approval.decided", carrier.id, DETAILS, now), 5000)
    print(f"  hashing alone: {alone:.1f}")


def cycle(stage: Stage) -> str:
    """Write the rows of a gated cycle of a new session, without model and tool. Returns the session's id."""
    session_id = stage.session(bash="always_ask")
    stage.message(session_id)
    [proposed] = stage.reply(session_id, call())
    stage.confirm(session_id, proposed.id)
    stage.run_call(proposed)
    stage.reply(session_id, say("Done."))
    return session_id


def one_cycle(stage: Stage, repeat: int) -> None:
    """Print the CPU of a cycle's rows, and the part of `link` in it."""
    took = 0.0
    link = audit.link

    def measured(before: str, act: audit.Audit | dict[str, object]) -> str:
        nonlocal took
        began = time.process_time()
        try:
            return link(before, act)
        finally:
            took += time.process_time() - began

    audit.link = measured
    chained = microseconds(lambda: cycle(stage), 20 * repeat)[0] / 1000
    audit.link = link
    hashing = 1000 * took / 20 / repeat
    with transactions.transaction(stage.workspace_id) as handle:
        count = handle.value("SELECT count(*) FROM audit WHERE chain = %(chain)s", chain=cycle(stage))
    print(f"\n2. a gated cycle's rows ({count} acts of its session): {chained:.2f} ms CPU", end="")
    print(f", of it {hashing:.2f} for the chain: {hashing / chained:.1%}")


def sessions(stage: Stage, count: int, each: int) -> list[str]:
    """Create `count` sessions with `each` chained acts, in bulk. Returns their ids."""
    first = stage.session()
    with transactions.transaction(stage.workspace_id) as handle:
        handle.write("SET LOCAL statement_timeout = 0")
        names = ", ".join(column.name for column in Session.__table__.columns if column.name != "id")
        copies = "SELECT unnest(CAST(%(ids)s AS text[]))"
        copy = f"INSERT INTO session (id, {names}) {copies}, {names} FROM session WHERE id = %(first)s"
        chains = [ids.new("sesn") for _ in range(count)]
        handle.write(copy, ids=chains, first=first)
        grow(handle, stage, chains, each, Carrier)
    return chains


def grow(handle: transactions.Db, stage: Stage, chains: list[str], each: int, start: Callable[[str], Carrier]) -> None:
    """Append `each` acts to every chain. `start` returns a chain's present head."""
    handle.write("SET LOCAL statement_timeout = 0")
    now = clock.now(handle)
    for at in range(0, len(chains), 500):
        carriers = [start(chain) for chain in chains[at : at + 500]]
        rows = [
            audit.entry(carrier, stage.principal, "approval.decided", carrier.id, DETAILS, now)
            for carrier in carriers
            for _ in range(each)
        ]
        handle.insert_many(audit.Audit, [act for act, _ in rows])
        heads = [{"id": c.id, "seq": c.audit_seq, "head": c.audit_head} for c in carriers]
        records = "jsonb_to_recordset(CAST(%(heads)s AS jsonb)) AS h (id text, seq bigint, head text)"
        text = f"UPDATE session SET audit_seq = h.seq, audit_head = decode(h.head, 'hex') FROM {records} WHERE session.id = h.id"
        handle.write(text, heads=json.dumps(heads))


def sealing(stage: Stage, count: int, each: int) -> None:
    """Print the cost of sweeps over many, few and no changed sessions."""
    sweep = seal_sweep.SealSweep()
    sweep.run()
    chains = sessions(stage, count, each)
    print(f"\n3. sealing, {count} sessions with {each} acts")
    for name, some in (("all of them", []), ("10 of them", chains[:10]), ("nothing", [])):
        if some:
            with transactions.transaction(stage.workspace_id) as handle:
                rows = handle.rows("SELECT id, audit_seq, encode(audit_head, 'hex') FROM session WHERE id = ANY(%(ids)s)", ids=some)
                heads = {row[0]: Carrier(*row) for row in rows}
                grow(handle, stage, some, 1, heads.__getitem__)
        cpu, wall = microseconds(sweep.run, 1)
        print(f"  {name}: {cpu / 1000:.1f} ms CPU, {wall / 1000:.1f} ms")
    sweep.compared = None
    cpu, wall = microseconds(sweep.run, 1)
    print(f"  the hourly look at two hours, nothing found: {cpu / 1000:.1f} ms CPU, {wall / 1000:.1f} ms")
    with signed_heads.open_file(signed_heads.path()) as heads:
        heads.reach(None)
    cpu, wall = microseconds(seal_sweep.SealSweep().run, 1)
    print(f"  all chains compared, as after an adoption, nothing found: {cpu / 1000:.1f} ms CPU, {wall / 1000:.1f} ms")


def verifying(stage: Stage) -> None:
    """Print the pace of a verification of the database, and of its export."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export.jsonl"
        with file.open("w") as out:
            _, wall = microseconds(lambda: out.writelines(auditing.export(stage.workspace_id, datetime.now(UTC))), 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        live = auditing.verify(stage.workspace_id, auditing.walk(stage.workspace_id), seal_key.trusted_keys())
        took = time.perf_counter() - began
        assert live.intact, live.problems
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"\n4. {live.acts} acts in {live.chains} chains, {live.seals} seals, {file.stat().st_size / live.acts:.0f} bytes each"
        )
        print(f"  export: {live.acts / wall * 1e6:.0f} acts/s")
        print(f"  verified in place: {live.acts / took:.0f} acts/s, {more:.0f} MB more memory at most")
        began = time.perf_counter()
        with file.open() as lines:
            workspace_id, items = auditing.read_export(iter(lines))
            assert auditing.verify(workspace_id, items, seal_key.trusted_keys()).intact
        print(f"  verified from the file: {live.acts / (time.perf_counter() - began):.0f} acts/s")


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--acts", type=int, default=10)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--postgres-port", type=int, help="of a server for benchmarks only, instead of the embedded one")
    chosen = options.parse_args()
    with servers(chosen.postgres_port) as on:
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        heads = Path(tempfile.mkdtemp()) / "heads"
        signed_heads.make(heads)
        os.environ |= {"ASSENT_AUDIT_KEY": seal_key.make(), "ASSENT_AUDIT_HEADS_FILE": str(heads)}
        settings.cache_clear()
        print(f"spin {spin_ms()} ms")
        stage = Stage()
        one_act(stage, chosen.repeat)
        one_cycle(stage, chosen.repeat)
        sealed = Stage()
        sealing(sealed, chosen.sessions, chosen.acts)
        verifying(sealed)
        transactions.dispose()


if __name__ == "__main__":
    main()
