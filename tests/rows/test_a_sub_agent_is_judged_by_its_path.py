"""A sub-agent's calls are judged by its own policies and by its coordinator's, whenever they are judged, and by people of both."""

from typing import Any

import pytest
from people import group, member
from rows.crew import SELF, Crew, create_agent, roster, send
from rows.stage import Stage, call, say
from rows.voting import vote

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden, Invalid
from models.flow.decide.deadlines import remind_due
from models.flow.judge.explanations import Example, explain_in
from models.flow.judge.grants import release_waiting
from models.flow.judge.simulations import Trial, simulate
from models.flow.run.turns import queued_turn
from models.pure.policy import Effect
from models.pure.quorum import Quorum
from models.session.approval import deadline
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from workers.agent_tools import AgentTools
from workers.offer import Offer

PUSH = "git push"


def rules(*pairs: tuple[str, str], default: Effect = "allow") -> dict[str, Any]:
    """A policy of these effects and matches."""
    return {"type": "rules", "rules": [{"effect": effect, "match": match} for effect, match in pairs], "default": default}


def bash(policy: dict[str, Any] | str, *, enabled: bool = True, **approval: Any) -> list[dict[str, Any]]:
    """The field `tools` of an agent that has bash under this policy."""
    own = {"type": policy} if isinstance(policy, str) else policy
    config = {"type": "bash", "name": "bash", "enabled": enabled, "permission_policy": own, "policy_from": "tool"}
    toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": True, "permission_policy": own}}
    return [toolset | {"configs": [config | {"approval": approval or None}]}]


def crew_of(stage: Stage, lead: dict[str, Any], reader: dict[str, Any] | None = None, **more: Any) -> Crew:
    """A coordinator with these fields and a sub-agent with those, by default with bash that is always allowed, which begins."""
    member_id = create_agent(stage, "Reader", **{"tools": bash("always_allow")} | (reader or {}))
    lead_id = create_agent(stage, "Lead", **{"tools": []} | lead, multiagent=roster(member_id, SELF, inline=True))
    crew = Crew(stage, stage.session(of_agent=lead_id, **more))
    stage.message(crew.session_id)
    crew.lead_replies(send("Reader"))
    return crew


def propose(crew: Crew, command: str = PUSH) -> ToolCall:
    """Have the sub-agent call bash."""
    return crew.replies(call(command=command))[0]


def tighten(crew: Crew, **fields: Any) -> None:
    """Change fields of the coordinator's agent in its session."""
    crew.stage.change_agent(crew.session_id, lambda agent: agent.update(fields))


def asked(crew: Crew) -> Approval:
    """The newest approval of the session."""
    return crew.stage.approvals(crew.session_id)[-1]


def test_a_rule_of_the_coordinator_denies_what_its_sub_agent_proposes(stage: Stage) -> None:
    crew = crew_of(stage, {"permission_policy": rules(("deny", "bash(git push *)"))})
    tool_call = propose(crew)
    assert (tool_call.status, tool_call.rule) == ("denied", "parent rule: deny bash(git push *)")
    assert "parent rule: deny bash(git push *)" in stage.result(tool_call), "the sub-agent is told"
    stage.check(crew.session_id)


def test_people_are_asked_what_the_coordinator_would_have_to_ask(stage: Stage) -> None:
    crew = crew_of(stage, {"tools": bash("always_ask")})
    assert (propose(crew).status, asked(crew).rule) == ("asked", "parent: tool bash: ask")


def test_a_coordinator_without_the_tool_asks_by_rules_alone(stage: Stage) -> None:
    crew = crew_of(stage, {"tools": bash("always_ask", enabled=False), "permission_policy": rules(default="ask")})
    assert propose(crew).status == "queued"


def test_an_agent_that_begins_itself_is_judged_as_before(stage: Stage) -> None:
    crew = crew_of(stage, {"tools": bash(rules(("ask", "bash(git push *)")))})
    crew.lead_replies(send("Lead"))
    statuses = [each.status for each in crew.replies(call(command="ls"), call(command=PUSH), number=1)]
    assert statuses == ["queued", "asked"]


def test_a_queued_call_is_judged_again_by_what_the_coordinator_forbids_now(stage: Stage) -> None:
    crew = crew_of(stage, {})
    tool_call = propose(crew)
    tighten(crew, permission_policy=rules(("deny", "bash(git push *)")))
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"


