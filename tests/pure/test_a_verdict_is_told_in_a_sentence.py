"""Cards, sessions, mail and the terminal say in a sentence why a call was asked, allowed or denied, whatever the rule."""

from typing import Any

import pytest

from models.briefing.because import because, sentence
from models.policy.alone import judge_alone
from models.policy.session_policies import SessionPolicies
from models.pure.policy import grant
from models.pure.policy.rules import Granted
from models.pure.text.words import unasked

ASKS = {"type": "always_ask"}
PUSHES = {"effect": "ask", "match": "bash(git push *)", "reason": "Releases are ours."}
NO_RM = {"effect": "deny", "match": "bash(rm *)"}


def agent(policy: dict[str, Any] | None, *rules: dict[str, Any], default: str = "ask") -> dict[str, Any]:
    """An agent with the tool bash, which may have a policy, and with a policy of its own if there are rules."""
    own = {"type": "rules", "rules": list(rules), "default": default}
    configs = [{"name": "bash", "enabled": True, **({"permission_policy": policy} if policy else {})}]
    entry = {"type": "agent_toolset_20260401", "default_config": {"enabled": False}, "configs": configs}
    return {"tools": [entry], **({"permission_policy": own} if rules else {})}


def why(policies: SessionPolicies, command: str = "git push origin", *, tool: str = "bash", granted: Granted | None = None) -> str:
    """The sentence about a call."""
    verdict = policies.judge(tool, {"command": command}, granted)
    return sentence(verdict.rule, verdict.effect)


def test_a_default_is_told() -> None:
    assert why(SessionPolicies(agent(ASKS), {}, "deny")) == "Asked because bash asks every time unless a rule says otherwise."
    words = "Denied because the installation denies every call unless a rule says otherwise."
    assert why(SessionPolicies(agent(None), {}, "deny")) == words
    of_workspace = {"policy": {"type": "always_allow"}}
    words = "Allowed because the workspace allows every call unless a rule says otherwise."
    assert why(SessionPolicies(agent(None), of_workspace, "ask")) == words
    custom = {"tools": [{"type": "custom", "name": "refund"}]}
    assert why(SessionPolicies(custom, {}, "ask"), tool="refund") == "Allowed because the client runs it."
    assert because("tool mcp__shop__refund: ask") == "because shop refund asks every time unless a rule says otherwise"


def test_a_rule_is_told_with_its_level_and_its_reason() -> None:
    policies = SessionPolicies(agent(ASKS, PUSHES, NO_RM), {}, "ask")
    assert why(policies) == "Asked because of the agent's rule to ask about bash(git push *) (Releases are ours.)."
    assert why(policies, "rm a") == "Denied because of the agent's rule to deny bash(rm *)."
    granted = Granted((grant("bash", "bash(ls *)", "", id="grnt_01"),), None)
    assert why(policies, "ls src", granted=granted) == "Allowed because of a grant to allow bash(ls *)."


def test_what_is_uncertain_is_told_with_the_rule_that_might_be_met() -> None:
    policies = SessionPolicies(agent(None, NO_RM, default="allow"), {}, "ask")
    words = why(policies, "$(cat x)")
    assert words.startswith("Asked because it is not sure which commands run: ")
    assert words.endswith(", and the agent's rule to deny bash(rm *) might be met.")
    assert why(policies, "make x").startswith("Asked because it is not sure what runs: ")
    free = judge_alone({"type": "always_allow"}, "write", {"file_path": ".git/config", "content": ""})
    assert sentence(free.rule, free.effect).startswith("Asked because .git/config is of a git directory")


def test_the_agent_above_is_named() -> None:
    above = SessionPolicies(agent(ASKS), {}, "ask")
    policies = SessionPolicies(agent({"type": "always_allow"}), {}, "ask", parent=above)
    assert why(policies) == "Asked because bash asks every time unless a rule says otherwise (as the agent above has it)."
    ruled = SessionPolicies(agent(ASKS, NO_RM), {}, "ask")
    below = SessionPolicies(agent({"type": "always_allow"}), {}, "ask", parent=ruled)
    assert why(below, "rm a").startswith("Denied because of the rule of the agent above to deny bash(rm *)")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("not a tool of this agent", "because it is no tool of this agent"),
        ("not asked: it cannot be run", "because it cannot be run"),
        ("the budget of $10 is reached", "because the budget of $10 is reached"),
        (unasked("agent rule: ask x"), "because of the agent's rule to ask about x, and nobody can be asked in this session"),
        ("agent rule: ask x (a\n\u202eb)", "because of the agent's rule to ask about x (a <U+202E>b)"),
    ],
)
def test_other_reasons_stay_in_one_visible_line(rule: str, words: str) -> None:
    assert because(rule) == words
