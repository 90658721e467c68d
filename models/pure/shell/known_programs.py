"""The programs that are known not to run other programs or code, each with the forms in which that is known.

`forms` defines option lists. There are three kinds of entries:

    Program(...)                    only reads, in these forms. No rule with a pattern of commands covers another form.
    Program(..., writes=True)       writes files, and runs nothing. A rule that names it covers its other forms as well.
    Program(..., by_name=True)      only reads, in these forms, but its configuration (`~/.curlrc`, `.git/config`) or its program
                                    text may make it run others. So only a rule that names the program covers it.

`sends=True` marks a program that may change something at another machine.

A list contains only options that run no program, load no code and, without `writes`, write no file, not even a temporary one that
stays. Unlisted options ask, so leave out options that you have not looked up. A reader whose operands may name a file to write to
(`uniq IN OUT`) limits its operands. `builtins` holds the builtins of bash.
"""

from collections.abc import Sequence

from models.pure.shell import builtins
from models.pure.shell.forms import Program

_SUMS = "-b -c -t -w -z -a: -l: --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn"
_GREP = (
    "-a -A: -b -B: -c -C: -d: -e: -E -f: -F -G -h -H -i -I -l -L -m: -n -o -P -q -r -R -s -T -U -v -V -w -x -y -z -Z -# "
    "--after-context: --basic-regexp --before-context: --binary --binary-files: --byte-offset --color? --colour? --context: "
    "--count --dereference-recursive --directories: --exclude: --exclude-dir: --exclude-from: --extended-regexp --file: "
    "--files-with-matches --files-without-match --fixed-strings --ignore-case --include: --initial-tab --invert-match --label: "
    "--line-buffered --line-number --line-regexp --max-count: --no-filename --no-ignore-case --no-messages --null --null-data "
    "--only-matching --perl-regexp --quiet --recursive --regexp: --silent --text --with-filename --word-regexp"
)
_SED = (
    r"(\d+|\$|/[^/\\\n;{}]*/)?(,(\d+|\$|/[^/\\\n;{}]*/))?"
    r"([pdq]|s/[^/\\\n]*/[^/\\\n]*/[gpIi\d]*|s\|[^|\\\n]*\|[^|\\\n]*\|[gpIi\d]*)"
)
"""One command of `sed` that prints, deletes, ends or replaces. Other commands may write, read and run."""
_AWK = r"(?!.*(system|getline|[|>@&]|\\\n)).*"
"""A program of `awk` without a pipe, a redirection, an extension or a command."""
_FD = (
    "-0 -a -c: -d: -e: -E: -F -g -H -i -I -j: -L -p -q -s -S: -t: -u -V -1 --absolute-path --base-directory: --case-sensitive "
    "--changed-before: --changed-within: --color: --exclude: --exclude-dir: --extension: --fixed-strings --follow --full-path "
    "--glob --hidden --ignore-case --max-depth: --max-results: --min-depth: --no-follow --no-ignore --no-ignore-vcs --print0 "
    "--quiet --regex --size: --threads: --type: --unrestricted"
)

