"""Beside a rule about commands that denies or asks, an allow for everything covers only programs known to run no others."""

import os
from pathlib import Path
from typing import Any

import pytest

from models.pure.json.canonical import digest
from models.pure.policy import CompiledRules, Effect, Match, Rule, grant, match_of, policy_as_json, policy_of, rule_of
from models.pure.shell import read, unknown
from workers.tools.sandbox.bubblewrap import PATH

RUNNING_OTHERS = [
    "linux64 rm x", "ssh-agent rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "gcc -wrapper rm,x", "cmake -E rm x",
    "systemd-cat rm x", "sshpass -p x rm y", "capsh -- -c 'rm x'", "ls; linux64 rm x", "ls | setlocal rm x", "make x", "git status",
    "npm test", "./ls x", "/bin/ls x", "src/ls x", "/tmp/cat x", "never-heard-of rm x", "awk '{print}' x", "curl https://a.b",
    "cp --context=x a b", "ip netns exec x rm y", "tar tf x", "zcat x", "pytest", "cargo test", "ldd ./x", "apt-get update",
]  # fmt: skip
RUNNING_NONE = [
    "ls -la", "cat x | sort -u | uniq -c", "cd src && grep -rn x . | head -5", "mkdir -p a/b && cp -r c a/b; rm -f d", "echo make",
    "find . -name '*.py' -type f | wc -l", "sed -n 1,5p x", "test -f x && cat x", "printf '%s\\n' a", "sleep 1; date +%F", "true",
]  # fmt: skip
WIDE = [
    [Rule("allow", match_of("bash"))],
    [Rule("allow", match_of("bash(*)"))],
    [Rule("allow", match_of("*"))],
    [Rule("allow", match_of("ba*"))],
    [Rule("allow", match_of("bash(* *)")), Rule("allow", match_of("bash(* rm *)")), Rule("allow", match_of("bash"))],
    [Rule("allow", Match("bash"), source="grant", id="grnt_1")],
    [rule_of({"effect": "allow", "match": {"tool": "bash", "input": [{"path": "/command", "max_length": 1000}]}})],
]
PUSH = Rule("deny", match_of("bash(git push *)"))


def answer(rules: list[Rule], command: str, default: Effect = "ask") -> str:
    """The rules' effect for a command."""
    return CompiledRules(rules, default).judge("bash", {"command": command}).effect


def test_a_program_that_may_run_others_is_asked() -> None:
    """With any allow for everything, beside any rule about commands."""
    for strict in (PUSH, Rule("ask", match_of("bash(dd *)")), rule_of({"effect": "deny", "match": "bash:command=dd *"})):
        for command in RUNNING_OTHERS:
            for wide in WIDE:
                assert answer([*wide, strict], command) == "ask", command
            assert answer([strict], command, "allow") == "ask", command


def test_a_known_program_is_allowed() -> None:
    for command in RUNNING_NONE:
        for wide in WIDE:
            assert answer([*wide, PUSH], command) == "allow", command
        assert answer([PUSH], command, "allow") == "allow", command


def test_without_rules_about_commands_every_program_is_allowed() -> None:
    for other in ([], [Rule("deny", match_of("read(secrets/**)"))], [Rule("deny", match_of("shell:cmd=rm *"))]):
        for command in RUNNING_OTHERS:
            assert answer([*WIDE[0], *other], command) == "allow", command
            assert answer(other, command, "allow") == "allow", command


@pytest.mark.parametrize("operator", [{"equals": "rm x"}, {"one_of": ["rm x"]}, {"glob": "rm *"}, {"regex": "rm"}])
def test_a_rule_about_the_text_of_a_command_is_a_rule_about_commands(operator: dict[str, Any]) -> None:
    strict = rule_of({"effect": "deny", "match": {"tool": "bash", "input": [{"path": "/command", **operator}]}})
    assert answer([*WIDE[0], strict], "linux64 dd") == "ask"
    assert answer([*WIDE[0], strict], "ls") == "allow"


def test_of_this_machine_s_programs_only_those_in_the_table_are_known() -> None:
    names = {
        path.name for folder in PATH.split(":") if Path(folder).is_dir() for path in Path(folder).iterdir() if os.access(path, 1)
    }
    assert len(names) > 100
    book = CompiledRules([*WIDE[0], PUSH])
    allowed = {name for name in names if book.judge("bash", {"command": f"{name} rm x"}).effect == "allow"}
    assert allowed == {name for name in names if not read(f"{name} rm x").doubt and not unknown((name, "rm", "x"))}
    assert not allowed & {"setarch", "linux64", "ssh-agent", "gcc", "git", "perl", "tar", "make", "ldd", "find.sh", "awk", "env"}
    assert {"ls", "cat", "rm"} <= allowed


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("bash(make *)", "make x"),
        ("bash(make *)", "ls && make x | tail -5"),
        ("bash(git status *)", "git status -s"),
        ("bash('/usr/bin/make' *)", "/usr/bin/make x"),
        ("bash(./run.sh)", "./run.sh"),
    ],
)
def test_a_rule_that_names_the_program_covers_it(pattern: str, command: str) -> None:
    """Beside an allow for everything else, or a default that allows."""
    named = Rule("allow", match_of(pattern))
    assert answer([*WIDE[0], PUSH, named], command) == "allow"
    assert answer([PUSH, named], command, "allow") == "allow"
    assert answer([*WIDE[0], PUSH, named], f"{command}; cargo test") == "ask"


