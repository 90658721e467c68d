"""Everything real works together: each model wire, a Python toolset, MCP servers over both transports, and people's decisions.

Everything starts once for the whole file.
"""

import json
from typing import Any

import psycopg
import pytest
from crashes.processes import wait_for
from whole.conftest import ALLOW, Begin, House

from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall

MODELS: dict[str, Any] = {
    "claude-whole": "claude",
    "llama-whole": "open",
    "away-whole": "open",
}
"""The provider that replies, by model. The last model's own provider never replies."""


@pytest.mark.parametrize(("model", "provider"), MODELS.items())
def test_a_call_waits_for_a_person_and_its_result_reaches_the_model(begin: Begin, model: str, provider: str) -> None:
    talk = begin(model={"id": model, "fallbacks": ["llama-whole"]}, bash={"type": "always_ask"})
    talk.say("think about it", "say I will.", 'call bash {"command": "echo five"}', "then", "say The end.")
    talk.until("waiting")
    talk.decide(result="allow")
    talk.until("idle")
    assert "five" in str(talk.events("agent.tool_result")[0]["content"])
    assert [event["content"][0]["text"] for event in talk.events("agent.message")] == ["I will.", "The end."]
    switches = [event.body for event in talk.stage.events(talk.session_id, "model.fallback")]
    assert [switch["to"] for switch in switches] == [{"provider": "open", "model": "llama-whole"}] * 2 * (model == "away-whole")
    [tool_use] = [block for block in talk.stage.history(talk.session_id)[1]["content"] if block["type"] == "tool_use"]
    assert set(tool_use["provider_data"]) == {provider}
    talk.stage.check(talk.session_id)


def test_calls_of_each_kind_run_in_one_turn(house: House, begin: Begin) -> None:
    """Each call has the name of its server, and the model gets each result."""
    talk = begin(
        {"shop": ALLOW, "local": ALLOW, "far": ALLOW}, shop="assent:orders", local="assent:local", far=house.mcp, git="assent:git"
    )
    talk.say(
        'call mcp__shop__get_order {"order_id": "1001"}',
        'call mcp__local__add {"a": 1, "b": 2}',
        'call mcp__far__add {"a": 3, "b": 4}',
        'call bash {"command": "echo five"}',
        "then",
        "say Done.",
    )
    talk.until("idle")
    used = {event["id"]: (event["mcp_server_name"], event["name"]) for event in talk.events("agent.mcp_tool_use")}
    results = {used[event["mcp_tool_use_id"]]: event for event in talk.events("agent.mcp_tool_result")}
    assert not [event for event in results.values() if event["is_error"]]
    assert results["shop", "get_order"]["structured_content"]["customer"] == "Ada Lovelace <ada@example.com>"
    assert results["local", "add"]["content"][0]["text"] == "3"
    assert results["far", "add"]["structured_content"] == {"result": 7}
    assert "five" in str(talk.events("agent.tool_result")[0]["content"])
    assert len(talk.stage.history(talk.session_id)[2]["content"]) == 4
    talk.stage.check(talk.session_id)


def test_a_toolset_s_author_allows_asks_for_and_denies_calls(house: House, begin: Begin) -> None:
    """Small refunds run, large ones never do, and a person decides the others. The shop has each refund once."""
    talk = begin(shop="assent:orders")
    lines = [
        f'call mcp__shop__refund {{"order_id": "1002", "amount_cents": {cents}, "reason": "late"}}' for cents in (500, 2000, 60000)
    ]
    talk.say(*lines, "then", "say Done.")
    talk.until("waiting")
    assert talk.approval.prompt == "Refund 2000 cents of order 1002: late"
    talk.decide(result="allow", updated_input={"order_id": "1002", "amount_cents": 1500, "reason": "late"})
    talk.until("idle")
    with psycopg.connect(house.shop) as shop:
        paid = shop.execute(
            "SELECT call_id, amount_cents FROM shop.refunds WHERE order_id = '1002' ORDER BY amount_cents"
        ).fetchall()
    calls = [event["id"] for event in talk.events("agent.mcp_tool_use")]
    assert paid == [(calls[0], 500), (calls[1], 1500)]
    denied = next(event for event in talk.events("agent.mcp_tool_result") if event["mcp_tool_use_id"] == calls[2])
    assert "the bank's limit" in denied["content"][0]["text"]
    talk.stage.check(talk.session_id)


def test_the_same_question_to_the_shop_is_answered_from_the_cache(begin: Begin) -> None:
    """The result's event names the first call, and there is no attempt."""
    talk = begin(shop="assent:orders")
    look = 'call mcp__shop__find_orders {"customer": "Lovelace"}'
    talk.say(look, "then", look, "then", "say Done.")
    talk.until("idle")
    first, second = talk.events("agent.mcp_tool_result")
    assert first["content"] == second["content"]
    assert second["cached"]["tool_use_id"] == first["mcp_tool_use_id"]
    assert talk.stage.get(ToolCall, second["mcp_tool_use_id"]).attempt == 0


