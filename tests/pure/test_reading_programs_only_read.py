"""A rule for a program that reads covers only the forms that are known to only read."""

import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from models.pure.policy import CompiledRules, Rule, match_of
from models.pure.shell.known_programs import KNOWN_PROGRAMS

BASH = shutil.which("bash") or "bash"
WRITING = [
    "uniq a b", "uniq -c a b", "uniq -- a b", "uniq ./*", "shuf -o x y", "shuf -ox y", "shuf --output=x y", "shuf -eo x a",
    "xxd a b", "xxd -r a b", "xxd -ul a b", "xxd -l 8 a b", "iconv -o x y", "iconv -f utf-8 -t latin1 --output=x y",
    "sort -o x y", "sort -uo x y", "sort --outp=x y", "sort -T x y", "sort --compress-program=x y", "curl --libcurl x u",
    "curl --stderr x u", "curl --trace-ascii x u", "curl --trace-as x u", "curl -w '%output{f}' u", "curl -w @f u",
    "curl --write-out '%output{>>f}x' u", "curl -o x u", "curl -so x u", "curl -O u", "curl --out x u", "curl -K x",
    "curl -c x u", "curl -D x u", "curl --hsts x u", "curl --alt-svc x u", "curl --etag-save x u", "curl --engine x u",
    "curl -T x u", "git format-patch --output-directory=x", "git format-patch -o x", "git format-patch -1 --output-dir x",
    "git format-patch -1ox", "git log --output=x", "git log --output-directory=x", "git bugreport -o x",
    "git fast-export --export-marks=x", "git diff --ext-diff", "git log --show-signature", "git log --format=%G?",
    "git log --pretty='%h %-G?'", "git log --help", "git grep -Ox y", "git cat-file --textconv HEAD:x", "find . -delete",
    "find . -newerXY x -fprintf y z", "find . -files0-from x", "tree -o x", "tree -Lo 2 x", "tree -R -H . -L 2", "diff -l a b",
    "diff --paginate a b", "rg -z x", "rg --pre=x y", "rg --hostname-bin x y", "fd -x rm", "fd -l", "file -C -m x", "file -z x",
    "file -p x", "date -s x", "date 01020304", "hostname x", "hostname -F x", "printf -v x y", "printf %n PATH",
    "printf '%-5ln' PATH", "test -v 'a[$(x)]'", "sed -i s/a/b/ x", "sed w x", "sed -f x", "sed -e p -i x",
    "awk 'BEGIN{print > \"x\"}'", "awk -f x", "jq -L x .", "base64 -o x", "iconv -t ../../x y", "ls --hyperlink",
    "ls --unheard-of", "cat -o x", "grep -f", "head -n -x y",
]  # fmt: skip
READING = [
    "uniq", "uniq a", "uniq -c -f 2 a", "uniq -cf2 -- a", "sort -nrk2,2 -t : a b", "sort --key=2 a", "sort -t ',' -k 1n a",
    "shuf -n 3 a", "shuf -i 1-9", "xxd -l 16 a", "xxd -p a", "xxd -r -p a", "iconv -f utf-8 -t ASCII//TRANSLIT a",
    "curl -sSL https://a.b/c", "curl -s -o /dev/null -w '%{http_code}' u", "curl -X POST -H 'A: b' -d '{}' u",
    "git log --oneline -5", "git log -n 3 -p src", "git log --since=yesterday --format='%h %s' -- a b", "git diff --stat HEAD~1",
    "git diff --text", "git diff -U5 a b -- c", "git show HEAD:x", "git status -sb", "git --no-pager log", "git blame -L 1,5 x",
    "git rev-parse --abbrev-ref HEAD", "git ls-files -o --exclude-standard",
    "find . -name '*.py' -not -path './x/*' -mtime -1 -print0", "find a b -type f -size +1k", "tree -aL 2", "diff -ru a b",
    "rg -n --glob '*.py' x src", "fd -e py x", "file -b x", "date -u +%F", "date -d tomorrow +%s", "hostname",
    "printf '%s\\n' a -b", "printf '%5.2f%%' 1", "test -f x -a -d y", "sed -n 1,5p x", "sed -nE s/a/b/g x y",
    "awk -F : '{print $1}' x", "jq -r .a x", "jq --arg a b -n '$a'", "ls -la --color=auto x", "ls --help", "cat -n x -",
    "grep -rn --include='*.py' x .", "grep -A3 -e x -- -y", "head -20 x", "head -n -5 x", "tail -n +2 x", "wc -l ./*.py",
    "du -sh x", "stat -c %s x", "echo -n -e x --y",
]  # fmt: skip
NAMES = sorted(
    {" ".join(line.split()[: 2 if line.startswith("git ") and "--no-pager" not in line else 1]) for line in WRITING + READING}
)
RULES = CompiledRules([Rule("allow", match_of(f"bash({name} *)")) for name in [*NAMES, "git --no-pager"]])


