"""Which commands nobody suggests to allow: those that may destroy, send or publish something, and those that are too wide to tell.

The lists are wide on purpose: a command that is left out only goes on asking.
"""

import re
from collections.abc import Sequence

from models.pure.shell import Words
from models.pure.shell.known_programs import KNOWN_PROGRAMS
from models.pure.shell.wrappers import HANDS_ON, RUNS

_NEVER = frozenset(
    name
    for names in (
        # takes away, or changes who may do what
        "rm rmdir unlink shred dd mv truncate mkfs fdisk parted wipefs kill pkill killall reboot shutdown halt poweroff init",
        "chmod chown chgrp chattr setfacl mount umount useradd userdel usermod groupdel passwd visudo iptables ufw",
        # leads out of the machine
        "curl wget http https aria2c scp rsync ssh sftp ftp nc telnet rclone mail sendmail swaks",
        # speaks to databases
        "psql mysql mariadb mongo mongosh redis-cli clickhouse-client cqlsh sqlcmd sqlite3 bq dropdb createdb pg_restore",
    )
    for name in names.split()
)
_RUNNERS = frozenset(
    name
    for names in (
        "pytest mypy pyright flake8 pylint black isort eslint prettier stylelint tsc jest vitest mocha rspec rubocop phpunit",
        "phpstan shellcheck shfmt yamllint markdownlint gofmt golangci-lint staticcheck ctest clang-format clang-tidy checkov",
    )
    for name in names.split()
)
"""Programs that test or format, whatever follows."""
_GIT = frozenset({"add", "commit", "fetch"})
"""Of git beside the commands that only read: those that take nothing away."""
_REMOTE = frozenset(
    name
    for names in (
        "aws az bq docker doctl flyctl gcloud gh glab gsutil helm heroku kubectl nerdctl oc podman pulumi render supabase",
        "terraform tofu vercel wrangler",
    )
    for name in names.split()
)
"""Programs that change what runs elsewhere: suggested only with a verb that reads."""
_READS = frozenset(
    name
    for names in ("describe diff events explain get list log logs ls plan show", "status top validate view")
    for name in names.split()
)
_HARM = frozenset(
    name
    for names in (
        "abort apply archive attach bind bounce clean cleanup clear cutover deactivate deallocate decommission delete demote",
        "deploy deprovision destroy detach disable drain drop dump email empty erase evict exec expire export flush force",
        "freeze grant hard hotfix import install invite kill launch login logout merge migrate migration migrations mirror",
        "mount nuke overwrite pay payout post prod production promote provision prune publish purge push rebase reboot recreate",
        "refund reindex release remove rename replace reset resize restart restore revert revoke rm rollback rotate scale",
        "secret secrets seed send ship shutdown stop sudo suspend swap sync teardown terminate transfer truncate uninstall",
        "unpublish upgrade upload wipe yank",
    )
    for name in names.split()
)
"""Words that say that something is taken away, sent or published, in any word of a command."""
_PART = re.compile(r"[A-Za-z]+")
_RUN_NEXT = frozenset({"run", "exec", "dlx", "x"})
"""Subcommands that run what the next word names."""
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|nodejs|deno|php|lua|luajit)[\d.]*")


def may_harm(words: Words, *, is_open: bool) -> bool:
    """True if a pattern with these words must not be suggested. `is_open`: any further words may follow."""
    name = words[0].rpartition("/")[2]
    if name in _NEVER or name in RUNS or any(_HARM & {part.lower() for part in _PART.findall(word)} for word in words):
        return True
    if name == "git":
        return len(words) < 2 or (words[1] not in _GIT and f"git {words[1]}" not in KNOWN_PROGRAMS)
    if name in _REMOTE:
        return not _READS & {word.partition("-")[0] for word in words[1:]}
    return is_open and not _is_narrow(words, name)


def _is_narrow(words: Sequence[str], name: str) -> bool:
    """True if it is known what such commands do, whatever follows: the program is known, or its task is named."""
    runs_scripts = words[-1] in _RUN_NEXT or _INTERPRETER.fullmatch(name) is not None
    if len(words) > 1:
        return not runs_scripts or (len(words) > 2 and words[-1] not in _RUN_NEXT)
    program = KNOWN_PROGRAMS.get(name)
    reads = program is not None and not program.writes
    return not runs_scripts and name not in HANDS_ON and "/" not in words[0] and (name in _RUNNERS or reads)