_TEXTS = {
    "base32": Program("-d -i -w: --decode --ignore-garbage --wrap:"),
    "base64": Program("-d -i -w: --decode --ignore-garbage --wrap:"),
    "cat": Program(
        "-A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs "
        "--squeeze-blank"
    ),
    "cksum": Program(_SUMS),
    "cmp": Program("-b -i: -l -n: -s --bytes: --ignore-initial: --print-bytes --quiet --silent --verbose"),
    "column": Program("-c: -e -L -n: -o: -s: -t -x"),
    "comm": Program("-1 -2 -3 -z --check-order --nocheck-order --output-delimiter: --total --zero-terminated"),
    "cut": Program(
        "-b: -c: -d: -f: -n -s -z --bytes: --characters: --complement --delimiter: --fields: --only-delimited "
        "--output-delimiter: --zero-terminated"
    ),
    # Without -l, which starts `pr`.
    "diff": Program(
        "-a -b -B -c -C: -d -e -E -F: -i -I: -L: -n -N -p -q -r -s -S: -t -T -u -U: -w -W: -x: -X: -y -Z --brief --color? "
        "--context? --exclude: --exclude-from: --expand-tabs --from-file: --ignore-all-space --ignore-blank-lines "
        "--ignore-case --ignore-matching-lines: --ignore-space-change --ignore-trailing-space --label: --left-column --minimal "
        "--new-file --no-dereference --recursive --report-identical-files --show-c-function --side-by-side --strip-trailing-cr "
        "--suppress-common-lines --text --to-file: --unified? --width:"
    ),
    "egrep": Program(_GREP),
    "expand": Program("-i -t: --initial --tabs:"),
    "fgrep": Program(_GREP),
    "fmt": Program("-c -p: -s -t -u -w: -g: --width:"),
    "fold": Program("-b -s -w: --bytes --spaces --width:"),
    "grep": Program(_GREP),
    "head": Program("-c: -n: -q -v -z -# --bytes: --lines: --quiet --silent --verbose --zero-terminated"),
    "hexdump": Program("-b -c -C -d -n: -o -s: -v -x --canonical --length: --no-squeezing --skip:"),
    # Without -o.
    "iconv": Program(
        "-c -f: -l -s -t: --from-code: --list --silent --to-code:",
        values=dict.fromkeys(("-f", "-t", "--from-code", "--to-code"), r"[\w.:+-]*(//[A-Z]*)*"),
    ),
    "join": Program("-1: -2: -a: -e: -i -j: -o: -t: -v: -z --check-order --header --ignore-case --nocheck-order --zero-terminated"),
    "jq": Program(
        "-a -c -C -e -f -j -M -n -r -R -s -S --arg:: --argjson:: --args --ascii-output --color-output --compact-output "
        "--exit-status --from-file --indent: --join-output --jsonargs --monochrome-output --null-input --raw-input "
        "--raw-output --rawfile:: --slurp --slurpfile:: --sort-keys --stream --tab --unbuffered"
    ),
    "md5sum": Program(_SUMS),
    "nl": Program("-b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w:"),
    "od": Program("-a -A: -b -c -d -f -i -j: -l -N: -o -s -t: -v -x --address-radix: --format: --read-bytes: --skip-bytes:"),
    "paste": Program("-d: -s -z --delimiters: --serial --zero-terminated"),
    "rev": Program(),
    # Without --pre, --hostname-bin, --hyperlink-format, and -z, which starts programs that unpack.
    "rg": Program(
        "-0 -a -A: -b -B: -c -C: -e: -E: -f: -F -g: -H -h -i -I -j: -l -L -m: -M: -n -N -o -p -P -q -r: -s -S -t: -T: -u -U -v "
        "-V -w -x --after-context: --before-context: --case-sensitive --color: --column --context: --count --count-matches "
        "--encoding: --file: --files --files-with-matches --files-without-match --fixed-strings --follow --glob: --heading "
        "--hidden --iglob: --ignore-case --invert-match --json --line-number --line-regexp --max-columns: --max-count: "
        "--max-depth: --max-filesize: --multiline --multiline-dotall --no-config --no-filename --no-heading --no-ignore "
        "--no-ignore-vcs --no-line-number --no-messages --null --only-matching --passthru --pcre2 --quiet --regexp: --replace: "
        "--smart-case --sort: --sortr: --stats --text --threads: --trim --type: --type-list --type-not: --unrestricted "
        "--vimgrep --with-filename --word-regexp"
    ),
    "sed": Program("-E -n -r -s -u -z --quiet --regexp-extended --silent", first=_SED),
    "sha1sum": Program(_SUMS),
    "sha224sum": Program(_SUMS),
    "sha256sum": Program(_SUMS),
    "sha384sum": Program(_SUMS),
    "sha512sum": Program(_SUMS),
    # Without -o.
    "shuf": Program("-e -i: -n: -r -z --echo --head-count: --input-range: --random-source: --repeat --zero-terminated"),
    # Without -o, -T and --compress-program.
    "sort": Program(
        "-b -c -C -d -f -g -h -i -k: -m -M -n -r -R -s -S: -t: -u -V -z --buffer-size: --check? --debug --dictionary-order "
        "--field-separator: --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks "
        "--ignore-nonprinting --key: --merge --month-sort --numeric-sort --parallel: --random-sort --reverse --sort: --stable "
        "--unique --version-sort --zero-terminated"
    ),
    "strings": Program("-a -e: -f -n: -o -t: -# --all --bytes: --encoding: --print-file-name --radix:"),
    "tac": Program("-b -r -s: --before --regex --separator:"),
    "tail": Program(
        "-c: -f -F -n: -q -s: -v -z -# --bytes: --follow? --lines: --pid: --quiet --retry --silent --sleep-interval: --verbose"
    ),
    "tr": Program("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1"),
    "unexpand": Program("-a -t: --all --first-only --tabs:"),
    # The second operand is a file to write to.
    "uniq": Program(
        "-c -d -D -f: -i -s: -u -w: -z -# --all-repeated? --check-chars: --count --group? --ignore-case --repeated "
        "--skip-chars: --skip-fields: --unique --zero-terminated",
        operands=1,
    ),
    "wc": Program("-c -l -L -m -w --bytes --chars --files0-from: --lines --max-line-length --words"),
    # The second operand is a file to write to. Several letters after one dash are one option.
    "xxd": Program("-a -b -c: -C -d -e -E -g: -i -l: -o: -p -ps -r -s: -u", operands=1, whole_words=True),
}
"""Programs that read and print texts."""

