"""R38, I9: what was asked, decided, run, lost and given up stands in the session's audit, act by act, in its order."""

from typing import Any

import psycopg
import pytest
from rows.stage import Stage, call, entry, rules, say

from models import flow
from models.audit import text
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.approval_deadline import extend
from models.session.grant import Grant
from models.session.tool_call import ToolCall
from models.workspace import toolset
from models.workspace.workspace import Workspace

BEGUN = ["session.created", "message.received", "turn.started"]
REFUND = "mcp__shop__refund"
QUESTION = {"requests": {"who": {"message": "Whose?", "schema": {"type": "object"}}}, "state": None}


def acts(stage: Stage, session: str) -> list[Audit]:
    """The session's, in order, behind those of how each of these stories begins."""
    stage.check(session)
    with transaction(stage.workspace_id) as db:
        found = db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=session)
    assert [act.action for act in found[:3]] == BEGUN
    return found[3:]


def told(stage: Stage, session: str) -> list[str]:
    return [act.action for act in acts(stage, session)]


def texts(stage: Stage, act: Audit) -> dict[str, str]:
    """The texts beside an act."""
    with transaction(stage.workspace_id) as db:
        return text.of(db, [(act.chain, act.seq)])[act.chain, act.seq]


def asked(stage: Stage, block: dict[str, Any] | None = None, **options: Any) -> tuple[str, ToolCall]:
    """A session whose model wants one call."""
    session = stage.session(**options)
    stage.message(session)
    return session, stage.reply(session, block or call())[0]


def running(stage: Stage, found: ToolCall) -> ToolCall:
    held = stage.claim_call(found)
    assert held
    return held


def forbid(stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).policy = rules(("deny", "bash"))


def test_a_call_that_a_person_allowed(stage: Stage) -> None:
    """Asked, decided, started and finished, each with the hash of one and the same input, by who did it."""
    session, found = asked(stage)
    stage.confirm(session, found.id)
    stage.finish_call(running(stage, found))
    said = acts(stage, session)
    assert [act.action for act in said] == [
        "approval.requested",
        "approval.decided",
        "tool_call.started",
        "tool_call.finished",
    ]
    assert {act.details["input_sha256"] for act in said[:3]} == {found.input_sha256}
    assert said[3].details.keys() == {"attempt", "is_error", "result_sha256"}
    by = ["system:turn.run", str(stage.principal), "system:tool.run", "system:tool.run"]
    assert [act.principal for act in said] == by
    assert said[1].details["result"] == "allow"


def test_a_call_that_the_policy_allowed(stage: Stage) -> None:
    session, found = asked(stage, bash="always_allow")
    stage.finish_call(running(stage, found))
    said = acts(stage, session)
    assert [act.action for act in said] == ["tool_call.allowed", "tool_call.started", "tool_call.finished"]
    assert said[0].details.keys() == {"texts", "input_sha256"}
    assert said[0].details["input_sha256"] == found.input_sha256
    assert texts(stage, said[0]) == {"rule": found.rule}


def test_a_call_that_the_policy_denied(stage: Stage) -> None:
    session, found = asked(stage, bash="never")
    said = acts(stage, session)
    assert [(act.action, texts(stage, act)) for act in said] == [("tool_call.denied", {"rule": found.rule})]


def test_a_call_that_a_later_rule_denied(stage: Stage) -> None:
    session, found = asked(stage)
    stage.confirm(session, found.id)
    forbid(stage)
    assert stage.claim_call(found) is None
    assert told(stage, session)[-1] == "tool_call.denied"


def test_a_call_whose_input_somebody_changed(stage: Stage, clean_database: Any) -> None:
    """Fault 27: the alarm."""
    session, found = asked(stage, bash="always_allow")
    with psycopg.connect(clean_database.admin) as db:
        db.execute("""UPDATE call_input SET input = '{"command": "rm -rf /"}'""")
    assert stage.claim_call(found) is None
    assert told(stage, session) == ["tool_call.allowed", "tool_call.input_changed"]


