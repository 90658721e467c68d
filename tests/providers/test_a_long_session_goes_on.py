"""A session whose history would exceed its model's window goes on, at each provider and across them. Over HTTP, at the stand-in."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from rows.stage import Stage

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.turn.row import Turn
from workers import turn as task

WINDOW = 12_000
"""Tokens, of which the agent's tools take 2,000."""
PROSE = "the sea was far but its low hum " * 300
"""2,400 tokens."""


@pytest.fixture(autouse=True)
def registry(standin: str, write_registry: Callable[..., None]) -> None:
    """`claude-*` over Anthropic's wire and `llama-*` over OpenAI's, all with a small window. The server of `gone-*` is down."""
    claude = {"name": "claude", "kind": "anthropic", "base_url": standin, "models": ["claude-*"]}
    llama = {"name": "llama", "kind": "openai", "base_url": f"{standin}/v1", "models": ["llama-*"]}
    gone = {"name": "gone", "kind": "openai", "base_url": "http://127.0.0.1:9", "models": ["gone-*"]}
    more = {"windows": {"*": WINDOW}, "api_key_env": "FIRST_KEY"}
    write_registry(*(entry | more for entry in (claude, llama, gone)), FIRST_KEY="the-operator-s")


def use(stage: Stage, session_id: str, model: str, *fallbacks: str) -> None:
    """Set the model of the session's agent."""
    stage.change_agent(session_id, lambda agent: agent.update(model={"id": model, "fallbacks": list(fallbacks)}))


def ask(stage: Stage, session_id: str, number: int) -> Turn:
    """Send a long message, and run its turn. Returns the turn."""
    stage.message(session_id, f"{PROSE}\nsay Answer {number}.")
    return run(stage, session_id)


def run(stage: Stage, session_id: str) -> Turn:
    """Run the session's turn as its tasks do, until it ends. Returns the turn."""
    while (turn := stage.get(Turn, stage.thread(session_id).turn_id or "")).status == "queued":
        task.attempt(turn.id, session_id, stage.workspace_id)
    return turn


def answers(stage: Stage, session_id: str) -> list[str]:
    """Return the text of each reply."""
    return [event.body["content"][0]["text"] for event in stage.events(session_id, "agent.message")]


@pytest.mark.parametrize("model", ["claude-1", "llama-4"])
def test_no_request_exceeds_the_window_and_every_message_is_answered(stage: Stage, http: httpx2.Client, model: str) -> None:
    http.delete("/standin/requests")
    session_id = stage.session()
    use(stage, session_id, model)
    turns = [ask(stage, session_id, number) for number in range(10)]
    assert [turn.status for turn in turns] == ["done"] * 10
    assert answers(stage, session_id) == [f"Answer {number}." for number in range(10)]
    requests: list[dict[str, Any]] = http.get("/standin/requests").json()["data"]
    folded = sum(turn.folds for turn in turns)
    assert (len(requests), len(stage.events(session_id, "agent.thread_context_compacted"))) == (10 + folded, folded)
    assert 2 <= folded <= 5
    assert max(len(json.dumps(request)) for request in requests) / 4 < WINDOW
    usage = stage.read(session_id).usage
    assert (usage["requests"], usage.get("estimated_requests", 0)) == (10 + folded, 0)
    stage.check(session_id)


def test_another_provider_goes_on_from_a_summary(stage: Stage, http: httpx2.Client) -> None:
    session_id = stage.session()
    use(stage, session_id, "claude-1")
    assert sum(ask(stage, session_id, number).folds for number in range(5))
    use(stage, session_id, "llama-4")
    assert ask(stage, session_id, 5).provider == "llama"
    [sent] = http.get("/standin/requests", params={"last": 1}).json()["data"]
    assert any("was replaced by a summary" in message["content"] for message in sent["messages"][:2])
    assert "signature" not in json.dumps(sent["messages"])
    assert answers(stage, session_id)[-1] == "Answer 5."


