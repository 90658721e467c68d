"""A tool that leaves answers out, such as "never always for refunds", does so in the API, on pages and at links."""

import html
import re
from typing import Any

import httpx2
import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import agent_with, approval_of, asked, decide
from inbox.linked import new_message, send
from people import Visitor, member
from rows.stage import Stage, call

from models.session.tool_call.row import ToolCall

NEVER_ALWAYS = {"options": ["once", "session", "edit", "answer"]}
TOOLSET = {"type": "agent_toolset_20260401"}
WHY = "bash does not offer to allow always: the approval settings of the tool leave it out."


def waiting(caller: Caller, stage: Stage, **approval: Any) -> ToolCall:
    """A waiting call of an agent whose tool bash has these settings."""
    return asked(caller, stage, agent=agent_with(caller, **(approval or NEVER_ALWAYS)))[0]


def path_of(caller: Caller, tool_call: ToolCall) -> str:
    return f"/v1/approvals/{approval_of(caller, tool_call)['id']}"


def words(response: httpx2.Response) -> str:
    """The texts of a page."""
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", response.text)))


def test_an_approval_says_what_is_offered_and_what_leaves_out_the_rest(caller: Caller, stage: Stage) -> None:
    approval = approval_of(caller, waiting(caller, stage))
    assert approval["options"] == ["once", "session", "edit", "answer", "deny"]
    assert approval["not_offered"] == {"always": "the approval settings of the tool"}
    assert (approval["default_scope"], approval["widest_match"]) == ("session", "tool")
    exact = approval_of(caller, waiting(caller, stage, widest_match="exact", default_scope="always"))
    assert (exact["default_scope"], exact["widest_match"], exact["covers"]["tool"]) == ("always", "exact", None)
    once = approval_of(caller, waiting(caller, stage, options=["once"]))
    assert (once["default_scope"], once["widest_match"], once["covers"]) == (None, None, None)


def test_another_answer_is_a_403_that_says_why_in_each_way(caller: Caller, stage: Stage) -> None:
    tool_call = waiting(caller, stage)
    path = path_of(caller, tool_call)
    always = {"result": "allow", "scope": "always"}
    bad(caller.post(f"{path}/decision", json=always), 403, WHY)
    bad(caller.post(f"{path}/preview", json={"scope": "always"}), 403, WHY)
    bad(caller.tell(tool_call.session_id, {"type": "user.tool_confirmation", "tool_use_id": tool_call.id} | always), 403, WHY)
    other = waiting(caller, stage, timeout_seconds=900)
    items = [{"approval_id": approval_of(caller, each)["id"]} | always for each in (other, tool_call)]
    bad(caller.post("/v1/approvals/decisions", json={"decisions": items}), 403, WHY)
    assert {approval_of(caller, each)["status"] for each in (other, tool_call)} == {"pending"}, "nothing was decided"
    decide(caller, tool_call, result="allow", scope="session")


@pytest.mark.parametrize(
    ("approval", "field"),
    [
        ({"options": []}, "approval.options: "),
        ({"options": ["deny", "once"]}, "people may always deny: leave deny out"),
        ({"options": ["once", "once"]}, "'once' appears twice"),
        ({"options": ["twice"]}, "options"),
        ({"options": ["once"], "default_scope": "always"}, "'always' is none of the options, once"),
        ({"widest_match": "bash(ls *)"}, "widest_match"),
        ({"options": ["answer"], "on_timeout": "allow"}, "add once"),
    ],
)
def test_settings_that_cannot_be_are_refused(caller: Caller, approval: dict[str, Any], field: str) -> None:
    tools = [TOOLSET | {"configs": [{"name": "bash", "approval": approval}]}]
    bad(caller.post("/v1/agents", json={"name": "A", "model": "claude-opus-5-5", "tools": tools}), 400, field)


def test_levels_that_leave_nothing_but_deny_are_refused(caller: Caller) -> None:
    tools = [TOOLSET | {"configs": [{"name": "bash", "approval": {"options": ["session"]}}]}]
    body = {"name": "A", "model": "claude-opus-5-5", "approval": {"options": ["once"]}, "tools": tools}
    bad(caller.post("/v1/agents", json=body), 400, "configs.bash.approval.options: all levels together leave nothing but deny")