_FILES = {
    "basename": Program("-a -s: -z --multiple --suffix: --zero"),
    "df": Program("-a -B: -h -H -i -k -l -m -P -t: -T -x: --all --human-readable --inodes --local --no-sync --print-type --total"),
    "dirname": Program("-z --zero"),
    "du": Program(
        "-0 -a -b -B: -c -d: -D -h -H -k -l -L -m -P -s -S -t: -x -X: --all --apparent-size --block-size: --bytes --exclude: "
        "--exclude-from: --human-readable --inodes --max-depth: --null --one-file-system --si --summarize --threshold: --time? "
        "--total"
    ),
    # Without -x, -X, and -l, which starts `ls`.
    "fd": Program(_FD),
    "fdfind": Program(_FD),
    # Without -C, which writes, -p, which sets times, and -z, which starts programs that unpack.
    "file": Program(
        "-0 -b -e: -E -f: -F: -h -i -k -L -n -N -r -s --brief --dereference --exclude: --extension --files-from: --keep-going "
        "--mime --mime-encoding --mime-type --no-dereference --no-pad --print0 --raw --separator:"
    ),
    "find": Program(
        "-H -L -P -a -amin: -anewer: -and -atime: -cmin: -cnewer: -ctime: -daystart -depth -empty -executable -false -follow "
        "-fstype: -gid: -group: -ilname: -iname: -inum: -ipath: -iregex: -iwholename: -links: -lname: -ls -maxdepth: "
        "-mindepth: -mmin: -mount -mtime: -name: -newer: -newermt: -nogroup -noleaf -not -nouser -o -or -path: -perm: -print "
        "-print0 -printf: -prune -quit -readable -regex: -regextype: -samefile: -size: -true -type: -uid: -user: -wholename: "
        "-writable -xdev -xtype:",
        whole_words=True,
    ),
    "ls": Program(
        "-1 -a -A -b -B -c -C -d -f -F -g -G -h -H -i -I: -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -T: -u -U -v -w: -x -X "
        "-Z --all --almost-all --author --block-size: --classify? --color? --context --dereference --directory --escape "
        "--file-type --format: --full-time --group-directories-first --hide: --hide-control-chars --human-readable --ignore: "
        "--ignore-backups --indicator-style: --inode --kibibytes --literal --no-group --numeric-uid-gid --quote-name "
        "--quoting-style: --recursive --reverse --show-control-chars --si --size --sort: --tabsize: --time: --time-style: "
        "--width: --zero"
    ),
    "readlink": Program(
        "-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero"
    ),
    "realpath": Program(
        "-e -L -m -P -q -s -z --canonicalize-existing --canonicalize-missing --no-symlinks --relative-base: --relative-to: --zero"
    ),
    "stat": Program("-c: -f -L -t --dereference --file-system --format: --printf: --terse"),
    # Without -o, and -R, which writes a file into each folder.
    "tree": Program(
        "-a -A -C -d -D -f -F -g -h -i -I: -J -l -L: -n -N -p -P: -q -Q -r -s -S -t -u -U -v -x -X --dirsfirst --du "
        "--filelimit: --gitignore --ignore-case --matchdirs --noreport --prune",
        attached=False,
    ),
}
"""Programs that describe and find files."""

