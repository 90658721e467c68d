"""A tool's settings say which answers people get. Others are refused, and a grant that is no longer offered allows nothing."""

from typing import Any

import pytest
from own_database import Clock
from people import group, member
from rows.stage import REFUND, Stage, call, entry, say
from rows.voting import ask, vote

from models.database.transactions import transaction
from models.errors import Forbidden
from models.flow.judge.grants import release_waiting
from models.flow.run.results import lose_call
from models.session.approval.grant import Grant
from models.session.approval.offers import offers_of
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

NEVER_ALWAYS = {"options": ["once", "session", "edit", "answer"]}
ONCE = {"options": ["once"]}
EXACT = {"widest_match": "exact"}


def narrow(stage: Stage, session: str, **approval: Any) -> None:
    """Change the approval settings of the session's tool bash."""

    def change(agent: dict[str, Any]) -> None:
        agent["tools"][0]["configs"][0]["approval"] = approval

    stage.change_agent(session, change)


def status(stage: Stage, approval: Approval) -> str:
    return stage.get(Approval, approval.id).status


def wish(stage: Stage, session: str, *commands: str) -> list[str]:
    """The statuses of new calls with these commands."""
    return [tool_call.status for tool_call in stage.reply(session, *(call(command=one) for one in commands))]


@pytest.mark.parametrize(
    ("options", "decision", "words"),
    [
        (["once"], {"scope": "always"}, "bash does not offer to allow always: the approval settings of the tool leave it out"),
        (["once"], {"scope": "session", "match": "exact"}, "allow for the session"),
        (["once"], {"updated_input": {"command": "ls -l"}}, "edit the input"),
        (["once"], {"respond": (say("3 files"),)}, "answer in the tool's place"),
        (["session"], {}, "allow once"),
        (["edit"], {"updated_input": {"command": "ls"}}, "allow once"),
    ],
)
def test_an_answer_that_is_left_out_is_refused_with_the_reason(
    stage: Stage, options: list[str], decision: dict[str, Any], words: str
) -> None:
    approval = ask(stage, stage.session(approval={"options": options}))
    with pytest.raises(Forbidden, match=words):
        stage.decide(approval, result="allow", **decision)
    assert status(stage, approval) == "pending"
    stage.decide(approval, result="deny", deny_message="No.")
    assert status(stage, approval) == "denied", "people may always deny"
    stage.check(approval.session_id)


@pytest.mark.parametrize(
    ("option", "decision", "after"),
    [
        ("once", {}, "allowed"),
        ("session", {"scope": "session"}, "allowed"),
        ("always", {"scope": "always"}, "allowed"),
        ("edit", {"updated_input": {"command": "ls -l"}}, "allowed"),
        ("answer", {"respond": (say("3 files"),)}, "answered"),
    ],
)
def test_an_answer_that_is_offered_alone_is_taken(stage: Stage, option: str, decision: dict[str, Any], after: str) -> None:
    approval = ask(stage, stage.session(approval={"options": [option]}))
    stage.decide(approval, result="allow", **decision)
    assert status(stage, approval) == after


def test_only_what_every_level_offers_is_offered(stage: Stage) -> None:
    stage.change_policies(approval={"options": ["once", "session", "edit"]})
    session = stage.session(agent_approval={"options": ["once", "session", "always"]}, approval=NEVER_ALWAYS)
    approval = ask(stage, session)
    [event] = stage.events(session, "approval.requested")
    assert event.body["options"] == ["once", "session", "deny"]
    assert event.body["not_offered"] == {
        "always": "the approval settings of the workspace",
        "edit": "the approval settings of the agent",
        "answer": "the approval settings of the workspace",
    }
    stage.decide(approval, result="allow", scope="session")


