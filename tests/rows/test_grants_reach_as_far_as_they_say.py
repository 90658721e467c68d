"""A grant covers the calls that its text describes, for its time and uses, until it is revoked."""

from datetime import timedelta
from typing import Any

import pytest
from rows.stage import Stage, call, rules, say

from api.desk.card import patterns
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.begin import sessions
from models.flow.judge.grants import release_waiting
from models.operate import due
from models.session.approval.grant import Grant
from models.session.tool_call.row import ToolCall
from workers.sweeps import resuming


def grants(stage: Stage) -> list[Grant]:
    """All grants of the workspace, the oldest first."""
    with transaction(stage.workspace_id) as db:
        return db.find(Grant, "ORDER BY id")


def give(stage: Stage, session: str, command: str = "git status", **decision: Any) -> Grant:
    """Create a grant by allowing a first call, which then runs."""
    tool_call = stage.propose(session, call(command=command))
    stage.decide(stage.approvals(session)[-1], result="allow", **({"scope": "session"} | decision))
    stage.run_call(tool_call)
    return grants(stage)[-1]


def revoke(stage: Stage, grant: Grant) -> None:
    with transaction(stage.workspace_id) as db:
        Grant.find(db, grant.id).revoke(db, stage.principal)


def propose(stage: Stage, session: str, *commands: str) -> list[str]:
    """The statuses of new calls with these commands."""
    return [tool_call.status for tool_call in stage.reply(session, *(call(command=one) for one in commands))]


def test_a_session_s_grant_covers_the_tool_for_the_rest_of_the_session(stage: Stage) -> None:
    session = stage.session()
    grant = give(stage, session)
    assert grant.covers.startswith("every call of bash (beside a rule that denies or asks")
    assert grant.expires_at is None
    assert propose(stage, session, "ls", "rm x") == ["queued", "queued"]
    [event] = [e for e in stage.events(session, "agent.tool_use") if e.body["input"] == {"command": "ls"}]
    assert event.body["evaluated_permission"] == "allow"
    assert grants(stage)[0].uses == 2


def test_a_session_s_grant_does_not_cover_another_session(stage: Stage) -> None:
    first = stage.session()
    grant = give(stage, first)
    second = stage.session(of_agent=grant.agent_id)
    stage.message(second)
    assert propose(stage, second, "git status") == ["asked"]


def test_a_standing_grant_covers_every_session_of_the_agent_and_of_no_other(stage: Stage) -> None:
    grant = give(stage, stage.session(), scope="always")
    same, other = stage.session(of_agent=grant.agent_id), stage.session()
    for session in (same, other):
        stage.message(session)
    assert propose(stage, same, "git status") == ["queued"]
    assert propose(stage, other, "git status") == ["asked"]


def test_a_pattern_covers_no_call_in_another_directory(stage: Stage) -> None:
    session = stage.session(max_turns=9)
    give(stage, session, match="bash(git status *)")
    [elsewhere] = stage.reply(session, call(command="git status", working_directory="src"))
    assert elsewhere.status == "asked"
    [approval] = [a for a in stage.approvals(session) if a.status == "pending"]
    assert patterns.suggested(approval)[0] == "bash:command=git *:working_directory=src"
    stage.decide(approval, result="allow", scope="session", match=patterns.suggested(approval)[0])
    stage.run_call(elsewhere)
    inside, beside, outside = (call(command="git status", working_directory=name) for name in ("src", "lib", "src/../lib"))
    assert [c.status for c in stage.reply(session, inside, beside, outside)] == ["queued", "asked", "asked"]


def test_a_narrower_match_covers_only_its_commands(stage: Stage) -> None:
    session = stage.session()
    grant = give(stage, session, match="bash(git status *)")
    assert "git status" in grant.covers
    assert propose(stage, session, "git status -s", "git push", "git status; rm x", "git status $(rm x)") == [
        "queued",
        "asked",
        "asked",
        "asked",
    ]