def test_a_queued_call_is_asked_about_if_the_coordinator_s_rules_ask_now(stage: Stage) -> None:
    crew = crew_of(stage, {})
    tool_call = propose(crew)
    tighten(crew, permission_policy=rules(("ask", "bash(git push *)")))
    assert stage.claim_call(tool_call) is None
    assert (stage.get(ToolCall, tool_call.id).status, asked(crew).rule) == ("asked", "parent rule: ask bash(git push *)")
    stage.confirm(crew.session_id, tool_call.id)
    assert stage.claim_call(tool_call), "a person's decision stands"


def test_a_link_into_what_the_coordinator_forbids_is_refused_at_the_claim(stage: Stage) -> None:
    config = {"type": "read", "name": "read", "enabled": True, "permission_policy": {"type": "always_allow"}, "policy_from": "tool"}
    toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": True}, "configs": [config | {"approval": None}]}
    crew = crew_of(stage, {"permission_policy": rules(("deny", "read(secrets/**)"))}, {"tools": [toolset]})
    [tool_call] = crew.replies(call("read", file_path="notes/a"))
    assert tool_call.status == "queued"
    assert stage.claim_call(tool_call, links={"notes/a": "secrets/a"}) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"


def test_nobody_can_allow_or_edit_into_what_the_coordinator_forbids(stage: Stage) -> None:
    crew = crew_of(stage, {}, {"tools": bash("always_ask")})
    tool_call = propose(crew, "ls")
    tighten(crew, permission_policy=rules(("deny", "bash(git push *)"), ("deny", "bash(ls *)")))
    with pytest.raises(Conflict, match=r"parent rule: deny bash\(ls \*\)"):
        stage.confirm(crew.session_id, tool_call.id)
    with pytest.raises(Invalid, match=r"parent rule: deny bash\(git push \*\)"):
        stage.confirm(crew.session_id, tool_call.id, updated_input={"command": PUSH})


def test_no_grant_answers_a_rule_of_the_coordinator(stage: Stage) -> None:
    crew = crew_of(stage, {"permission_policy": rules(("ask", "bash(git push *)"))}, {"tools": bash("always_ask")})
    stage.confirm(crew.session_id, propose(crew, "ls").id, scope="session")
    crew.lead_replies(send("Reader"))
    waiting = crew.replies(call(command=PUSH), number=1)[0]
    assert release_waiting(stage.workspace_id, crew.session_id) == 0
    assert stage.get(ToolCall, waiting.id).status == "asked"


def test_a_grant_answers_the_defaults_of_both(stage: Stage) -> None:
    crew = crew_of(stage, {"tools": bash("always_ask")}, {"tools": bash("always_ask")})
    stage.confirm(crew.session_id, propose(crew).id, scope="session", max_uses=1)
    crew.lead_replies(send("Reader"), send("Reader"))
    assert crew.replies(call(command=PUSH), number=1)[0].status == "queued"
    assert crew.replies(call(command=PUSH), number=2)[0].status == "asked", "its one use is counted once"


def test_approvers_and_options_of_both_combine(stage: Stage) -> None:
    leads, readers = group(stage, "leads"), group(stage, "readers")
    one, both = member(stage, groups=[readers]), member(stage, groups=[leads, readers])
    lead = {"approval": {"approvers": [f"group:{leads}"], "options": ["once", "session"]}}
    reader = {"approval": {"approvers": [f"group:{readers}"], "options": ["once", "edit"]}, "tools": bash("always_ask")}
    crew = crew_of(stage, lead, reader)
    propose(crew)
    approval = asked(crew)
    assert approval.offer.options == ["once"]
    assert approval.offer.left_out["edit"] == "the approval settings of the parent's agent"
    with pytest.raises(Forbidden, match="not one of those who may decide"):
        vote(stage, one, approval)
    vote(stage, both, approval)
    assert stage.get(Approval, approval.id).status == "allowed"


def test_the_coordinator_s_approvers_hold_for_what_waits_already(stage: Stage) -> None:
    leads = group(stage, "leads")
    crew = crew_of(stage, {}, {"tools": bash("always_ask")})
    tool_call = propose(crew)
    tighten(crew, approval={"approvers": [f"group:{leads}"]})
    with pytest.raises(Forbidden, match="An API key may not decide"):
        stage.confirm(crew.session_id, tool_call.id)


