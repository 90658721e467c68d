"""The session's audit has each request, decision, run and loss of a call as an act, in order."""

from typing import Any

import psycopg
import pytest
from rows.stage import QUESTION, REFUND, Stage, call, entry, rules, say

from models.audit import text
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.decide.deadlines import remind_due
from models.flow.run.results import Outcome, expire_calls, late_result
from models.session.approval.deadline import extend
from models.session.approval.grant import Grant
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

BEGUN = ["session.created", "message.received", "turn.started"]


def acts(stage: Stage, session: str) -> list[Audit]:
    """The acts of the session, in order, after the first three, which are always the same."""
    stage.check(session)
    with transaction(stage.workspace_id) as db:
        rows = db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=session)
    assert [act.action for act in rows[:3]] == BEGUN
    return rows[3:]


def actions(stage: Stage, session: str) -> list[str]:
    return [act.action for act in acts(stage, session)]


def texts(stage: Stage, act: Audit) -> dict[str, str]:
    """The texts beside an act."""
    with transaction(stage.workspace_id) as db:
        return text.of(db, [(act.chain, act.seq)])[act.chain, act.seq]


def proposed(stage: Stage, block: dict[str, Any] | None = None, **options: Any) -> tuple[str, ToolCall]:
    """A session whose model proposes one call."""
    session = stage.session(**options)
    return session, stage.propose(session, block)


def test_a_call_that_a_person_allowed_is_four_acts(stage: Stage) -> None:
    """Each act has the hash of the input, and its principal."""
    session, tool_call = proposed(stage)
    stage.confirm(session, tool_call.id)
    stage.finish_call(stage.begin_call(tool_call))
    rows = acts(stage, session)
    assert [act.action for act in rows] == [
        "approval.requested",
        "approval.decided",
        "tool_call.started",
        "tool_call.finished",
    ]
    assert {act.details["input_sha256"] for act in rows[:3]} == {tool_call.input_sha256}
    assert rows[3].details.keys() == {"attempt", "is_error", "result_sha256"}
    by = ["system:turn.run", str(stage.principal), "system:tool.run", "system:tool.run"]
    assert [act.principal for act in rows] == by
    assert rows[1].details["result"] == "allow"


def test_a_call_that_the_policy_allowed(stage: Stage) -> None:
    session, tool_call = proposed(stage, bash="always_allow")
    stage.finish_call(stage.begin_call(tool_call))
    rows = acts(stage, session)
    assert [act.action for act in rows] == ["tool_call.allowed", "tool_call.started", "tool_call.finished"]
    assert rows[0].details.keys() == {"texts", "input_sha256"}
    assert rows[0].details["input_sha256"] == tool_call.input_sha256
    assert texts(stage, rows[0]) == {"rule": tool_call.rule}


def test_a_call_that_the_policy_denied(stage: Stage) -> None:
    session, tool_call = proposed(stage, bash="never")
    rows = acts(stage, session)
    assert [(act.action, texts(stage, act)) for act in rows] == [("tool_call.denied", {"rule": tool_call.rule})]


def test_a_call_that_a_later_rule_denied(stage: Stage) -> None:
    session, tool_call = proposed(stage)
    stage.confirm(session, tool_call.id)
    stage.change_policies(policy=rules(("deny", "bash")))
    assert stage.claim_call(tool_call) is None
    assert actions(stage, session)[-1] == "tool_call.denied"


def test_a_call_whose_input_somebody_changed(stage: Stage, clean_database: Any) -> None:
    session, tool_call = proposed(stage, bash="always_allow")
    with psycopg.connect(clean_database.admin) as db:
        db.execute("""UPDATE call_input SET input = '{"command": "rm -rf /"}'""")
    assert stage.claim_call(tool_call) is None
    assert actions(stage, session) == ["tool_call.allowed", "tool_call.input_changed"]


