"""A client that does not read is cut, occupies no memory of the server, delays no other reader, and can resume."""

import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest
from crashes.processes import LOOK_PACE, wait_for
from doors.reading import stream
from doors.served import Caller, good, message
from rows.stage import Stage, say
from streams.slow import Slow, slow_get, slow_stream

EVENTS = 90
EVENT_BYTES = 270_000
READERS = 10
MEGABYTE = 1 << 20


@pytest.fixture
def session_id(caller: Caller, stage: Stage) -> str:
    """A session with 24 MB of events: more than all buffers between server and client hold."""
    created = str(caller.session()["id"])
    for number in range(EVENTS):
        stage.message(created, f"{number} " + "x" * EVENT_BYTES)
    return created


def worker(url: str) -> psutil.Process:
    """Return the gunicorn worker of this server."""
    port = int(url.rpartition(":")[2])
    listening = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in process.net_connections()):
                listening.add(process)
    (child,) = [process for process in listening if process.parent() in listening]
    return child


def open_to(process: psutil.Process, clients: list[Slow]) -> int:
    """Return how many of these clients' connections the server still has open."""
    ports = {client.sock.getsockname()[1] for client in clients}
    return sum(bool(c.raddr) and c.raddr.port in ports and c.status != psutil.CONN_CLOSE for c in process.net_connections())


def test_a_client_that_does_not_read_is_cut_and_costs_no_memory(
    api: str, caller: Caller, outdated: None, session_id: str, log: Path
) -> None:
    """Ten clients request 24 MB each and read nothing. The server reads the events in pages, also with outdated statistics."""
    process = worker(api)
    before = process.memory_info().rss
    with ExitStack() as stack:
        clients = [stack.enter_context(slow_stream(api, caller.headers["x-api-key"], session_id, last=0)) for _ in range(READERS)]
        most, deadline = before, time.monotonic() + 60
        while not any(c.read(15) for c in clients[:1] if not c.raw):
            assert time.monotonic() < deadline
        while open_to(process, clients):
            assert time.monotonic() < deadline, f"{open_to(process, clients)} are not cut"
            most = max(most, process.memory_info().rss)
            time.sleep(LOOK_PACE)
    assert most - before < 40 * MEGABYTE, f"{(most - before) / MEGABYTE:.0f} MB for clients that read nothing"
    assert "Traceback" not in log.read_text()


def test_a_client_that_was_cut_resumes_without_loss_or_repetition(api: str, caller: Caller, session_id: str) -> None:
    """Twice it reads a little, stops reading, is cut, and returns with the last number that it read completely."""
    seen: list[int] = []
    process = worker(api)
    for _ in range(2):
        with slow_stream(api, caller.headers["x-api-key"], session_id, last=seen[-1] if seen else 0) as client:
            client.read(EVENTS * EVENT_BYTES // 5)
            wait_for("the client is cut", lambda: not open_to(process, [client]), 60)
            client.rest()
            assert client.frames
            seen += [number for number, _ in client.frames]
    assert len(seen) < EVENTS
    with stream(caller, session_id, last=seen[-1]) as rest:
        while len(seen) < EVENTS:
            seen.append(rest.next().id or 0)
    assert seen == list(range(1, EVENTS + 1))


def test_a_client_that_does_not_read_delays_nobody(api: str, caller: Caller, stage: Stage, session_id: str) -> None:
    """Another reader of the same session gets a new event at once."""
    last = stage.read(session_id).last_seq
    with slow_stream(api, caller.headers["x-api-key"], session_id, last=0), stream(caller, session_id, last=last) as quick:
        before = time.monotonic()
        good(caller.tell(session_id, message("News.")))
        assert quick.next().data["content"] == [say("News.")]
        assert time.monotonic() - before < 1.5


def test_a_client_that_does_not_read_a_response_is_cut(api: str, log: Path) -> None:
    process = worker(api)
    with slow_get(api, "/openapi.json", times=30) as client:  # more than the buffers hold
        client.read(1)
        wait_for("the connection is cut", lambda: not open_to(process, [client]), 30)
        client.rest()
        assert client.raw.count(b"HTTP/1.1 200") < 30
    assert "Traceback" not in log.read_text()
