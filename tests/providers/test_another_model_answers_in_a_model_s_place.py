"""If an agent's model does not respond, an alternative does, and events and audit say so. Over HTTP, at stand-ins of both wires."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from rows.stage import Stage

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.turn.row import Turn
from models.workspace.row import Workspace
from workers import turn as task
from workers.providers import choosing


@pytest.fixture
def registry(standin: str, monkeypatch: pytest.MonkeyPatch, write_registry: Callable[..., None]) -> Callable[..., None]:
    """A function that writes a registry: `first` serves `claude-*`, `second` `llama-*`, `third` `qwen-*`, with these changes.

    `first` has Anthropic's wire, the others OpenAI's.
    """

    def write(**changes: dict[str, Any]) -> None:
        chat = {"kind": "openai", "base_url": f"{standin}/v1", "api_key_env": "FIRST_KEY"}
        first = {"name": "first", "kind": "anthropic", "base_url": standin, "models": ["claude-*"], "api_key_env": "FIRST_KEY"}
        second = {"name": "second", "models": ["llama-*"], **chat}
        third = {"name": "third", "models": ["qwen-*"], **chat}
        entries: list[dict[str, Any]] = [first, second, third]
        entries = [entry | changes.get(entry["name"], {}) for entry in entries]
        write_registry(*entries, FIRST_KEY="the-operator-s", ASSENT_BACKOFF_SECONDS="0.001")

    monkeypatch.setattr(choosing, "breaker", choosing.Breaker())
    write()
    return write


DEAD = {"base_url": "http://127.0.0.1:9"}
"""An address without a server."""


def begin(stage: Stage, *script: str, **model: Any) -> str:
    """Create a session with `claude-1` and these settings, and send a script. Returns its id."""
    session_id = stage.session(bash="always_allow")
    stage.change_agent(session_id, lambda agent: agent.update(model={"id": "claude-1", **model}))
    stage.message(session_id, "\n".join(script))
    return session_id


def run(stage: Stage, session_id: str) -> Turn:
    """Run the session's current turn once, as its task does. Returns the turn."""
    turn_id = stage.thread(session_id).turn_id or ""
    task.attempt(turn_id, session_id, stage.workspace_id)
    return stage.get(Turn, turn_id)


def fallbacks(stage: Stage, session_id: str) -> list[tuple[str, str, str]]:
    """Return the models and the reason of each `model.fallback` event."""
    return [(e.body["from"]["model"], e.body["to"]["model"], e.body["reason"]) for e in stage.events(session_id, "model.fallback")]


def text(stage: Stage, session_id: str) -> str:
    return "".join(block["text"] for event in stage.events(session_id, "agent.message") for block in event.body["content"])


def test_the_agent_s_own_model_answers_while_it_can(stage: Stage, registry: Any) -> None:
    session_id = begin(stage, "say hello", fallbacks=["llama-4"])
    turn = run(stage, session_id)
    assert (turn.provider, turn.model, turn.status) == ("first", "claude-1", "done")
    assert fallbacks(stage, session_id) == []


@pytest.mark.parametrize(("status", "reason"), [(529, "overloaded"), (429, "rate_limited"), (504, "timed_out")])
def test_an_alternative_answers_if_the_model_cannot(
    stage: Stage, registry: Any, answering: Callable[..., str], status: int, reason: str
) -> None:
    registry(first={"base_url": answering(b"{}", status, content_type="application/json")})
    session_id = begin(stage, "say hello", fallbacks=["llama-4"])
    turn = run(stage, session_id)
    assert (turn.provider, turn.model, turn.status, turn.attempt) == ("second", "llama-4", "done", 1)
    assert fallbacks(stage, session_id) == [("claude-1", "llama-4", reason)]
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE chain = %(chain)s AND action = 'turn.fell_back'", chain=session_id)
    assert act.details == {"reason": reason, "source": "first/claude-1", "target": "second/llama-4"}
    stage.check(session_id)


