"""An allow or a grant applies to the server and tool that people saw, not to another of the same name."""

from typing import Any

import pytest
from rows.stage import QUESTION, REFUND, Stage, call, entry, say

from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.begin import updates
from models.flow.judge.grants import release_waiting
from models.flow.run.results import Outcome, finish_call
from models.session.approval.grant import Grant
from models.session.tool_call.row import ToolCall
from models.workspace import toolset
from models.workspace.agent import Agent

HERE, THERE = "https://here.example/mcp", "https://there.example/mcp"
CENTS = {"type": "object", "properties": {"cents": {"type": "integer"}}, "additionalProperties": False}
PIN = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}, "additionalProperties": False}
ANSWERS = {"who": {"action": "accept", "content": {"email": "a@b.example"}}}


def begun(stage: Stage, *blocks: dict[str, Any], at: str = "assent:orders", **options: Any) -> tuple[str, ToolCall]:
    """A session whose model proposes these calls, and the first call."""
    session = stage.session(servers={"shop": at}, **options)
    stage.message(session)
    return session, stage.reply(session, *blocks)[0]


def move(stage: Stage, session: str) -> None:
    """Change the address of the session's server, as its owner may."""
    servers = [{"type": "url", "name": "shop", "url": THERE}]
    stage.locked(session, lambda locked: updates.update(locked, {"mcp_servers": servers}))


@pytest.fixture
def two_servers(stage: Stage) -> None:
    """Two servers with equal tools."""
    for url in (HERE, THERE):
        stage.list_tools(url, entry("refund"))


def test_a_call_whose_server_has_moved_cannot_be_allowed(stage: Stage, two_servers: None) -> None:
    session, tool_call = begun(stage, call(REFUND, n=1), at=HERE)
    move(stage, session)
    with pytest.raises(Conflict, match="not permitted any more"):
        stage.confirm(session, tool_call.id, scope="session")
    with transaction(stage.workspace_id) as db:
        assert not db.find(Grant)


def test_a_call_that_was_allowed_before_its_server_moved_does_not_run(stage: Stage, two_servers: None) -> None:
    session, tool_call = begun(stage, call(REFUND, n=1), call(REFUND, n=2), at=HERE)
    stage.confirm(session, tool_call.id)
    move(stage, session)
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"


