"""`POST /v1/policy/simulate`: what a rule or a policy would have answered to past calls, beside what became of them."""

import threading
from datetime import timedelta
from typing import Any

import httpx
import pytest
from doors.served import Caller, bad, good, key
from own_database import Clock
from rows.stage import Stage, call

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.flow.simulations import Trial, simulate

TOOLSET = {"type": "agent_toolset_20260401"}
PUSH = {"effect": "deny", "match": "bash(git push *)"}
STATUS = {"effect": "allow", "match": "bash(git status *)"}


@pytest.fixture
def past(caller: Caller, stage: Stage) -> str:
    """A session with a past: a status allowed by a person, a push denied by one, a read that is allowed, an `ls` that waits."""
    tools = [TOOLSET | {"configs": [{"name": "read", "permission_policy": {"type": "always_allow"}}]}]
    session = caller.session(caller.agent(tools=tools))["id"]
    caller.say(session)
    status, push, _ls, read = stage.reply(
        session,
        *(call(command=command) for command in ("git status", "git push", "ls --password=hunter2hunter2")),
        call("read", file_path="x"),
    )
    for approval in stage.approvals(session):
        if approval.tool_call_id in {status.id, push.id}:
            stage.decide(approval, result="allow" if approval.tool_call_id == status.id else "deny")
    stage.run_call(read)
    return str(session)


def trial(caller: Caller, **said: Any) -> dict[str, Any]:
    """What would have been."""
    return good(caller.post("/v1/policy/simulate", json=said))


def counts(found: dict[str, Any]) -> dict[str, dict[str, int]]:
    """How many would have been allowed, asked, denied, and what became of these."""
    return {effect: found[effect]["then"] for effect in ("allow", "ask", "deny")}


def test_a_rule_is_held_against_the_past_among_the_rules_there_are(caller: Caller, past: str) -> None:
    denied = trial(caller, rule=PUSH)
    assert counts(denied) == {
        "allow": {"allowed_by_policy": 1},
        "ask": {"allowed_by_person": 1, "waiting": 1},
        "deny": {"denied_by_person": 1},
    }
    assert (denied["looked_at"], denied["changed"], denied["complete"]) == (4, 1, True)
    allowed = trial(caller, rule=STATUS)
    assert counts(allowed)["allow"] == {"allowed_by_policy": 1, "allowed_by_person": 1}
    good(caller.post("/v1/policy", json={"permission_policy": {"type": "rules", "rules": [PUSH], "default": "ask"}}))
    assert counts(trial(caller, rule={"effect": "allow", "match": "bash"}))["deny"] == {"denied_by_person": 1}, "deny comes first"


def test_examples_say_which_rule_what_was_then_and_no_secret(caller: Caller, past: str) -> None:
    found = trial(caller, rule=PUSH)
    [example] = found["deny"]["examples"]
    assert example["session_id"] == past
    assert (example["tool"], example["input"]) == ("bash", {"command": "git push"})
    assert example["rule"] == "workspace rule: deny bash(git push *)"
    assert (example["rule_then"], example["then"]) == ("default: ask", "denied_by_person")
    asked = [example["input"]["command"] for example in found["ask"]["examples"]]
    assert any(command.startswith("ls --password=") for command in asked)
    assert "hunter2" not in str(found)


def test_a_policy_takes_the_place_of_the_tool_s_the_agent_s_or_the_workspace_s(caller: Caller, past: str, stage: Stage) -> None:
    deny = {"type": "always_deny"}
    allow = {"type": "always_allow"}
    agent_id = stage.read(past).agent_id
    tool = trial(caller, permission_policy={"type": "rules", "rules": [STATUS], "default": "deny"}, tool="bash")
    assert {effect: tool[effect]["calls"] for effect in ("allow", "ask", "deny")} == {"allow": 1, "ask": 0, "deny": 2}
    agent = trial(caller, permission_policy=allow, agent_id=agent_id)
    assert (agent["allow"]["calls"], agent["changed"]) == (4, 3)
    workspace = trial(caller, permission_policy=deny)
    assert (workspace["deny"]["calls"], workspace["changed"]) == (4, 4)
    good(caller.post("/v1/policy", json={"permission_policy": deny}))
    assert trial(caller, rule={"effect": "allow", "match": "*"})["deny"]["calls"] == 4, "always_deny is for good"


def test_only_the_agent_the_tool_and_the_days_that_were_asked_for_count(
    caller: Caller, past: str, stage: Stage, clock: Clock
) -> None:
    agent_id = stage.read(past).agent_id
    other = caller.agent()["id"]
    assert trial(caller, rule=PUSH, agent_id=agent_id)["looked_at"] == 4
    assert trial(caller, rule=PUSH, agent_id=other)["looked_at"] == 0
    assert trial(caller, rule=PUSH, tool="read")["looked_at"] == 1
    clock.advance(3 * 86_400)
    assert trial(caller, rule=PUSH, days=2)["looked_at"] == 0
    caller.say(past)
    assert trial(caller, rule=PUSH, days=2)["looked_at"] == 0, "the session is at work, and its calls are old"
    assert trial(caller, rule=PUSH, days=4)["looked_at"] == 4


