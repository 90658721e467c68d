"""A request that takes too much CPU time is ended and named in the log. A transaction is never cut, and a long stream goes on."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from flask import Flask
from rows.stage import Stage

from api.serving import watchdog
from models.database import transactions
from models.database.transactions import transaction
from models.errors import Costly
from models.settings import settings

LIMIT = 0.1
LONG = 3.0
"""CPU seconds that no request should reach."""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], Iterable[bytes]]], list[bytes]]]:
    """A function that serves one request by the given view, under a limit of 0.1 s of CPU time. Returns the response's pieces."""
    monkeypatch.setenv("ASSENT_REQUEST_CPU_SECONDS", str(LIMIT))
    settings.cache_clear()

    def served(view: Callable[[], Iterable[bytes]]) -> list[bytes]:
        pieces: Any = watchdog.watched(lambda _environ, _start: view())({}, None)
        try:
            return list(pieces)
        finally:
            pieces.close()

    watchdog.start()
    yield served
    watchdog.stop()


def burn(seconds: float) -> None:
    """Use this CPU time in Python."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_request_beyond_its_cpu_time_is_ended_and_named(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    before = time.thread_time()
    with caplog.at_level(logging.WARNING), pytest.raises(Costly, match="ASSENT_REQUEST_CPU_SECONDS"):
        serve(lambda: burn(LONG))
    assert LIMIT - watchdog.TICK_SECONDS <= time.thread_time() - before < LONG / 2
    assert "took more than 0.1 s of CPU time" in caplog.text
    burn(2 * LIMIT)  # outside of a request nothing is ended


def test_code_that_swallows_the_error_is_ended_again(serve: Any) -> None:
    def stubborn() -> Any:
        with suppress(Exception):
            burn(LONG)
        burn(LONG)

    with pytest.raises(Costly):
        serve(stubborn)


def test_a_transaction_is_committed_before_its_request_is_ended(serve: Any, stage: Stage) -> None:
    def writing() -> Any:
        with transaction(stage.workspace_id) as db:
            db.write("UPDATE workspace SET name = 'written' WHERE id = %(id)s", id=stage.workspace_id)
            burn(4 * LIMIT)
            assert transactions.is_open()
        burn(LONG)

    with pytest.raises(Costly):
        serve(writing)
    assert not transactions.is_open()
    with transaction(stage.workspace_id) as db:
        assert db.value("SELECT name FROM workspace WHERE id = %(id)s", id=stage.workspace_id) == "written"


def test_a_client_learns_of_an_effect_that_was_committed(serve: Any, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The transaction took too long, and the answer does not."""

    def writing() -> list[bytes]:
        with transaction(stage.workspace_id) as db:
            db.write("UPDATE workspace SET name = 'written' WHERE id = %(id)s", id=stage.workspace_id)
            burn(4 * LIMIT)
        burn(LIMIT)
        return [b"written"]

    with caplog.at_level(logging.WARNING):
        assert serve(writing) == [b"written"]
    assert "took more than 0.1 s of CPU time" in caplog.text


def test_each_piece_of_a_stream_has_its_own_time(serve: Any) -> None:
    def stream() -> Iterator[bytes]:
        for _ in range(8):
            burn(LIMIT / 4)
            yield b"piece"

    assert serve(stream) == [b"piece"] * 8


def test_time_in_which_a_request_waits_does_not_count(serve: Any) -> None:
    def waiting() -> list[bytes]:
        time.sleep(2 * LIMIT)
        return [b"done"]

    assert serve(waiting) == [b"done"]


def test_the_first_reader_of_the_document_is_not_ended_for_its_generation(serve: Any, flask_app: Flask) -> None:
    """The generation takes longer than the limit here, and no client chose its cost."""
    flask_app.extensions.pop("openapi", None)
    [document] = serve(lambda: [flask_app.test_client().get("/openapi.json").data])
    assert document.startswith(b'{"openapi"')