def test_a_grant_for_one_server_releases_nothing_that_waits_at_another(stage: Stage, two_servers: None) -> None:
    session, tool_call = begun(stage, call(REFUND, n=1), at=HERE)
    move(stage, session)
    other = stage.session(of_agent=stage.read(session).agent_id)
    move(stage, other)
    theirs = stage.propose(other, call(REFUND, n=7))
    stage.confirm(other, theirs.id, scope="always")
    release_waiting(stage.workspace_id, session)
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_a_call_that_no_longer_fits_its_tool_uses_no_grant(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, tool_call = begun(stage, call(REFUND, n=1))
    toolset.announce({"orders": [entry("refund", input_schema=CENTS)]})
    other = stage.session(of_agent=stage.read(session).agent_id)
    theirs = stage.propose(other, call(REFUND, cents=7))
    stage.confirm(other, theirs.id, scope="always", max_uses=5)
    for _ in range(3):
        release_waiting(stage.workspace_id, session)
        assert stage.claim_call(tool_call) is None
    with transaction(stage.workspace_id) as db:
        assert [grant.uses for grant in db.find(Grant)] == [0]


def test_a_worker_without_the_toolset_does_not_bind_the_session_to_its_storage(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", workdir=True)]})
    _, tool_call = begun(stage, call(REFUND, n=1), shop="always_allow")
    assert stage.claim_call(tool_call, "stor_without", has=lambda _address: False) is None
    assert stage.claim_call(tool_call, "stor_with")


@pytest.mark.parametrize("at_first", [True, False])
def test_a_lost_call_runs_again_only_if_its_tool_was_always_idempotent(stage: Stage, clock: Any, at_first: bool) -> None:
    """A later `idempotent` does not apply to a call that people allowed to run once."""
    toolset.announce({"orders": [entry("refund", idempotent=at_first)]})
    _, tool_call = begun(stage, call(REFUND, n=1), shop="always_allow")
    toolset.announce({"orders": [entry("refund", idempotent=not at_first)]})
    held = stage.begin_call(tool_call)
    clock.advance(3600)
    stage.rescue(held)
    assert stage.get(ToolCall, tool_call.id).status == "unknown"


def test_an_answer_sent_again_does_not_answer_the_next_question(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, tool_call = begun(stage, call(REFUND, n=1), shop="always_allow")
    for state in ("one", "two"):
        stage.finish_call(stage.begin_call(tool_call), "", question=QUESTION | {"state": state})
        stage.confirm(session, tool_call.id, answers=ANSWERS)  # the second time it is the client's retry of the first
    assert stage.approvals(session)[-1].status == "pending"


@pytest.mark.parametrize("kind", ["question", "unknown_outcome"])
def test_later_approvals_of_a_call_mask_the_same_values(stage: Stage, clock: Any, kind: str) -> None:
    toolset.announce({"orders": [entry("refund", input_schema=PIN)]})
    session, tool_call = begun(stage, call(REFUND, pin="hunter2hunter2"))
    stage.confirm(session, tool_call.id)
    held = stage.begin_call(tool_call)
    if kind == "question":
        stage.finish_call(held, "", question=QUESTION)
    else:
        clock.advance(3600)
        stage.rescue(held)
    asked = stage.approvals(session)[-1]
    assert asked.kind == kind
    assert "hunter2" not in str(asked.masked.arguments)


def test_an_edited_call_of_a_tool_that_has_changed_is_masked_as_the_tool_says_now(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object"})]})
    session, tool_call = begun(stage, call(REFUND, code="plain"))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"code": "hunter2hunter2"})
    changed = {"type": "object", "required": ["cents"], "properties": {"code": {"type": "string", "writeOnly": True}}}
    toolset.announce({"orders": [entry("refund", input_schema=changed)]})
    assert stage.claim_call(tool_call) is None
    assert stage.approvals(session)[-1].masked.arguments == {"code": "«masked»"}


def test_an_announcement_of_a_worker_that_is_gone_is_replaced(stage: Stage, clock: Any) -> None:
    """As by an old worker that started during a deploy, and stopped."""
    new, old = {"orders": [entry("refund")]}, {"orders": [entry("refund", description="old")]}
    toolset.announce(new)
    toolset.announce(old)
    for _ in range(4):
        clock.advance(60)
        toolset.announce(new, only_seen=True)
    with transaction(stage.workspace_id) as db:
        assert toolset.missing(db, ["assent:orders"]) == []
        tool = toolset.entry_of(db, "assent:orders", "refund")
    assert tool
    assert tool["description"] == "refund"


def test_every_toolset_of_an_agent_is_listed_though_none_fits_the_cache(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolset, "_room", 0)
    toolset.announce({"orders": [entry("refund")], "other": [entry("look")]})
    session = stage.session(servers={"x": "assent:other", "shop": "assent:orders"})
    for _ in range(2):
        agent = stage.read_agent(session)
        with transaction(stage.workspace_id) as db:
            assert sorted(toolset.listings_of(db, agent)) == ["shop", "x"]


def test_an_error_reaches_the_model_without_its_picture(stage: Stage) -> None:
    """The model's API accepts only text in an error."""
    toolset.announce({"orders": [entry("refund")]})
    session, tool_call = begun(stage, call(REFUND, n=1), shop="always_allow")
    held = stage.begin_call(tool_call)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    outcome = Outcome([say("No."), picture], is_error=True)
    stage.worked(held, lambda locked: finish_call(locked, held.as_held(locked.db), outcome))
    [block] = stage.history(session)[-1]["content"]
    assert {part["type"] for part in block["content"]} == {"text"}


def test_an_update_with_equal_tools_does_not_change_a_session_with_a_long_result(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, tool_call = begun(stage, call(REFUND, n=1), shop="always_allow")
    stage.finish_call(stage.begin_call(tool_call), "its ends", whole=b"all of it")
    stage.reply(session, say("Done."))
    with transaction(stage.workspace_id) as db:
        same = {"tools": Agent.find(db, stage.read(session).agent_id).at(db).body["tools"]}
    stage.locked(session, lambda locked: updates.update(locked, same))
    assert not stage.events(session, "session.updated")
