"""Calls are alike by their tool, a command by its programs and subcommands, a change of a file by its folder."""

import pytest

from models.pure.policy import CompiledRules, rule_of
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


CALLS: list[tuple[str, dict[str, object]]] = [
    *(("bash", {"command": command}) for command in ("git", "git push", "git push -f", "git status", "ls", "ls -l /etc")),
    *(("bash", {"command": command}) for command in ("npm --version", "npm publish", "./deploy now", "git add . && git push")),
    *(("edit", {"file_path": path}) for path in ("notes.txt", "src/a.py", "src/b.py", "src/billing/a.py", "src/billing/de/a.py")),
    *(("edit", {"file_path": path}) for path in ("/hosts", "/etc/hosts", "/etc/ssh/config", "src/a*/b.py", f"{'x' * 200}/a.py")),
    ("read", {"file_path": "src/a.py"}),
    ("mcp__shop__refund", {"amount": 5}),
    ("mcp__shop__list", {}),
]


def test_a_rule_about_such_calls_covers_them_and_no_others() -> None:
    texts = {"bash(git push *)", "bash(git status *)", "bash(ls *)", "bash(npm publish *)", "bash(./deploy *)"}
    texts |= {"edit(src/*)", "edit(src/billing/**)", "edit(/*)", "edit(/etc/*)", "edit(/etc/ssh/**)", "read(src/*)"}
    rules: dict[str, set[str]] = {}
    for tool, arguments in CALLS:
        alike = likeness(tool, arguments, SHA256)
        if text := pattern(alike, tool):
            rules.setdefault(text, set()).add(alike)
    assert rules.keys() == texts | {"mcp__shop__refund", "mcp__shop__list"}
    for text, alike in rules.items():
        compiled = CompiledRules([rule_of({"effect": "allow", "match": text})])
        covered = {likeness(*each, SHA256) for each in CALLS if compiled.judge(*each).effect == "allow"}
        assert covered == alike, text


@pytest.mark.parametrize("command", ["a; " * 200, "x" * 10_000, "; ".join(f"tool{n}" for n in range(100))])
def test_a_likeness_is_short(command: str) -> None:
    assert len(likeness("bash", {"command": command}, SHA256)) <= 130


def test_a_command_that_does_more_is_not_alike() -> None:
    """The precedent of a push says nothing of a line that also removes files."""
    one, more = (likeness("bash", {"command": text}, SHA256) for text in ("git push", "git push; rm -rf ."))
    assert one != more
