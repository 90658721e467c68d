"""Grants for the commands of a line, given together, allow a line only if each of its commands would be allowed alone."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.policy import CompiledRules, Granted, Rule, covers, grant_of_part, match_of, rule_as_json, rule_of
from models.pure.policy.destroying import destroys
from models.pure.policy.patterns import parts
from models.pure.shell import read

COMMANDS = [
    *("git push origin v4.2.0", "git push", "git push --force", "git push -fu origin x", "git push origin :x", "git add ."),
    *("gh release create v4.2.0 --notes 'All of it'", "gh release delete v4.2.0", "gh pr list", "make test", "make clean", "ls -l"),
    *("cd src", "rm -rf build", "npm run build", "npm uninstall x", "git reset --hard", "git branch -D x", "git log --oneline"),
    *("kubectl get pods", "kubectl delete pod x", "terraform destroy", "find . -delete", "npx rimraf x", "git checkout -b x"),
]
RULES = ["bash(ls *)", "bash(make *)", "bash(rm *)", "bash(git *)", "bash", "bash(gh *)"]
LINES = st.builds(
    lambda commands, signs: "".join(itertools.chain(*zip(commands, signs, strict=False), commands[len(signs) :])),
    st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=4),
    st.lists(st.sampled_from([" && ", "; ", " || ", "\n"]), min_size=4, max_size=4),
).map(lambda line: line.rstrip("&|; \n"))
WRITTEN = st.lists(st.builds(Rule, st.sampled_from(["allow", "ask", "deny"]), st.sampled_from([*map(match_of, RULES)])), max_size=3)


def grants_for(line: str) -> list[Rule]:
    """A grant for each pattern of each command of the line."""
    texts = {text for part in parts("bash", {"command": line}) for text in part.patterns}
    return [grant_of_part("bash", text, id=f"grnt_{n}") for n, text in enumerate(sorted(texts))]


def judge(rules: list[Rule], grants: list[Rule], line: str) -> str:
    granted = Granted(tuple(grants), {"command": line})
    return CompiledRules(rules, "ask").with_grants(granted.rules).judge("bash", {"command": line}).effect


@given(WRITTEN, LINES, LINES, st.data())
def test_a_line_is_allowed_only_if_each_of_its_commands_is(rules: list[Rule], asked: str, later: str, data: st.DataObject) -> None:
    grants = grants_for(asked)
    some = [grant for grant in grants if data.draw(st.booleans())]
    if judge(rules, some, later) == "allow":
        for command in later.replace(" || ", "\n").replace(" && ", "\n").replace("; ", "\n").split("\n"):
            assert judge(rules, some, command) == "allow", command


@given(LINES, LINES)
def test_no_such_grant_allows_a_command_that_takes_something_away(asked: str, later: str) -> None:
    if any(map(destroys, read(later).commands)):
        assert judge([], grants_for(asked), later) == "ask"


@given(LINES)
def test_a_grant_for_each_command_covers_the_line(line: str) -> None:
    all_parts = parts("bash", {"command": line})
    if all_parts and not any(part.destroys for part in all_parts):
        for choice in (0, -1):
            grants = [grant_of_part("bash", part.patterns[choice], id=f"grnt_{n}") for n, part in enumerate(all_parts)]
            assert judge([], grants, line) == "allow"
            # Another command's wide pattern may cover the first one as well.
            assert len(grants) == 1 or judge([], grants[1:], line) == judge([], grants[1:], all_parts[0].command)


def test_parts_go_from_narrow_to_wide_and_never_to_a_whole_program_with_subcommands() -> None:
    line = "git push origin v4.2.0 && gh release create v4.2.0 --notes 'All of it' && ls"
    push, release, ls = parts("bash", {"command": line})
    assert push.patterns == ("bash(git push origin v4.2.0)", "bash(git push origin *)", "bash(git push *)")
    assert release.patterns[0] == "bash(gh release create v4.2.0 --notes 'All of it')"
    assert release.patterns[-1] == "bash(gh release *)"
    assert ls.patterns == ("bash(ls)", "bash(ls *)")
    assert (
        parts("bash", {"command": "git push"}) == parts("bash", {"command": "X=1 a; b"}) == parts("edit", {"command": "a; b"}) == []
    )
    inside = parts("bash", {"command": "git add . && make x", "working_directory": "src"})
    assert inside[0].patterns[-1] == "bash:command=git add *:working_directory=src"


def test_a_command_with_a_masked_secret_has_no_pattern_that_repeats_it() -> None:
    login, _ = parts("bash", {"command": "docker login -p «masked» && ls"})
    assert not any("masked" in text for text in login.patterns)


def test_a_grant_of_a_part_says_what_it_does_not_cover_and_is_stored_as_it_is() -> None:
    rule = grant_of_part("bash", "bash(git push *)", id="grnt_1")
    assert "starts with `git push`, but none that takes something away (`git push --force`)" in covers(rule)
    assert rule_of(rule_as_json(rule), source="grant", id="grnt_1") == rule
    assert "takes something away" not in covers(grant_of_part("bash", "bash(git push origin v4)", id=""))


@pytest.mark.parametrize("match", ["bash", "tool", "exact", "read(src/**)", "bash(", "*"])
def test_what_is_no_pattern_of_the_tool_is_no_grant_of_a_part(match: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each fault has its own words
        grant_of_part("bash", match, id="")


def test_a_written_rule_can_spare_what_takes_something_away() -> None:
    condition = [{"path": "/command", "command": "git *", "destroys": False}]
    rule = rule_of({"effect": "allow", "match": {"tool": "bash", "input": condition}})
    asks = rule_of({"effect": "ask", "match": {"tool": "bash", "input": [{"path": "/command", "destroys": True}]}})
    for command, spared, asked in (
        ("git add .", "allow", "allow"),
        ("git reset --hard", "ask", "ask"),
        ("git add . && git clean -fd", "ask", "ask"),
        ("git $X", "ask", "ask"),
    ):
        assert CompiledRules([rule]).judge("bash", {"command": command}).effect == spared
        assert CompiledRules([asks], "allow").judge("bash", {"command": command}).effect == asked
