"""Masking is linear in a text, whatever it repeats: an agent chooses the text, and people's lists wait for it."""

import time

import pytest

from models.pure.masking import MARKER, mask, texts

REPEATED = [
    *("password=", "--password=", "password:", "pw=password=", "author=", "pwd=/", "password={{", "password=,", "cookie:a=b;"),
    *('password=\\\\"a', "password=\\;", "password='a ", "password=a${", "password=%", "password=`", "password=$a", "password=\\"),
    *(
        "password=a(",
        "password=a[",
        'password="',
        "password=\"a token='b ",
        "password=é",
        "token=x ",
        'password="a" ',
        "token: a\n",
    ),
    *(
        "authorization:bearer ",
        "authorization: ",
        "mysql -p",
        "mysql ",
        "curl -u a:",
        "://a:b@",
        " -pass pass:",
        "identified by 'a",
    ),
    *("-----BEGIN PRIVATE KEY-----\nabcdABCDabcdABCD1\n", "bearer abcdefghijkl", "eyJaaaaaaaa.", "login a password ", "pass"),
]
PARTS, CHARACTERS = 32, 1_000


def seconds(**arguments: str) -> float:
    """Return the CPU time that masking these arguments takes."""
    start = time.thread_time()
    mask(arguments)
    return time.thread_time() - start


@pytest.mark.parametrize("repeated", REPEATED)
def test_a_long_text_costs_no_more_than_its_parts(repeated: str) -> None:
    part = (repeated * CHARACTERS)[: CHARACTERS - CHARACTERS % len(repeated)]
    parts = {f"part {number}": part for number in range(PARTS)}
    # Noise can only make one measurement large: the smallest of several counts.
    assert any(seconds(whole=part * PARTS) < 2 * seconds(**parts) for _ in range(5))


@pytest.mark.parametrize("repeated", ["author=", "password=a ", "password="])
def test_the_work_for_an_input_is_bounded_and_beyond_it_texts_are_masked_as_a_whole(
    repeated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret shows because the work ended before it."""
    assert texts._MOST <= 10_000
    monkeypatch.setattr(texts, "_MOST", 1_000)
    text = repeated * 10_000 + "token=hunter2secret"
    for arguments in ({"a": text}, {"a": text, "b": "password=hunter3secret"}):
        masked = mask(arguments)
        assert masked.arguments == dict.fromkeys(arguments, MARKER)
    assert mask({"a": text, "b": "plain"}).arguments["b"] == "plain"


def test_when_the_cpu_time_is_used_up_a_text_with_a_secret_is_masked_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_SECONDS", 0)
    assert mask({"a": "cd src; TOKEN=hunter2secret ./x", "b": "plain"}).arguments == {"a": MARKER, "b": "plain"}
