"""`POST /v1/policy/simulate` shows how a rule or policy would have judged past calls, and what happened to these calls."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from doors.served import Caller, bad, good, key, message
from own_database import Clock
from rows.stage import Stage, call

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.flow.judge.simulations import Trial, simulate

TOOLSET = {"type": "agent_toolset_20260401"}
PUSH = {"effect": "deny", "match": "bash(git push *)"}
STATUS = {"effect": "allow", "match": "bash(git status *)"}


@pytest.fixture
def past(caller: Caller, stage: Stage) -> str:
    """A session with four calls: a person allowed `git status` and denied `git push`, the policy allowed a read, an `ls` waits."""
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


def trial(caller: Caller, **body: Any) -> dict[str, Any]:
    """Simulate a rule or policy. Returns the report."""
    return good(caller.post("/v1/policy/simulate", json=body))


def counts(report: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return, for each effect of the simulation, the number of calls by their real outcome."""
    return {effect: report[effect]["then"] for effect in ("allow", "ask", "deny")}


def test_a_rule_is_simulated_together_with_the_existing_rules(caller: Caller, past: str) -> None:
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


def test_examples_name_the_rule_and_the_real_outcome_and_show_no_secret(caller: Caller, past: str) -> None:
    report = trial(caller, rule=PUSH)
    [example] = report["deny"]["examples"]
    assert example["session_id"] == past
    assert (example["tool"], example["input"]) == ("bash", {"command": "git push"})
    assert example["rule"] == "workspace rule: deny bash(git push *)"
    assert (example["rule_then"], example["then"]) == ("default: ask", "denied_by_person")
    commands = [example["input"]["command"] for example in report["ask"]["examples"]]
    assert any(command.startswith("ls --password=") for command in commands)
    assert "hunter2" not in str(report)


def test_a_policy_replaces_that_of_the_tool_the_agent_or_the_workspace(caller: Caller, past: str, stage: Stage) -> None:
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
    assert trial(caller, rule={"effect": "allow", "match": "*"})["deny"]["calls"] == 4, "no rule overrides always_deny"


def test_only_calls_of_the_requested_agent_tool_and_days_count(caller: Caller, past: str, stage: Stage, clock: Clock) -> None:
    agent_id = stage.read(past).agent_id
    other = caller.agent()["id"]
    assert trial(caller, rule=PUSH, agent_id=agent_id)["looked_at"] == 4
    assert trial(caller, rule=PUSH, agent_id=other)["looked_at"] == 0
    assert trial(caller, rule=PUSH, tool="read")["looked_at"] == 1
    clock.advance(3 * 86_400)
    assert trial(caller, rule=PUSH, days=2)["looked_at"] == 0
    caller.say(past)
    assert trial(caller, rule=PUSH, days=2)["looked_at"] == 0, "the session is running, but its calls are old"
    assert trial(caller, rule=PUSH, days=4)["looked_at"] == 4


def test_the_proposed_input_counts_and_not_the_edited_one(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    stage.reply(session, call(command="git push"))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"command": "git status"})
    assert counts(trial(caller, rule=PUSH))["deny"] == {"allowed_by_person": 1}


