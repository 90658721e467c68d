"""R11, I6: what waits already is released only where the grant would have allowed it, while somebody may still decide it."""

from typing import Any

from rows.stage import Stage, call, entry, rules

from models import flow
from models.database.transactions import transaction
from models.flow import due
from models.session.grant import Grant
from models.session.tool_call import ToolCall
from models.workspace import toolset

REFUND = "mcp__shop__refund"
QUESTION = {"requests": {"who": {"message": "Whose?", "schema": {"type": "object"}}}, "state": None}


def granted(stage: Stage, agent_id: str, block: dict[str, Any], **said: Any) -> Grant:
    """A standing grant that a session of the agent gives with its first call."""
    session = stage.session(of_agent=agent_id)
    stage.message(session)
    [found] = stage.reply(session, block)
    stage.confirm(session, found.id, scope="always", **said)
    event = stage.events(session, "grant.given")[-1]
    return stage.get(Grant, event.body["grant_id"])


def released(stage: Stage, session: str) -> int | None:
    return flow.release_waiting(stage.workspace_id, session)


def test_a_tool_s_question_is_not_answered_by_a_grant(stage: Stage) -> None:
    """It allows the call, which began long ago; what it asks is for a person."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"})
    stage.message(session)
    [found] = stage.reply(session, call(REFUND, n=1))
    stage.confirm(session, found.id)
    held = stage.claim_call(found)
    assert held
    stage.finish_call(held, "", question=QUESTION)
    given = granted(stage, stage.read(session).agent_id, call(REFUND, n=2))
    assert released(stage, session) == 0
    [new] = due.new_grants(given.id)
    assert due.waiting_for(new) == []
    assert stage.get(ToolCall, found.id).status == "asked"
    assert stage.get(Grant, given.id).uses == 0


def test_what_is_overdue_is_not_released(stage: Stage, clock: Any) -> None:
    """Its deadline decides, however late the sweep is."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(command="a"))
    clock.advance(86_401)
    granted(stage, stage.read(session).agent_id, call(command="b"))
    assert released(stage, session) == 0
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, found.id).status == "expired"


def test_what_a_rule_asks_about_or_allows_by_now_spends_no_grant(stage: Stage) -> None:
    """The rule wants a person, grant or no grant; and what needs no grant waits for the person who was asked."""
    session = stage.session()
    stage.message(session)
    pushed, listed = stage.reply(session, call(command="git push"), call(command="ls"))
    given = granted(stage, stage.read(session).agent_id, call(command="b"))
    policy = rules(("ask", "bash(git push *)"), ("allow", "bash(ls *)"))
    stage.change_agent(session, lambda agent: agent["tools"][0]["configs"][0].update(permission_policy=policy))
    assert released(stage, session) == 0
    assert [stage.get(ToolCall, found.id).status for found in (pushed, listed)] == ["asked", "asked"]
    assert stage.get(Grant, given.id).uses == 0


def test_a_sweep_releases_so_many_at_once_and_the_run_goes_on(stage: Stage) -> None:
    """Rule 12; and the session says that nobody is waited for any more."""
    session = stage.session()
    stage.message(session)
    stage.reply(session, *(call(command=one) for one in "abc"))
    granted(stage, stage.read(session).agent_id, call(command="b"))
    assert [flow.release_waiting(stage.workspace_id, session, limit=2) for _ in range(3)] == [2, 1, 0]
    assert stage.read(session).status == "running"
    stage.check(session)


def test_a_call_that_has_not_begun_when_its_grant_expires_is_put_to_a_person(stage: Stage, clock: Any) -> None:
    session = stage.session()
    granted(stage, stage.read(session).agent_id, call(command="a"), expires_in_seconds=60)
    stage.message(session)
    [found] = stage.reply(session, call(command="b"))
    assert found.status == "queued"
    clock.advance(61)
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "asked"


def test_who_is_asked_again_has_as_much_time_the_same_reminder_and_the_same_deadline(stage: Stage, clock: Any) -> None:
    """Whatever of the first time had passed, and whether or not people had been reminded."""
    approval = {"timeout_seconds": 600, "on_timeout": "end_run", "remind_after_seconds": 100}
    session = stage.session(approval=approval)
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    clock.advance(101)
    assert flow.remind_due(stage.workspace_id, session) == 2
    stage.confirm(session, first.id, scope="session")
    assert released(stage, session) == 1
    with transaction(stage.workspace_id) as db:
        Grant.find(db, stage.events(session, "grant.given")[0].body["grant_id"]).revoke(db, stage.principal)
    assert stage.claim_call(second) is None
    _, before, again = stage.approvals(session)
    assert again.remind_at
    times = [(at - again.created_at).total_seconds() for at in (again.remind_at, again.expires_at)]
    assert [round(seconds, -1) for seconds in times] == [100, 600], "people were reminded within a moment"
    assert (again.on_timeout, again.prompt, again.input_schema) == ("end_run", before.prompt, before.input_schema)
    assert again.input_schema
    clock.advance(601)
    stage.expire(session)
    stage.check(session)


def test_sweeps_look_for_a_grant_only_where_its_tool_waits_for_it(stage: Stage) -> None:
    """Not at other tools, at other agents, nor again at sessions that they have been to; and not for one that was revoked."""
    session = stage.session(bash="always_ask", read="always_ask")
    agent_id = stage.read(session).agent_id
    more = [stage.session(of_agent=agent_id) for _ in range(2)]
    others = [stage.session(of_agent=agent_id), stage.session()]
    for one in [session, *more, *others]:
        stage.message(one)
    for one in [session, *more, others[1]]:
        stage.reply(one, call(command="a"), call(command="aa"))
    stage.reply(others[0], call("read", file_path="x"))
    given = granted(stage, agent_id, call(command="b"))
    [new] = due.new_grants(given.id)
    assert [each.session_id for each in due.waiting_for(new)] == sorted([session, *more])
    assert [each.session_id for each in due.waiting_for(new, limit=2)] == sorted([session, *more])[:2]
    flow.swept(stage.workspace_id, given.id, session, over=False)
    [new] = due.new_grants(given.id)
    assert [each.session_id for each in due.waiting_for(new)] == sorted(one for one in more if one > session)
    with transaction(stage.workspace_id) as db:
        Grant.find(db, given.id).revoke(db, stage.principal)
    assert due.new_grants() == []


def test_a_grant_for_one_session_is_looked_for_there_only(stage: Stage) -> None:
    session = stage.session()
    other = stage.session(of_agent=stage.read(session).agent_id)
    for one in (session, other):
        stage.message(one)
    first, _second = stage.reply(session, call(command="a"), call(command="b"))
    stage.reply(other, call(command="c"))
    stage.confirm(session, first.id, scope="session")
    [new] = due.new_grants()
    assert [each.session_id for each in due.waiting_for(new)] == [session]


def test_a_call_that_cannot_run_at_all_uses_no_grant(stage: Stage) -> None:
    session = stage.session()
    given = granted(stage, stage.read(session).agent_id, call(command="a"), max_uses=1)
    stage.message(session)
    broken, good = stage.reply(session, call(nonsense=1), call(command="b"))
    assert [broken.status, good.status] == ["refused", "queued"]
    assert stage.get(Grant, given.id).uses == 1
