"""The page of policies: rules of all levels in order of precedence, a call to try, a change to simulate, and what is saved."""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.plain import Plain
from inbox.visitor import Visitor
from people import member
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.pure.json.canonical import digest
from models.workspace.agent import Agent
from models.workspace.row import Workspace

OF_AGENT = {"type": "auto", "rules": [{"effect": "deny", "match": "bash(git push *)", "reason": "CI releases"}], "default": "ask"}
OF_WORKSPACE = {
    "type": "auto",
    "rules": [{"effect": "allow", "match": "bash(ls *)"}, {"effect": "ask", "match": "read(secrets/**)"}],
    "default": "ask",
}


@pytest.fixture
def agent_id(stage: Stage) -> str:
    """An agent that asked about `make` three times: two calls were allowed, one was denied."""
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"policy": OF_WORKSPACE})
    session = stage.session(bash="always_ask", read="always_allow", agent_policy=OF_AGENT)
    stage.message(session)
    stage.reply(session, call(command="make a"), call(command="make b"), call(command="make c"))
    for row, result in zip(stage.approvals(session), ("allow", "allow", "deny"), strict=True):
        stage.decide(row, result=result)
    return str(stage.read(session).agent_id)


def policy(stage: Stage) -> object:
    """Return the workspace's policy."""
    with transaction(stage.workspace_id) as db:
        return Workspace.policies(db)["policy"]


def own_rules(stage: Stage, agent: str = "") -> list[object]:
    """Return the rules of the workspace, or of the agent."""
    with transaction(stage.workspace_id) as db:
        own = Agent.find(db, agent).at(db).body["permission_policy"] if agent else Workspace.policies(db)["policy"]
    rules: list[object] = own["rules"]
    return rules


def rows(plain: Plain) -> list[str]:
    """Return the effect, the rule and the level of each row."""
    lines = []
    for row in plain.page.all("tbody tr"):
        effect, level, *_next = row.texts("td")
        lines.append(f"{effect} {row.all('th > code, th')[-1 if row.all('th > code + small') else 0].text} {level}")
    return lines


def ask_what_if(plain: Plain, *, whole: bool = False) -> None:
    """Simulate the new rule, or the whole policy."""
    plain.press("What if?", within=plain.page.one("details.whole-policy" if whole else "section[aria-labelledby=what-if]"))


def test_rules_of_all_levels_stand_in_order_of_precedence(plain: Plain, agent_id: str) -> None:
    plain.open("/inbox/policies")
    assert rows(plain) == [
        "ask read(secrets/**) workspace",
        "allow bash(ls *) workspace",
        "ask Every other call, where agent and tool say nothing workspace",
    ]
    plain.fill("For", agent_id)
    plain.press("Show")
    assert rows(plain) == [
        "deny bash(git push *) agent",
        "ask read(secrets/**) workspace",
        "allow bash(ls *) workspace",
        "ask Every other call of bash tool",
        "allow Every other call of read tool",
    ]


def test_a_rule_may_hold_any_value(plain: Plain, stage: Stage, agent_id: str) -> None:
    conditions = ({"one_of": ["x", "y"]}, {"equals": ["x"]}, {"equals": {"x": [1]}})
    rules = [{"effect": "deny", "match": {"tool": "*", "input": [{"path": "/a", **condition}]}} for condition in conditions]
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"policy": {"type": "auto", "rules": rules, "default": "ask"}})
    plain.open(f"/inbox/policies?agent={agent_id}")
    assert len([row for row in rows(plain) if row.endswith("workspace")]) == 3, "a rule about several tools is one row"
    plain.fill("Input", "ls")
    plain.press("Try")
    assert plain.page.one("#verdict .chip").text == "ask"
    plain.open("/inbox/agents")
    assert "4 rules" in plain.page.one(f"#{agent_id}")
    plain.open(f"/inbox/agents/{agent_id}")
    assert plain.response.status_code == 200


