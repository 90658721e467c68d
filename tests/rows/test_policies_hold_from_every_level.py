"""The rules of workspace, agent and tool are judged together. If none matches, the nearest default applies."""

from collections.abc import Callable
from typing import Any

import pytest
from rows.stage import Stage, call, rules


def statuses(stage: Stage, session: str, *calls: dict[str, Any]) -> list[str]:
    """The statuses of new calls."""
    stage.message(session)
    return [tool_call.status for tool_call in stage.reply(session, *calls)]


def bash(*commands: str) -> list[dict[str, Any]]:
    return [call(command=one) for one in commands]


def test_an_allowed_call_names_its_rule(stage: Stage) -> None:
    session = stage.session(bash=rules(("allow", "bash(ls *)")))
    tool_call = stage.propose(session, call(command="ls -l"))
    assert (tool_call.status, tool_call.rule) == ("queued", "tool rule: allow bash(ls *)")


def test_deny_wins_over_ask_and_ask_over_allow_from_any_level(stage: Stage) -> None:
    stage.change_policies(policy=rules(("deny", "bash(rm *)")))
    session = stage.session(agent_policy=rules(("ask", "bash(git push *)")), bash=rules(("allow", "bash")))
    assert statuses(stage, session, *bash("ls", "git push", "rm x")) == ["queued", "asked", "denied"]


def test_a_workspace_s_new_rule_holds_for_existing_sessions(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    stage.change_policies(policy=rules(("deny", "bash(rm *)")))
    assert statuses(stage, session, *bash("rm x")) == ["denied"]


def test_a_rule_of_the_agent_holds_for_client_tools(stage: Stage) -> None:
    policy = rules(("deny", {"tool": "refund", "input": [{"path": "/n", "gt": 100}]}))
    session = stage.session(custom=("refund",), agent_policy=policy)
    assert statuses(stage, session, call("refund", n=100), call("refund", n=101)) == ["with_client", "denied"]


@pytest.mark.parametrize("permission", ["ask", "deny", "allow"])
def test_the_setting_default_permission_applies_without_any_policy(
    stage: Stage, setting: Callable[[str, str], None], permission: str
) -> None:
    setting("default_permission", permission)
    session = stage.session(bash={"type": "always_ask"}, policy_from="default")
    assert statuses(stage, session, *bash("ls")) == [{"ask": "asked", "deny": "denied", "allow": "queued"}[permission]]


def test_a_malformed_policy_denies(stage: Stage) -> None:
    session = stage.session(bash={"type": "rules", "rules": [{"effect": "allow", "match": "bash("}], "default": "allow"})
    assert statuses(stage, session, *bash("ls")) == ["denied"]


def test_the_model_is_told_the_reason_of_a_denial_and_not_to_repeat_the_call(stage: Stage) -> None:
    policy = {"type": "rules", "rules": [{"effect": "deny", "match": "bash(rm *)", "reason": "use trash"}], "default": "ask"}
    session = stage.session(bash=policy)
    tool_call = stage.propose(session, call(command="rm x"))
    assert "use trash" in stage.result(tool_call)
    assert "Do not repeat" in stage.result(tool_call)


def test_a_shell_line_is_allowed_only_if_each_of_its_commands_is(stage: Stage) -> None:
    session = stage.session(bash=rules(("allow", "bash(ls *)"), ("allow", "bash(grep *)")))
    lines = ("ls | grep x", "ls; rm x", "ls $(rm x)", "FOO=1 ls", "ls > /etc/passwd")
    assert statuses(stage, session, *bash(*lines)) == ["queued", "asked", "asked", "asked", "asked"]


def test_beside_a_rule_of_any_level_an_allow_for_everything_covers_only_known_programs(stage: Stage) -> None:
    stage.change_policies(policy=rules(("deny", "bash(rm *)")))
    session = stage.session(agent_policy=rules(("allow", "bash(make *)")), bash="always_allow")
    lines = ("ls | wc -l", "linux64 rm x", "gcc -wrapper rm,x", "make x", "rm x")
    assert statuses(stage, session, *bash(*lines)) == ["queued", "asked", "asked", "queued", "denied"]


@pytest.mark.parametrize(("workspace", "agent"), [("allow", "allow"), ("ask", "allow"), ("allow", "ask")])
def test_unknown_programs_are_allowed_only_if_each_level_with_rules_about_commands_says_so(
    stage: Stage, workspace: str, agent: str
) -> None:
    stage.change_policies(policy=rules(("deny", "bash(rm *)")) | {"unknown_programs": workspace})
    session = stage.session(agent_policy=rules(("ask", "bash(git push *)")) | {"unknown_programs": agent}, bash="always_allow")
    tool_call = stage.propose(session, call(command="make x"))
    assert tool_call.status == ("queued" if workspace == agent == "allow" else "asked")
    assert ("unknown_programs" in str(tool_call.rule)) == (tool_call.status == "queued")
