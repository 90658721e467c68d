"""A masked value is masked wherever it returns, in the spellings of common programs, in linear time."""

import base64
import html
import json
import random
import re
import shlex
import string
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.masking import MARKER, Echoes, mask

SECRET = "s3cr&t/\"pä's+w\\<rd 😀"
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON in Unicode": lambda s: json.dumps(s, ensure_ascii=False),
    "JSON in JSON in JSON": lambda s: json.dumps(json.dumps(json.dumps(s))),
    "Go's JSON": lambda s: json.dumps(s).replace("&", "\\u0026").replace("<", "\\u003C"),
    "PHP's JSON": lambda s: json.dumps(s).replace("/", "\\/"),
    "Python": repr,
    "ASCII": ascii,
    "URL": lambda s: urllib.parse.quote(s, safe=""),
    "URL's path": urllib.parse.quote,
    "URL of a form": urllib.parse.quote_plus,
    "URL in lower case": lambda s: re.sub("%..", lambda escape: escape[0].lower(), urllib.parse.quote(s, safe="")),
    "URL in a URL": lambda s: urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""),
    "every byte percent-encoded": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "HTML": html.escape,
    "HTML by numbers": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "HTML in HTML": lambda s: html.escape(html.escape(s)),
    "shell": shlex.quote,
    "shell's %q": lambda s: re.sub(r"([^\w])", r"\\\1", s),
    "SQL": lambda s: s.replace("'", "''"),
    "CSV": lambda s: s.replace('"', '""'),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 of a user and a password": lambda s: base64.b64encode(f"user:{s}".encode()).decode(),
    "base64 behind two bytes": lambda s: base64.b64encode(f"ab{s}cd".encode()).decode(),
    "base64 for URLs": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 in lines": lambda s: base64.encodebytes(("x" * 40 + s + "y" * 40).encode()).decode(),
    "hexadecimal": lambda s: s.encode().hex(),
    "hexadecimal in capitals, with spaces": lambda s: s.encode().hex(" ").upper(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_value_is_masked_in_every_common_spelling(spelling: str) -> None:
    spelled = SPELLINGS[spelling](SECRET)
    shown = Echoes([SECRET]).text(f"before: {spelled}\nafter")
    assert shown.startswith("before: ")
    assert shown.endswith("\nafter")
    assert MARKER in shown
    left = shown.removeprefix("before: ").removesuffix("\nafter").replace(MARKER, "")
    # Quotes around the value, and the bytes beside it in its groups of base64.
    assert len(left) <= (120 if "lines" in spelling else 20), left
    assert "s3cr" not in left


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=8, max_size=100).map(str.strip).filter(lambda s: len(s) >= 8)
)
def test_any_value_is_masked_in_every_common_spelling(value: str) -> None:
    if MARKER in value:
        return
    echoes = Echoes([value])
    for spelling in SPELLINGS.values():
        spelled = spelling(value)
        assert echoes.text(f"[ {spelled} ]") != f"[ {spelled} ]"
    assert value not in echoes.text(f"[ {value} ]")


def test_short_and_other_values_are_not_masked() -> None:
    assert not Echoes(["1234567", MARKER])
    assert Echoes(["12345678"]).text("1234567 123456789") == f"1234567 {MARKER}9"
    assert Echoes(["hunter2hunter2"]).text("hunter2") == "hunter2"
    assert Echoes([]).value({"a": "b"}) == {"a": "b"}


def test_a_part_of_a_value_is_masked_where_a_text_was_cut() -> None:
    echoes = Echoes(["abcdefghijklmnopqrstuvwxyz"])
    assert echoes.text("x abcdefghij\n[... 7 bytes left out ...]\nqrstuvwxyz y") == (
        f"x {MARKER}\n[... 7 bytes left out ...]\n{MARKER} y"
    )
    assert echoes.text("12:stuvwxyz tail") == f"{MARKER} tail"
    quoting = Echoes(["abcdefghijklmnopqrstuvwxyz"], may_quote=True)
    assert quoting.text("abcdefghijkl is computed, or nopqrstuvwxyz") == f"{MARKER} is computed, or {MARKER}"
    assert echoes.text("abcdefghijkl is computed") == "abcdefghijkl is computed"
    assert echoes.text("abcdefg\ntuvwxyz") == "abcdefg\ntuvwxyz", "seven characters are too few"


def test_lines_of_a_value_are_masked_one_by_one() -> None:
    key = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA7\nab12\n-----END KEY-----"
    shown = Echoes([key]).text("1\tMIIEowIBAAKCAQEA7\n2\tother")
    assert shown == f"1\t{MARKER}\n2\tother"
    whole = Echoes([key]).text(f"<\n{key}\n>")
    assert whole == f"<\n{MARKER}\n{MARKER}\n{MARKER}\n{MARKER}\n>"
    assert "ab12" not in Echoes([key]).text(json.dumps(key))


def test_texts_names_and_numbers_are_masked_at_any_depth() -> None:
    echoes = Echoes(["hunter2hunter2", "12345678"])
    arguments = {
        "type": "text",
        "text": "is hunter2hunter2",
        "deep": [{"hunter2hunter2": 12345678}, True, None, 1.5],
        "n": 123456789,
    }
    assert echoes.value(arguments) == {
        "type": "text",
        "text": f"is {MARKER}",
        "deep": [{MARKER: MARKER}, True, None, 1.5],
        "n": f"{MARKER}9",
    }
    assert arguments["text"] == "is hunter2hunter2"


def test_the_masked_texts_of_an_input_are_known() -> None:
    arguments: dict[str, Any] = {
        "command": "PASSWORD=hunter2hunter2 curl -u bob:p4ssw0rd1 https://x",
        "token": 1234567890,
        "pin": "4711",
        "auth": {"secret": {"deep": ["first-part", "x"]}},
        "plain": "nothing at all",
    }
    assert mask(arguments).secrets == ("1234567890", "first-part", "hunter2hunter2", "p4ssw0rd1")
    assert mask(mask(arguments).arguments).secrets == ()


def test_too_many_values_or_matches_mask_the_whole_text() -> None:
    assert Echoes([f"value {n} of many" for n in range(400)]).value(["anything"]) == [MARKER]
    assert Echoes(["aaaaaaaa"]).text("aaaaaaaab" * 30_000) == MARKER


@pytest.mark.parametrize(
    "filler",
    [
        pytest.param("\\", id="backslashes"),
        pytest.param("%41", id="percent signs"),
        pytest.param("&#97;&#x61;", id="entities"),
        pytest.param("abababab", id="beginnings"),
        pytest.param("lorem ipsum dolor ", id="words"),
    ],
)
def test_the_time_is_proportional_to_the_length(filler: str) -> None:
    """For forty values of forty characters, with room for a busy machine."""
    random.seed(1)
    signs = string.ascii_letters + string.digits + "&/+='"
    echoes = Echoes(["".join(random.choices(signs, k=40)) for _ in range(40)] + ["abababab" * 5])
    text = filler * (1_000_000 // len(filler))
    echoes.text(text[:1000])

    def seconds(of: str) -> float:
        started = time.thread_time()
        echoes.text(of)
        return time.thread_time() - started

    tenth = min(seconds(text[:100_000]) for _ in range(2))
    assert min(seconds(text) for _ in range(2)) < 30 * max(tenth, 0.002)
    assert tenth < 0.1