def test_a_call_is_tried_and_nothing_runs(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/policies?agent={agent_id}")
    for command, effect, rule in (
        ("git push origin", "deny", "Denied because of the agent's rule to deny bash(git push *) (CI releases)."),
        ('{"command": "ls src"}', "allow", "Allowed because of the workspace's rule to allow bash(ls *)."),
        ("{ make; }", "ask", "Asked because bash asks every time unless a rule says otherwise."),
    ):
        plain.fill("Input", command)
        plain.press("Try")
        assert plain.page.one("#verdict .chip").text == effect
        assert plain.page.one("#verdict strong").text == rule
    plain.fill("Tool", "refund")
    plain.fill("Input", "5")
    plain.press("Try")
    assert "Write the arguments as JSON" in plain.page.one("#fault-input")
    plain.open("/inbox/policies/try")
    assert plain.page.one("h1").text == "Policies"


def test_a_rule_is_simulated_and_then_saved(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/policies")
    plain.fill("Effect", "allow")
    plain.fill("Calls", "bash(make *)")
    assert not plain.page.all("button", name="Save the rule")
    ask_what_if(plain)
    summary = "Of 3 calls, 3 would have another effect. It would have saved 3 questions. It contradicts 1 denial."
    assert summary in plain.page.one("#simulation")
    assert policy(stage) == OF_WORKSPACE
    plain.press("Save the rule")
    assert "bash(make *)" in plain.page.one("table")
    rule = {"effect": "allow", "match": "bash(make *)"}
    assert policy(stage) == OF_WORKSPACE | {"rules": [*OF_WORKSPACE["rules"], rule]}


def test_a_rule_of_an_agent_is_a_new_version_of_the_agent(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/policies?agent={agent_id}")
    plain.fill("Effect", "deny")
    plain.fill("Calls", "bash(make c)")
    plain.press("What if?")
    assert "Of 3 calls, 1 would have another effect." in plain.page.one("#simulation")
    plain.press("Save the rule")
    assert "bash(make c)" in plain.page.one("table")
    with transaction(stage.workspace_id) as db:
        head = Agent.find(db, agent_id).at(db)
    rule = {"effect": "deny", "match": "bash(make c)"}
    assert (head.version, head.body["permission_policy"]["rules"]) == (2, [*OF_AGENT["rules"], rule])
    assert policy(stage) == OF_WORKSPACE


def test_the_whole_policy_is_simulated_and_saved_unless_it_changed_meanwhile(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/policies")
    plain.fill("Policy, as JSON", '{"type": "rules", "rules": [], "default": "ask"')
    ask_what_if(plain, whole=True)
    assert "must be JSON" in plain.page.one("#fault-policy")
    plain.fill("Policy, as JSON", '{"type": "rules", "rules": [{"effect": "deny", "match": "bash(make *)"}], "default": "ask"}')
    ask_what_if(plain, whole=True)
    assert "It contradicts no denial." in plain.page.one("#simulation")
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"policy": {"type": "always_ask"}})
    plain.press("Save the policy")
    assert "The policy has changed since you opened the page." in plain.page.one("[role=alert]")
    assert policy(stage) == {"type": "always_ask"}
    plain.open("/inbox/policies")
    plain.fill("Policy, as JSON", '{"type": "always_allow"}')
    ask_what_if(plain, whole=True)
    plain.press("Save the policy")
    assert len(plain.page.all("tbody tr")) == 1
    assert policy(stage) == {"type": "always_allow"}


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ('"match": "bash", "reason": "a\\u0000b"', "rules.0.reason: must not contain the character NUL"),
        ('"match": "bash", "reason": "a\\ud800b"', "rules.0.reason: must not contain half a surrogate pair"),
        ('"match": "bash(a\\ud800b)"', "rules.0.match: must not contain half a surrogate pair"),
        ('"match": {"tool": "bash", "input": [{"path": "/a", "gt": 1000000000000000000000000000000}]}', "send it as a string"),
        ('"match": {"tool": "bash", "input": [{"path": "/a", "equals": "\\u0000"}]}', "NUL"),
        (f'"match": {{"tool": "bash", "input": [{{"path": "/a", "equals": {"[" * 900 + "]" * 900}}}]}}', "nested deeper"),
        ('"match": "bash", "match": "read"', "appears twice"),
    ],
)
def test_json_that_the_api_refuses_is_refused_by_its_field(api: str, stage: Stage, rule: str, fault: str) -> None:
    text = f'{{"type": "rules", "rules": [{{"effect": "deny", {rule}}}], "default": "ask"}}'
    with member(stage, "admin").client(api) as client:
        response: httpx2.Response = client.post("/inbox/policies/save", data={"policy": text, "digest": digest(policy(stage))})
    assert response.status_code == 400
    assert fault in response.text.partition('id="fault-policy"')[2]
    assert policy(stage) is None


