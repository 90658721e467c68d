"""I5, I6 where servers move, tools change and grants reach: what was shown decides, not what has its name by now."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from models import flow
from models.database.transactions import transaction
from models.errors import Conflict
from models.session.grant import Grant
from models.session.tool_call import ToolCall
from models.workspace import toolset
from models.workspace.agent import Agent

REFUND = "mcp__shop__refund"
HERE, THERE = "https://here.example/mcp", "https://there.example/mcp"
CENTS = {"type": "object", "properties": {"cents": {"type": "integer"}}, "additionalProperties": False}
PIN = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}, "additionalProperties": False}
QUESTION = {"requests": {"who": {"message": "Whose?", "schema": {"type": "object"}}}, "state": "opaque"}
ANSWERS = {"who": {"action": "accept", "content": {"email": "a@b.example"}}}


def begun(stage: Stage, *blocks: dict[str, Any], at: str = "assent:orders", **options: Any) -> tuple[str, ToolCall]:
    """A session whose model has asked for this call."""
    session = stage.session(servers={"shop": at}, **options)
    stage.message(session)
    return session, stage.reply(session, *blocks)[0]


def move(stage: Stage, session: str) -> None:
    """The session's owner has the server's name stand for another one."""
    servers = [{"type": "url", "name": "shop", "url": THERE}]
    stage.locked(session, lambda db, row: flow.update(db, row, stage.principal, {"mcp_servers": servers}))


@pytest.fixture
def two_servers(stage: Stage) -> None:
    """Both have a tool of one name and one look."""
    for url in (HERE, THERE):
        toolset.keep_listing(stage.workspace_id, url, lambda: [entry("refund")])


def test_a_call_of_a_server_that_has_moved_is_allowed_no_more(stage: Stage, two_servers: None) -> None:
    """Nor does an allow give a grant for the one that has its name now."""
    session, found = begun(stage, call(REFUND, n=1), at=HERE)
    move(stage, session)
    with pytest.raises(Conflict, match="not permitted any more"):
        stage.confirm(session, found.id, scope="session")
    with transaction(stage.workspace_id) as db:
        assert not db.find(Grant)


def test_a_call_that_was_allowed_before_its_server_moved_does_not_run(stage: Stage, two_servers: None) -> None:
    """It may move while another call of the turn waits."""
    session, found = begun(stage, call(REFUND, n=1), call(REFUND, n=2), at=HERE)
    stage.confirm(session, found.id)
    move(stage, session)
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"


def test_a_grant_for_one_server_releases_nothing_that_waits_at_another(stage: Stage, two_servers: None) -> None:
    session, found = begun(stage, call(REFUND, n=1), at=HERE)
    move(stage, session)
    other = stage.session(of_agent=stage.read(session).agent_id)
    move(stage, other)
    stage.message(other)
    [theirs] = stage.reply(other, call(REFUND, n=7))
    stage.confirm(other, theirs.id, scope="always")
    flow.release_waiting(stage.workspace_id, session)
    assert stage.get(ToolCall, found.id).status == "asked"


def test_a_grant_is_not_spent_on_a_call_that_fits_its_tool_no_more(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, found = begun(stage, call(REFUND, n=1))
    toolset.announce({"orders": [entry("refund", input_schema=CENTS)]})
    other = stage.session(of_agent=stage.read(session).agent_id)
    stage.message(other)
    [theirs] = stage.reply(other, call(REFUND, cents=7))
    stage.confirm(other, theirs.id, scope="always", max_uses=5)
    for _ in range(3):
        flow.release_waiting(stage.workspace_id, session)
        assert stage.claim_call(found) is None
    with transaction(stage.workspace_id) as db:
        assert [grant.uses for grant in db.find(Grant)] == [0]


def test_a_worker_without_the_toolset_does_not_tie_the_session_to_its_storage(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", workdir=True)]})
    _, found = begun(stage, call(REFUND, n=1), shop="always_allow")
    assert stage.claim_call(found, "stor_without", has=lambda _address: False) is None
    assert stage.claim_call(found, "stor_with")


@pytest.mark.parametrize("at_first", [True, False])
def test_what_its_announcer_did_not_always_call_idempotent_is_not_run_again(stage: Stage, clock: Any, at_first: bool) -> None:
    """I2: taken back, it holds no more; added later, it does not hold for what people allowed as a call that would run once."""
    toolset.announce({"orders": [entry("refund", idempotent=at_first)]})
    _, found = begun(stage, call(REFUND, n=1), shop="always_allow")
    toolset.announce({"orders": [entry("refund", idempotent=not at_first)]})
    held = stage.claim_call(found)
    assert held
    clock.advance(3600)
    stage.rescue(held)
    assert stage.get(ToolCall, found.id).status == "unknown"


def test_an_answer_sent_again_does_not_answer_the_next_question(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, found = begun(stage, call(REFUND, n=1), shop="always_allow")
    for state in ("one", "two"):
        held = stage.claim_call(found)
        assert held
        stage.finish_call(held, "", question=QUESTION | {"state": state})
        stage.confirm(session, found.id, answers=ANSWERS)  # the second time it is the client's retry of the first
    assert stage.approvals(session)[-1].status == "pending"


@pytest.mark.parametrize("kind", ["question", "unknown_outcome"])
def test_later_questions_about_a_call_show_no_more_than_the_first(stage: Stage, clock: Any, kind: str) -> None:
    """R21: what the schema says is secret stays masked."""
    toolset.announce({"orders": [entry("refund", input_schema=PIN)]})
    session, found = begun(stage, call(REFUND, pin="hunter2hunter2"))
    stage.confirm(session, found.id)
    held = stage.claim_call(found)
    assert held
    if kind == "question":
        stage.finish_call(held, "", question=QUESTION)
    else:
        clock.advance(3600)
        stage.rescue(held)
    asked = stage.approvals(session)[-1]
    assert asked.kind == kind
    assert "hunter2" not in str(asked.masked.shown)


def test_an_announcement_that_nobody_lives_behind_is_taken_over(stage: Stage, clock: Any) -> None:
    """An old worker that started once more in the middle of a deploy, and then was gone."""
    new, old = {"orders": [entry("refund")]}, {"orders": [entry("refund", description="old")]}
    toolset.announce(new)
    toolset.announce(old)
    for _ in range(4):
        clock.advance(60)
        toolset.announce(new, only_seen=True)
    with transaction(stage.workspace_id) as db:
        assert toolset.missing(db, ["assent:orders"]) == []
        found = toolset.entry_of(db, "assent:orders", "refund")
    assert found
    assert found["description"] == "refund"


def test_every_server_of_an_agent_is_known_however_little_is_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolset, "_room", 0)
    toolset.announce({"orders": [entry("refund")], "other": [entry("look")]})
    session = stage.session(servers={"x": "assent:other", "shop": "assent:orders"})
    for _ in range(2):
        agent = stage.read_agent(session)
        with transaction(stage.workspace_id) as db:
            assert sorted(toolset.listed(db, agent)) == ["shop", "x"]


def test_an_error_with_a_picture_is_told_without_it(stage: Stage) -> None:
    """The model's API takes nothing but text in an error."""
    toolset.announce({"orders": [entry("refund")]})
    session, found = begun(stage, call(REFUND, n=1), shop="always_allow")
    held = stage.claim_call(found)
    assert held
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    outcome = flow.Outcome([say("No."), picture], is_error=True)
    stage.locked(session, lambda db, row: flow.finish_call(db, row, ToolCall.held(db, held.id, held.fence), outcome))
    [block] = stage.history(session)[-1]["content"]
    assert {part["type"] for part in block["content"]} == {"text"}


def test_a_session_with_a_long_result_is_not_changed_by_an_update_that_changes_nothing(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, found = begun(stage, call(REFUND, n=1), shop="always_allow")
    held = stage.claim_call(found)
    assert held
    stage.finish_call(held, "its ends", whole=b"all of it")
    stage.reply(session, say("Done."))
    with transaction(stage.workspace_id) as db:
        same = {"tools": Agent.find(db, stage.read(session).agent_id).at(db).body["tools"]}
    stage.locked(session, lambda db, row: flow.update(db, row, stage.principal, same))
    assert not stage.events(session, "session.updated")
