"""A policy is judged without a server by the rules of the server: `assent policy judge`, and `assent.testing.judge` of the SDK."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from api.cli.main import main
from assent.testing import ServerMissing, Verdict, judge
from assent.testing.server import VARIABLE
from models.policy.alone import judge_alone

REFUNDS = {
    "type": "rules",
    "default": "ask",
    "rules": [
        {"effect": "allow", "match": {"tool": "refund", "input": [{"path": "/cents", "lte": 1000}]}},
        {"effect": "deny", "match": {"tool": "refund", "input": [{"path": "/cents", "gt": 50_000}]}},
    ],
}
NO_PUSH = {"type": "rules", "default": "allow", "rules": [{"effect": "deny", "match": "bash(git push *)"}]}
CALLS: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    (REFUNDS, "refund", {"cents": 1000}, "allow"),
    (REFUNDS, "refund", {"cents": 1001}, "ask"),
    (REFUNDS, "refund", {"cents": 50_001}, "deny"),
    (REFUNDS, "mcp__shop__other", {}, "ask"),
    ({"type": "always_deny"}, "read", {"file_path": "a"}, "deny"),
    (NO_PUSH, "bash", {"command": "git push origin"}, "deny"),
    (NO_PUSH, "bash", {"command": "g=push; git $g"}, "ask"),
    ({"type": "always_allow"}, "write", {"file_path": ".git/config", "content": ""}, "ask"),
]


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the verdicts of `assent policy judge` on these lines."""
    result = CliRunner().invoke(main, ["policy", "judge"], input=text, catch_exceptions=False)
    return [json.loads(line) for line in result.output.splitlines()]


def test_each_line_gets_the_verdict_of_the_rules() -> None:
    text = "".join(json.dumps({"policy": policy, "tool": tool, "input": fields}) + "\n" for policy, tool, fields, _ in CALLS)
    verdicts = lines_of(text)
    assert [verdict["effect"] for verdict in verdicts] == [effect for *_, effect in CALLS]
    assert verdicts[0]["rule"] == "tool rule: allow every call of refund where cents is at most 1000"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[]", "a line must be an object"),
        ('{"policy": {"type": "always_ask"}, "tool": "bash"}', "a line must be an object"),
        ("{", "Expecting property name"),
        ('{"policy": "always_ask", "tool": "bash", "input": {}}', "must be an object such as"),
        ('{"policy": {"type": "maybe"}, "tool": "bash", "input": {}}', "type: unknown policy 'maybe'"),
        ('{"policy": {"type": "always_ask"}, "tool": "client_requestApproval", "input": {}}', "cannot be a tool's name"),
    ],
)
def test_a_line_that_cannot_be_judged_gets_its_fault_and_the_next_a_verdict(line: str, fault: str) -> None:
    refusal, verdict = lines_of(f'{line}\n{{"policy": {{"type": "always_ask"}}, "tool": "bash", "input": {{}}}}\n')
    assert fault in refusal["error"]
    assert verdict["effect"] == "ask"


def test_the_sdk_judges_as_the_server_does() -> None:
    for policy, tool, fields, effect in CALLS:
        verdict = judge_alone(policy, tool, fields)
        assert judge(policy, tool, fields) == Verdict(verdict.effect, verdict.rule)
        assert verdict.effect == effect
    assert judge("always_deny", "bash", {"command": "ls"}).effect == "deny"
    with pytest.raises(ValueError, match="type: unknown policy 'maybe'"):
        judge("maybe", "bash", {})


def test_the_sdk_names_the_server_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/python")
    judging = "from assent.testing import judge; judge('always_ask', 'bash', {})"
    process = subprocess.run([sys.executable, "-c", judging], capture_output=True, text=True, check=False, env=os.environ)
    name = f"{ServerMissing.__module__}.{ServerMissing.__name__}"
    assert process.stderr.splitlines()[-1] == (
        f"{name}: assent.testing needs the server, which /nowhere/python does not have: install 'assent-server[local]' there, or "
        f"into an environment of its own whose Python the environment variable {VARIABLE} names"
    )
