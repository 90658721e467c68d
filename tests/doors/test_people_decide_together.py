"""Several people decide one approval: votes, approvers, delegations, escalation, and the queue of each person."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from doors import waiting
from doors.served import Caller, bad, confirmation, good, message
from doors.waiting import agent_with, approval_of
from people import Somebody, group, member
from rows.stage import Stage, call

Client = Callable[[Somebody], httpx2.Client]


@pytest.fixture
def two(stage: Stage, finance: str) -> list[Somebody]:
    """Two members of the group `finance`."""
    return [member(stage, groups=[finance]) for _ in range(2)]


def asked(caller: Caller, stage: Stage, agent: dict[str, Any]) -> dict[str, Any]:
    """Return the approval of a call in a new session of the agent."""
    return approval_of(caller, waiting.asked(caller, stage, agent=agent)[0])


def allow(client: httpx2.Client, approval: dict[str, Any]) -> httpx2.Response:
    """Allow an approval."""
    return client.post(f"/v1/approvals/{approval['id']}/decision", json={"result": "allow"})


def test_two_people_of_a_group_decide_and_everybody_sees_the_votes(
    caller: Caller, stage: Stage, finance: str, two: list[Somebody], as_: Client
) -> None:
    anna, ben = two
    agent = agent_with(caller, approvers=[f"group:{finance}"], required_approvals=2)
    assert agent["tools"][0]["configs"][0]["approval"]["required_approvals"] == 2
    approval = asked(caller, stage, agent)
    assert (approval["required_approvals"], approval["approvers"], approval["votes"]) == (2, [[f"group:{finance}"]], [])
    assert approval["people_only"]
    bad(allow(caller, approval), 403, "An API key may not decide", "2 people must approve", "finance")
    bad(caller.tell(approval["session_id"], confirmation(approval["tool_use_id"])), 403, "An API key may not decide")
    one = {"approval_id": approval["id"], "result": "allow"}
    bad(caller.post("/v1/approvals/decisions", json={"decisions": [one]}), 403, "An API key may not decide")
    voted = good(allow(as_(anna), approval))
    assert (voted["status"], [vote["by"] for vote in voted["votes"]]) == ("pending", [f"user:{anna.person_id}"])
    entry = good(caller.get(f"/v1/sessions/{approval['session_id']}"))["waiting_on"][0]
    assert (entry["required_approvals"], len(entry["votes"])) == (2, 1)
    decided = good(allow(as_(ben), approval))
    assert (decided["status"], decided["decided_by"]) == ("allowed", f"user:{ben.person_id}")
    events = caller.events(approval["session_id"], include="approvals")
    assert [event["type"] for event in events if event["type"] == "approval.voted"] == ["approval.voted"] * 2
    use = next(event for event in events if event["type"] == "agent.tool_use")
    assert use["approval"]["required_approvals"] == 2


def test_a_vote_may_come_as_an_event(caller: Caller, stage: Stage, finance: str, as_: Client) -> None:
    admins = [member(stage, "admin", groups=[finance]) for _ in range(2)]
    approval = asked(caller, stage, agent_with(caller, approvers=[f"group:{finance}"], required_approvals=2))
    path = f"/v1/sessions/{approval['session_id']}/events"
    body = {"events": [confirmation(approval["tool_use_id"])]}
    [voted] = good(as_(admins[0]).post(path, json=body))["data"]
    assert (voted["type"], voted["by"]) == ("approval.voted", f"user:{admins[0].person_id}")
    [decided] = good(as_(admins[1]).post(path, json=body))["data"]
    assert decided["type"] == "user.tool_confirmation"


def test_a_person_s_queue_is_ordered_by_deadline_and_shows_positions(
    caller: Caller, stage: Stage, finance: str, two: list[Somebody], as_: Client
) -> None:
    anna, ben = two
    other = member(stage)
    late = asked(caller, stage, agent_with(caller, timeout_seconds=3000))
    soon = asked(caller, stage, agent_with(caller, timeout_seconds=1000, approvers=[f"group:{finance}"], required_approvals=2))
    mine = asked(caller, stage, agent_with(caller, timeout_seconds=2000, approvers=[f"user:{anna.person_id}"]))
    own = as_(anna)
    queue = good(own.get("/v1/approvals", params={"for": "me"}))["data"]
    assert [(one["id"], one["queue_position"]) for one in queue] == [(soon["id"], 1), (mine["id"], 2), (late["id"], 3)]
    assert good(own.get("/v1/approvals"))["data"] == queue, "an approver reads only what is the approver's own"
    assert good(caller.get("/v1/approvals", params={"for": anna.person_id}))["data"] == queue
    assert [one["id"] for one in good(as_(other).get("/v1/approvals"))["data"]] == [late["id"]]
    assert as_(other).get(f"/v1/approvals/{mine['id']}").status_code == 404
    assert [one["queue_position"] for one in good(caller.get("/v1/approvals"))["data"]] == [None] * 3
    first = good(own.get("/v1/approvals", params={"for": "me", "limit": 2}))
    second = good(own.get("/v1/approvals", params={"for": "me", "limit": 2, "page": first["next_page"]}))
    assert [(one["id"], one["queue_position"]) for one in second["data"]] == [(late["id"], 3)]
    good(allow(own, soon))
    after = good(own.get("/v1/approvals", params={"for": "me", "limit": 1}))["data"]
    assert [(one["id"], one["queue_position"]) for one in after] == [(mine["id"], 1)], (
        "an approval leaves the waiting list of a person who has voted"
    )
    assert len(good(as_(ben).get("/v1/approvals"))["data"]) == 2, "the queues of others still have it"


def test_people_read_their_own_waiting_list_alone(caller: Caller, stage: Stage, two: list[Somebody], as_: Client) -> None:
    anna, ben = two
    bad(caller.get("/v1/approvals", params={"for": "me"}), 400, "for: me is the person who is signed in")
    bad(as_(anna).get("/v1/approvals", params={"for": ben.person_id}), 403, "another person's waiting list")
    bad(
        caller.get("/v1/approvals", params={"for": ben.person_id, "status": "denied"}),
        400,
        "for: a waiting list has pending approvals",
    )
    assert good(caller.get("/v1/approvals", params={"for": "user_nobody"}))["data"] == []


def test_a_delegate_s_queue_has_what_was_delegated(caller: Caller, stage: Stage, two: list[Somebody], as_: Client) -> None:
    anna, _ = two
    dora = member(stage)
    approval = asked(caller, stage, agent_with(caller, approvers=[f"user:{anna.person_id}"]))
    assert good(as_(dora).get("/v1/approvals"))["data"] == []
    body = {"to": f"user:{dora.person_id}", "ends_at": "2999-01-01T00:00:00Z"}
    delegation = good(as_(anna).post("/v1/delegations", json=body))
    assert (delegation["from"], delegation["group"], delegation["ended_at"]) == (f"user:{anna.person_id}", None, None)
    assert [one["id"] for one in good(as_(dora).get("/v1/approvals"))["data"]] == [approval["id"]]
    [vote] = good(allow(as_(dora), approval))["votes"]
    assert (vote["by"], vote["on_behalf_of"]) == (f"user:{dora.person_id}", f"user:{anna.person_id}")
    assert good(as_(dora).get("/v1/delegations", params={"live": "true"}))["data"] == [delegation]
    assert good(as_(anna).delete(f"/v1/delegations/{delegation['id']}"))["ended_at"]
    assert good(as_(dora).get("/v1/delegations", params={"live": "true"}))["data"] == []


def test_people_delegate_their_own_rights_and_admins_those_of_others(
    caller: Caller, stage: Stage, two: list[Somebody], as_: Client
) -> None:
    anna, ben = two
    viewer = member(stage, "viewer")
    ends = {"ends_at": "2999-01-01T00:00:00Z"}
    to_ben = {"to": f"user:{ben.person_id}", **ends}
    bad(caller.post("/v1/delegations", json=to_ben), 400, "from: an API key has no decisions of its own")
    delegation = good(caller.post("/v1/delegations", json={"from": f"user:{anna.person_id}", **to_ben}))
    stranger = as_(member(stage))
    bad(stranger.post("/v1/delegations", json={"from": f"user:{anna.person_id}", **to_ben}), 403, "needs the scope 'admin'")
    assert stranger.get("/v1/delegations").json()["data"] == []
    bad(stranger.delete(f"/v1/delegations/{delegation['id']}"), 404)
    own = as_(anna)
    bad(own.post("/v1/delegations", json={"to": f"user:{anna.person_id}", **ends}), 400, "to: is the person who delegates")
    bad(own.post("/v1/delegations", json={"to": f"user:{viewer.person_id}", **ends}), 400, "to: ", "cannot decide anything here")
    bad(own.post("/v1/delegations", json=to_ben | {"ends_at": "2020-01-01T00:00:00Z"}), 400, "ends_at: must be later")


def test_settings_that_no_people_could_meet_are_refused(caller: Caller, stage: Stage, finance: str, two: list[Somebody]) -> None:
    legal = group(stage, "legal")

    def refused(*words: str, agent: dict[str, Any] | None = None, **approval: Any) -> None:
        tools = [{"type": "agent_toolset_20260401", "configs": [{"name": "bash", "approval": approval}]}]
        body = {"name": "A", "model": "m", "tools": tools} | (agent or {})
        bad(caller.post("/v1/agents", json=body), 400, *words)

    bash = "tools.0.configs.bash.approval"
    refused(f"{bash}.approvers: group:grp_none is neither a group", approvers=["group:grp_none"])
    refused(f"{bash}: 0 people are in", approvers=[f"group:{legal}"])
    refused(f"{bash}: 2 people are in", "3 must approve", approvers=[f"group:{finance}"], required_approvals=3)
    legally = {"approval": {"approvers": [f"group:{finance}"]}}
    refused(f"{bash}: 0 people are in", agent=legally, approvers=[f"user:{member(stage).person_id}"])
    refused("allow would let the call run without the people", on_timeout="allow", four_eyes=True)
    refused(f"{bash}.on_timeout: allow would let", agent=legally, on_timeout="allow")
    refused("escalate_to", "needs at least one level", on_timeout="escalate")
    step = {"approvers": [f"group:{finance}"], "timeout_seconds": 900}
    refused("escalate_to", "at most 3", on_timeout="escalate", escalate_to=[step] * 4)
    refused("escalate_to", 'goes with "on_timeout": "escalate"', escalate_to=[step])
    refused(f"{bash}.escalate_to.0.approvers", on_timeout="escalate", escalate_to=[step | {"approvers": ["user:user_none"]}])
    bad(caller.post("/v1/policy", json={"approval": {"required_approvals": 9}}), 400, "approval: 3 people", "9 must approve")


def test_every_level_takes_the_settings(caller: Caller, stage: Stage, finance: str, two: list[Somebody]) -> None:
    """A toolset's `default_config`, an agent and a workspace. Each returns its effective settings."""
    step = {"approvers": [f"group:{finance}"], "timeout_seconds": 900.0}
    approval = {"approvers": [f"group:{finance}"], "required_approvals": 2, "on_timeout": "escalate", "escalate_to": [step]}
    tools = [{"type": "agent_toolset_20260401", "default_config": {"approval": approval}}]
    agent = caller.agent(tools=tools, approval={"four_eyes": True})
    returned = agent["tools"][0]["default_config"]["approval"]
    assert {name: returned[name] for name in approval} == approval
    assert agent["approval"]["four_eyes"] is True
    assert good(caller.post("/v1/policy", json={"approval": {"required_approvals": 2}}))["approval"]["required_approvals"] == 2
    bad(caller.post("/v1/sessions", json={"agent": agent["id"], "environment_id": caller.environment_id()}), 400, "on_behalf_of")
    session = caller.session(agent, on_behalf_of=f"user:{two[0].person_id}", on_ask="inbox")
    assert (session["on_behalf_of"], session["on_ask"]) == (f"user:{two[0].person_id}", "inbox")
    sent = {**message(), "on_behalf_of": f"user:{two[1].person_id}"}
    assert good(caller.tell(session["id"], sent))["data"][0]["on_behalf_of"] == f"user:{two[1].person_id}"
    stage.reply(session["id"], call(command="ls"))
    [row] = good(caller.get("/v1/approvals"))["data"]
    assert (row["required_approvals"], row["four_eyes"]) == (2, True)
    assert row["started_by"] == sorted(f"user:{one.person_id}" for one in two)
    assert row["escalation"] == {"level": 0, "levels": [{**step, "approvers": [step["approvers"]]}], "then": "deny"}


def test_only_admins_halt_a_workspace(caller: Caller, stage: Stage, api: str, as_: Client) -> None:
    approver, admin = as_(member(stage)), as_(member(stage, "admin"))
    assert good(approver.get("/v1/halt")) == {
        "type": "halt",
        "halted": False,
        **dict.fromkeys(("id", "reason", "started_at", "started_by", "ended_at", "ended_by")),
    }
    bad(approver.post("/v1/halt", json={}), 403)
    halted = good(admin.post("/v1/halt", json={"reason": "Stop."}))
    assert (halted["halted"], halted["reason"]) == (True, "Stop.")
    assert good(caller.post("/v1/halt", json={})) == halted, "again is a no-op"
    assert "the workspace is halted" in good(caller.get("/readyz"))["held_back"][0]
    ended = good(caller.delete("/v1/halt"))
    assert (ended["id"], ended["halted"], ended["ended_by"][:8]) == (halted["id"], False, "api_key:")
    assert good(admin.delete("/v1/halt")) == ended