_MACHINE = {
    "arch": Program(operands=0),
    "date": Program(
        "-d: -I? -r: -R -u --date: --iso-8601? --reference: --rfc-3339: --rfc-email --universal --utc", operands=1, operand=r"\+.*"
    ),
    "free": Program("-b -g -h -k -l -m -t -v -w --bytes --giga --human --kilo --lohi --mega --si --total --wide", operands=0),
    "groups": Program(),
    "hostname": Program("-A -d -f -i -I -s --fqdn --long --short", operands=0),
    "id": Program("-g -G -n -r -u -z --group --groups --name --real --user --zero"),
    "nproc": Program("--all --ignore:", operands=0),
    "printenv": Program("-0 --null"),
    "ps": Program("-a -A -d -e -f -F -H -l -L -o: -p: -T -u: -w -x -y --forest --no-headers --pid: --ppid: --sort: --user:"),
    "seq": Program("-f: -s: -w -# --equal-width --format: --separator:"),
    "sleep": Program(),
    "uname": Program("-a -i -m -n -o -p -r -s -v --all", operands=0),
    "uptime": Program("-p -s --pretty --since", operands=0),
    "which": Program("-a"),
    "whoami": Program(operands=0),
}
"""Programs that describe the machine and the time."""

_WRITERS = {
    "chmod": Program("-c -f -R -v --changes --quiet --recursive --reference: --silent --verbose", writes=True),
    "cp": Program(
        "-a -b -d -f -H -i -l -L -n -p -P -r -R -s -t: -T -u -v -x --archive --dereference --force --link --no-clobber "
        "--no-dereference --no-target-directory --one-file-system --parents --preserve? --recursive --reflink? "
        "--symbolic-link --target-directory: --update --verbose",
        writes=True,
    ),
    "ln": Program("-b -f -i -L -n -P -r -s -t: -T -v --force --no-dereference --relative --symbolic --verbose", writes=True),
    "mkdir": Program("-m: -p -v --mode: --parents --verbose", writes=True),
    "mktemp": Program("-d -p: -q -t -u --directory --dry-run --quiet --suffix: --tmpdir?", writes=True),
    "mv": Program(
        "-b -f -i -n -t: -T -u -v --force --no-clobber --no-target-directory --target-directory: --update --verbose", writes=True
    ),
    "rm": Program("-d -f -i -I -r -R -v --dir --force --interactive? --one-file-system --recursive --verbose", writes=True),
    "rmdir": Program("-p -v --ignore-fail-on-non-empty --parents --verbose", writes=True),
    "tee": Program("-a -i -p --append --ignore-interrupts --output-error?", writes=True),
    "touch": Program("-a -c -d: -h -m -r: -t: --date: --no-create --no-dereference --reference: --time:", writes=True),
}
"""Programs that change files and run nothing."""

