"""A message is a chat word only as a whole, and a word has one meaning."""

import pytest

from models.pure import chat

UNCLEAR = chat.Word("unclear")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("approve", chat.Word("allow")),
        (" Yes! ", chat.Word("allow")),
        ("ok", chat.Word("allow")),
        ("Yes, please", chat.Word("allow")),
        ("go  ahead.", chat.Word("allow")),
        ("LGTM", chat.Word("allow")),
        ("APPROVE  ALL", chat.Word("allow", all=True)),
        ("no", chat.Word("deny")),
        ("No, thanks!", chat.Word("deny")),
        ("cancel", chat.Word("deny")),
        ("don\u2019t", chat.Word("deny")),
        ("reject: too\ndangerous", chat.Word("deny", reason="too\ndangerous")),
        ("No: use staging", chat.Word("deny", reason="use staging")),
        (f"no: {'x' * 5000}", chat.Word("deny", reason="x" * 5000)),
        ("ok?", UNCLEAR),
        ("yes no", UNCLEAR),
        ("maybe", UNCLEAR),
        ("approve: all", UNCLEAR),
        ("reject:", UNCLEAR),
        ("yes, but only the first", None),
        ("approve the plan", None),
        ("no idea", None),
        ("thanks", None),
        ("yesterday", None),
        ("yes" + " " * 5000 + "no", None),
        ("", None),
    ],
)
def test_only_exact_words_decide(text: str, word: chat.Word | None) -> None:
    assert chat.meaning(text) == word


def test_a_workspace_adds_words() -> None:
    more = chat.check({"allow": ["  Ja,  BITTE! ", "ja bitte"], "allow_all": ["alles"], "deny": ["wait"]})
    assert more == {"allow": ["ja bitte"], "allow_all": ["alles"], "deny": ["wait"]}
    assert chat.meaning("Ja bitte.", more) == chat.Word("allow")
    assert chat.meaning("Alles", more) == chat.Word("allow", all=True)
    assert chat.meaning("wait: until noon", more) == chat.Word("deny", reason="until noon")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"deny": ["Yes!"]}, r"deny.0: 'yes' means allow already"),
        ({"allow": ["approve all"]}, r"allow.0: 'approve all' means allow_all already"),
        ({"allow": ["hm"], "deny": ["no", "HM"]}, r"deny.1: 'hm' means allow already"),
        ({"allow": ["!"]}, r"allow.0: must be 1 to 60 characters"),
        ({"allow": ["ok: x"]}, r"allow.0: must be"),
        ({"allow": ["really?"]}, r"allow.0: must be"),
        ({"allow": ["x" * 61]}, r"allow.0: must be"),
        ({"deny": [f"w{number}" for number in range(101)]}, r"deny: at most 100 words"),
    ],
)
def test_a_word_with_two_meanings_or_none_is_refused(more: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chat.check(more)
