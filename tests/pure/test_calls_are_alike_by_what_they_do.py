"""Calls are alike by their tool, a command by its programs and subcommands, a change of a file by its folder."""

import pytest

from models.pure.policy.likeness import in_words, likeness, pattern

SHA256 = "3f9a0c1b2d4e" + "0" * 52


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "words"),
    [
        ("bash", {"command": "git push origin main"}, "bash: git push", "git push"),
        ("bash", {"command": "git --no-pager add . && git push"}, "bash: git add, git push", "git add, git push"),
        ("bash", {"command": "/usr/bin/ls -l secret.txt"}, "bash: ls", "ls"),
        ("bash", {"command": "/tmp/mine/ls"}, "bash: /tmp/mine/ls", "/tmp/mine/ls"),
        ("bash", {"command": "cat notes/a.txt | wc -l"}, "bash: cat, wc", "cat, wc"),
        ("bash", {"command": "git push && git push --tags"}, "bash: git push", "git push"),
        ("bash", {"command": "$RUN it"}, "bash #3f9a0c1b2d4e", "exactly this command"),
        ("bash", {"command": "deploy hunter2hunter2"}, "bash: deploy", "deploy"),
        ("bash", {"restart": True}, "bash #3f9a0c1b2d4e", "exactly this command"),
        ("edit", {"file_path": "src/billing/rates/de.py"}, "edit: src/billing", "edit in src/billing"),
        ("write", {"file_path": "./notes.txt"}, "write: the session's folder", "write in the session's folder"),
        ("read", {"file_path": "/etc/hosts"}, "read: /etc", "read in /etc"),
        ("mcp__shop__refund", {"amount": 5}, "mcp__shop__refund", "mcp__shop__refund"),
    ],
)
def test_a_likeness_names_what_calls_have_in_common(tool: str, arguments: dict[str, object], text: str, words: str) -> None:
    assert likeness(tool, arguments, SHA256) == text
    assert in_words(text, tool) == words


@pytest.mark.parametrize(
    ("text", "tool", "rule"),
    [
        ("bash: git push", "bash", "bash(git push *)"),
        ("bash: git add, git push", "bash", ""),
        ("bash #3f9a0c1b2d4e", "bash", ""),
        ("edit: src/billing", "edit", "edit(src/billing/**)"),
        ("edit: src/a*", "edit", ""),
        ("write: the session's folder", "write", ""),
        ("mcp__shop__refund", "mcp__shop__refund", "mcp__shop__refund"),
    ],
)
def test_a_rule_about_such_calls_covers_them_and_no_others(text: str, tool: str, rule: str) -> None:
    assert pattern(text, tool) == rule


@pytest.mark.parametrize("command", ["a; " * 200, "x" * 10_000, "; ".join(f"tool{n}" for n in range(100))])
def test_a_likeness_is_short(command: str) -> None:
    assert len(likeness("bash", {"command": command}, SHA256)) <= 130


def test_a_command_that_does_more_is_not_alike() -> None:
    """The precedent of a push says nothing of a line that also removes files."""
    one, more = (likeness("bash", {"command": text}, SHA256) for text in ("git push", "git push; rm -rf ."))
    assert one != more
