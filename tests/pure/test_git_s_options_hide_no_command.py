"""An option before git's subcommand hides the command from no rule: with it and without it, the verdict is the same."""

import itertools

import pytest

from models.pure.policy import CompiledRules, Rule, covers, match_of
from models.pure.policy.texts import grant, text_of
from models.pure.shell import git_commands, known_programs, read, unknown
from models.pure.shell.git_commands import STAYS, WITHOUT_EFFECT

BEFORE = [
    *(f"git {' '.join(options)}" for count in (1, 2) for options in itertools.permutations(sorted(WITHOUT_EFFECT), count)),
    *(f"/usr/bin/git {option}" for option in sorted(WITHOUT_EFFECT)),
    *(f"git '{option}'" for option in sorted(WITHOUT_EFFECT)),
]
"""Every beginning of a command that is read as if it were only `git`."""
VALUES = [f"{option} x" for option in git_commands._WITH_VALUE] + [
    f"{option}=x" for option in git_commands._WITH_VALUE if "--" in option
]
OPTIONS = (
    *("-h", "--help", "-v", "--version", "-p", "--paginate", "--bare", "--exec-path", "--exec-path=x", "--html-path", "--man-path"),
    *("--info-path", "--no-replace-objects", "--no-lazy-fetch", "--no-optional-locks", "--no-advice", "--literal-pathspecs"),
    *("--no-literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs"),
    *("--an-option-of-a-later-git", "--an-option-of-a-later-git=x"),
)
UNCERTAIN = [f"git {option}" for option in (*OPTIONS, *sorted(VALUES))]
"""Every beginning of a command that is uncertain, though its subcommand is known."""


def verdict(command, *rules, default="allow"):
    written = [Rule(effect, match_of(match)) for effect, match in rules]
    return CompiledRules(written, default).judge("bash", {"command": command}).effect


@pytest.mark.parametrize("git", BEFORE)
def test_a_command_is_read_as_if_it_had_no_option_without_effect(git):
    plain, line = read("git push origin"), read(f"{git} push origin")
    assert [words[1:] for words in line.commands] == [words[1:] for words in plain.commands] == [("push", "origin")]
    assert line.doubt is plain.doubt is None
    assert set(plain.suspects) <= {(words[0].rpartition("/")[2], *words[1:]) for words in line.suspects}


@pytest.mark.parametrize("git", BEFORE)
def test_every_effect_holds_for_the_command_with_the_option(git):
    name = git.split()[0]
    for tail in ("", "; ls", " | cat"):
        assert verdict(f"{git} push origin{tail}", ("deny", "bash(git push *)")) == "deny"
        assert verdict(f"{git} push origin{tail}", ("ask", "bash(git push *)")) == "ask"
    assert verdict(f"{git} push origin", ("allow", f"bash({name} push *)"), default="ask") == "allow"
    assert verdict(f"{git} push origin", ("allow", f"bash({name} log *)"), default="ask") == "ask"
    rules = CompiledRules([Rule("deny", match_of("bash(git push *)"))], "ask")
    assert (
        rules.with_grants([grant("bash", f"bash({name} *)", "", id="g")]).judge("bash", {"command": f"{git} push x"}).effect
        == "deny"
    )
    assert (
        rules.with_grants([grant("bash", f"bash({name} log *)", "", id="g")]).judge("bash", {"command": f"{git} log"}).effect
        == "allow"
    )


def test_an_option_that_may_have_an_effect_hides_the_command_from_no_rule_that_denies():
    for git in UNCERTAIN:
        assert verdict(f"{git} push origin", ("deny", "bash(git push *)")) == "deny", git
        assert verdict(f"sudo {git} push origin", ("deny", "bash(git push *)")) == "deny", git
        assert verdict(f"{git} commit -m push", ("deny", "bash(git push *)"), default="ask") == "ask", git
        assert verdict(f"{git} log", ("allow", "bash(git *)"), default="ask") == "ask", git


@pytest.mark.parametrize("shell", ["sh -c", "X=1 sh -c", "X=$(date) bash -c", "ls > x; sh -c"])
@pytest.mark.parametrize("command", ["\"git -C '/a b' push origin\"", "'git -C \"/a b\" push origin'"])
def test_a_value_with_a_space_hides_no_command_of_a_shell_in_a_line_that_is_not_certain(shell, command):
    assert verdict(f"{shell} {command}", ("deny", "bash(git push *)")) == "deny"


@pytest.mark.parametrize("git", [git for git in BEFORE if "/" not in git])
def test_a_rule_that_is_written_with_the_option_is_the_rule_without_it(git):
    match = match_of(f"bash({git} log *)")
    assert match == match_of("bash(git log *)")
    assert text_of(match) == "bash(git log *)"
    assert "`git log`" in covers(Rule("allow", match))
    for spelling in ("git log -1", f"{git} log -1"):
        assert verdict(spelling, ("allow", f"bash({git} log *)"), default="ask") == "allow"


def test_only_subcommands_that_are_known_are_certain():
    names = {name.removeprefix("git ") for name in known_programs.KNOWN_PROGRAMS if name.startswith("git ")}
    assert names <= STAYS
    for name in (
        "merge-index sh -a",
        "for-each-repo --config=x push",
        "maintenance start",
        "credential fill",
        "own",
        "upload-pack .",
    ):
        assert verdict(f"git {name}", ("allow", "bash(git *)"), default="ask") == "ask", name
        assert verdict(f"git --no-pager {name}", ("allow", "bash(git *)"), default="ask") == "ask", name


def test_an_option_alone_is_no_subcommand():
    for git in BEFORE:
        assert unknown(read(git).commands[0]) is not None
        assert verdict(git, ("deny", "bash(git push *)"), default="ask") == "ask"