def test_a_model_that_is_gone_is_replaced(stage: Stage, registry: Any, answering: Callable[..., str]) -> None:
    body = {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-1"}}
    registry(first={"base_url": answering(json.dumps(body).encode(), 404, content_type="application/json")})
    session_id = begin(stage, "say hello", fallbacks=["llama-4"])
    assert run(stage, session_id).model == "llama-4"
    assert fallbacks(stage, session_id) == [("claude-1", "llama-4", "gone")]


def test_alternatives_are_tried_in_order_and_each_step_is_an_event(stage: Stage, registry: Any) -> None:
    registry(first=DEAD, second=DEAD)
    session_id = begin(stage, "say hello", fallbacks=["llama-4", "qwen-3"])
    assert run(stage, session_id).model == "qwen-3"
    assert fallbacks(stage, session_id) == [("claude-1", "llama-4", "timed_out"), ("llama-4", "qwen-3", "timed_out")]


def long_message() -> str:
    """Return a message of 2,400 tokens without a directive."""
    return "the sea was far but its low hum " * 300


def test_an_alternative_whose_window_is_too_small_is_not_tried(stage: Stage, registry: Any, http: httpx2.Client) -> None:
    registry(first=DEAD, second={"windows": {"*": 3_000}})
    http.delete("/standin/requests")
    session_id = begin(stage, long_message(), "say hello", fallbacks=["llama-4", "qwen-3"])
    assert run(stage, session_id).model == "qwen-3"
    assert [request["model"] for request in http.get("/standin/requests").json()["data"]] == ["qwen-3"]
    [event] = stage.events(session_id, "model.fallback")
    assert (event.body["from"]["model"], event.body["to"]["model"], event.body["reason"]) == ("claude-1", "qwen-3", "timed_out")
    [skipped] = event.body["skipped"]
    assert (skipped["provider"], skipped["model"]) == ("second", "llama-4")
    assert "with 3000 tokens the model's window is too small" in skipped["message"]
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE chain = %(chain)s AND action = 'turn.fell_back'", chain=session_id)
    assert act.details["skipped"] == [{"model": "second/llama-4", "why": skipped["message"]}]
    stage.check(session_id)


def test_if_every_alternative_is_too_small_the_error_names_them(stage: Stage, registry: Any) -> None:
    registry(first=DEAD, second={"windows": {"*": 3_000}})
    session_id = begin(stage, long_message(), "say hello", fallbacks=["llama-4"])
    assert run(stage, session_id).status == "queued", "the agent's own model is retried"
    [error] = stage.events(session_id, "session.error")
    assert "Not tried: second/llama-4: The request has about" in error.body["error"]["message"]


def test_a_wrong_key_is_no_reason_to_ask_another_model(stage: Stage, registry: Any) -> None:
    session_id = begin(stage, "fail 401 always", fallbacks=["llama-4"])
    assert run(stage, session_id).status == "failed"
    [error] = stage.events(session_id, "session.error")
    assert "401" in error.body["error"]["message"]


def test_after_the_first_visible_byte_the_turn_stays_with_its_model(stage: Stage, registry: Any) -> None:
    session_id = begin(stage, "say hello there", "fail 529 mid-stream 1 times", "(stays)", fallbacks=["llama-4"])
    turn = run(stage, session_id)
    assert (turn.status, turn.model) == ("queued", "claude-1")
    registry(first=DEAD)
    run_when_due(stage, session_id)
    assert fallbacks(stage, session_id) == []
    assert stage.get(Turn, turn.id).status == "queued", "the turn waits for its own model"


def run_when_due(stage: Stage, session_id: str) -> Turn:
    """Make the session's turn due, and run it."""
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE turn SET due_at = assent_now() WHERE session_id = %(session)s", session=session_id)
    return run(stage, session_id)


def test_a_turn_keeps_the_alternative_that_began_to_answer_it(stage: Stage, registry: Any) -> None:
    registry(first=DEAD)
    session_id = begin(stage, "say hello there", "fail 529 mid-stream 1 times", "(kept)", fallbacks=["llama-4"])
    assert (run(stage, session_id).status, fallbacks(stage, session_id)) == ("queued", [("claude-1", "llama-4", "timed_out")])
    registry()
    turn = run_when_due(stage, session_id)
    assert (turn.status, turn.model) == ("done", "llama-4")
    assert len(fallbacks(stage, session_id)) == 1


def test_the_next_turn_asks_the_agent_s_own_model_again_with_the_other_s_history(stage: Stage, registry: Any) -> None:
    registry(first=DEAD)
    session_id = begin(stage, "think so", 'call read {"file_path": "a"}', "then", "say the end", fallbacks=["llama-4"])
    assert run(stage, session_id).model == "llama-4"
    registry()
    turn = run(stage, session_id)
    assert (turn.model, turn.status, text(stage, session_id)) == ("claude-1", "done", "the end")


def test_if_no_model_answers_the_turn_is_retried_from_the_start(stage: Stage, registry: Any) -> None:
    registry(first=DEAD, second=DEAD)
    session_id = begin(stage, "say hello", fallbacks=["llama-4"])
    turn = run(stage, session_id)
    assert (turn.status, turn.model) == ("queued", None)
    [error] = stage.events(session_id, "session.error")
    assert "Then:" in error.body["error"]["message"]
    registry()
    assert run_when_due(stage, session_id).model == "claude-1"


@pytest.mark.parametrize("by", ["agent", "workspace"])
def test_an_excluded_provider_is_never_asked(stage: Stage, registry: Any, by: str) -> None:
    registry(first=DEAD)
    exclusion = {"exclude_providers": ["second"]}
    if by == "workspace":
        with transaction(stage.workspace_id) as db:
            Workspace.change_policies(db, stage.principal, {"model": exclusion})
    session_id = begin(stage, "say hello", fallbacks=["llama-4", "qwen-3"], **(exclusion if by == "agent" else {}))
    assert run(stage, session_id).model == "qwen-3"


def test_a_workspace_has_alternatives_for_agents_that_name_none(stage: Stage, registry: Any) -> None:
    registry(first=DEAD)
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"model": {"fallbacks": ["llama-4"]}})
    assert run(stage, begin(stage, "say hello")).model == "llama-4"
    assert run(stage, begin(stage, "say hello", fallbacks=[])).model is None


def test_a_model_that_keeps_failing_is_skipped_for_a_while(stage: Stage, registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_BREAKER_FAILURES", "2")
    monkeypatch.setenv("ASSENT_BREAKER_SECONDS", "1000")
    registry(first=DEAD)
    sessions = [begin(stage, f"say hello {number}", fallbacks=["llama-4"]) for number in range(3)]
    for session_id in sessions:
        run(stage, session_id)
    assert [fallbacks(stage, session_id)[0][2] for session_id in sessions] == ["timed_out", "timed_out", "circuit_open"]
    alone = begin(stage, "say hello")
    run(stage, alone)
    assert stage.events(alone, "session.error"), "without an alternative the model is tried nevertheless"
