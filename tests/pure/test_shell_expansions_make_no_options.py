"""A line is unsure if bash may expand a word into an option or into the words of a rule."""

import pytest

from models.pure.policy import CompiledRules, Rule, match_of
from models.pure.shell import read


def _rule(effect: str, text: str) -> Rule:
    return Rule(effect, match_of(text))  # type: ignore[arg-type]


MAY_BECOME_OPTIONS = [
    "find evil.sh -ex* sh evil.sh \\;", "find . -de*", "git log --outp*", "sort --compress-pr*", "tar xf a --to-com*", "rg --pr*",
    "find *", "ls *", "ls -la *.py", "ls ?exec", "ls [a-z]*", "ls [!q]*", "ls ''*", 'ls ""?', "ls '-'exec*", 'ls "-"*', "ls \\-e*",
    "ls -- *", "ls x *", "grep --include=*.py x", "if ls *; then ls; fi", "ls | sort -*", "(ls *)", "ls x; ls *", "ls ~-", "ls ~+",
    "ls ~1", "ls ~someone/x", "ls ~-*", "ls $'-x'*", "ls {-exec,x}", "ls $X", "ls `cat x`", "ls < *",
]  # fmt: skip


def test_a_word_that_may_become_an_option_is_asked() -> None:
    """Whether a rule allows the program, or everything is allowed beside a rule about another program."""
    allowed = [_rule("allow", f"bash({name} *)") for name in ("find", "git", "sort", "tar", "rg", "ls", "grep")]
    everything = [[_rule("allow", "bash"), _rule(effect, "bash(curl *)")] for effect in ("deny", "ask")]
    assert [command for command in MAY_BECOME_OPTIONS if not read(command).doubt] == []
    for rules in map(CompiledRules, (allowed, *everything)):
        assert [command for command in MAY_BECOME_OPTIONS if rules.judge("bash", {"command": command}).effect != "ask"] == []


@pytest.mark.parametrize(
    "command",
    [
        "ls ./*",
        "ls src/*.py",
        "ls a*",
        "ls '*'",
        "ls \\*x",
        "ls 'a b'*",
        "ls ~",
        "ls ~/x",
        "ls ~/*",
        "ls x]",
        "ls x?y[0-9]",
    ],
)
def test_a_word_that_cannot_become_an_option_stays_sure(command: str) -> None:
    """Because every expansion begins with the same known character."""
    assert read(command).doubt is None
    assert CompiledRules([_rule("allow", "bash(ls *)")]).judge("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git di* -x",
        "git --no-pager d*",
        "git fetch e*",
        "tar x* sh a.tar",
        "sed s* x",
        "awk p* x",
        "awk -F , p* x",
        "awk -F p* x",
        "python s* x",
    ],
)
def test_an_expansion_in_the_place_of_a_subcommand_or_script_is_asked(command: str) -> None:
    """Or of options without a dash. Files may be called `difftool`, `xIf` and `s;x;id;e`."""
    assert read(command).doubt
    assert CompiledRules([_rule("allow", "bash(*)")]).judge("bash", {"command": command}).effect == "ask"


@pytest.mark.parametrize(
    ("denied", "command"),
    [
        ("git push *", "git p* origin"),
        ("git push", "git pus[h]"),
        ("git push *", "git --no-pager p*"),
        ("cat secrets/*", "cat s*"),
        ("cat secrets/*", "cat secret?/key"),
        ("cat secrets/*", "ls | cat s*/key"),
        ("cat */key", "cat src/*"),
        ("rm *", "npx r* x"),
        ("rm *", "npx b*/rm x"),
        ("cat /home/me/*", "cat ~/key"),
        ("* secrets/key", "head s*"),
        ("npm run deploy", "npm run d*"),
        ("npm run deploy", "/usr/bin/npm run d*"),
    ],
)
def test_a_word_that_may_expand_into_a_rule_s_word_is_asked(denied: str, command: str) -> None:
    """Even if everything is allowed. The verdict names the rule."""
    for effect in ("deny", "ask"):
        rule = _rule(effect, f"bash({denied})")
        verdict = CompiledRules([_rule("allow", "bash"), rule]).judge("bash", {"command": command})
        assert (verdict.effect, verdict.rules) in {("ask", (rule,)), (effect, (rule,))}
        assert effect == "ask" or verdict.effect == "deny" or verdict.doubt


@pytest.mark.parametrize(
    ("denied", "command"),
    [("git push *", "git push origin main"), ("git * --force", "git push origin --force"), ("git push", "git push"),
     ("* secrets/key", "cat a secrets/key"), ("npm run dep*", "npm run deploy x"), ("rm *", "npx rm x y")],
)  # fmt: skip
def test_a_denied_command_with_a_glob_in_any_word_is_not_allowed(denied: str, command: str) -> None:
    """Any word but the first, cut at any place, with a star at its end."""
    rules = CompiledRules([_rule("allow", "bash"), _rule("deny", f"bash({denied})")])
    words = command.split()
    for place, word in enumerate(words[1:], 1):
        for cut in range(len(word)):
            line = " ".join([*words[:place], f"{word[:cut]}*", *words[place + 1 :]])
            assert rules.judge("bash", {"command": line}).effect in {"ask", "deny"}, line


@pytest.mark.parametrize(
    ("denied", "command"),
    [("rm *", "ls src/*"), ("git push *", "git add src/*"), ("git push *", "git log p*"), ("cat secrets/*", "cat src/*"),
     ("rm -rf *", "rm a*")],
)  # fmt: skip
def test_a_word_that_cannot_expand_into_a_rule_s_word_stays_allowed(denied: str, command: str) -> None:
    """So that a rule that denies does not ask about every line with a star."""
    rules = CompiledRules([*(_rule("allow", text) for text in ("bash", "bash(git *)")), _rule("deny", f"bash({denied})")])
    assert rules.judge("bash", {"command": command}).effect == "allow"