def test_a_tool_s_author_takes_an_answer_from_every_agent(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", approval=NEVER_ALWAYS), entry("look")]})
    session = stage.session(servers={"shop": "assent:orders"})
    stage.message(session)
    refund, look = (stage.reply(session, call(REFUND, n=1), call("mcp__shop__look", n=1)), stage.approvals(session))[1]
    with pytest.raises(Forbidden, match=f"{REFUND} does not offer to allow always: the settings of the tool's author leave it out"):
        stage.decide(refund, result="allow", scope="always")
    stage.decide(look, result="allow", scope="always")


def test_a_server_that_an_agent_names_is_no_author_of_settings(stage: Stage) -> None:
    url = "https://shop.example/mcp"
    stage.list_tools(url, entry("refund", approval=ONCE))
    session = stage.session(servers={"shop": url})
    stage.propose(session, call(REFUND, n=1))
    stage.decide(stage.approvals(session)[0], result="allow", scope="always")


def test_a_tool_that_offers_exact_grants_gives_no_other_and_gives_one_unasked(stage: Stage) -> None:
    session = stage.session(approval=EXACT)
    approval = ask(stage, session)
    for match in ("tool", "bash(ls *)"):
        with pytest.raises(
            Forbidden, match=r"bash may cover one exact input only, by the approval settings of the tool: send match"
        ):
            stage.decide(approval, result="allow", scope="session", match=match)
    stage.decide(approval, result="allow", scope="session")
    stage.run_call(stage.get(ToolCall, approval.tool_call_id))
    assert wish(stage, session, "ls", "ls -l") == ["queued", "asked"]


@pytest.mark.parametrize(
    ("decision", "narrower"),
    [
        ({"scope": "session"}, {"options": ["once", "always"]}),
        ({"scope": "always"}, NEVER_ALWAYS),
        ({"scope": "session", "match": "bash(ls *)"}, EXACT),
    ],
)
def test_a_grant_that_is_no_longer_offered_releases_nothing(
    stage: Stage, decision: dict[str, Any], narrower: dict[str, Any]
) -> None:
    session = stage.session()
    approval = ask(stage, session)
    stage.decide(approval, result="allow", **decision)
    stage.run_call(stage.get(ToolCall, approval.tool_call_id))
    [queued] = stage.reply(session, call(command="ls -a"))
    assert queued.status == "queued", "the grant allows it"
    narrow(stage, session, **narrower)
    assert stage.claim_call(queued) is None, "a call that the grant allowed and that has not begun is asked about"
    assert stage.get(ToolCall, queued.id).status == "asked"
    assert release_waiting(stage.workspace_id, session) == 0
    with transaction(stage.workspace_id) as db:
        [grant] = db.find(Grant)
        assert bool(grant.why_not_offered(offers_of(db, [grant])[grant.id])) == (grant.scope == "session"), "always: by the agent"
    narrow(stage, session)
    assert release_waiting(stage.workspace_id, session) == 1, "the grant itself is as it was"


def test_a_vote_that_began_with_a_grant_is_refused_once_the_tool_offers_none(stage: Stage) -> None:
    finance = group(stage)
    anna, ben = member(stage, groups=[finance]), member(stage, groups=[finance])
    two = {"approvers": [f"group:{finance}"], "required_approvals": 2}
    session = stage.session(approval=two)
    approval = ask(stage, session)
    vote(stage, anna, approval, scope="always")
    narrow(stage, session, **two, **NEVER_ALWAYS)
    with pytest.raises(Forbidden, match="does not offer to allow always"):
        vote(stage, ben, approval, scope="always")
    assert status(stage, approval) == "pending"
    vote(stage, ben, approval)
    assert status(stage, approval) == "allowed"
    with transaction(stage.workspace_id) as db:
        assert db.find(Grant) == []


def test_an_edited_input_is_allowed_by_others_as_an_edit(stage: Stage) -> None:
    anna, ben, cara = (member(stage) for _ in range(3))
    session = stage.session(approval={"required_approvals": 2, "options": ["edit"]})
    approval = ask(stage, session)
    vote(stage, anna, approval, updated_input={"command": "ls -l"})
    edited = stage.get(Approval, approval.id).runs
    narrow(stage, session, required_approvals=2, **ONCE)
    with pytest.raises(Forbidden, match="edit the input"):
        vote(stage, ben, approval, expected_input_sha256=edited)
    narrow(stage, session, required_approvals=2, options=["edit"])
    vote(stage, cara, approval, "deny")
    assert status(stage, approval) == "denied"


def test_what_waits_keeps_its_narrower_offer_when_the_settings_widen_again(stage: Stage) -> None:
    session = stage.session(approval=NEVER_ALWAYS)
    approval = ask(stage, session)
    narrow(stage, session)
    with pytest.raises(Forbidden):
        stage.decide(approval, result="allow", scope="always")


def test_a_deadline_allows_no_call_whose_tool_does_not_offer_once(stage: Stage, clock: Clock) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    approval = ask(stage, session)
    narrow(stage, session, timeout_seconds=60, on_timeout="allow", options=["answer"])
    clock.advance(61)
    stage.expire(session)
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id)) is None
    stage.check(session)


def test_an_escalated_approval_has_the_narrower_offer_of_both_levels(stage: Stage, clock: Clock) -> None:
    clerk, chief = member(stage), member(stage)
    levels = [{"approvers": [f"user:{chief.person_id}"], "timeout_seconds": 60}]
    own = {"timeout_seconds": 60, "approvers": [f"user:{clerk.person_id}"], "on_timeout": "escalate", "escalate_to": levels}
    session = stage.session(approval=own | ONCE)
    approval = ask(stage, session)
    clock.advance(61)
    stage.expire(session)
    with pytest.raises(Forbidden, match="does not offer to allow always"):
        vote(stage, chief, approval, scope="always")
    vote(stage, chief, approval)
    assert status(stage, approval) == "allowed"


def test_settings_of_options_narrow_no_answer_about_an_unknown_outcome(stage: Stage) -> None:
    session = stage.session(approval=ONCE)
    approval = ask(stage, session)
    stage.decide(approval, result="allow")
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    stage.worked(held, lambda locked: lose_call(locked, locked.db.get_one(ToolCall, held.id)))
    unknown = stage.approvals(session)[-1]
    assert (unknown.kind, stage.events(session, "approval.requested")[-1].body["options"]) == ("unknown_outcome", None)
    stage.decide(unknown, outcome="happened", content=(say("3 files"),))
    assert status(stage, unknown) == "answered"


def test_a_chat_word_allows_only_what_is_offered(stage: Stage, clock: Clock) -> None:
    session = stage.session(chat_approvals=True, bash="always_ask", write="always_ask", approval=ONCE)
    stage.message(session)
    stage.reply(session, call(command="ls"), call(command="ls -l"))
    seen = stage.events(session)[-1].id
    stage.send(session, {"type": "user.message", "content": [say("approve all")], "seen": seen})
    assert [approval.status for approval in stage.approvals(session)] == ["allowed", "allowed"]
    text = stage.events(session, "agent.message")[-1].body["content"][0]["text"]
    assert text == "Allowed once. Every call of bash is asked about: no grant for the session is offered."
    with transaction(stage.workspace_id) as db:
        assert db.find(Grant) == []


def test_a_chat_word_for_a_tool_without_once_is_asked_back(stage: Stage) -> None:
    session = stage.session(chat_approvals=True, approval={"options": ["answer"]})
    approval = ask(stage, session)
    seen = stage.events(session)[-1].id
    stage.send(session, {"type": "user.message", "content": [say("yes")], "seen": seen})
    assert status(stage, approval) == "pending"
    assert "does not offer to allow once" in stage.events(session, "agent.message")[-1].body["content"][0]["text"]