def test_a_call_that_a_grant_allowed_is_still_allowed_by_the_grant(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    [first] = stage.reply(session, call(command="npm test"))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session", match="bash(npm *)")
    stage.run_call(first)
    stage.reply(session, call(command="npm install"))
    assert counts(trial(caller, rule=PUSH)) == {"allow": {"allowed_by_grant": 1}, "ask": {"allowed_by_person": 1}, "deny": {}}


def test_an_invalid_call_is_left_out(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    stage.reply(session, call("sudo"), call(cmd="bash has no field cmd"))
    assert trial(caller, rule=PUSH)["looked_at"] == 0


def test_in_many_sessions_each_call_is_counted_once(caller: Caller, stage: Stage) -> None:
    agent = caller.agent(tools=[TOOLSET])
    calls = 0
    body = {"agent": agent["id"], "environment_id": caller.environment_id(), "initial_events": [message()]}
    for n in range(60):
        session = good(caller.post("/v1/sessions", json=body))["id"]
        more = 150 if n == 30 else 1
        calls += len(stage.reply(session, *(call(command=f"ls {n} {m}") for m in range(more))))
    report = trial(caller, rule={"effect": "deny", "match": "bash(ls 30 *)"})
    assert (report["looked_at"], report["complete"]) == (calls, True)
    assert (report["deny"]["calls"], report["ask"]["calls"]) == (150, 59)
    assert len(report["deny"]["examples"]) == len(report["ask"]["examples"]) == 10
    assert len({example["tool_use_id"] for example in report["deny"]["examples"]}) == 10


@pytest.mark.parametrize(("bounds", "looked_at"), [({"most": 3}, 3), ({"seconds": 0.0}, 0), ({"most": 4}, 4)])
def test_a_simulation_that_reaches_its_bounds_is_marked_incomplete(
    past: str, stage: Stage, bounds: dict[str, Any], looked_at: int
) -> None:
    with transaction(stage.workspace_id) as db:
        since = database_clock.now(db) - timedelta(days=1)
        report = simulate(db, stage.workspace_id, Trial(since, rule=PUSH, **bounds))
    assert (report.looked_at, report.complete) == (looked_at, looked_at == 4)


def test_a_long_simulation_delays_no_other_request_and_a_second_one_gets_a_503(caller: Caller, stage: Stage) -> None:
    agent = caller.agent(tools=[TOOLSET])
    for _ in range(4):  # a reply is judged in one transaction, which Postgres ends after 10 s without a statement
        session = caller.session(agent)["id"]
        caller.say(session)
        stage.reply(session, *(call(command="x " * 900) for _ in range(12)))
    slow = {"type": "rules", "rules": [{"effect": "deny", "match": f"bash(x * {n})"} for n in range(900)], "default": "ask"}
    statuses: list[int] = []
    with ThreadPoolExecutor(1) as pool, Caller(str(caller.base_url), caller.headers["x-api-key"]) as other:
        simulating = pool.submit(_simulate, caller, {"permission_policy": slow})
        while not simulating.done() and statuses.count(503) <= 2:
            statuses.append(other.post("/v1/policy/simulate", json={"rule": PUSH, "tool": "read"}).status_code)
    assert statuses.count(503) > 2, "a server that simulates without pauses answers nobody meanwhile"
    assert good(simulating.result())["looked_at"] > 0


def _simulate(caller: Caller, body: dict[str, Any]) -> httpx2.Response:
    """Simulate, again if another simulation was running."""
    while (response := caller.post("/v1/policy/simulate", json=body)).status_code == 503:
        pass
    return response


def test_calls_of_another_workspace_do_not_count(past: str, api: str, stage: Stage) -> None:
    with Caller(api, key(Stage())) as stranger:
        assert trial(stranger, rule=PUSH)["looked_at"] == 0
        bad(stranger.post("/v1/policy/simulate", json={"rule": PUSH, "agent_id": stage.read(past).agent_id}), 400, "agent_id: ")


@pytest.mark.parametrize(
    ("body", "field"),
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
def test_an_invalid_request_is_refused_by_its_field(caller: Caller, body: dict[str, Any], field: str) -> None:
    bad(caller.post("/v1/policy/simulate", json=body), 400, f"{field}: ")


def test_rules_are_suggested_that_answer_as_people_did(caller: Caller, stage: Stage) -> None:
    session = caller.session(caller.agent(name="Tester", tools=[TOOLSET]))
    caller.say(session["id"])
    stage.reply(session["id"], *(call(command=f"npm test -- {number}") for number in range(5)), call(command="git status"))
    for approval in stage.approvals(session["id"]):
        stage.decide(approval, result="allow")
    suggestions = good(caller.get("/v1/policy/suggestions"))
    [rule] = suggestions["data"]
    assert (suggestions["looked_at"], suggestions["complete"]) == (6, True)
    assert rule["rule"] == {"effect": "allow", "match": "bash(npm test *)"}
    assert (rule["agent_id"], rule["agent_name"]) == (session["agent"]["id"], "Tester")
    assert (rule["answers"], rule["questions"], len(rule["approval_ids"])) == (5, 6, 3)
    assert good(caller.get("/v1/policy/suggestions", params={"agent_id": rule["agent_id"]}))["data"] == [rule]
    assert "agent_id" in bad(caller.get("/v1/policy/suggestions", params={"agent_id": "agent_none"}), 400)["message"]
    saved = trial(caller, rule=rule["rule"], agent_id=rule["agent_id"])
    assert counts(saved)["allow"] == {"allowed_by_person": rule["answers"]}