_DIFFS = (
    "-a -b -B? -C? -D -G: -i -I: -l: -M? -O: -p -R -r -s -S: -t -u -U: -w -W -z -# --abbrev? --binary --break-rewrites? "
    "--cached --check --color? --color-moved? --color-words? --compact-summary --diff-algorithm: --diff-filter: --dirstat? "
    "--dst-prefix: --exit-code --find-copies? --find-copies-harder --find-object: --find-renames? --full-index "
    "--function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol "
    "--ignore-space-change --ignore-submodules? --inter-hunk-context: --irreversible-delete --line-prefix: --merge-base "
    "--minimal --name-only --name-status --no-color --no-ext-diff --no-index --no-patch --no-prefix --no-renames --no-textconv "
    "--numstat --patch --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw --relative? --shortstat "
    "--src-prefix: --staged --stat? --submodule? --summary --text --unified: --word-diff? --word-diff-regex: "
    "--ws-error-highlight:"
)
_COMMITS = (
    "-E -F -g -L: -P -q --after: --all --all-match --ancestry-path --author: --author-date-order --before: --boundary "
    "--branches? --cherry --cherry-mark --cherry-pick --committer: --date-order --date: --decorate? --decorate-refs: "
    "--decorate-refs-exclude: --encoding: --exclude: --extended-regexp --first-parent --fixed-strings --follow --format? "
    "--full-history --glob: --graph --grep: --grep-reflog: --invert-grep --left-only --left-right --log-size --max-count: "
    "--max-parents: --merges --min-parents: --no-decorate --no-merges --no-notes --no-walk? --not --oneline --parents "
    "--perl-regexp --pretty? --regexp-ignore-case --relative-date --remotes? --reverse --right-only --simplify-by-decoration "
    "--since: --skip: --source --sparse --tags? --topo-order --until: --walk-reflogs -c -m --cc"
)
# `%G...` has git start the program that checks signatures.
_FORMATS = {"--format": "(?!.*%[-+ ]?G).*", "--pretty": "(?!.*%[-+ ]?G).*"}

_BY_NAME = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), Program("-F: -v:", first=_AWK, by_name=True)),
    "curl": Program(
        "-0 -4 -6 -A: -b: -d: -e: -f -F: -g -G -H: -i -I -j -k -L -m: -n -N -o: -q -r: -s -S -u: -v -V -w: -x: -X: --basic "
        "--compressed --connect-timeout: --cookie: --data-ascii: --data-binary: --data-raw: --data-urlencode: --data: --digest "
        "--disable --fail --fail-early --fail-with-body --form-string: --form: --get --globoff --head --header: --http1.0 "
        "--http1.1 --http2 --include --insecure --ipv4 --ipv6 --json: --limit-rate: --location --max-filesize: --max-redirs: "
        "--max-time: --no-buffer --no-progress-meter --noproxy: --oauth2-bearer: --output: --path-as-is --proxy: --range: "
        "--referer: --request: --resolve: --retry-all-errors --retry-connrefused --retry-delay: --retry-max-time: --retry: "
        "--show-error --silent --tlsv1.2 --tlsv1.3 --url: --user-agent: --user: --verbose --write-out:",
        values={
            **dict.fromkeys(("-o", "--output"), "-|/dev/null"),
            # `@` reads the format from a file, and `%output{...}` names a file to write to.
            **dict.fromkeys(("-w", "--write-out"), r"(?!@)([^%]|%%|%\{[a-z_.]+\})*"),
        },
        by_name=True,
        sends=True,
    ),
    "git blame": Program(
        "-b -c -C? -e -f -l -L: -M? -n -p -s -t -w --abbrev? --date: --ignore-rev: --ignore-revs-file: --line-porcelain "
        "--minimal --porcelain --root --show-email --show-name --show-number --since:",
        by_name=True,
    ),
    "git cat-file": Program("-e -p -s -t --batch --batch-check", by_name=True),
    "git describe": Program(
        "--abbrev: --all --always --candidates: --contains --dirty? --exact-match --exclude: --first-parent --long --match: --tags",
        by_name=True,
    ),
    "git diff": Program(_DIFFS, by_name=True),
    "git grep": Program(
        "-A: -B: -c -C: -e: -E -f: -F -G -h -H -i -I -l -L -m: -n -o -p -P -q -r -v -w -W -z -# --all-match --and --break "
        "--cached --color? --column --count --extended-regexp --files-with-matches --files-without-match --fixed-strings "
        "--full-name --function-context --heading --ignore-case --line-number --max-depth: --no-index --not --only-matching "
        "--or --perl-regexp --quiet --show-function --text --untracked --word-regexp",
        by_name=True,
    ),
    "git log": Program(f"{_DIFFS} {_COMMITS} -n:", values=_FORMATS, by_name=True),
    "git ls-files": Program(
        "-c -d -f -i -k -m -o -s -t -u -v -x: -X: -z --abbrev? --cached --deduplicate --deleted --directory --eol "
        "--error-unmatch --exclude-from: --exclude-standard --exclude: --full-name --ignored --killed --modified --others "
        "--stage --unmerged",
        by_name=True,
    ),
    "git ls-tree": Program(
        "-d -l -r -t -z --abbrev? --full-name --full-tree --long --name-only --name-status --object-only", by_name=True
    ),
    "git merge-base": Program("-a --all --fork-point --independent --is-ancestor --octopus", by_name=True),
    "git rev-list": Program(f"{_COMMITS} -n: --count --objects --disk-usage?", values=_FORMATS, by_name=True),
    "git rev-parse": Program(
        "-q --abbrev-ref? --absolute-git-dir --all --branches? --git-common-dir --git-dir --is-bare-repository "
        "--is-inside-git-dir --is-inside-work-tree --quiet --remotes? --short? --show-cdup --show-prefix --show-toplevel "
        "--symbolic --symbolic-full-name --tags? --verify",
        by_name=True,
    ),
    "git shortlog": Program(f"{_COMMITS} -e -n -s -w? --email --group: --numbered --summary", values=_FORMATS, by_name=True),
    "git show": Program(f"{_DIFFS} {_COMMITS} -n:", values=_FORMATS, by_name=True),
    "git status": Program(
        "-b -M? -s -u? -v -z --ahead-behind --branch --column? --find-renames? --ignored? --ignore-submodules? --long "
        "--no-ahead-behind --no-column --no-renames --null --porcelain? --renames --short --show-stash --untracked-files? "
        "--verbose",
        by_name=True,
    ),
}
"""Programs that only read in these forms, but may run others in ways that their words do not show. A second word is a
subcommand."""