def test_an_exact_grant_covers_that_input_only(stage: Stage) -> None:
    session = stage.session()
    give(stage, session, command="make deploy", match="exact")
    assert propose(stage, session, "make deploy", "make deploy ") == ["queued", "asked"]


def test_two_grants_together_cover_a_pipeline_and_both_are_used(stage: Stage) -> None:
    session = stage.session()
    give(stage, session, command="ls", match="bash(ls *)")
    stage.reply(session, say("Next."))
    give(stage, session, command="wc", match="bash(wc *)")
    assert propose(stage, session, "ls | wc -l", "ls | rm x") == ["queued", "asked"]
    assert [grant.uses for grant in grants(stage)] == [1, 1]


def test_no_grant_beats_a_rule_that_denies_or_asks(stage: Stage) -> None:
    session = stage.session(bash=rules(("deny", "bash(rm *)"), ("ask", "bash(git push *)")))
    give(stage, session)
    assert propose(stage, session, "rm x", "git push", "cat x") == ["denied", "asked", "queued"]


def test_a_grant_ends_after_its_uses(stage: Stage) -> None:
    session = stage.session()
    give(stage, session, max_uses=2)
    assert propose(stage, session, "a", "b", "c") == ["queued", "queued", "asked"]
    assert grants(stage)[0].uses == 2


def test_a_grant_says_when_it_was_last_used_and_how_often_in_a_day(stage: Stage) -> None:
    session = stage.session()
    unused = give(stage, session)
    assert (unused.last_used_at, unused.per_day(0, unused.created_at)) == (None, 0)
    assert propose(stage, session, "ls", "pwd", "id") == ["queued"] * 3
    [grant] = grants(stage)
    assert grant.last_used_at
    assert grant.per_day(grant.uses, grant.created_at) == 3  # of its first day
    assert grant.per_day(grant.uses, grant.created_at + timedelta(days=6)) == 0.5
    with transaction(stage.workspace_id) as db:
        Grant.find(db, grant.id).revoke(db, stage.principal)
    [over] = grants(stage)
    assert over.per_day(over.uses, over.created_at + timedelta(days=90)) == 3


def test_a_grant_ends_when_it_expires(stage: Stage, clock: Any) -> None:
    session = stage.session()
    give(stage, session, expires_in_seconds=60)
    clock.advance(61)
    assert propose(stage, session, "ls") == ["asked"]


def test_a_standing_grant_expires_after_thirty_days_by_default(stage: Stage) -> None:
    grant = give(stage, stage.session(), scope="always")
    assert grant.expires_at
    assert (grant.expires_at - grant.created_at).days == 30


