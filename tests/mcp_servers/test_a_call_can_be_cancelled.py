"""A server is told that its call is cancelled, and may still send the result. Without a result the outcome is unknown."""

import threading
from pathlib import Path

import pytest
from mcp_servers.conftest import Background, Caller, is_alive, text, wait_for
from mcp_servers.lying import Liar, Request

from workers.tools.kinds import ToolResult
from workers.tools.mcp import calling
from workers.tools.output import OutcomeUnknown


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "_CANCEL_SECONDS", 0.5)


def test_the_server_hears_of_the_cancel_and_the_outcome_is_unknown(caller: Caller, tmp_path: Path) -> None:
    started, heard = tmp_path / "started", tmp_path / "heard"
    call = Background(caller, "wait", started=str(started), until=str(tmp_path / "never"), cancelled=str(heard))
    wait_for(lambda: started.exists() and started.read_text())
    call.context.cancelled.set()
    outcome = call.end()
    assert isinstance(outcome, OutcomeUnknown)
    assert "was cancelled" in str(outcome)
    wait_for(heard.exists)


def test_a_command_that_ignores_the_cancel_is_ended(small: Caller, tmp_path: Path) -> None:
    started = tmp_path / "started"
    call = Background(small, "stay", file=str(started))
    wait_for(lambda: started.exists() and started.read_text())
    call.context.cancelled.set()
    assert isinstance(call.end(), OutcomeUnknown)
    wait_for(lambda: not is_alive(int(started.read_text())))


def test_a_result_that_still_comes_is_the_result(liar: Liar) -> None:
    liar.speak(legacy=True)
    begun, cancelled = threading.Event(), threading.Event()
    liar.answers["notifications/cancelled"] = lambda request: (cancelled.set(), request.plain(202))[1]

    def act(request: Request) -> None:
        begun.set()
        assert cancelled.wait(10)
        request.result({"content": [{"type": "text", "text": "done all the same"}]})

    liar.on_call(act)
    call = Background(Caller(liar.server), "act")
    assert begun.wait(10)
    call.context.cancelled.set()
    outcome = call.end()
    assert isinstance(outcome, ToolResult)
    assert text(outcome) == "done all the same"
    assert [message["params"]["requestId"] for method, message, _ in liar.heard if method == "notifications/cancelled"] == [
        liar.calls[0]["id"]
    ]


def test_a_call_that_was_not_sent_has_begun_nothing(liar: Liar) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(request: Request) -> None:
        reached.set()
        go_on.wait(10)
        request.plain(503)

    liar.answers["server/discover"] = slow
    call = Background(Caller(liar.server), "act")
    assert reached.wait(10)
    call.context.cancelled.set()
    outcome = call.end()
    go_on.set()
    assert isinstance(outcome, ToolResult)
    assert text(outcome) == "liar: the call was cancelled before it was sent; nothing began"
    assert liar.calls == []
