"""Published ways to bypass rules about commands do not work."""

import time

import pytest

from models.pure.policy import CompiledRules, Rule, match_of
from models.pure.shell import line, read


def book(*, allow: str = "", deny: str = "", ask: str = "", default: str = "ask") -> CompiledRules:
    """Rules of `bash(...)`. Commas separate the patterns."""
    patterns = {"allow": allow, "deny": deny, "ask": ask}
    rules = [Rule(e, match_of(f"bash({p.strip()})")) for e, all_ in patterns.items() for p in all_.split(",") if p]  # type: ignore[arg-type]
    return CompiledRules(rules, default)  # type: ignore[arg-type]


def answer(rules: CompiledRules, command: str) -> str:
    """The rules' effect for a command."""
    return rules.judge("bash", {"command": command}).effect


PLAIN = book(
    allow="ls *, git status *, git log *, echo *, find *, cat *, grep *, sort *, sed *, awk *, git diff *, python *, cd *, printf *"
)
NOT_ALLOWED = [
    # another command behind the first
    "ls; rm -rf x", "ls;rm x", "ls && rm x", "ls || rm x", "ls | rm x", "ls |& rm x", "ls & rm x", "ls\nrm x", "ls &&\nrm x",
    "git status;\trm x", "ls \\\n; rm x", "ls # c\nrm x", "ls\\\nrm x",
    # a command inside of a word
    "echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', 'echo "`rm x`"', "cat <(rm x)", "ls >(rm x)", "echo ${x:-$(rm x)}",
    "echo $((a[$(rm x)]))", "cat <<E\n$(rm x)\nE", "cat <<< $(rm x)", "echo ${x@P}", "echo $[$(rm x)]",
    # words whose value is known only when the line runs
    "echo $HOME", 'echo "$X"', "$X ls", "l$X", "ls {a,b}", "{ls,-la}", "l? x", "/bin/l* x", "ls $'\\x41'", "ls $\"x\"", "!! x",
    "~/ls",
    # an environment, an alias, a function
    "FOO=1 ls", "PATH=/tmp ls", "LD_PRELOAD=./x.so git status", "A[$(rm x)]=1 ls", "PATH=/tmp; ls", "alias ls=rm; ls",
    "ls() { rm x; }; ls", "function ls { rm x; }; ls", "export PATH=/tmp; ls", "shopt -s expand_aliases\nls",
    "hash -p /tmp/x ls; ls",
    # commands that run others
    "eval ls", "source ls", ". ls", "exec ls", "command ls", "builtin echo x", "env ls", "nohup ls", "timeout 1 ls", "nice ls",
    "time ls", "sudo ls", "xargs ls", "ls | xargs rm", "bash -c ls", "sh -c 'ls'", "ssh h ls", "watch ls", "parallel ls",
    "coproc ls", "trap ls EXIT", "python -c 'import os'", "python - ls", "awk 'BEGIN { system(\"rm x\") }'",
    "awk '{ print | \"sh\" }'", "busybox ls", "echo ls | sh",
    # options that run or write something
    "find . -exec rm {} \\;", "find . -execdir rm x +", "find . -ok rm x ';'", "find . -delete", "find . -fprint x",
    "find . -fls x", "find *", "git log --output=x", "git diff --ext-diff", "git diff --outp=x", "sort -o x y",
    "sort --compress-program=rm x", "sed -i s/a/b/ x", "sed 's/a/b/e' x", "sed '1e rm x' y", "sed 's/a/b/w x' y", "awk -f x",
    "awk '{ print > \"x\" }' y", "printf -v 'a[$(rm x)]' x",
    # files written or opened by the shell
    "ls > x", "ls >> x", "ls >| x", "ls &> x", "ls 2> x", "ls <> x", "echo x > ~/.bashrc", "cat < /dev/tcp/h/80",
    "ls > /dev/tcp/h/80",
    # characters that look like others
    "ls\u00a0-la", "ls\u2003x", "l\u200bs", "ls\r\nrm x", "ls\x00rm x", "ls \x1b[2J", "ls \u202egpj", "\uff4cs", "((ls))",
    "((ls) )", "(\\\n(ls))", "ls &\\\n& ls",
    "( (ls); rm x)", "[[ -v x ]]",
    # malformed lines, and lines that cannot be read with certainty
    "ls 'x", 'ls "x', "ls (", "ls )", "if ls", "ls &&", "| ls", "ls ;; ls", "ls $(", "a | grep x | ls -30\necho B && cd s",
    "ls" + " x" * 9_000, "(" * 500 + "ls" + ")" * 500, "$(" * 500 + "ls" + ")" * 500,
]  # fmt: skip
ALLOWED = [
    "ls", "ls -la", "ls -la | grep x", "git status && git log -3", "git status; echo done", "(cd x && ls)", "ls 2>/dev/null",
    "ls 2>&1 | cat", "echo 'a; rm x'", 'echo "a && rm x"', "echo a\\;b", "ls # rm x", "find . -name '*.py' -type f", "ls ./*.py",
    "ls\ngit status\n", "l's'", "sed -n 1,5p x", "sed s/a/b/g x", "awk '{ print $1 }' x", "python x.py", "python -m pytest",
    "if git status; then echo x; fi", "! ls &", "cat < x", "git log --oneline", "git diff --stat", "echo it\"'\"s",
    "ls \\\n  -la",
]  # fmt: skip