def answer(command: str) -> str:
    """The effect of rules for all of these programs."""
    return RULES.judge("bash", {"command": command}).effect


def test_a_form_that_may_write_or_run_something_is_asked() -> None:
    assert [command for command in WRITING if answer(command) != "ask"] == []


def test_a_form_that_only_reads_is_allowed() -> None:
    assert [command for command in READING if answer(command) != "allow"] == []


def test_the_verdict_names_the_program_in_doubt() -> None:
    assert RULES.judge("bash", {"command": "ls; uniq a b"}).doubt == "`uniq` is not known to only read in this form"


def test_a_rule_for_a_program_that_writes_covers_all_its_forms() -> None:
    """Because allowing `cp` by name allows writing."""
    book = CompiledRules([Rule("allow", match_of("bash(cp *)"))])
    assert book.judge("bash", {"command": "cp --backup=numbered a b"}).effect == "allow"


def forms() -> list[tuple[str, ...]]:
    """Each option of each program that only reads and that is on this machine, one at a time."""
    commands: list[tuple[str, ...]] = []
    for name, known in KNOWN_PROGRAMS.items():
        if known.writes or known.by_name or name in {"tail", "sleep"} or not shutil.which(name):
            continue
        for option in known.options.split():
            values = ["2"] * (len(option) - len(option.rstrip(":")))
            words = [option.rstrip(":?").replace("-#", "-2"), *values, *(["p"] if known.first else []), "file"]
            if known.knows(words) and (name, words[0]) not in {("shuf", "-r"), ("shuf", "--repeat")}:
                commands.append((name, *words))
    return commands


def test_no_option_of_the_table_writes_a_file_or_starts_a_program(tmp_path: Path) -> None:
    """Every program of the table that is on this machine runs with each of its options."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "file").write_text("b\na\na\n")
    (here / "2").write_text("1\n")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    tried = forms()
    assert len(tried) > 300
    script = "\n".join(shlex.join([shutil.which(words[0]) or "", *words[1:]]) for words in tried)
    (tmp_path / "script").write_text(script)
    log = tmp_path / "started"
    log.write_text("")
    strace = shutil.which("strace")
    trace = [strace, "-f", "-qq", "--seccomp-bpf", "-e", "trace=execve", "-e", "signal=none", "-o", str(log)] if strace else []
    argv = [*trace, BASH, str(tmp_path / "script")]
    subprocess.run(argv, stdin=subprocess.DEVNULL, cwd=here, capture_output=True, timeout=120, check=False)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before
    if strace:
        started = Counter(re.findall(r'execve\("[^"]*/([^"/]+)".* = 0', log.read_text()))
        expected = Counter(words[0] for words in tried) + Counter("grep" for words in tried if words[0] in {"egrep", "fgrep"})
        assert started - expected == Counter({"bash": 1})
        assert expected - started == Counter()