def test_a_session_that_stays_too_long_is_not_summarized_for_ever(stage: Stage) -> None:
    """The run ends with the hosted service's error. The next message is answered."""
    session_id = stage.session()
    use(stage, session_id, "claude-1")
    for number in range(3):
        ask(stage, session_id, number)
    stage.message(session_id, f"{PROSE}\nsay too long")
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE turn SET folds = 10 WHERE session_id = %(session)s AND status = 'queued'", session=session_id)
    turn = stage.get(Turn, stage.thread(session_id).turn_id or "")
    task.attempt(turn.id, session_id, stage.workspace_id)
    [error] = stage.events(session_id, "session.error")
    assert error.body["error"]["type"] == "compaction_limit_reached_error"
    assert stage.read(session_id).stop_reason == {"type": "retries_exhausted"}
    assert (ask(stage, session_id, 4).status, answers(stage, session_id)[-1]) == ("done", "Answer 4.")
    stage.check(session_id)


@pytest.mark.parametrize("wire", ["claude", "llama"])
def test_a_request_that_the_model_refuses_as_too_long_is_shortened_once_and_sent_again(stage: Stage, wire: str) -> None:
    """The model's real window is smaller than the estimate."""
    session_id = stage.session()
    use(stage, session_id, f"{wire}-window-6500")
    turns = [ask(stage, session_id, number) for number in range(3)]
    assert [(turn.status, turn.folds, turn.overlong_after) for turn in turns] == [("done", 0, None)] * 2 + [("done", 1, 0)]
    assert answers(stage, session_id) == ["Answer 0.", "Answer 1.", "Answer 2."]
    [error] = stage.events(session_id, "session.error")
    assert error.body["error"]["retry_status"] == {"type": "retrying"}
    assert "tokens" in error.body["error"]["message"]
    assert len(stage.events(session_id, "agent.thread_context_compacted")) == 1
    stage.check(session_id)


@pytest.mark.parametrize("wire", ["claude", "llama"])
def test_a_message_that_no_summary_makes_short_enough_ends_the_run_with_a_named_reason(stage: Stage, wire: str) -> None:
    """The next message is answered without it."""
    session_id = stage.session()
    use(stage, session_id, f"{wire}-window-4300")
    stage.message(session_id, f"{PROSE * 2}\nsay too long")
    turn = run(stage, session_id)
    assert (turn.status, turn.stop_reason, turn.attempt) == ("failed", "unacceptable", 2)
    *_, error = stage.events(session_id, "session.error")
    assert error.body["error"]["type"] == "compaction_limit_reached_error"
    assert error.body["error"]["retry_status"] == {"type": "terminal"}
    assert "Send less at once, or set the model's `windows`" in error.body["error"]["message"]
    assert stage.read(session_id).stop_reason == {"type": "retries_exhausted"}
    stage.check(session_id)
    assert (ask(stage, session_id, 1).status, answers(stage, session_id)) == ("done", ["Answer 1."])


def test_a_summary_by_an_alternative_is_reported_like_a_reply(stage: Stage) -> None:
    session_id = stage.session()
    use(stage, session_id, "claude-1")
    for number in range(3):
        ask(stage, session_id, number)
    use(stage, session_id, "gone-1", "llama-4")
    turn = ask(stage, session_id, 3)
    assert (turn.status, turn.folds, turn.model) == ("done", 1, "llama-4")
    for_summary, for_reply = stage.events(session_id, "model.fallback")
    assert for_summary.body["to"] == for_reply.body["to"] == {"provider": "llama", "model": "llama-4"}
    [compacted] = stage.events(session_id, "agent.thread_context_compacted")
    assert for_summary.seq - 1 == compacted.seq < for_reply.seq
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE chain = %(chain)s AND action LIKE 'turn.f%%' ORDER BY seq", chain=session_id)
    assert [act.action for act in acts] == ["turn.fell_back", "turn.folded", "turn.fell_back"]