def test_settings_come_back_as_they_were_sent_and_need_the_scopes_of_policies(api: str, caller: Caller, stage: Stage) -> None:
    own = {"options": ["once", "edit"], "widest_match": "exact"}
    agent = agent_with(caller, **own)
    [config] = [one for one in agent["tools"][0]["configs"] if one["name"] == "bash"]
    assert own.items() <= config["approval"].items()
    good(caller.post("/v1/policy", json={"approval": {"options": ["session", "once"], "default_scope": "session"}}))
    assert good(caller.get("/v1/policy"))["approval"]["options"] == ["once", "session"]
    with Caller(api, key(stage, "sessions", "read", "approvals")) as other:
        changed = {"id": agent["id"], "type": "agent_with_overrides", "approval": {"options": ["once"]}}
        bad(other.post("/v1/sessions", json={"agent": changed, "environment_id": "env_x"}), 403, "scope 'agents'")
        bad(other.post("/v1/policy", json={"approval": None}), 403, "admin")


def test_a_grant_that_is_no_longer_offered_says_so_and_no_simulation_counts_it(caller: Caller, stage: Stage, api: str) -> None:
    agent = agent_with(caller)
    first = asked(caller, stage, agent=agent)[0]
    grant = decide(caller, first, result="allow", scope="always")["grant"]
    assert (grant["live"], grant["not_offered"]) == (True, None)
    stage.run_call(first)
    [second] = stage.reply(first.session_id, call(command="ls -a"))
    assert second.grants == [grant["id"]]
    trial = {"rule": {"effect": "deny", "match": "read"}}
    assert good(caller.post("/v1/policy/simulate", json=trial))["allow"]["then"] == {"allowed_by_grant": 1}
    good(caller.post("/v1/policy", json={"approval": {"options": ["once", "session"]}}))
    why = "bash does not offer to allow always: the approval settings of the workspace leave it out"
    for shown in (good(caller.get(f"/v1/grants/{grant['id']}")), good(caller.get("/v1/grants", params={"live": True}))["data"][0]):
        assert (shown["live"], shown["not_offered"][: len(why)]) == (True, why)
    assert "allowed_by_grant" not in good(caller.post("/v1/policy/simulate", json=trial))["allow"]["then"]
    ask = {"session_id": first.session_id, "tool": "bash", "input": {"command": "ls"}}
    explained = good(caller.post("/v1/policy/explain", json=ask))
    assert (explained["effect"], explained["grants"][0]["decides"]) == ("ask", False)
    assert explained["grants"][0]["not_offered"].startswith(why)
    with member(stage, "admin").client(api) as anna:
        assert f"Allows nothing now. {why}" in words(anna.get("/inbox/grants"))


def test_a_card_has_no_button_for_what_is_left_out_and_says_why(caller: Caller, stage: Stage, api: str) -> None:
    path = path_of(caller, waiting(caller, stage)).replace("/v1/", "/inbox/")
    with member(stage).client(api) as anna:
        card = anna.get(path)
        assert "Not offered by the approval settings of the tool: allow always." in words(card)
        assert all(f'value="{verb}"' in card.text for verb in ("allow", "deny", "session", "respond"))
        form = anna.get(f"{path}/always")
        assert 'value="session"' in form.text
        assert 'name="scope" value="always"' not in form.text
        sha256 = fields_of(card)["sha256"]
        refused = anna.post(f"{path}/always", data={"sha256": sha256, "scope": "always", "match": "exact"})
        assert refused.status_code == 403
        assert WHY.removeprefix("b") in words(refused), "it begins with a capital"


def test_a_card_of_a_tool_that_people_answer_has_no_other_allow(caller: Caller, stage: Stage, api: str) -> None:
    path = path_of(caller, waiting(caller, stage, options=["answer"])).replace("/v1/", "/inbox/")
    with member(stage).client(api) as anna:
        card = anna.get(path).text
        assert [verb for verb in ("allow", "session", "respond", "deny") if f'value="{verb}"' in card] == ["respond", "deny"]
        assert anna.get(f"{path}/always").status_code == anna.get(f"{path}/edit").status_code == 403
        row = anna.get("/inbox").text
        assert "Review" in row
        assert 'name="do" value="allow" data-undo' not in row


def test_a_link_has_no_allow_that_a_tool_leaves_out(caller: Caller, stage: Stage, api: str) -> None:
    tool_call, anna = waiting(caller, stage, options=["session"]), member(stage)
    [approval] = stage.approvals(tool_call.session_id)
    message = new_message(stage, approval, anna)
    with Visitor(api) as browser:
        shown = browser.get(message.path)
    assert "Not offered by the approval settings of the tool: allow once, allow always" in words(shown)
    assert "After signing in, you can also: allow for the session." in words(shown)
    assert 'value="allow"' not in shown.text
    refused = send(api, message, do="allow")
    assert refused.status_code == 403
    assert "Bash does not offer to allow once" in words(refused)
    assert send(api, message, do="deny").status_code == 200
    assert approval_of(caller, tool_call)["status"] == "denied"


def fields_of(page: httpx2.Response) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))