def test_a_rule_is_removed_once_people_have_seen_what_that_changes(plain: Plain, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/policies")
    assert len(plain.page.all("button", name="Remove… the rule:")) == 2
    plain.press("Remove… the rule: allow bash(ls *)")
    assert "Without the rule: allow every bash command that starts with ls" in plain.page.one("#simulation")
    assert "It contradicts no denial." in plain.page.one("#simulation")
    assert policy(stage) == OF_WORKSPACE
    plain.press("Remove the rule")
    assert len(plain.page.all("button", name="Remove… the rule:")) == 1
    assert policy(stage) == OF_WORKSPACE | {"rules": OF_WORKSPACE["rules"][1:]}
    plain.open(f"/inbox/policies?agent={agent_id}")
    plain.press("Remove… the rule:")  # that of the agent: the workspace's rules are not its own
    with transaction(stage.workspace_id) as db:
        Agent.find(db, agent_id).update(db, stage.principal, {"permission_policy": None})
    plain.press("Remove the rule")
    assert "The policy has no such rule any more." in plain.page.one("[role=alert]")


def test_a_suggestion_is_simulated_before_it_is_saved(plain: Plain, stage: Stage, agent_id: str) -> None:
    session = stage.session(of_agent=agent_id)
    stage.message(session)
    stage.reply(session, *(call(command=f"npm test -- {number}") for number in range(5)))
    for row in stage.approvals(session):
        stage.decide(row, result="allow")
    plain.open("/inbox/policies")
    plain.follow("Suggestions")
    line = plain.page.one("tbody tr")
    for words in ("bash(npm test *)", "5 of 8 questions", "contradicts 0 denials"):
        assert words in line
    plain.press("What if?", within=line)
    assert "It would have saved 5 questions. It contradicts no denial." in plain.page.one("#simulation")
    plain.press("Save the rule")
    with transaction(stage.workspace_id) as db:
        rules = Agent.find(db, agent_id).at(db).body["permission_policy"]["rules"]
    assert rules == [*OF_AGENT["rules"], {"effect": "allow", "match": "bash(npm test *)"}]
    plain.open(f"/inbox/policies/suggestions?agent={agent_id}")
    assert "No rule to suggest." in plain.page.one("main")


def test_a_grant_that_nobody_uses_is_found_and_revoked(plain: Plain, stage: Stage) -> None:
    for commands in (["ls", "ls -l", "ls -a"], ["make"]):
        session = stage.session()
        stage.message(session)
        stage.reply(session, call(command=commands[0]))
        stage.decide(stage.approvals(session)[0], result="allow", scope="always", match=f"bash({commands[0]} *)")
        other = stage.session(of_agent=stage.read(session).agent_id)
        stage.message(other)
        stage.reply(other, *(call(command=one) for one in commands[1:]))
    plain.open("/inbox/grants")
    assert "Used 2 times, 2 a day · last just now" in plain.row("bash(ls *)")
    assert "Never used" in plain.row("bash(make *)")
    plain.follow("Never used")
    assert len(plain.rows) == 1
    plain.press("Revoke", within=plain.row("bash(make *)"))
    plain.open("/inbox/grants?show=unused")
    assert "No unused grant." in plain.page.one("main")
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE approval_grant SET expires_at = assent_now() - interval '2 hours' WHERE revoked_at IS NULL")
    plain.open("/inbox/grants?show=all")
    assert "ended 2 hours ago" in plain.row("bash(ls *)")


def test_only_who_may_change_a_policy_saves_it(api: str, stage: Stage, agent_id: str) -> None:
    rule = {"effect": "allow", "match": "bash"}
    before = policy(stage)
    for role, expected in (("viewer", 403), ("developer", 403), ("approver", 403)):
        with member(stage, role).client(api) as client:  # type: ignore[arg-type]
            response: httpx2.Response = client.post("/inbox/policies/save", data=rule)
        assert response.status_code == expected, role
    with member(stage, "viewer").client(api) as client:
        shown = client.post("/inbox/policies/simulate", data={"agent": agent_id, **rule})
        assert "What it would have done" in shown.text
        assert "Save the rule" not in shown.text
        assert client.post("/inbox/policies/save", data={"agent": agent_id, **rule}).status_code == 403
    assert policy(stage) == before


@pytest.mark.parametrize("level", ["workspace", "agent"])
def test_rules_that_are_added_at_once_are_all_kept(api: str, stage: Stage, agent_id: str, level: str) -> None:
    agent = {"agent": agent_id} if level == "agent" else {}
    before = len(own_rules(stage, **agent))
    admin = member(stage, "admin")

    def add(number: int) -> int:
        with admin.client(api) as client:
            data = {"effect": "deny", "match": f"bash(program{number} *)", **agent}
            return client.post("/inbox/policies/save", data=data).status_code

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(add, range(6))) == {303}
    assert len(own_rules(stage, **agent)) == before + 6


def test_who_reads_only_their_own_sees_grants(api: str, stage: Stage) -> None:
    with member(stage, "approver").client(api) as client:
        response = client.get("/inbox/policies")
    assert response.headers["location"] == "/inbox/grants"


def test_everybody_can_use_it(admin: Visitor, agent_id: str) -> None:
    admin.open(f"/inbox/policies?agent={agent_id}")
    admin.page.get_by_label("Input").fill("git push && make")
    admin.button("Try").click()
    for path in ("", "/inbox/policies", "/inbox/grants", "/inbox/policies/suggestions"):
        if path:
            admin.open(path)
        check_at_desk_and_phone(admin.page)


def test_an_address_fills_in_the_form_and_neither_saves_nor_hides_anything(plain: Plain, stage: Stage, agent_id: str) -> None:
    """Somebody else may have sent the address: a rule with an invisible character would deny nothing."""
    plain.open("/inbox/policies?effect=deny&match=bash(rm%E2%80%8B%20*)")
    assert plain.page.field("Effect").value == "deny"
    ask_what_if(plain)
    assert "deny bash(rm<U+200B> *)" in plain.page.one("#simulation")
    assert policy(stage) == OF_WORKSPACE