def test_the_input_is_the_one_that_was_proposed(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    stage.reply(session, call(command="git push"))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"command": "git status"})
    assert counts(trial(caller, rule=PUSH))["deny"] == {"allowed_by_person": 1}


def test_what_a_grant_allowed_is_still_allowed_by_it(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    [first] = stage.reply(session, call(command="npm test"))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session", match="bash(npm *)")
    stage.run_call(first)
    stage.reply(session, call(command="npm install"))
    assert counts(trial(caller, rule=PUSH)) == {"allow": {"allowed_by_grant": 1}, "ask": {"allowed_by_person": 1}, "deny": {}}


def test_a_call_that_could_not_be_asked_about_is_left_out(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    stage.reply(session, call("sudo"), call(cmd="a field that bash has not"))
    assert trial(caller, rule=PUSH)["looked_at"] == 0


def test_many_sessions_are_looked_at_in_pages_each_call_once(caller: Caller, stage: Stage) -> None:
    agent = caller.agent(tools=[TOOLSET])
    calls = 0
    for n in range(60):
        session = caller.session(agent)["id"]
        caller.say(session)
        more = 150 if n == 30 else 1
        calls += len(stage.reply(session, *(call(command=f"ls {n} {m}") for m in range(more))))
    found = trial(caller, rule={"effect": "deny", "match": "bash(ls 30 *)"})
    assert (found["looked_at"], found["complete"]) == (calls, True)
    assert (found["deny"]["calls"], found["ask"]["calls"]) == (150, 59)
    assert len(found["deny"]["examples"]) == len(found["ask"]["examples"]) == 10
    assert len({example["tool_use_id"] for example in found["deny"]["examples"]}) == 10


@pytest.mark.parametrize(("bounds", "looked_at"), [({"most": 3}, 3), ({"seconds": 0.0}, 0), ({"most": 4}, 4)])
def test_what_is_beyond_its_bounds_is_said(past: str, stage: Stage, bounds: dict[str, Any], looked_at: int) -> None:
    with transaction(stage.workspace_id) as db:
        since = database_clock.now(db) - timedelta(days=1)
        found = simulate(db, stage.workspace_id, Trial(since, rule=PUSH, **bounds))
    assert (found.looked_at, found.complete) == (looked_at, looked_at == 4)


def test_others_are_answered_meanwhile_and_a_second_one_is_told_to_come_back(caller: Caller, stage: Stage) -> None:
    session = caller.session(caller.agent(tools=[TOOLSET]))["id"]
    caller.say(session)
    stage.reply(session, *(call(command="x " * 900) for _ in range(250)))
    slow = {"type": "rules", "rules": [{"effect": "deny", "match": f"bash(x * {n})"} for n in range(900)], "default": "ask"}
    said: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: said.append(_again(caller, {"permission_policy": slow})))
    asking.start()
    statuses: list[int] = []
    with Caller(str(caller.base_url), caller.headers["x-api-key"]) as other:
        while asking.is_alive():
            statuses.append(other.post("/v1/policy/simulate", json={"rule": PUSH, "tool": "read"}).status_code)
    asking.join()
    assert statuses.count(503) > 2, "a server that simulates without pauses answers nobody meanwhile"
    found = good(said[0])
    assert 0 < found["looked_at"] < 250
    assert not found["complete"], "after five seconds it says how far it came"


def _again(caller: Caller, body: dict[str, Any]) -> httpx.Response:
    """Once more, if another one was under way."""
    while (answer := caller.post("/v1/policy/simulate", json=body)).status_code == 503:
        pass
    return answer


def test_another_workspace_s_calls_are_not_looked_at(past: str, api: str, stage: Stage) -> None:
    with Caller(api, key(Stage())) as stranger:
        assert trial(stranger, rule=PUSH)["looked_at"] == 0
        bad(stranger.post("/v1/policy/simulate", json={"rule": PUSH, "agent_id": stage.read(past).agent_id}), 400, "agent_id: ")


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({}, "rule"),
        ({"rule": PUSH, "permission_policy": {"type": "always_ask"}}, "rule"),
        ({"rule": {"effect": "deny", "match": "bash(a; b)"}}, "rule.match"),
        ({"rule": "bash"}, "rule"),
        ({"permission_policy": {"type": "maybe"}}, "permission_policy.type"),
        ({"rule": PUSH, "days": 0}, "days"),
        ({"rule": PUSH, "days": 1000}, "days"),
        ({"rule": PUSH, "agent_id": "agent_none"}, "agent_id"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_its_field(caller: Caller, said: dict[str, Any], field: str) -> None:
    bad(caller.post("/v1/policy/simulate", json=said), 400, f"{field}: ")
