"""A fault of a provider is one clear error in the session, and no message is lost. Over both wires."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from rows.stage import Stage

from models.database.transactions import transaction
from models.session.turn.row import Turn
from workers import turn as task

Use = Callable[..., None]


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> str:
    """Each wire in turn."""
    return str(request.param)


@pytest.fixture
def use(standin: str, wire: str, write_registry: Callable[..., None]) -> Use:
    """A function that has one provider at this address, by default the stand-in's, serve `stand-in*` over the wire."""

    def write(address: str = standin, **fields: Any) -> None:
        base_url = f"{address}/v1" if wire == "openai" else address
        entry = {"name": "local", "kind": wire, "base_url": base_url, "models": ["stand-in*"], "api_key_env": "LOCAL_KEY"} | fields
        write_registry(entry, ASSENT_BACKOFF_SECONDS="0.001", LOCAL_KEY="sk-test")

    write()
    return write


def run(stage: Stage, session_id: str) -> Turn:
    """Run the session's turn once, now, as its task does. Returns the turn."""
    turn_id = stage.thread(session_id).turn_id or ""
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE turn SET due_at = assent_now() WHERE id = %(turn)s", turn=turn_id)
    task.attempt(turn_id, session_id, stage.workspace_id)
    return stage.get(Turn, turn_id)


def errors(stage: Stage, session_id: str) -> list[str]:
    return [event.body["error"]["message"] for event in stage.events(session_id, "session.error")]


def texts(stage: Stage, session_id: str) -> list[str]:
    return [block["text"] for event in stage.events(session_id, "agent.message") for block in event.body["content"]]


HTML = b"<html><body>Welcome to nginx!</body></html>"
TEMPORARY: dict[str, tuple[dict[str, Any], str]] = {
    "a page of HTML": ({"body": HTML, "content_type": "text/html"}, "sent text/html instead of text/event-stream"),
    "an empty stream": ({"body": b""}, "stream"),
    "an endless stream": ({"body": b": x\n\n" * 100, "times": 1_000_000}, "longer than 200000 bytes"),
    "a stream that is cut": ({"body": b"data: {broken"}, "stream"),
    "an overload": ({"body": b"{}", "status": 529, "content_type": "application/json"}, "529"),
}
"""Temporary faults: the turn is retried."""


@pytest.mark.parametrize(("response", "message"), TEMPORARY.values(), ids=TEMPORARY.keys())
def test_a_temporary_fault_delays_the_reply(
    stage: Stage, use: Use, answering: Callable[..., str], response: dict[str, Any], message: str
) -> None:
    use(answering(**response), limits={"response_bytes": 200_000})
    session_id = stage.session()
    stage.message(session_id, "say hello")
    assert run(stage, session_id).status == "queued"
    [error] = errors(stage, session_id)
    assert message in error
    use()
    assert (run(stage, session_id).status, texts(stage, session_id)) == ("done", ["hello"])
    stage.check(session_id)


PERMANENT: dict[str, tuple[dict[str, Any], str]] = {
    "a wrong key": ({"body": b"{}", "status": 401, "content_type": "application/json"}, "401"),
    "a wrong path": ({"body": HTML, "status": 404, "content_type": "text/html"}, "404: check the provider's base_url"),
    "a redirect": ({"body": b"", "status": 307, "location": "http://127.0.0.1:9/"}, "307: check the provider's base_url"),
}
"""Permanent faults: the run ends."""


@pytest.mark.parametrize(("response", "message"), PERMANENT.values(), ids=PERMANENT.keys())
def test_a_permanent_fault_ends_the_run_and_the_next_message_goes_on(
    stage: Stage, use: Use, answering: Callable[..., str], response: dict[str, Any], message: str
) -> None:
    use(answering(**response))
    session_id = stage.session()
    stage.message(session_id, "the first message")
    assert run(stage, session_id).status == "failed"
    [error] = errors(stage, session_id)
    assert message in error
    assert stage.read(session_id).stop_reason == {"type": "retries_exhausted"}
    stage.check(session_id)
    use()
    stage.message(session_id, "say hello")
    assert (run(stage, session_id).status, texts(stage, session_id)) == ("done", ["hello"])
    assert "the first message" in json.dumps(stage.history(session_id))
    stage.check(session_id)


TYPED = {
    400: (b'{"error": {"type": "invalid_request_error", "message": "secret"}}', "failed: 400 invalid_request_error"),
    529: (b'{"error": {"type": "overloaded_error", "message": "secret"}}', "tries again: 529 overloaded_error"),
    401: (b'{"error": {"type": "a secret, quoted", "message": "secret"}}', "failed: 401"),
}


@pytest.mark.parametrize("status", TYPED)
def test_the_task_names_the_status_and_the_type_of_the_error_and_no_message(
    stage: Stage, use: Use, answering: Callable[..., str], status: int
) -> None:
    body, words = TYPED[status]
    use(answering(body=body, status=status, content_type="application/json"))
    session_id = stage.session()
    stage.message(session_id)
    assert str(task.attempt(stage.thread(session_id).turn_id or "", session_id, stage.workspace_id)) == words


def test_a_model_that_nobody_serves_ends_the_run(stage: Stage, use: Use) -> None:
    use(models=["another"])
    session_id = stage.session()
    stage.message(session_id, "say hello")
    assert run(stage, session_id).status == "failed"
    assert errors(stage, session_id) == ["No provider serves the model stand-in: see ASSENT_PROVIDERS"]
    stage.check(session_id)


def test_a_stream_that_is_cut_in_a_call_gives_one_whole_call(stage: Stage, use: Use) -> None:
    session_id = stage.session(bash="always_ask")
    stage.message(session_id, 'say wait\ncall bash {"command": "ls -l"}\ndrop connection mid-stream 1 times')
    assert run(stage, session_id).status == "queued"
    assert (stage.approvals(session_id), texts(stage, session_id)) == ([], [])
    assert run(stage, session_id).status == "done"
    [approval] = stage.approvals(session_id)
    assert "ls -l" in approval.prompt


def test_a_refusal_ends_the_run_and_leaves_its_message_out(stage: Stage, use: Use) -> None:
    session_id = stage.session()
    stage.message(session_id, "refuse not today")
    assert run(stage, session_id).status == "done"
    assert stage.read(session_id).stop_reason == {"type": "refusal"}
    [*_, idle] = stage.events(session_id, "session.status_idle")
    assert idle.body["stop_details"]["explanation"] == "not today"
    stage.message(session_id, "say hello")
    assert (run(stage, session_id).status, texts(stage, session_id)) == ("done", ["hello"])
    assert "refuse" not in json.dumps(stage.history(session_id))
    stage.check(session_id)


def test_after_two_calls_with_broken_json_the_run_ends(stage: Stage, use: Use) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id, "loop broken call bash {not json")
    assert run(stage, session_id).status == "done"
    assert "is not a JSON object" in json.dumps(stage.history(session_id))
    assert run(stage, session_id).status == "done"
    assert errors(stage, session_id) == ["The model sent a tool call whose input is not JSON twice in a row, so the run ends."]
    assert stage.read(session_id).status == "idle"
    stage.check(session_id)