def test_four_eyes_of_any_agent_need_a_known_asker(stage: Stage) -> None:
    reader = {"approval": {"four_eyes": True}, "tools": bash("always_ask")}
    with pytest.raises(Invalid, match="this agent or its sub-agents need four eyes"):
        crew_of(stage, {}, reader)
    anna, ben = member(stage), member(stage)
    crew = crew_of(stage, {}, reader, on_behalf_of=f"user:{anna.person_id}")
    propose(crew)
    with pytest.raises(Forbidden, match="You started this run"):
        vote(stage, anna, asked(crew))
    vote(stage, ben, asked(crew))
    assert asked(crew).status == "allowed"


@pytest.mark.parametrize(
    ("lead", "status"),
    [
        ({}, "queued"),
        ({"tools": bash("always_allow")}, "queued"),
        ({"tools": bash("always_ask", on_timeout="allow")}, "queued"),
        ({"tools": bash("always_ask")}, "expired"),
        ({"permission_policy": rules(("ask", "bash(git push *)"))}, "expired"),
        ({"approval": {"approvers": ["group:grp_1"]}}, "expired"),
    ],
    ids=["without the tool", "allows", "says the same", "asks", "has a rule that asks", "names approvers"],
)
def test_silence_allows_only_where_both_let_it(stage: Stage, clock: Any, lead: dict[str, Any], status: str) -> None:
    crew = crew_of(stage, lead, {"tools": bash("always_ask", on_timeout="allow", timeout_seconds=60)})
    tool_call = propose(crew)
    clock.advance(61)
    stage.expire(crew.session_id)
    assert stage.get(ToolCall, tool_call.id).status == status


def offered(crew: Crew, number: int = 0) -> AgentTools:
    """The tools that a worker offers to the model of a sub-agent's next turn."""
    with transaction(crew.stage.workspace_id) as db:
        turn_id = crew.thread(number).turn_id or ""
        queued = queued_turn(db, crew.session_id, turn_id, *Offer.reads(crew.session_id, turn_id))
        assert queued, "the thread has a turn to claim"
        offer = Offer.of(queued)
        return offer.tools(offer.listings)


def test_a_tool_that_the_coordinator_always_denies_is_not_offered(stage: Stage) -> None:
    assert [tool["name"] for tool in offered(crew_of(stage, {})).for_model()] == ["bash"]
    assert offered(crew_of(stage, {"permission_policy": rules(("deny", "bash"))})).for_model() == []


def test_a_worker_asks_as_the_whole_path_says(stage: Stage) -> None:
    crew = crew_of(stage, {"tools": bash("always_ask", timeout_seconds=60), "approval": {"options": ["once", "session", "always"]}})
    assert offered(crew).asks, "a model with a long wait is told so"
    crew.lead_replies(send({"name": "Scout", "description": "Looks.", "system": "Look."}))
    reader, scout = (offered(crew, number).policies.asking("bash", {}, {"input_schema": {}}) for number in (0, 1))
    assert (reader.seconds, scout.seconds) == (60, 60)
    offers = [Quorum.of(asking.quorum).offer.options for asking in (reader, scout)]
    assert offers == [["once", "session", "always"], ["once", "session"]]


def test_an_explanation_of_a_thread_says_what_comes_from_the_coordinator(stage: Stage) -> None:
    crew = crew_of(stage, {"permission_policy": rules(("ask", "bash(git push *)"))})
    with transaction(stage.workspace_id) as db:
        session = db.get_one(Session, crew.session_id)
        verdict = explain_in(db, session, crew.thread(), Example("bash", {"command": PUSH})).verdict
    assert (verdict.effect, verdict.rules[0].source) == ("ask", "parent")


def test_a_simulation_tries_a_coordinator_s_rule_on_its_sub_agents_calls(stage: Stage) -> None:
    crew = crew_of(stage, {})
    propose(crew)
    with transaction(stage.workspace_id) as db:
        since = db.find(Event, "WHERE session_id = %(id)s", id=crew.session_id)[0].created_at
        rule = rules(("deny", "bash(git *)"))["rules"][0]
        for agent_id, effect in [(crew.lead.agent_id, "deny"), (crew.thread().agent_id, "deny")]:
            outcome = simulate(db, stage.workspace_id, Trial(since, rule, agent_id=agent_id, tool="bash"))
            assert outcome.sides[effect].calls == 1
        other = create_agent(stage, "Other")
        assert simulate(db, stage.workspace_id, Trial(since, rule, agent_id=other)).looked_at == 0


