"""Chat words: words that a person may type instead of pressing a button, in sessions that enable them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Meaning = Literal["allow", "allow_all", "deny"]
MEANINGS: tuple[Meaning, ...] = ("allow", "allow_all", "deny")
MOST_WORDS = 100
"""Most words that a workspace adds for one meaning."""
LONGEST_WORD = 60
"""Most characters of such a word."""

_WORDS: dict[Meaning, tuple[str, ...]] = {
    "allow": (
        *("approve", "approved", "approve it", "approve this", "i approve", "allow", "allow it", "allow this", "y", "yes", "yep"),
        *("yeah", "yup", "yes do it", "ok", "okay", "k", "sure", "go ahead", "do it", "run it", "proceed", "lgtm", "👍"),
    ),
    "allow_all": ("approve all", "allow all", "yes to all", "ok to all", "approve them all", "allow them all"),
    "deny": (
        *(
            "reject",
            "rejected",
            "reject it",
            "reject this",
            "reject all",
            "deny",
            "deny it",
            "deny this",
            "deny all",
            "denied",
            "n",
        ),
        *("no", "nope", "nah", "no to all", "no thanks", "no thank you", "cancel", "cancel it", "decline", "do not", "don't", "👎"),
    ),
}
"""The words of every workspace, each in the form that `normal` returns."""
_UNCLEAR = frozenset(
    {"maybe", "perhaps", "hm", "hmm", "not sure", "i guess", "i think so", "wait", "stop", "later", "go on", "continue"}
)
"""Messages that may or may not be meant as a decision."""
_LONGEST_MESSAGE = 200
"""Most characters of a message that can be a word, without the reason of a denial."""
_ALLOWED = re.compile(r"[^\s:?]+( [^\s:?]+)*")


@dataclass(frozen=True)
class Word:
    """A decision that a message spells."""

    result: Literal["allow", "deny", "unclear"]
    """`unclear`: the message may be meant as a decision, and does not say which."""
    all: bool = False
    """True if the decision covers every listed approval, and later calls of the same tools."""
    reason: str | None = None
    """With `deny`: the reason that the model reads."""


def meaning(text: str, more: Mapping[str, Sequence[str]] | None = None) -> Word | None:
    """Return the decision that a message spells, or None for any other message. Only a whole message counts, not its beginning.

    `more` are the workspace's own words by meaning, in normal form.
    """
    words = _words(tuple((name, tuple(values)) for name, values in sorted((more or {}).items())))
    text = text.strip()
    start, _, reason = text[:_LONGEST_MESSAGE].partition(":")
    denial = words.get(normal(start))
    if reason.strip() and denial and denial.result == "deny":
        return Word("deny", reason=text[len(start) + 1 :].strip())
    if len(text) > _LONGEST_MESSAGE:
        return None
    return words.get(normal(text)) or (Word("unclear") if _is_unclear(text, words) else None)


def normal(text: str) -> str:
    """Return a message in the form in which words are compared: lower case, without commas, final marks and `please`."""
    parts = re.sub(r"[\s,]+", " ", text.replace("\u2019", "'").casefold()).strip().rstrip(".! ").split(" ")
    return " ".join([part for part in parts if part != "please"] or parts)


def check(more: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return a workspace's own words in normal form, without repetitions. Raises ValueError, with the field and the remedy.

    A word has one meaning: neither the built-in words nor two of the lists may give it different ones.
    """
    meanings: dict[str, str] = {word: name for name, words in _WORDS.items() for word in words}
    result: dict[str, list[str]] = {}
    for name, words in more.items():
        if len(words) > MOST_WORDS:
            raise ValueError(f"{name}: at most {MOST_WORDS} words; these are {len(words)}.")
        own_words = result[name] = []
        for index, text in enumerate(words):
            word = normal(text)
            if len(text) > LONGEST_WORD or not _ALLOWED.fullmatch(word):
                raise ValueError(f"{name}.{index}: must be 1 to {LONGEST_WORD} characters, without colons and question marks.")
            if meanings.setdefault(word, name) != name:
                raise ValueError(f"{name}.{index}: {word!r} means {meanings[word]} already; a word has one meaning.")
            if word not in own_words:
                own_words.append(word)
    return result


@lru_cache(maxsize=64)
def _words(more: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, Word]:
    """Return all words with their meanings. The built-in meaning of a word holds, whatever a workspace stored."""
    meanings = [*more, *_WORDS.items()]
    return {
        word: Word("deny" if name == "deny" else "allow", all=name == "allow_all") for name, words in meanings for word in words
    }


def _is_unclear(text: str, words: Mapping[str, Word]) -> bool:
    """True for a word that is asked about or contradicted: `ok?`, `yes no`, `maybe`."""
    plain = normal(re.sub(r"[?.!:;/]+", " ", text))
    parts = plain.split()
    parts_of_words = {part for word in words for part in word.split()}
    return plain in words or plain in _UNCLEAR or (any(part in words for part in parts) and parts_of_words.issuperset(parts))