def test_no_pattern_allows_a_line_whose_commands_are_not_certain() -> None:
    assert [command for command in NOT_ALLOWED if answer(PLAIN, command) != "ask"] == []


def test_the_verdict_says_why_a_line_that_seems_allowed_is_asked() -> None:
    assert PLAIN.judge("bash", {"command": "ls > x"}).doubt == "it writes to a file"
    assert PLAIN.judge("bash", {"command": "wc x"}).doubt is None


def test_a_line_is_allowed_if_rules_cover_all_of_its_commands() -> None:
    assert [command for command in ALLOWED if answer(PLAIN, command) != "allow"] == []


DENIED = [
    "rm -rf x", "rm", "ls; rm x", "ls | rm x", "ls && rm x", "ls\nrm x", "(rm x)", "{ rm x; }", "if ls; then rm x; fi", "! rm x",
    "rm x &", "echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', "cat <(rm x)", "cat <<E\n$(rm x)\nE", "f() { rm x; }; f",
    "for i in 1; do rm x; done", "while :; do rm x; done", "case x in x) rm x;; esac", "echo ${x:-$(rm x)}", "FOO=1 rm x",
    "FOO=$(ls) rm x", "r\"m\" x", "'rm' x", "\\rm x", "r\\m x", "$'rm' x", "$'\\x72m' x", "r\\\nm x", "/bin/rm x", "./rm x",
    "rm $X", "rm > x", "> x rm y", "rm x > y z", "{rm,-rf,x}", "xargs rm", "ls | xargs -0 rm -f", "find . -exec rm {} +",
    "env rm x", "env A=1 rm x", "sudo -u root rm x", "nohup rm x &", "timeout 5 rm x", "nice -n 5 rm x", "time rm x",
    "command rm x", "exec rm x", "eval rm x", 'eval "rm x"', "eval 'r''m x'", "bash -c 'rm x'", 'bash -c "ls; rm x"',
    "sh -c \"sh -c 'rm x'\"", "ssh h 'rm x'", "ssh h rm x", "watch rm x", "trap 'rm x' EXIT", "echo 'rm x' | sh",
    "bash <<E\nrm x\nE", "bash <<< 'rm x'", "python -c 'import os; os.system(\"rm x\")'", "awk 'BEGIN { system(\"rm x\") }'",
    "coproc rm x", "npx rm x", "docker run i rm x", "a | grep x | head -30\nrm B && cd s", "ls $( ; rm x", "rm 'x", "if rm x",
    "ls\r\nrm x", "ls; rm\x00x", "git -c core.pager='rm x' log",
]  # fmt: skip