def test_a_server_s_question_waits_for_a_person_and_not_on_a_connection(house: House, begin: Begin) -> None:
    """The form and the page are one approval. The call goes on with the answers, under its own id."""
    talk = begin({"far": ALLOW}, far=house.mcp)
    talk.say("call mcp__far__ask {}", "then", "say Done.")
    talk.until("waiting")
    assert talk.approval.kind == "question"
    assert (talk.approval.questions or {})["form"]["message"] == "Which colour?"
    assert talk.stage.get(Attempt, talk.approval.tool_call_id, 1).outcome == "asked"
    answers = {"form": {"action": "accept", "content": {"colour": "red"}}, "page": {"action": "decline"}}
    talk.decide(result="allow", answers=answers)
    talk.until("idle")
    assert json.loads(talk.results()[0]) == {"said": answers, "state": "asked once"}
    talk.stage.check(talk.session_id)


def test_a_result_that_is_too_long_is_read_in_parts(house: House, begin: Begin) -> None:
    """The result shows its beginning and end, and the agent gets a tool for the rest."""
    talk = begin()
    talk.say('call bash {"command": "seq 1 60000"}', "then", "say Next.")
    talk.until("idle")
    [long] = talk.events("agent.tool_result")
    assert "bytes left out; read_result" in str(long["content"])
    arguments = json.dumps({"call_id": long["tool_use_id"], "search": "^30000$"})
    talk.say(f"call mcp__session__read_result {arguments}", "then", "say Done.")
    talk.until("idle")
    assert "30000" in talk.results()[0]


def test_a_server_that_is_away_is_an_error_event_and_the_session_lives_on(begin: Begin) -> None:
    """The connection is tried as often as a model. A later message uses the servers of then."""
    talk = begin(gone="http://127.0.0.1:9/mcp")
    talk.say("say Hello.")
    talk.until("idle")
    errors = [event["error"] for event in talk.events("session.error")]
    assert {error["type"] for error in errors} == {"mcp_connection_failed_error"}
    assert [error["retry_status"]["type"] for error in errors] == ["retrying", "retrying", "exhausted"]
    assert errors[0]["mcp_server_name"] == "gone"
    assert talk.stage.read(talk.session_id).status == "idle"
    talk.sdk.beta.sessions.update(talk.session_id, agent={"tools": [], "mcp_servers": []})
    talk.say("say Hello again.")
    talk.until("idle")
    assert talk.events("agent.message")[0]["content"][0]["text"] == "Hello again."


def test_a_server_s_new_tool_can_be_called_at_once(house: House, begin: Begin) -> None:
    """After `list_changed` the listing is fetched again, long before it would be too old."""
    talk = begin({"far": ALLOW}, far=house.mcp)
    talk.say("call mcp__far__grow {}", "then", "say Grown.")
    talk.until("idle")
    with psycopg.connect(house.shop, autocommit=True) as db:
        query = "SELECT 1 FROM listing WHERE workspace_id = %s AND changed_at IS NOT NULL"
        wait_for("the change is stored", lambda: db.execute(query, [talk.stage.workspace_id]).fetchone())
    talk.say("call mcp__far__new {}", "then", "say Done.")
    talk.until("idle")
    assert talk.results() == ["grown", "new"]


def test_a_sub_agent_asks_for_itself_and_reports_and_is_written_to_again(begin: Begin) -> None:
    """The coordinator goes on with each report. The call of the sub-agent is decided in the session's stream."""
    reader = begin(bash={"type": "always_ask"})
    reader_id = reader.sdk.beta.sessions.retrieve(reader.session_id).agent.id
    talk = begin(agent={"multiagent": {"type": "coordinator", "agents": [reader_id]}})
    task = 'call bash {"command": "echo five"}\nthen\nsay say It says five.'
    talk.say(f"call send_to_agent {json.dumps({'agent': reader_id, 'message': task})}", "then", "say I wait.")
    talk.until("waiting")
    [own, child] = list(talk.sdk.beta.sessions.threads.list(talk.session_id))
    assert (child.parent_thread_id, child.status, own.status) == (own.id, "idle", "idle")
    assert child.agent.type == "agent"
    assert child.agent.id == reader_id
    [asked] = [event for event in talk.events("agent.tool_use") if event.get("session_thread_id") == child.id]
    confirmation: Any = {"type": "user.tool_confirmation", "tool_use_id": asked["id"], "result": "allow"}
    talk.sdk.beta.sessions.events.send(talk.session_id, events=[confirmation])
    talk.until("idle")
    again = json.dumps({"session_thread_id": child.id, "message": "say say Five it was."})
    talk.say(f"call send_to_agent {again}", "then", "say I wait.")
    wait_for("the second report is read", lambda: len(talk.events("agent.message")) == 4, 40)
    talk.until("idle")
    texts = [event["content"][0]["text"] for event in talk.events("agent.message")]
    assert texts == ["I wait.", "It says five.", "I wait.", "Five it was."]
    assert len(list(talk.sdk.beta.sessions.threads.list(talk.session_id))) == 2
    talk.stage.check(talk.session_id)
