"""What stands above a call says what the call is, whatever its arguments say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.masking import MARKER, mask
from models.pure.prompting import fill
from models.pure.visible import visible

ARGUMENTS = {"command": "ls", "files": [{"path": "a"}, {"path": "b"}], "a.b": "exact", "a": {"b": "deep", "c/d": 1}, "n": None}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("Run shell command: {command}", "Run shell command: ls"),
        ("{files.1.path} {/files/0/path}", "b a"),
        ("{a.b} {/a/b} {/a/c~1d}", "exact deep 1"),
        ("{n} {files}", 'null [{"path": "a"}, {"path": "b"}]'),
        ("{{command}}", "{ls}"),
    ],
)
def test_a_field_is_a_name_or_a_path(template: str, said: str) -> None:
    """Dotted, or a JSON Pointer; the exact name comes first."""
    assert fill(template, "bash", ARGUMENTS) == said


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
def test_anything_else_stays_as_it_is(template: str) -> None:
    """No format specs, no attributes, no indexes, and nothing that was not given."""
    assert fill(template, "bash", ARGUMENTS) == template


def test_no_argument_passes_itself_off_as_the_tool() -> None:
    """An argument that is called so is reached by its pointer."""
    assert fill("Run {tool}: {/tool}", "bash", {"tool": "read"}) == "Run bash: read"


def test_a_value_is_not_read_as_a_field() -> None:
    """What the model writes is never a template."""
    assert fill("{a} {b}", "bash", {"a": "{b}", "b": "{tool}"}) == "{b} {tool}"


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u2066", "\u200b", "\x1b", "\x00", "\r", "\u3164", "\ufe0f", "\U000e0100", "\u2028", "\ud800"]
)
def test_what_a_screen_would_obey_or_hide_is_spelled_out(hidden: str) -> None:
    """In values and in keys, and in the template too."""
    shown = fill("{a} {b} " + hidden, "bash", {"a": f"x{hidden}y", "b": {hidden: 1}})
    assert hidden not in shown
    assert shown.count("<U+") + shown.count("\\") == 3, "JSON spells a key's control characters by itself"
    assert visible(visible(shown)) == shown


def test_a_cut_says_how_much_it_leaves_out() -> None:
    """And a long value does not push the template's own words out of sight."""
    assert (
        fill("{a} into {b}", "write", {"a": "x" * 1500, "b": "f"}) == "x" * 1000 + "… (500 more characters: see the input) into f"
    )
    whole = fill("{a}{a}{a}{b} end", "write", {"a": "x" * 1000, "b": "y" * 3000})
    assert whole == "x" * 2000 + "… (4004 more characters: see the input)"
    assert fill("{a}", "write", {"a": "\x00" * 1000}) == "<U+0000>" * 125 + "… (875 more characters: see the input)"


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=5), st.text(max_size=3000) | st.integers(), max_size=4))
def test_a_prompt_is_never_long(template: str, arguments: dict[str, object]) -> None:
    """Whatever the template and the arguments are."""
    template += "".join(f"{{{name}}}" for name in arguments)
    assert len(fill(template, "bash", arguments)) <= 2000 + 5 * 50


def test_a_secret_that_is_masked_does_not_reach_the_prompt() -> None:
    """The template is filled with what `mask` shows."""
    arguments = {"command": "curl -H 'Authorization: Bearer hunter2' https://x", "password": "hunter2"}
    said = fill("Run: {command} ({password})", "bash", mask(arguments).shown)
    assert said == f"Run: curl -H 'Authorization: Bearer {MARKER}' https://x ({MARKER})"