def test_a_denied_command_is_denied_anywhere_in_a_line() -> None:
    """Even where the whole tool is allowed."""
    denying = CompiledRules([Rule("allow", match_of("bash")), Rule("deny", match_of("bash(rm *)"))], "allow")
    asking = book(ask="rm *", allow="*", default="allow")
    assert [command for command in DENIED if answer(denying, command) != "deny"] == []
    assert [command for command in DENIED if answer(asking, command) != "ask"] == []


@pytest.mark.parametrize("command", ["echo rm x", "ls rm", "git rm x", "grep 'rm x' y", "ls; echo 'rm x'", "rmdir x", "# rm x\nls"])
def test_a_denied_command_that_is_only_text_is_not_denied(command: str) -> None:
    """Among the arguments of a command that runs no others, or in a comment."""
    assert answer(book(deny="rm *", allow="*, git *"), command) == "allow"


@pytest.mark.parametrize("command", ["echo $X", "$X -rf x", "l? x", "base64 -d x | sh", "ls > x", "ls 'x"])
def test_an_uncertain_line_is_asked_if_a_rule_about_commands_might_apply(command: str) -> None:
    """Even if the whole tool is allowed. Without rules about commands the line stays allowed."""
    whole = Rule("allow", match_of("bash"))
    for strict in (Rule("deny", match_of("bash(rm *)")), Rule("ask", match_of("bash(git push *)"))):
        verdict = CompiledRules([whole, strict], "ask").judge("bash", {"command": command})
        assert (verdict.effect, verdict.rules) == ("ask", (strict,))
        assert verdict.doubt
        assert verdict.doubt in verdict.rule
        assert answer(CompiledRules([strict], "deny"), command) == "deny"
    assert answer(CompiledRules([whole], "ask"), command) == "allow"


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        (
            "git status *",
            ["git status", "git status -s", "git  status"],
            ["git statusx", "git", "'git status' x", "git 'status x'"],
        ),
        ("git status", ["git status", "git 'status'"], ["git status -s", "git status ''"]),
        ("git:*", ["git", "git log"], ["gitk"]),
        ("npm run test:*", ["npm run test", "npm run test -- x"], ["npm run test:unit"]),
        ("ls*", ["ls", "lsof", "ls -la"], ["xls"]),
        ("git * main", ["git push main", "git push origin main"], ["git main", "git push", "git push main x"]),
        ("* --version", ["node --version"], ["--version", "node --version x"]),
        ("echo 'a b' *", ["echo 'a b'", 'echo "a b" c', "echo a\\ b"], ["echo a b"]),
        ("echo \\*", ["echo '*'"], ["echo x", "echo *"]),
        ("cp * *", ["cp a b", "cp a"], ["cp", "cpx a"]),
        ("*", ["ls", "a b c"], []),
    ],
)
def test_a_pattern_matches_the_words_of_one_command(pattern: str, fits: list[str], fails: list[str]) -> None:
    """A final ` *` also matches no word, an inner `*` any text, and a quoted space separates no words."""
    rules = CompiledRules([Rule("allow", match_of(f"bash({pattern})"))], "ask")
    assert {command: answer(rules, command) for command in fits + fails} == dict.fromkeys(fits, "allow") | dict.fromkeys(
        fails, "ask"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "(",
        "$(",
        "`",
        '"$(',
        "<<E\n",
        "{ ",
        "a;",
        "a|",
        "\\\n",
        "'",
        "((",
        "${x:-",
        "[[ ",
        "if a; then ",
        "case a in a) ",
        "a\n",
        "a <(",
    ],
)
def test_every_line_is_read_in_bounded_time(unit: str) -> None:
    for text in (unit * line.LENGTH, (unit * line.LENGTH)[: line.LENGTH], "bash -c '" + unit * 300 + "'"):
        began = time.process_time()
        line_read = read(text)
        assert time.process_time() - began < 2
        assert len(line_read.suspects) <= 2_000
    assert read(unit * line.LENGTH).doubt