def test_a_call_whose_tool_changed(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session, tool_call = proposed(stage, call(REFUND, n=1), servers={"shop": "assent:orders"}, shop="always_allow")
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object", "required": ["cents"]})]})
    assert stage.claim_call(tool_call) is None
    assert actions(stage, session) == ["tool_call.allowed", "tool_call.tool_changed", "approval.requested"]


def test_a_call_that_asked_back(stage: Stage) -> None:
    session, tool_call = proposed(stage, bash="always_allow")
    stage.finish_call(stage.begin_call(tool_call), question=QUESTION)
    stage.decide(stage.approvals(session)[-1], result="allow", answers={"who": {"action": "decline"}})
    assert actions(stage, session)[2:] == ["tool_call.asked_back", "approval.requested", "approval.decided"]


def test_a_call_whose_result_was_known(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", cache={"seconds": 60, "scope": "session"})]})
    session, tool_call = proposed(stage, call(REFUND, n=1), servers={"shop": "assent:orders"}, shop="always_allow")
    stage.run_call(tool_call)
    [again] = stage.reply(session, call(REFUND, n=1))
    assert stage.claim_call(again) is None
    last = acts(stage, session)[-1]
    assert (last.action, last.subject_id, last.details["cached_from"]) == ("tool_call.cached", again.id, tool_call.id)


def test_a_call_that_was_lost_and_reported_late(stage: Stage, clock: Any) -> None:
    session, tool_call = proposed(stage, bash="always_allow")
    held = stage.begin_call(tool_call)
    stage.lose(held, clock)
    late = Outcome([say("I am late")], is_error=False)
    stage.worked(held, lambda locked: late_result(locked, held, late))
    assert actions(stage, session)[2:] == ["tool_call.lost", "approval.requested", "tool_call.reported_late"]


def test_a_call_whose_client_kept_silent(stage: Stage, clock: Any) -> None:
    session, tool_call = proposed(stage, call("lookup", n=1), custom=("lookup",))
    clock.advance(tool_call.answer_seconds or 0)
    assert expire_calls(stage.workspace_id, session) == 1
    last = acts(stage, session)[-1]
    assert (last.action, last.principal) == ("tool_call.expired", "system:sweep.expire_calls")


def test_a_question_that_people_were_reminded_of_given_more_time_and_that_expired(stage: Stage, clock: Any) -> None:
    session, _ = proposed(stage)
    clock.advance(301)
    remind_due(stage.workspace_id, session)
    approval = stage.approvals(session)[0]
    stage.locked(session, lambda locked: extend(locked, locked.db.get_one(type(approval), approval.id), 90_000))
    clock.advance(90_001)
    stage.expire(session)
    assert actions(stage, session)[1:] == ["approval.reminded", "approval.extended", "approval.expired"]


def test_a_grant_from_its_first_to_its_last(stage: Stage) -> None:
    session, tool_call = proposed(stage)
    stage.confirm(session, tool_call.id, scope="session")
    stage.run_call(tool_call)
    stage.run_call(stage.reply(session, call(command="b"))[0])
    stage.reply(session, say("Done."))
    stage.locked(session, sessions.archive)
    with transaction(stage.workspace_id) as db:
        grant = db.find(Grant)[0]
    assert [(act.action, act.principal) for act in acts(stage, session) if act.subject_id == grant.id] == [
        ("grant.given", str(stage.principal)),
        ("grant.used", "system:policy"),
        ("grant.revoked", "system:session"),
    ]


@pytest.mark.parametrize("how", ["failed", "lost"])
def test_a_turn_that_came_to_nothing(stage: Stage, clock: Any, how: str) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    if how == "failed":
        stage.fail(turn)
    else:
        stage.lose(turn, clock)
    [last] = acts(stage, session)
    assert (last.action, last.details["attempt"]) == (f"turn.{how}", 1)


def test_a_chat_word_that_decides_is_a_message_and_a_decision(stage: Stage, clock: Any) -> None:
    session, _ = proposed(stage, chat_approvals=True)
    clock.advance(60)
    stage.message(session, "approve")
    assert actions(stage, session)[1:] == ["message.received", "approval.decided"]


def test_an_interrupt_and_what_it_ended(stage: Stage) -> None:
    session, _ = proposed(stage)
    stage.send(session, {"type": "user.interrupt"})
    assert actions(stage, session)[1:] == ["session.interrupted", "approval.cancelled"]
