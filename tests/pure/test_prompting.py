"""A prompt shows the call's arguments and cannot be manipulated by them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.prompting import fill
from models.pure.masking import MARKER, mask
from models.pure.text.visible import visible

ARGUMENTS = {"command": "ls", "files": [{"path": "a"}, {"path": "b"}], "a.b": "exact", "a": {"b": "deep", "c/d": 1}, "n": None}


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("Run shell command: {command}", "Run shell command: ls"),
        ("{files.1.path} {/files/0/path}", "b a"),
        ("{a.b} {/a/b} {/a/c~1d}", "exact deep 1"),
        ("{n} {files}", 'null [{"path": "a"}, {"path": "b"}]'),
        ("{{command}}", "{ls}"),
    ],
)
def test_a_field_is_a_name_or_a_path(template: str, prompt: str) -> None:
    """A path is dotted or a JSON Pointer. An exact name comes first."""
    assert fill(template, "bash", ARGUMENTS) == prompt


@pytest.mark.parametrize(
    "template",
    [
        "{command.__class__}",
        "{0}",
        "{a[b]}",
        "{command!r}",
        "{command:>99999999}",
        "{}",
        "{files.2.path}",
        "{files.-1}",
        "{missing}",
        "{/}",
        "{files.01.path}",
        "{files.99999999999999999999}",
        "{command.upper}",
        "{a",
        "}{",
    ],
)
def test_any_other_field_stays_unchanged(template: str) -> None:
    """Format specs, attributes, indexes and unknown arguments."""
    assert fill(template, "bash", ARGUMENTS) == template


def test_an_argument_cannot_replace_the_tool_s_name() -> None:
    """An argument called `tool` has to be named by its pointer."""
    assert fill("Run {tool}: {/tool}", "bash", {"tool": "read"}) == "Run bash: read"


def test_a_value_is_not_a_template() -> None:
    assert fill("{a} {b}", "bash", {"a": "{b}", "b": "{tool}"}) == "{b} {tool}"


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u2066", "\u200b", "\x1b", "\x00", "\r", "\u3164", "\ufe0f", "\U000e0100", "\u2028", "\ud800"]
)
def test_a_character_that_a_screen_obeys_or_hides_is_written_out(hidden: str) -> None:
    """In values, keys and the template."""
    shown = fill("{a} {b} " + hidden, "bash", {"a": f"x{hidden}y", "b": {hidden: 1}})
    assert hidden not in shown
    assert shown.count("<U+") + shown.count("\\") == 3, "JSON spells a key's control characters by itself"
    assert visible(visible(shown)) == shown


def test_a_cut_value_says_how_many_characters_are_missing() -> None:
    """And a long value does not hide the rest of the template."""
    assert (
        fill("{a} into {b}", "write", {"a": "x" * 1500, "b": "f"}) == "x" * 1000 + "… (500 more characters: see the input) into f"
    )
    whole = fill("{a}{a}{a}{b} end", "write", {"a": "x" * 1000, "b": "y" * 3000})
    assert whole == "x" * 2000 + "… (4004 more characters: see the input)"
    assert fill("{a}", "write", {"a": "\x00" * 1000}) == "<U+0000>" * 125 + "… (875 more characters: see the input)"


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=5), st.text(max_size=3000) | st.integers(), max_size=4))
def test_a_prompt_is_never_long(template: str, arguments: dict[str, object]) -> None:
    template += "".join(f"{{{name}}}" for name in arguments)
    assert len(fill(template, "bash", arguments)) <= 2000 + 5 * 50


def test_a_prompt_of_masked_arguments_has_no_secret() -> None:
    arguments = {"command": "curl -H 'Authorization: Bearer hunter2' https://x", "password": "hunter2"}
    prompt = fill("Run: {command} ({password})", "bash", mask(arguments).arguments)
    assert prompt == f"Run: curl -H 'Authorization: Bearer {MARKER}' https://x ({MARKER})"