_ELSEWHERE = {"gfind": _FILES["find"], "gsed": _TEXTS["sed"]}
"""GNU's programs on systems that have others under the usual names."""

KNOWN_PROGRAMS: dict[str, Program] = {**_TEXTS, **_FILES, **_MACHINE, **_WRITERS, **_BY_NAME, **_ELSEWHERE}
"""All known programs, by name, or by name and subcommand."""


def program_of(words: Sequence[str]) -> tuple[Program | None, Sequence[str]]:
    """Return the known forms of a command's program, or None, and the words after the name. Ignores the name's folder."""
    name = words[0].rpartition("/")[2]
    if name == "git" and len(words) > 1:
        return KNOWN_PROGRAMS.get(f"git {words[1]}"), words[2:]
    return KNOWN_PROGRAMS.get(name), words[1:]


def unknown(words: Sequence[str]) -> str | None:
    """Return why this command may run other programs or code; None if it certainly does not.

    The name counts as written: a program in a folder differs from the one that bash finds by its name.
    """
    if words[0] in builtins.NAMES:
        return builtins.doubt(words[0], words[1:])
    program, args = program_of(words)
    if program is None or program.by_name or "/" in words[0]:
        return f"`{words[0]}` may run other programs"
    return None if program.knows(args) else f"`{words[0]}` may run other programs in this form"


def only_reads(words: Sequence[str]) -> bool:
    """True if this command certainly changes nothing by its words: no file, no process, and nothing at another machine.

    The settings of a program that only a rule by its name covers may still have it run others.
    """
    if words[0] in builtins.NAMES:
        return words[0] != "kill" and builtins.doubt(words[0], words[1:]) is None
    program, args = program_of(words)
    return program is not None and "/" not in words[0] and not (program.writes or program.sends) and program.knows(args)