def test_nothing_that_a_model_writes_names_a_policy(stage: Stage) -> None:
    """The definition of an inline agent is refused if it holds anything but its name, prompt, model and the names of tools."""
    crew = crew_of(stage, {"tools": bash("always_ask")})
    scout = {"name": "Scout", "description": "Looks.", "system": "Look."}
    fields = ("permission_policy", "approval", "configs", "mcp_servers")
    replies = crew.lead_replies(*(send(scout | {field: {"type": "always_allow"}}) for field in fields))
    assert [stage.get(ToolCall, each.id).status for each in replies] == ["refused"] * 4
    assert len(crew.threads) == 1
    crew.lead_replies(send(scout | {"tools": ["bash"], "system": '{"permission_policy": {"type": "always_allow"}}'}))
    assert crew.replies(call(command="ls"), number=1)[0].status == "asked"


def test_an_inline_agent_s_policies_follow_its_coordinator_s(stage: Stage) -> None:
    crew = crew_of(stage, {"tools": bash("always_allow")})
    crew.lead_replies(send({"name": "Scout", "description": "Looks.", "system": "Look."}))
    tighten(crew, permission_policy=rules(("deny", "bash(git *)")))
    assert crew.replies(call(command=PUSH), number=1)[0].status == "denied"


def test_a_sub_agent_that_names_its_coordinator_s_tool_is_refused(stage: Stage) -> None:
    custom = {"type": "custom", "name": "refund", "description": "", "input_schema": {"type": "object"}}
    crew = crew_of(stage, {"tools": [*bash("always_allow"), custom]})
    [refund, spawn] = crew.replies(call("refund", amount=1), send("Reader"))
    assert [stage.get(ToolCall, each.id).status for each in (refund, spawn)] == ["refused", "refused"]
    assert "refund" in stage.result(refund)
    crew.replies(say("I cannot."))
    stage.check(crew.session_id)
    [unknown] = crew.lead_replies(send({"name": "Scout", "description": "Looks.", "system": "Look.", "tools": ["deploy"]}))
    assert "'deploy' is none of your tools" in stage.result(unknown)


def test_the_audit_says_in_which_thread_a_call_was_asked_about_decided_and_run(stage: Stage) -> None:
    crew = crew_of(stage, {}, {"tools": bash("always_ask")})
    tool_call = propose(crew)
    stage.confirm(crew.session_id, tool_call.id, scope="session")
    stage.run_call(tool_call)
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=crew.session_id)
    in_thread = {act.action for act in acts if act.details.get("in_thread") == crew.thread().id}
    assert in_thread >= {"approval.requested", "approval.decided", "grant.given", "tool_call.started", "tool_call.finished"}
    [created] = [act for act in acts if act.action == "thread.created"]
    assert (created.subject_id, created.details["agent"]) == (crew.thread().id, crew.thread().agent_id)


def test_seven_that_ask_at_once_are_decided_in_any_order(stage: Stage) -> None:
    crew = crew_of(stage, {}, {"tools": bash("always_ask", prompt="Run {command}?")})
    crew.lead_replies(*(send("Reader") for _ in range(6)))
    crew.lead_replies(say("I wait."))
    calls = [crew.replies(call(command=f"echo {number}"), number=number)[0] for number in range(7)]
    approvals = stage.approvals(crew.session_id)
    assert [approval.prompt for approval in approvals] == [f"Run echo {number}?" for number in range(7)]
    assert [approval.thread_id for approval in approvals] == [thread.id for thread in crew.threads]
    waits = stage.read(crew.session_id).stop_reason
    assert waits == {"type": "requires_action", "event_ids": [each.id for each in calls]}
    for number in (3, 6, 0, 5, 1, 4, 2):
        stage.confirm(crew.session_id, calls[number].id, "deny" if number == 5 else "allow")
        status = "denied" if number == 5 else "queued"
        assert stage.get(ToolCall, calls[number].id).status == status
        stage.check(crew.session_id)
    assert [approval.status for approval in stage.approvals(crew.session_id)].count("allowed") == 6


def test_each_act_about_its_approval_names_its_thread(stage: Stage, clock: Any) -> None:
    crew = crew_of(stage, {}, {"tools": bash("always_ask")})
    propose(crew)
    approval = asked(crew)
    stage.locked(crew.session_id, lambda locked: deadline.extend(locked, locked.db.get_one(Approval, approval.id), 900_000))
    clock.advance(400)
    assert remind_due(stage.workspace_id, crew.session_id) == 1
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE chain = %(chain)s AND subject_id = %(id)s", chain=crew.session_id, id=approval.id)
    assert {act.action for act in acts} >= {"approval.requested", "approval.extended", "approval.reminded"}
    assert all(act.details.get("in_thread") == approval.thread_id for act in acts)
