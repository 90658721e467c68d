"""Random command lines that a reader of bash's grammar may misread."""

import random
from collections.abc import Iterator

_WORDS = r"""qa qb -x 10 2 a=b qü 'q•c' "q•d" "q\"e" q\•f q'g'"h" q#i '' "" "q¶j" \q q\\ \# ./q q,r q:r q@ %q q^ q+ '-'x \-x "'" '"'
    - -- q.r qa; qb| '' ] -x]"""
_EXPANDED = r"""* ?x -e* q* ./* [-q]* 'q'* '-'* \-* q? [!q]* ''* "-"? ~ ~/q ~- ~+ ~q ~1 a=* a=~ q:~ \~ ''~ $q $'q' $"q" ${q} $(qa)
    `qb` {a,b} {a..c} <(qa) $((1)) $[1] $@ $'-x'"""
_JOINTS = ["•", "•", "••", "\t", "•\\¶", "\\¶", "¶", ";", ";•", "•;¶", "•&&•", "•||•", "•|•", "|", "•|&•", "•&•", "&&¶", "•|¶", "&"]
_KEYWORDS = r"""! if then elif else fi while until do done { } ( ) time [[ ]] [ ] for in case esac function select coproc (( )) ;;
    !• {• if• ;•then• ;•do• ;•fi ;•done ;•}"""
_SIGNS = r"""' " \ $ ` # * ? < > & | ; = - ~ ¶ • , % ^ @ : ! \¶"""
_REST = r"""•#•c •#•c¶ # •>/dev/null •2>&1 •2>/dev/null• •</dev/null <q >•q >&2 &>/dev/null >|q <<E¶ ¶E¶ <<< •2<&1 >&- <> () ()•"""
_PLAIN = [
    "qa -x", "qa; qb", "qa | qb 'q c' | qa", "( qa; qb )", "{ qa; qb; }", "! qa", "if qa; then qb; fi", "qa && qb || qa",
    "if qa; then qb; elif qa; then qb; else qa; fi", "while qa; do qb; done", "until qa; do qb; done", "qa &\nqb", "# c\nqa",
    "qa # c\nqb", "qa \\\n -x", "qa 2>&1 | qb", "qa >/dev/null; qb", "qa 2>/dev/null && qb", "qa </dev/null", "qa\n\nqb\n",
    "! ( qa ) && ! { qb; }", "((qa); qb)", "qa q*", "qa ./*", "qa < q | qb", "( ( qa ) )", "qa ~/q", "if ! qa; then ( qb ); fi",
]  # fmt: skip
Pieces = list[str]


def _pieces(text: str) -> Pieces:
    """The words of a text. In it `•` means a space and `¶` the end of a line."""
    return [word.replace("•", " ").replace("¶", "\n") for word in text.split(" ") if word.strip("\n")]


_ALL = [
    piece
    for text in (_WORDS, _WORDS, _EXPANDED, *[" ".join(_JOINTS)] * 3, _KEYWORDS, _SIGNS, _REST)
    for piece in _pieces(text.replace("\n    ", " "))
]


def random_lines(seed: int) -> Iterator[Pieces]:
    """Yield endless lines, in pieces, from a seed: some of random pieces, and most by changes of plain lines."""
    source = random.Random(seed)
    while True:
        yield _soup(source) if source.randrange(4) == 0 else _changed(source)


def _soup(source: random.Random) -> Pieces:
    return [source.choice(_ALL) for _ in range(source.randint(1, 14))]


def _changed(source: random.Random) -> Pieces:
    """A plain line, in characters, with one to three insertions and maybe some characters removed."""
    pieces = list(source.choice(_PLAIN))
    for _ in range(source.randint(1, 3)):
        at = source.randint(0, len(pieces))
        removed = source.choice([0, 0, 1, 1, 2, 4])
        pieces[at : at + removed] = [source.choice(_ALL)] * source.choice([0, 1, 1, 1])
    return pieces