@pytest.mark.parametrize("pattern", ["bash(* x)", "bash(ma* x)", "bash(make y *)", "bash(m?ke *)", "bash(ls *)"])
def test_a_rule_that_does_not_name_the_program_does_not_cover_it(pattern: str) -> None:
    """A name that is a pattern names nothing."""
    assert answer([*WIDE[0], PUSH, Rule("allow", match_of(pattern))], "make x") == "ask"


def test_an_exact_rule_covers_its_line() -> None:
    arguments = {"command": "make x"}
    exact = Rule("allow", Match("bash", input_sha256=digest(arguments)))
    assert CompiledRules([*WIDE[0], PUSH, exact]).judge("bash", arguments).effect == "allow"
    assert CompiledRules([*WIDE[0], PUSH, exact]).judge("bash", arguments | {"timeout_ms": 5}).effect == "ask"


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_a_grant_that_names_the_program_allows_it(default: Effect) -> None:
    """And is used. A grant for the whole tool names no program."""
    named = grant("bash", "bash(make *)", "", id="grnt_1")
    verdict = CompiledRules([*WIDE[0], PUSH, named], default).judge("bash", {"command": "ls; make x"})
    assert (verdict.effect, [rule.id for rule in verdict.rules]) == ("allow", ["", "grnt_1"])
    assert CompiledRules([*WIDE[0], PUSH], default).with_grants([named]).judge("bash", {"command": "ls; make x"}) == verdict
    assert CompiledRules([*WIDE[0], PUSH, named], default).judge("bash", {"command": "ls"}).rules == (WIDE[0][0],)
    assert answer([*WIDE[0], PUSH, grant("bash", "tool", "", id="grnt_1")], "make x", default) == "ask"


def test_a_grant_does_not_override_a_default_that_denies() -> None:
    """Without an allow for everything there is no question for the grant to answer."""
    assert answer([PUSH, grant("bash", "bash(make *)", "", id="grnt_1")], "make x", "deny") == "deny"


def test_the_verdict_names_the_program_and_the_rule_that_might_apply() -> None:
    verdict = CompiledRules([*WIDE[0], PUSH]).judge("bash", {"command": "ls; linux64 rm x; make"})
    assert verdict.rule == ("not sure what runs: `linux64` may run other programs; agent rule: deny bash(git push *) might be met")
    assert verdict.doubt == "`linux64` may run other programs"
    assert (verdict.rules, verdict.unknown) == ((PUSH,), ("linux64", "make"))


def policy(*pairs: tuple[str, str], **more: Any) -> list[Rule]:
    """The rules of one level's policy."""
    rules = [{"effect": effect, "match": match} for effect, match in pairs]
    return list(policy_of({"type": "rules", "rules": rules, "default": "ask"} | more).rules)


def test_a_policy_may_allow_unknown_programs() -> None:
    """The verdict says so. A denied command is still denied, and an unsure line still asks."""
    rules = policy(("allow", "bash"), ("deny", "bash(rm *)"), unknown_programs="allow")
    verdict = CompiledRules(rules).judge("bash", {"command": "linux64 rm x"})
    assert (verdict.effect, verdict.unknown) == ("allow", ("linux64",))
    assert verdict.rule == (
        "tool rule: allow bash; `linux64` may run other programs, "
        'and "unknown_programs" is "allow" beside tool rule: deny bash(rm *)'
    )
    assert answer(rules, "rm x") == "deny"
    assert answer(rules, "$X x") == "ask"
    assert CompiledRules(rules).judge("bash", {"command": "ls"}).unknown == ()


@pytest.mark.parametrize("strict", [("deny", "bash(rm *)"), ("ask", "bash(git push *)")])
def test_no_level_loosens_the_rules_of_another(strict: tuple[str, str]) -> None:
    """Every policy with rules about commands must allow unknown programs."""
    loose = policy(("allow", "bash"), ("deny", "bash(dd *)"), unknown_programs="allow")
    assert answer([*loose, *policy(strict)], "make x") == "ask"
    assert answer([*loose, *policy(strict, unknown_programs="ask")], "make x") == "ask"
    assert answer([*loose, *policy(strict, unknown_programs="allow")], "make x") == "allow"
    assert answer([*policy(("allow", "bash"), unknown_programs="allow"), *policy(strict)], "make x") == "ask"
    assert answer([*loose, *policy(("deny", "read(secrets/**)"))], "make x") == "allow"


@pytest.mark.parametrize("rules", [[], [{"effect": "deny", "match": "bash(rm *)"}]])
@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_unknown_programs_of_a_policy_are_written_and_read_back(rules: list[Any], default: str) -> None:
    body = {"type": "auto", "rules": rules, "default": default, "unknown_programs": "allow"}
    assert policy_as_json(policy_of(body)) == body
    assert policy_of(policy_as_json(policy_of(body))) == policy_of(body)
    assert "unknown_programs" not in policy_as_json(policy_of(body | {"unknown_programs": "ask"}))


@pytest.mark.parametrize("value", ["deny", None, True, "", []])
def test_another_value_of_unknown_programs_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^unknown_programs: .* use ask or allow"):
        policy_of({"type": "rules", "rules": [], "default": "ask", "unknown_programs": value})
    with pytest.raises(ValueError, match=r"^unknown_programs: is not a field"):
        policy_of({"type": "always_allow", "unknown_programs": "allow"})
