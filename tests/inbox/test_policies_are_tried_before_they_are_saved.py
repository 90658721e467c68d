"""The page of policies: rules of all levels in order of precedence, a call to try, a change to simulate, and what is saved."""

import httpx2
import pytest
from inbox.accessibility import check_at_desk_and_phone
from inbox.visitor import Visitor
from people import member
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.database.transactions import transaction
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


def rows(visitor: Visitor) -> list[str]:
    """Return the effect, the rule and the level of each row."""
    lines = []
    for row in visitor.page.locator("tbody tr").all():
        effect, level, *_next = row.locator("td").all_inner_texts()
        text = (row.locator("th > code").first if row.locator("th > code + small").count() else row.locator("th")).inner_text()
        lines.append(f"{effect.strip()} {text} {level}")
    return lines


def test_rules_of_all_levels_stand_in_order_of_precedence(plain: Visitor, agent_id: str) -> None:
    plain.open("/inbox/policies")
    assert rows(plain) == [
        "ask read(secrets/**) workspace",
        "allow bash(ls *) workspace",
        "ask Every other call, where agent and tool say nothing workspace",
    ]
    plain.page.get_by_label("For", exact=True).select_option(agent_id)
    with plain.page.expect_navigation():
        plain.button("Show").click()
    assert rows(plain) == [
        "deny bash(git push *) agent",
        "ask read(secrets/**) workspace",
        "allow bash(ls *) workspace",
        "ask Every other call of bash tool",
        "allow Every other call of read tool",
    ]


