"""The master of a Redis Sentinel dies. Workers and streams go on with the server that the Sentinels make the master."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from crashes.hints import forget, use_redis
from crashes.processes import TURNS, Process, running, wait_for
from faults.own_redis import OwnRedis, own_redis
from rows.stage import Stage

from api.streams.hub import hub
from api.streams.reader import Reader
from deploy.folder import free_port
from workers import enqueue
from workers.sweeps import dispatching

PASSWORD = "of-this-test-only"
SENTINELS = 3
SENTINEL = """\
port {port}
bind 127.0.0.1
dir "{folder}"
sentinel monitor mymaster 127.0.0.1 {master} 2
sentinel auth-pass mymaster {password}
sentinel down-after-milliseconds mymaster 500
sentinel failover-timeout mymaster 3000
"""


class Sentinels:
    """Three Sentinels of a master with one replica."""

    def __init__(self, master: OwnRedis, replica: OwnRedis, ports: list[int]) -> None:
        self.master, self.replica, self.ports = master, replica, ports
        self.url = ";".join(f"sentinel://:{PASSWORD}@127.0.0.1:{port}/0" for port in ports)

    def agree(self) -> bool:
        """True if each knows the replica and the other two."""
        for port in self.ports:
            with redis.Redis(port=port, decode_responses=True) as sentinel:
                try:
                    state = sentinel.sentinel_master("mymaster")
                except redis.RedisError:
                    return False
            if (state["num-slaves"], state["num-other-sentinels"]) != (1, SENTINELS - 1):
                return False
        return True


@pytest.fixture
def sentinels(tmp_path: Path) -> Iterator[Sentinels]:
    """A master, its replica and their Sentinels, which agree."""
    with ExitStack() as stack:
        for name in ("master", "replica"):
            (tmp_path / name).mkdir()
        master, replica = (stack.enter_context(own_redis(tmp_path / name)) for name in ("master", "replica"))
        for server in (master, replica):
            server.execute("CONFIG", "SET", "masterauth", PASSWORD)
        replica.execute("REPLICAOF", "127.0.0.1", master.port)
        wait_for("the replica follows", lambda: replica.execute("INFO", "replication")["master_link_status"] == "up")
        ports = [free_port() for _ in range(SENTINELS)]
        for port in ports:
            folder = tmp_path / str(port)
            folder.mkdir()
            values = {"port": port, "folder": folder, "master": master.port, "password": PASSWORD}
            (folder / "conf").write_text(SENTINEL.format(**values))
            words = [str(master.embedded.server), str(folder / "conf"), "--sentinel"]
            stack.enter_context(running(words, {}, folder / "log"))
        together = Sentinels(master, replica, ports)
        wait_for("the Sentinels agree", together.agree)
        yield together


@pytest.fixture
def worker(sentinels: Sentinels, fault_env: dict[str, str], tmp_path: Path) -> Iterator[Process]:
    """A worker of turns whose broker is the master."""
    with running(TURNS, fault_env | {"REDIS_URL": sentinels.url}, tmp_path / "worker.log") as process:
        yield process


def test_hints_and_notes_go_to_the_new_master(
    sentinels: Sentinels, worker: Process, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_STREAM_POLL_SECONDS", "3600")  # streams hear of events by notes alone
    monkeypatch.setenv("ASSENT_REHINT_SECONDS", "0.1")
    use_redis(monkeypatch, sentinels.url)
    session_id = stage.session()
    reader = Reader(session_id, "")
    hub().register(reader)

    def is_heard() -> bool:
        enqueue.publish([], {session_id: {"seq": 1}})
        return reader.wake.wait(0.2)

    def is_answered() -> bool:
        dispatching.dispatch()
        return len(stage.events(session_id, "agent.message")) == answers

    try:
        for answers in (1, 2):
            stage.message(session_id, "say Hello.")
            wait_for("a worker takes the hint", is_answered)
            wait_for("the stream hears the note", is_heard)
            if answers == 1:
                sentinels.master.kill()
            reader.wake.clear()
        assert sentinels.replica.execute("INFO", "replication")["role"] == "master"
    finally:
        hub().unregister(reader)
        monkeypatch.undo()
        forget()
