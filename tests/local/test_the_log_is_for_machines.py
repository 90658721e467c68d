"""In production each line of the log is one JSON object with the ids of what it is about, and idle processes write none."""

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, g
from gunicorn.config import Config
from gunicorn.glogging import Logger

from api.serving import use_log_lines
from models.operate import log_lines
from models.settings import settings
from workers.celery import app
from workers.log_lines import OnlyWhatActed, ids, use


@pytest.fixture
def production(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings of production, with no word about the log."""
    monkeypatch.setenv("ASSENT_ENVIRONMENT", "production")
    monkeypatch.delenv("ASSENT_LOG_FORMAT", raising=False)
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def record(message: str, name: str = "workers.turn", level: int = logging.INFO, **extra: Any) -> logging.LogRecord:
    return logging.getLogger(name).makeRecord(name, level, __file__, 1, message, (), extra.pop("exc_info", None), extra=extra)


def line(entry: logging.LogRecord, **fields: str) -> dict[str, Any]:
    text = log_lines.JsonLine(lambda: fields).format(entry)
    assert "\n" not in text
    content: dict[str, Any] = json.loads(text)
    return content


def test_a_line_has_time_level_message_and_ids() -> None:
    content = line(record("two\nlines", level=logging.WARNING), session_id="sesn_1")
    assert content.pop("time").endswith("Z")
    assert content == {"level": "warning", "logger": "workers.turn", "message": "two\nlines", "session_id": "sesn_1"}


def test_a_traceback_is_in_its_line() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        content = line(record("failed", exc_info=sys.exc_info()))
    assert content["traceback"].endswith("ValueError: wrong")


def test_lines_are_json_in_production_unless_the_setting_says_text(production: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert log_lines.is_json()
    monkeypatch.setenv("ASSENT_LOG_FORMAT", "text")
    settings.cache_clear()
    assert not log_lines.is_json()
    monkeypatch.delenv("ASSENT_LOG_FORMAT")
    monkeypatch.setenv("ASSENT_ENVIRONMENT", "development")
    settings.cache_clear()
    assert not log_lines.is_json()


@pytest.mark.parametrize(("row_id", "field"), [("turn_1", "turn_id"), ("sevt_1", "call_id"), ("whdl_1", "row_id")])
def test_a_task_s_line_names_the_task_its_row_its_session_and_its_workspace(row_id: str, field: str) -> None:
    seen = []

    @app.task(name=f"test.{row_id}")
    def task(*_: str) -> None:
        seen.append(ids())

    done = task.apply((row_id, "sesn_1", "wrkspc_1"))
    assert seen == [{"task": task.name, "task_id": done.id, field: row_id, "session_id": "sesn_1", "workspace_id": "wrkspc_1"}]
    assert ids() == {}


def test_a_request_s_line_names_the_request(production: None, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers.clear()
    try:
        log = Logger(Config())
        use_log_lines(log)
        with Flask("test").test_request_context("/v1/secret"):
            g.request_id = "req_1"
            logging.getLogger("assent.api").warning("slow")
        log.info("Booting")
    finally:
        root.handlers[:] = before
    first, second = (json.loads(text) for text in capsys.readouterr().err.splitlines())
    assert (first["request_id"], first["message"]) == ("req_1", "slow")
    assert (second["logger"], second["message"]) == ("gunicorn.error", "Booting")


@pytest.mark.parametrize(("level", "filters"), [(logging.INFO, 1), (logging.DEBUG, 0)])
def test_at_the_level_debug_no_line_is_dropped(level: int, filters: int) -> None:
    logger = logging.getLogger(f"test.{level}")
    logger.setLevel(level)
    logger.addHandler(logging.StreamHandler())
    use(logger)
    assert len(logger.handlers[0].filters) == filters


@pytest.mark.parametrize(
    ("name", "message", "data", "is_written"),
    [
        ("celery.beat", "Scheduler: Sending due task %s (%s)", None, False),
        ("celery.beat", "beat: Starting...", None, True),
        ("celery.worker.strategy", "received", {"name": "sweep.expire_calls"}, False),
        ("celery.app.trace", "succeeded", {"name": "sweep.expire_calls", "return_value": "''"}, False),
        ("celery.app.trace", "succeeded", {"name": "sweep.report", "return_value": "'98 sweeps'"}, False),
        ("celery.app.trace", "succeeded", {"name": "sweep.expire_calls", "return_value": "'expired 3'"}, True),
        ("celery.worker.strategy", "received", {"name": "turn.run"}, True),
        ("celery.app.trace", "succeeded", {"name": "turn.run", "return_value": "'replied'"}, True),
    ],
)
def test_a_sweep_leaves_a_line_only_if_it_did_something(name: str, message: str, data: Any, is_written: bool) -> None:
    assert OnlyWhatActed().filter(record(message, name, data=data)) is is_written
    if data:
        assert OnlyWhatActed().filter(record("failed", name, logging.ERROR, data=data))