def test_a_call_whose_tool_changed(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, found = asked(stage, call(REFUND, n=1), servers={"shop": "assent:orders"}, shop="always_allow")
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object", "required": ["cents"]})]})
    assert stage.claim_call(found) is None
    assert told(stage, session) == ["tool_call.allowed", "tool_call.tool_changed", "approval.requested"]


def test_a_call_that_asked_back(stage: Stage) -> None:
    session, found = asked(stage, bash="always_allow")
    stage.finish_call(running(stage, found), question=QUESTION)
    stage.decide(stage.approvals(session)[-1], result="allow", answers={"who": {"action": "decline"}})
    assert told(stage, session)[2:] == ["tool_call.asked_back", "approval.requested", "approval.decided"]


def test_a_call_whose_result_was_known(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", cache={"seconds": 60, "scope": "session"})]})
    session, found = asked(stage, call(REFUND, n=1), servers={"shop": "assent:orders"}, shop="always_allow")
    stage.run_call(found)
    [again] = stage.reply(session, call(REFUND, n=1))
    assert stage.claim_call(again) is None
    last = acts(stage, session)[-1]
    assert (last.action, last.subject_id, last.details["cached_from"]) == ("tool_call.cached", again.id, found.id)


def test_a_call_that_was_lost_and_reported_late(stage: Stage, clock: Any) -> None:
    session, found = asked(stage, bash="always_allow")
    held = running(stage, found)
    clock.advance(60)
    stage.rescue(held)
    late = flow.Outcome([say("I am late")], is_error=False)
    stage.locked(session, lambda db, row: flow.late_result(db, row, held.id, held.attempt, late))
    assert told(stage, session)[2:] == ["tool_call.lost", "approval.requested", "tool_call.reported_late"]


def test_a_call_whose_client_kept_silent(stage: Stage, clock: Any) -> None:
    session, found = asked(stage, call("lookup", n=1), custom=("lookup",))
    clock.advance(found.answer_seconds or 0)
    assert flow.expire_calls(stage.workspace_id, session) == 1
    last = acts(stage, session)[-1]
    assert (last.action, last.principal) == ("tool_call.expired", "system:sweep.expire_calls")


def test_a_question_that_people_were_reminded_of_given_more_time_and_that_expired(stage: Stage, clock: Any) -> None:
    session, _ = asked(stage)
    clock.advance(301)
    flow.remind_due(stage.workspace_id, session)
    approval = stage.approvals(session)[0]
    stage.locked(session, lambda db, row: extend(db, row, db.get_one(type(approval), approval.id), stage.principal, 90_000))
    clock.advance(90_001)
    stage.expire(session)
    assert told(stage, session)[1:] == ["approval.reminded", "approval.extended", "approval.expired"]


def test_a_grant_from_its_first_to_its_last(stage: Stage) -> None:
    session, found = asked(stage)
    stage.confirm(session, found.id, scope="session")
    stage.run_call(found)
    stage.run_call(stage.reply(session, call(command="b"))[0])
    stage.reply(session, say("Done."))
    stage.locked(session, lambda db, row: flow.archive(db, row, stage.principal))
    with transaction(stage.workspace_id) as db:
        given = db.find(Grant)[0]
    found_acts = [(act.action, act.principal) for act in acts(stage, session) if act.subject_id == given.id]
    assert found_acts == [
        ("grant.given", str(stage.principal)),
        ("grant.used", "system:policy"),
        ("grant.revoked", "system:session"),
    ]


@pytest.mark.parametrize("how", ["failed", "lost"])
def test_a_turn_that_came_to_nothing(stage: Stage, clock: Any, how: str) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.claim(session)
    assert turn
    if how == "failed":
        stage.fail(turn)
    else:
        clock.advance(60)
        stage.rescue(turn)
    [last] = acts(stage, session)
    assert (last.action, last.details["attempt"]) == (f"turn.{how}", 1)


def test_a_word_that_decides_is_a_message_that_came(stage: Stage, clock: Any) -> None:
    session, _ = asked(stage, chat_approvals=True)
    clock.advance(60)
    stage.message(session, "approve")
    assert told(stage, session)[1:] == ["message.received", "approval.decided"]


def test_an_interrupt_and_what_it_ended(stage: Stage) -> None:
    session, _ = asked(stage)
    stage.send(session, {"type": "user.interrupt"})
    assert told(stage, session)[1:] == ["session.interrupted", "approval.cancelled"]
