"""R9, R10: rules of workspace, agent and tool are weighed together; the nearest default holds where none matches."""

from collections.abc import Callable
from typing import Any

import pytest
from rows.stage import Stage, call, rules

from models.database.transactions import transaction
from models.workspace.workspace import Workspace


def of_workspace(stage: Stage, policy: dict[str, Any]) -> None:
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).policy = policy


def born(stage: Stage, session: str, *calls: dict[str, Any]) -> list[str]:
    """The statuses that calls are born with."""
    stage.message(session)
    return [found.status for found in stage.reply(session, *calls)]


def bash(*commands: str) -> list[dict[str, Any]]:
    return [call(command=one) for one in commands]


def test_a_rule_allows_and_says_so(stage: Stage) -> None:
    session = stage.session(bash=rules(("allow", "bash(ls *)")))
    stage.message(session)
    [found] = stage.reply(session, call(command="ls -l"))
    assert (found.status, found.rule) == ("queued", "tool rule: allow bash(ls *)")


def test_deny_then_ask_then_allow_whoever_wrote_the_rule(stage: Stage) -> None:
    of_workspace(stage, rules(("deny", "bash(rm *)")))
    session = stage.session(agent_policy=rules(("ask", "bash(git push *)")), bash=rules(("allow", "bash")))
    assert born(stage, session, *bash("ls", "git push", "rm x")) == ["queued", "asked", "denied"]


def test_a_workspace_s_rule_holds_for_sessions_that_are_there_already(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    of_workspace(stage, rules(("deny", "bash(rm *)")))
    assert born(stage, session, *bash("rm x")) == ["denied"]


def test_a_rule_of_the_agent_holds_for_the_client_s_tools_too(stage: Stage) -> None:
    policy = rules(("deny", {"tool": "refund", "input": [{"path": "/n", "gt": 100}]}))
    session = stage.session(custom=("refund",), agent_policy=policy)
    assert born(stage, session, call("refund", n=100), call("refund", n=101)) == ["with_client", "denied"]


@pytest.mark.parametrize("permission", ["ask", "deny", "allow"])
def test_one_setting_is_the_default_where_no_policy_says_anything(
    stage: Stage, setting: Callable[[str, str], None], permission: str
) -> None:
    setting("default_permission", permission)
    session = stage.session(bash={"type": "always_ask"}, policy_from="default")
    assert born(stage, session, *bash("ls")) == [{"ask": "asked", "deny": "denied", "allow": "queued"}[permission]]


def test_a_policy_that_is_not_understood_denies(stage: Stage) -> None:
    session = stage.session(bash={"type": "rules", "rules": [{"effect": "allow", "match": "bash("}], "default": "allow"})
    assert born(stage, session, *bash("ls")) == ["denied"]


def test_the_model_is_told_why_it_is_denied_and_not_to_repeat_it(stage: Stage) -> None:
    policy = {"type": "rules", "rules": [{"effect": "deny", "match": "bash(rm *)", "reason": "use trash"}], "default": "ask"}
    session = stage.session(bash=policy)
    stage.message(session)
    [found] = stage.reply(session, call(command="rm x"))
    assert "use trash" in stage.result(found)
    assert "Do not repeat" in stage.result(found)


def test_a_shell_line_is_allowed_only_if_every_command_in_it_is(stage: Stage) -> None:
    session = stage.session(bash=rules(("allow", "bash(ls *)"), ("allow", "bash(grep *)")))
    lines = ("ls | grep x", "ls; rm x", "ls $(rm x)", "FOO=1 ls", "ls > /etc/passwd")
    assert born(stage, session, *bash(*lines)) == ["queued", "asked", "asked", "asked", "asked"]


def test_beside_a_rule_of_any_level_an_allow_for_everything_covers_only_known_programs(stage: Stage) -> None:
    of_workspace(stage, rules(("deny", "bash(rm *)")))
    session = stage.session(agent_policy=rules(("allow", "bash(make *)")), bash="always_allow")
    lines = ("ls | wc -l", "linux64 rm x", "gcc -wrapper rm,x", "make x", "rm x")
    assert born(stage, session, *bash(*lines)) == ["queued", "asked", "asked", "queued", "denied"]


@pytest.mark.parametrize(("workspace", "agent"), [("allow", "allow"), ("ask", "allow"), ("allow", "ask")])
def test_unknown_programs_are_allowed_only_if_each_level_with_rules_about_commands_says_so(
    stage: Stage, workspace: str, agent: str
) -> None:
    of_workspace(stage, rules(("deny", "bash(rm *)")) | {"unknown_programs": workspace})
    session = stage.session(agent_policy=rules(("ask", "bash(git push *)")) | {"unknown_programs": agent}, bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call(command="make x"))
    assert found.status == ("queued" if workspace == agent == "allow" else "asked")
    assert ("unknown_programs" in str(found.rule)) == (found.status == "queued")
