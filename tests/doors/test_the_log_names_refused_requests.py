"""The log of a web process has a line with the id of each refused request, without contents, and few lines per client."""

import logging

import pytest
from doors.served import key
from rows.stage import Stage
from werkzeug.test import Client

from api import create_app
from api.door import limits
from models.settings import settings


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Client:
    """A client of an API in this process, under a limit of two lines at once and nearly none later."""
    monkeypatch.setenv("ASSENT_REFUSALS_LOGGED_PER_SECOND", "0.001")
    monkeypatch.setenv("ASSENT_REFUSALS_LOGGED_BURST", "2")
    settings.cache_clear()
    monkeypatch.setattr(limits, "_by_limit", {})
    monkeypatch.setattr(limits, "_not_logged", 0)
    caplog.set_level(logging.WARNING)
    return Client(create_app())


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines about refused requests."""
    return [record.getMessage() for record in caplog.records if " refused: " in record.getMessage()]


def test_a_refused_request_s_id_is_in_the_log(web: Client, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    secret = key(stage)
    refused = web.get("/v1/agents/agent_hidden?beta=true", headers={"x-api-key": secret})
    assert refused.status_code == 404
    [line] = lines(caplog)
    assert line.startswith(
        f"{refused.headers['request-id']} refused: 404 not_found_error, GET /v1/agents/<agent_id>, by api_key:key_"
    )
    assert "hidden" not in line
    assert secret not in caplog.text


def test_a_request_for_no_route_is_logged_without_its_path(web: Client, caplog: pytest.LogCaptureFixture) -> None:
    refused = web.get("/hidden")
    assert lines(caplog) == [f"{refused.headers['request-id']} refused: 404 not_found_error, GET an unknown route, by nobody known"]


def test_a_request_that_succeeds_has_no_line(web: Client, caplog: pytest.LogCaptureFixture) -> None:
    assert web.get("/healthz").status_code == 200
    assert lines(caplog) == []


def test_a_client_s_lines_are_few_and_hide_no_other_client_s(web: Client, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(7):
        web.get("/hidden")
    assert len(lines(caplog)) == 2
    web.get("/v1/agents/agent_hidden", headers={"x-api-key": key(stage)})
    assert lines(caplog)[2].endswith("; 5 refused requests before it are not logged")


def test_all_clients_together_have_ten_times_as_many_lines(web: Client, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(30):
        web.get("/hidden", environ_overrides={"REMOTE_ADDR": f"192.0.2.{number}"})
    assert len(lines(caplog)) == 20