def test_a_call_is_tried_and_nothing_runs(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/policies?agent={agent_id}")
    for command, effect, rule in (
        ("git push origin", "deny", "Denied because of the agent's rule to deny bash(git push *) (CI releases)."),
        ('{"command": "ls src"}', "allow", "Allowed because of the workspace's rule to allow bash(ls *)."),
        ("{ make; }", "ask", "Asked because bash asks every time unless a rule says otherwise."),
    ):
        plain.page.get_by_label("Input").fill(command)
        plain.button("Try").click()
        expect(plain.page.locator("#verdict .chip")).to_have_text(effect)
        expect(plain.page.locator("#verdict strong")).to_have_text(rule)
    plain.page.get_by_label("Tool").fill("refund")
    plain.page.get_by_label("Input").fill("5")
    plain.button("Try").click()
    expect(plain.page.get_by_text("Write the arguments as JSON").last).to_be_visible()
    plain.open("/inbox/policies/try")
    expect(plain.page.get_by_role("heading", level=1)).to_have_text("Policies")


def test_a_rule_is_simulated_and_then_saved(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/policies")
    plain.page.get_by_label("Effect").select_option("allow")
    plain.page.get_by_label("Calls", exact=True).fill("bash(make *)")
    expect(plain.button("Save the rule")).to_have_count(0)
    plain.button("What if?").last.click()
    summary = "Of 3 calls, 3 would have another effect. It would have saved 3 questions. It contradicts 1 denial."
    expect(plain.page.locator("#simulation")).to_contain_text(summary)
    assert policy(stage) == OF_WORKSPACE
    plain.button("Save the rule").click()
    expect(plain.page.get_by_text("bash(make *)").first).to_be_visible()
    rule = {"effect": "allow", "match": "bash(make *)"}
    assert policy(stage) == OF_WORKSPACE | {"rules": [*OF_WORKSPACE["rules"], rule]}


def test_a_rule_of_an_agent_is_a_new_version_of_the_agent(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open(f"/inbox/policies?agent={agent_id}")
    plain.page.get_by_label("Effect").select_option("deny")
    plain.page.get_by_label("Calls", exact=True).fill("bash(make c)")
    plain.button("What if?").click()
    expect(plain.page.locator("#simulation")).to_contain_text("Of 3 calls, 1 would have another effect.")
    plain.button("Save the rule").click()
    expect(plain.page.get_by_text("bash(make c)").first).to_be_visible()
    with transaction(stage.workspace_id) as db:
        head = Agent.find(db, agent_id).at(db)
    rule = {"effect": "deny", "match": "bash(make c)"}
    assert (head.version, head.body["permission_policy"]["rules"]) == (2, [*OF_AGENT["rules"], rule])
    assert policy(stage) == OF_WORKSPACE


def test_the_whole_policy_is_simulated_and_saved_unless_it_changed_meanwhile(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/policies")
    plain.page.get_by_text("Change the workspace's policy as a whole").click()
    field = plain.page.get_by_label("Policy, as JSON")
    field.fill('{"type": "rules", "rules": [], "default": "ask"')
    plain.button("What if?").first.click()
    expect(plain.page.locator("#fault-policy")).to_contain_text("This is not JSON")
    field.fill('{"type": "rules", "rules": [{"effect": "deny", "match": "bash(make *)"}], "default": "ask"}')
    plain.button("What if?").first.click()
    expect(plain.page.locator("#simulation")).to_contain_text("It contradicts no denial.")
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"policy": {"type": "always_ask"}})
    plain.button("Save the policy").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("The policy has changed since you opened the page.")
    assert policy(stage) == {"type": "always_ask"}
    plain.open("/inbox/policies")
    plain.page.get_by_text("Change the workspace's policy as a whole").click()
    field.fill('{"type": "always_allow"}')
    plain.button("What if?").first.click()
    plain.button("Save the policy").click()
    expect(plain.page.locator("tbody tr")).to_have_count(1)
    assert policy(stage) == {"type": "always_allow"}


def test_a_rule_is_removed_once_people_have_seen_what_that_changes(plain: Visitor, stage: Stage, agent_id: str) -> None:
    plain.open("/inbox/policies")
    remove = plain.page.get_by_role("button", name="Remove… the rule:")
    expect(remove).to_have_count(2)
    plain.page.get_by_role("button", name="Remove… the rule: allow bash(ls *)").click()
    expect(plain.page.locator("#simulation")).to_contain_text("Without the rule: allow every bash command that starts with ls")
    expect(plain.page.locator("#simulation")).to_contain_text("It contradicts no denial.")
    assert policy(stage) == OF_WORKSPACE
    plain.button("Remove the rule").click()
    expect(remove).to_have_count(1)
    assert policy(stage) == OF_WORKSPACE | {"rules": OF_WORKSPACE["rules"][1:]}
    plain.open(f"/inbox/policies?agent={agent_id}")
    expect(remove).to_have_count(1)  # that of the workspace is not the agent's
    remove.click()
    with transaction(stage.workspace_id) as db:
        Agent.find(db, agent_id).update(db, stage.principal, {"permission_policy": None})
    plain.button("Remove the rule").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("The policy has no such rule any more.")


def test_a_suggestion_is_simulated_before_it_is_saved(plain: Visitor, stage: Stage, agent_id: str) -> None:
    session = stage.session(of_agent=agent_id)
    stage.message(session)
    stage.reply(session, *(call(command=f"npm test -- {number}") for number in range(5)))
    for row in stage.approvals(session):
        stage.decide(row, result="allow")
    plain.open("/inbox/policies")
    plain.page.get_by_role("link", name="Suggestions").click()
    line = plain.page.locator("tbody tr")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("bash(npm test *)")
    expect(line).to_contain_text("5 of 8 questions")
    expect(line).to_contain_text("contradicts 0 denials")
    line.get_by_role("button", name="What if?").click()
    expect(plain.page.locator("#simulation")).to_contain_text("It would have saved 5 questions. It contradicts no denial.")
    plain.button("Save the rule").click()
    with transaction(stage.workspace_id) as db:
        rules = Agent.find(db, agent_id).at(db).body["permission_policy"]["rules"]
    assert rules == [*OF_AGENT["rules"], {"effect": "allow", "match": "bash(npm test *)"}]
    plain.open(f"/inbox/policies/suggestions?agent={agent_id}")
    expect(plain.page.get_by_text("No rule to suggest.")).to_be_visible()


def test_a_grant_that_nobody_uses_is_found_and_revoked(plain: Visitor, stage: Stage) -> None:
    for commands in (["ls", "ls -l", "ls -a"], ["make"]):
        session = stage.session()
        stage.message(session)
        stage.reply(session, call(command=commands[0]))
        stage.decide(stage.approvals(session)[0], result="allow", scope="always", match=f"bash({commands[0]} *)")
        other = stage.session(of_agent=stage.read(session).agent_id)
        stage.message(other)
        stage.reply(other, *(call(command=one) for one in commands[1:]))
    plain.open("/inbox/grants")
    of_ls, of_make = (
        plain.page.locator("ul.rows li", has=plain.page.locator("strong code", has_text=f"bash({name} *)"))
        for name in ("ls", "make")
    )
    expect(of_ls).to_contain_text("Used 2 times, 2 a day · last just now")
    expect(of_make).to_contain_text("Never used")
    plain.page.get_by_role("link", name="Never used").click()
    expect(of_ls).to_have_count(0)
    of_make.get_by_role("button", name="Revoke").click()
    plain.open("/inbox/grants?show=unused")
    expect(plain.page.get_by_text("No unused grant.")).to_be_visible()
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE approval_grant SET expires_at = assent_now() - interval '2 hours' WHERE revoked_at IS NULL")
    plain.open("/inbox/grants?show=all")
    expect(of_ls).to_contain_text("ended 2 hours ago")


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


def test_an_address_fills_in_the_form_and_neither_saves_nor_hides_anything(plain: Visitor, stage: Stage, agent_id: str) -> None:
    """Somebody else may have sent the address: a rule with an invisible character would deny nothing."""
    plain.open("/inbox/policies?effect=deny&match=bash(rm%E2%80%8B%20*)")
    expect(plain.page.get_by_label("Effect")).to_have_value("deny")
    plain.button("What if?").last.click()
    expect(plain.page.locator("#simulation")).to_contain_text("deny bash(rm<U+200B> *)")
    assert policy(stage) == OF_WORKSPACE
