"""A call of bash that names its directory is allowed only where a line that begins with `cd` to that directory would be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.json.canonical import digest
from models.pure.policy import CompiledRules, Condition, Granted, Match, Rule, match_of, policy_of
from models.pure.policy.covering import covers
from models.pure.policy.git_writes import may_write_git
from models.pure.shell import in_directory, read

COMMANDS = ["git status", "ls; rm x", "cp a b", "make x", "echo $X", "ls 'x", "git push", "./ls"]
DIRECTORIES = ["src", ".", "a b", "-", "--", "~", "$HOME", "a'b", "*", "a\nrm x", ".git", "x.git/hooks", "..", "/etc", ""]
TEXTS = [
    "bash",
    "bash(*)",
    "bash(git status *)",
    "bash(git push *)",
    "bash(cd *)",
    "bash(cd -- src)",
    "bash(make *)",
    "bash(rm *)",
    "*",
]
_RULES = st.builds(Rule, st.sampled_from(["allow", "ask", "deny"]), st.sampled_from([match_of(text) for text in TEXTS]))


def judge(rules: list[Rule], default: str = "ask", **arguments: Any) -> str:
    """The effect of rules on a call of bash."""
    return CompiledRules(rules, default).judge("bash", arguments).effect


def allow(*matches: str) -> list[Rule]:
    return [Rule("allow", match_of(match)) for match in matches]


@given(
    st.lists(_RULES, max_size=6), st.sampled_from(["allow", "ask", "deny"]), st.sampled_from(COMMANDS), st.sampled_from(DIRECTORIES)
)
def test_a_rule_reads_the_directory_as_a_cd_before_the_command(
    rules: list[Rule], default: str, command: str, directory: str
) -> None:
    named = judge(rules, default, command=command, working_directory=directory)
    assert named == judge(rules, default, command=in_directory(command, directory))
    assert named != "allow" or judge(rules, default, command=command) == "allow"


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_a_directory_is_one_word_whatever_its_name(directory: str) -> None:
    line = read(in_directory("ls", directory))
    assert line.doubt or line.commands == (("cd", "--", directory), ("ls",))


def test_a_pattern_of_commands_covers_no_call_in_another_directory() -> None:
    assert judge(allow("bash(git status *)"), command="git status") == "allow"
    assert judge(allow("bash(git status *)"), command="git status", working_directory=None) == "allow"
    assert judge(allow("bash(git status *)"), command="git status", working_directory="src") == "ask"
    assert judge(allow("bash(git status *)", "bash(cd *)"), command="git status", working_directory="src") == "allow"


@pytest.mark.parametrize(
    "condition",
    [
        Condition("/command", "equals", "make test"),
        Condition("/command", "one_of", ["make test"]),
        Condition("/command", "glob", "make*"),
        Condition("/command", "regex", "make .*"),
    ],
)
def test_a_text_of_a_command_covers_no_call_in_another_directory(condition: Condition) -> None:
    rules = [Rule("allow", Match("bash", (condition,)))]
    assert judge(rules, command="make test") == "allow"
    assert judge(rules, command="make test", working_directory="src") == "ask"
    inside = [Rule("allow", Match("bash", (condition, Condition("/working_directory", "path_glob", "src/**"))))]
    assert judge(inside, command="make test", working_directory="src/a") == "allow"
    assert judge(inside, command="make test; rm x", working_directory="src/a") == "ask"
    assert judge(inside, command="make test", working_directory="lib") == "ask"


def test_a_rule_can_name_the_directories() -> None:
    rules = allow("bash:command=git status *:working_directory=src/**", "bash(make *)")
    assert judge(rules, command="git status", working_directory="src/a") == "allow"
    for directory in ("lib", "src/../lib", "srcs", None):
        assert judge(rules, command="git status", working_directory=directory) == "ask"
    assert judge(rules, command="make x") == "allow"
    assert judge(rules, command="make x", working_directory="src") == "ask", "the first rule is not about make"
    assert judge(rules, command="git status; make x", working_directory="src") == "ask"
    assert judge(rules, command="git status; cd ..", working_directory="src") == "ask"
    assert "working_directory is a path that fits" in covers(rules[0])


def test_a_grant_for_one_input_covers_it_in_its_directory_alone() -> None:
    here = {"command": "git status", "working_directory": "src"}
    rules = [Rule("allow", Match("bash", input_sha256=digest(here)), source="grant", id="grant_1")]
    assert judge(rules, **here) == "allow"
    assert judge(rules, command="git status") == "ask"
    assert judge(rules, command="git status", working_directory="lib") == "ask"


def test_a_secret_in_the_directory_is_opaque_to_a_grant() -> None:
    rule = Rule("allow", match_of("bash:command=ls *:working_directory=hunter22"), source="grant", id="grant_1")
    arguments, shown = {"command": "ls", "working_directory": "hunter22"}, {"command": "ls", "working_directory": "[masked]"}
    assert Granted((rule,), shown).masked_input == shown
    assert CompiledRules([rule]).judge("bash", arguments, masked_fields=shown).effect == "ask"


@pytest.mark.parametrize("match", ["bash:working_directory=prod/**", "*:working_directory=prod/**"])
def test_a_rule_that_denies_by_the_directory_is_refused(match: str) -> None:
    with pytest.raises(ValueError, match="a `cd` in the command would bypass the rule"):
        policy_of({"type": "rules", "default": "allow", "rules": [{"effect": "deny", "match": match}]})


def test_a_command_in_a_git_directory_may_write_there() -> None:
    assert may_write_git("bash", {"command": "cp a config", "working_directory": "src/.git"})
    assert not may_write_git("bash", {"command": "cp a config.json", "working_directory": "src"})
    assert judge(allow("bash(cp *)", "bash(cd *)"), command="cp a b", working_directory=".git/hooks") == "ask"
