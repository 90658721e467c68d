"""Programs get what a card shows beside an approval: stakes, reasons, precedent, and what came of the call."""

import people
from doors.served import Caller, bad, good
from doors.waiting import asked
from rows.stage import Stage, call, say

from models.session.tool_call.row import ToolCall


def test_a_briefing_has_what_a_card_shows(caller: Caller, stage: Stage) -> None:
    [first] = asked(caller, stage, say("I look."), call(command="ls -l"))
    [approval] = stage.approvals(first.session_id)
    briefing = good(caller.get(f"/v1/approvals/{approval.id}/briefing"))
    assert briefing["stakes"] == {"tool": "bash", "effect": "reads", "at_most_once": True, "at_client": False, "secrets": 0}
    assert (briefing["last_words"], briefing["since"], briefing["changes"]) == ("I look.", None, [])
    assert briefing["precedent"] == {
        "kind": "ls",
        "is_first": True,
        "allows": 0,
        "edits": 0,
        "answers": 0,
        "denials": 0,
        "last_denial": None,
    }
    assert (briefing["outcome"]["status"], briefing["ending"]) == ("asked", "")


def test_a_briefing_says_what_came_of_the_call(caller: Caller, stage: Stage) -> None:
    [first] = asked(caller, stage)
    [approval] = stage.approvals(first.session_id)
    stage.decide(approval, result="allow")
    stage.run_call(stage.get(ToolCall, first.id), "3 files")
    briefing = good(caller.get(f"/v1/approvals/{approval.id}/briefing"))
    assert briefing["ending"].startswith("Allowed by ")
    outcome = briefing["outcome"]
    assert (outcome["status"], outcome["line"], outcome["is_error"]) == ("done", "3 files", False)


def test_a_person_gets_only_briefings_of_their_own_approvals(caller: Caller, stage: Stage, api: str) -> None:
    ben = people.member(stage, email="ben@example.com")
    session_id = stage.session(approval={"approvers": [f"user:{ben.person_id}"]})
    stage.propose(session_id)
    [approval] = stage.approvals(session_id)
    path = f"/v1/approvals/{approval.id}/briefing"
    with ben.client(api) as own, people.member(stage, email="anna@example.com").client(api) as other:
        assert own.get(path).status_code == 200
        assert other.get(path).status_code == 404
    bad(caller.get("/v1/approvals/appr_none/briefing"), 404)


def test_a_briefing_has_the_votes_the_missing_ones_and_who_may_still_vote(caller: Caller, stage: Stage, api: str) -> None:
    finance = people.group(stage)
    anna, ben = (people.member(stage, email=f"{name}@example.com", groups=[finance]) for name in ("anna", "ben"))
    session_id = stage.session(approval={"approvers": [f"group:{finance}"], "required_approvals": 2})
    stage.propose(session_id)
    [approval] = stage.approvals(session_id)
    with ben.client(api) as client:
        good(client.post(f"/v1/approvals/{approval.id}/decision", json={"result": "allow"}))
    assert good(caller.get(f"/v1/approvals/{approval.id}/briefing"))["panel"] == {
        "seats": [{"user_id": ben.person_id, "name": "ben", "on_behalf_of": "", "result": "allow"}],
        "missing": 1,
        "awaits": "one more of finance",
        "people": [{"id": anna.person_id, "name": "anna"}],
        "more": 0,
    }
    stage.propose(free := stage.session())
    [alone] = stage.approvals(free)
    assert good(caller.get(f"/v1/approvals/{alone.id}/briefing"))["panel"] is None
