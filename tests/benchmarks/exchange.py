"""One transaction of ten statements: as `models.database.exchange` sends it, by psycopg's pipeline, and one by one.

    make bench ARGS="exchange [TRANSACTIONS]"

Prints CPU per transaction, of the client and of the server's process, the least of four interleaved rounds. Compare ratios only.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import psutil
import psycopg
from benchmarks.house import servers
from psycopg.types.json import Jsonb

from models.database.exchange import Connection, Statement

READS = [
    Statement("SELECT id, note, body FROM sample WHERE id = %(id)s FOR NO KEY UPDATE", {"id": 1}),
    Statement("SELECT id, note, body FROM sample WHERE id = %(id)s", {"id": 2}),
    Statement("SELECT id, note, body FROM sample WHERE id = ANY(%(ids)s)", {"ids": [3, 4, 5]}),
    Statement("SELECT id, note FROM sample WHERE id = %(id)s", {"id": 6}),
]
INSERT = Statement("INSERT INTO grown (note, body) VALUES (%(note)s, %(body)s)", {"note": "x" * 40, "body": Jsonb({"a": "c" * 50})})
WRITES = [
    INSERT,
    Statement("UPDATE sample SET note = %(note)s WHERE id = %(id)s", {"note": "y", "id": 2}),
    Statement("UPDATE sample SET note = %(note)s WHERE id = %(id)s", {"note": "z", "id": 1}),
    INSERT,
]
BEGIN, COMMIT = Statement("BEGIN", {}), Statement("COMMIT", {})
TABLES = """
    CREATE TABLE sample (id int PRIMARY KEY, note text, body jsonb);
    CREATE TABLE grown (note text, body jsonb);
    INSERT INTO sample SELECT n, 'v', '{"a": [1, 2, 3]}' FROM generate_series(1, 10) n
"""


def exchanged(connection: Connection) -> None:
    """Send the statements in two messages."""
    connection.exchange([BEGIN, *READS])
    connection.exchange([*WRITES, COMMIT])


def pipelined(connection: Connection) -> None:
    """Send each statement by psycopg's pipeline, and wait twice."""
    with connection.pipeline():
        connection.execute("BEGIN")
        for cursor in [connection.execute(read.sql, read.values) for read in READS]:
            cursor.fetchall()
        for write in WRITES:
            connection.execute(write.sql, write.values)
        connection.execute("COMMIT")


def one_by_one(connection: Connection) -> None:
    """Send each statement by psycopg, and wait for each."""
    connection.execute("BEGIN")
    for read in READS:
        connection.execute(read.sql, read.values).fetchall()
    for write in WRITES:
        connection.execute(write.sql, write.values)
    connection.execute("COMMIT")


def main() -> None:
    """Measure the three ways, interleaved, and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    ways: dict[str, Callable[[Connection], None]] = {"exchange": exchanged, "pipeline": pipelined, "one by one": one_by_one}
    with servers() as on:
        url = on.postgres.url("postgres")
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("DROP TABLE IF EXISTS sample, grown")
            admin.execute(TABLES)
        connections: dict[str, Any] = {name: Connection.connect(url, autocommit=True) for name in ways}
        for connection in connections.values():
            connection.prepare_threshold = 0
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(4):
            for name, costs in rounds.items():
                costs.append(cost(ways[name], connections[name], count))
    least = {name: [min(part) for part in zip(*costs, strict=True)] for name, costs in rounds.items()}
    for name, (client, server) in least.items():
        ratio = (client + server) / sum(least["exchange"])
        print(f"{name}: client {client:.0f} us, server {server:.0f} us of CPU per transaction, {ratio:.2f} times an exchange")


def cost(way: Callable[[Connection], None], connection: Connection, count: int) -> tuple[float, float]:
    """Return the CPU microseconds per transaction, of this process and of the connection's server."""
    server = psutil.Process(connection.info.backend_pid)
    for _ in range(50):
        way(connection)
    began, before = time.process_time(), sum(server.cpu_times()[:2])
    for _ in range(count):
        way(connection)
    return (time.process_time() - began) / count * 1e6, (sum(server.cpu_times()[:2]) - before) / count * 1e6


if __name__ == "__main__":
    main()