def test_the_sweep_releases_waiting_calls_that_a_new_grant_covers(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    first, second, third = stage.reply(session, call(command="git add x"), call(command="git branch"), call(command="rm c"))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session", match="bash(git *)")
    assert stage.get(ToolCall, second.id).status == "asked"
    [grant] = grants(stage)
    [new] = due.new_grants(grant.id)
    assert [each.session_id for each in due.waiting_for(new)] == [session]
    assert release_waiting(stage.workspace_id, session) == 1
    assert [stage.get(ToolCall, c.id).status for c in (first, second, third)] == ["queued", "queued", "asked"]
    assert [stage.get(Grant, grant.id).uses, release_waiting(stage.workspace_id, session)] == [1, 0]
    decided = next(a for a in stage.approvals(session) if a.tool_call_id == second.id)
    assert decided.decided_by == f"grant:{grant.id}"
    assert stage.claim_call(second)


def test_a_call_asked_while_the_grant_was_given_is_released(stage: Stage, clock: Any) -> None:
    """A transaction that began before the grant still asks. The sweep finds the call without any hint."""
    session = stage.session()
    grant = give(stage, session, scope="always")
    stage.reply(session, say("Done."))
    other = stage.session(of_agent=grant.agent_id)
    stage.message(other)
    with transaction(stage.workspace_id) as db:
        db.get_one(Grant, grant.id).revoked_at = grant.created_at
    [tool_call] = stage.reply(other, call(command="ls"))
    with transaction(stage.workspace_id) as db:
        db.get_one(Grant, grant.id).revoked_at = None
    assert tool_call.status == "asked"
    resuming.release_granted()
    assert stage.get(ToolCall, tool_call.id).status == "queued"


def test_a_sweep_that_runs_an_hour_late_still_releases_the_call(stage: Stage, clock: Any) -> None:
    """Even behind a hundred calls that the grant does not cover."""
    session = stage.session()
    stage.message(session)
    calls = stage.reply(
        session, *(call(command=f"rm {n}") for n in range(110)), call(command="git add x"), call(command="git branch")
    )
    stage.confirm(session, calls[-2].id, scope="session", match="bash(git *)")
    clock.advance(3600)
    resuming.release_granted()
    assert stage.get(ToolCall, calls[-1].id).status == "queued"


def test_a_revoked_grant_allows_nothing_more(stage: Stage) -> None:
    session = stage.session()
    revoke(stage, give(stage, session))
    assert propose(stage, session, "ls") == ["asked"]


@pytest.mark.parametrize("waited", [False, True], ids=["allowed at once", "released from waiting"])
def test_a_call_that_has_not_begun_when_its_grant_is_revoked_is_asked(stage: Stage, waited: bool) -> None:
    session = stage.session()
    if waited:
        stage.message(session)
        _, tool_call = stage.reply(session, call(command="a"), call(command="b"))
        stage.decide(stage.approvals(session)[0], result="allow", scope="session")
        release_waiting(stage.workspace_id, session)
        [grant] = grants(stage)
    else:
        grant = give(stage, session)
        [tool_call] = stage.reply(session, call(command="b"))
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    revoke(stage, grant)
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    again = stage.approvals(session)[-1]
    assert (again.status, again.tool_call_id, again.input) == ("pending", tool_call.id, '{"command":"b"}')
    assert (again.prompt, again.remind_at is not None) == ("Run shell command: b", True)
    stage.confirm(session, tool_call.id)
    assert stage.claim_call(tool_call), "a person's own allow needs no grant"


def test_a_session_s_grants_end_with_it(stage: Stage) -> None:
    session = stage.session()
    grant = give(stage, session)
    stage.reply(session, say("Done."))
    stage.locked(session, sessions.archive)
    assert stage.get(Grant, grant.id).revoked_by == "session"
    stage.locked(session, sessions.delete)
    assert grants(stage) == []


def test_the_grants_of_a_session_are_limited(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.session.approval.grant.MAX_OF_SESSION", 1)
    session = stage.session(bash=rules(("ask", "bash(b)")))
    give(stage, session)
    [tool_call] = stage.reply(session, call(command="b"))
    with pytest.raises(Conflict, match="1 grants already"):
        stage.decide(stage.approvals(session)[-1], result="allow", scope="session")
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_a_repeated_decision_gives_no_second_grant(stage: Stage) -> None:
    session = stage.session()
    stage.propose(session)
    [approval] = stage.approvals(session)
    first = stage.decide(approval, result="allow", scope="session")
    assert stage.decide(approval, result="allow", scope="session") == first
    assert len(grants(stage)) == 1


def test_beside_a_rule_that_denies_a_grant_for_the_shell_covers_only_known_programs(stage: Stage) -> None:
    """A grant that names another program covers that program. Each such call is a use."""
    session = stage.session(bash=rules(("deny", "bash(rm *)")))
    give(stage, session, "ls")
    known, unknown = stage.reply(session, call(command="cat x"), call(command="make x"))
    assert (known.status, unknown.status) == ("queued", "asked")
    stage.decide(stage.approvals(session)[-1], result="allow", scope="session", match="bash(make *)", max_uses=1)
    for one in (known, unknown):
        stage.run_call(one)
    assert propose(stage, session, "cat x; make y", "make z") == ["queued", "asked"]
    assert [grant.uses for grant in grants(stage)] == [2, 1]
