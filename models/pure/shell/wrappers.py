"""Commands that run other commands, always or with some options. The lists are wide on purpose, since a doubt only asks.

A command of `RUNS` is never certain. A command of `HANDS_ON` (package runners, containers) is, since the author of
`bash(npx prettier *)` names the program that it runs; rules that deny or ask also apply to that program.
"""

import re
from collections.abc import Sequence

from models.pure.shell import builtins, git_commands
from models.pure.shell.known_programs import program_of
from models.pure.shell.words import MARK

RUNS = frozenset(
    name
    for names in (
        # shells, and programs that run a command
        "bash sh dash ash zsh ksh mksh fish csh tcsh rbash busybox toybox xargs parallel ssh slogin rsh watch env nohup timeout",
        "gtimeout nice ionice renice chrt taskset setsid setpriv stdbuf unbuffer script expect sudo sudoedit doas su runuser",
        "pkexec gosu chroot unshare nsenter bwrap firejail fakeroot proot flock strace ltrace gdb lldb perf valgrind",
        "at batch crontab systemd-run systemctl dbus-run-session xvfb-run start-stop-daemon run-parts entr inotifywait",
        "socat nc ncat netcat tmux screen dtach",
        "rlwrap torsocks proxychains faketime eatmydata cgexec numactl prlimit setarch runcon newgrp sg choom cpulimit chronic",
        "ifne vipe pee mispipe sem tini dumb-init gtime hyperfine caffeinate uclampset systemd-inhibit fzf",
        # editors, pagers and clients that can run commands
        "vi vim nvim view ex ed emacs nano pico less more most man info mail mailx mutt ftp sftp lftp telnet sqlite3 psql mysql",
        # interpreters that read their program from an argument
        "osascript pwsh powershell cmd m4 tclsh wish gnuplot octave gp bc dc jshell ghci scala groovy erl iex julia Rscript",
    )
    for name in names.split()
)
HANDS_ON = frozenset(
    name
    for names in (
        "npx bunx uvx pipx pnpx npm pnpm yarn bun uv poetry pipenv pdm hatch tox nox conda mamba bundle rbenv pyenv nvm direnv",
        "devbox nix nix-shell mise asdf docker podman nerdctl kubectl oc make gmake ninja just task cargo go gradle mvn",
    )
    for name in names.split()
)
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|nodejs|deno|php|lua|luajit)[\d.]*")
_LONG: dict[str, str] = {
    "git": "--exec --exec-path --upload-pack --receive-pack --output --ext-diff --textconv --open-files-in-pager --extcmd --config "
    "--config-env --template --tool --paginate --output-directory --export-marks",
    "ag": "--pager",
    "ack": "--pager --output",
    "tar": "--checkpoint-action --to-command --use-compress-program --rsh-command --info-script --new-volume-script --rmt-command",
    "rsync": "--rsh --rsync-path",
    "zip": "--unzip-command --test",
    "split": "--filter",
    "wget": "--use-askpass --config --execute --output-document --output-file",
    "go": "--exec --toolexec --vettool",
    "cargo": "--config",
    "make": "--eval",
    "hg": "--config",
    "svn": "--config-option --editor-cmd --diff-cmd --diff3-cmd",
    "bat": "--pager",
    "openssl": "--engine --provider",
}
"""Options, also abbreviated, that run a program or write to a named file."""
_SHORT: dict[str, str] = {
    "tar": "IF", "rsync": "e", "scp": "SFo", "zip": "T", "wget": "eOoi", "tcpdump": "zw",
}  # fmt: skip


def doubt(words: Sequence[str]) -> str | None:
    """Return why these words may run or write something that they do not name; None if they certainly do not."""
    name, args = plain_name(words[0]), words[1:]
    if name in builtins.NAMES:
        return builtins.doubt(name, args)
    if name in RUNS or not name:
        return f"`{name}` runs or changes other commands"
    if _INTERPRETER.fullmatch(name) and not _script(args):
        return f"`{name}` takes its program from its arguments or its input"
    program, rest = program_of(words)
    if program and not program.writes:
        return None if program.knows(rest) else f"`{name}` is not known to only read in this form"
    reason = git_commands.doubt(args) if name == "git" else None
    if reason or _option(name, args):
        return reason or f"these options of `{name}` run other commands, or write files"
    return None


def hands_on(words: Sequence[str]) -> bool:
    """True if the words after the first may be a command themselves."""
    return plain_name(words[0]) in HANDS_ON or doubt(words) is not None


def plain_name(word: str) -> str:
    """Return a command's name without its folder."""
    return word.lstrip(MARK).rpartition("/")[2]


def _script(args: Sequence[str]) -> bool:
    return bool(args) and (args[0] in {"-m", "-V", "--version"} or not args[0].startswith(("-", MARK)))


def _option(name: str, args: Sequence[str]) -> bool:
    long, short = _LONG.get(name, "").split(), _SHORT.get(name, "")
    if name == "tar" and args and args[0].startswith(MARK):
        return True  # tar reads its first word as options, with or without a dash
    for arg in args:
        name_part = arg.partition("=")[0]
        if name_part.startswith("--"):
            if len(name_part) > 2 and any(option.startswith(name_part) for option in long):
                return True
        elif (arg.startswith("-") or (name == "tar" and arg is args[0])) and (
            any(sign in arg for sign in short) or f"-{name_part}" in long
        ):
            return True
    return False
