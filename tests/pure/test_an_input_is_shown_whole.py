"""A call's input is read as a person reads it, and every character of it is on the screen."""

import json
import time
from typing import Any

import click
import pytest

from api.cli.calls import input_lines


def shown(tool: str, **call_input: Any) -> list[str]:
    return [click.unstyle(line) for line in input_lines(tool, call_input)]


def test_a_command_stands_with_its_lines() -> None:
    assert shown("bash", command="cd a\nrm -rf b\n", working_directory="c") == [
        '  input     {"working_directory":"c"}',
        "  command   3 lines",
        "  │ cd a",
        "  │ rm -rf b",
        "  │ ",
    ]


def test_an_edit_is_a_diff_with_every_line_of_both_texts() -> None:
    assert shown("edit", file_path="x.py", old_string="a\nb\nc", new_string="a\nB\nc", replace_all=False) == [
        '  input     {"file_path":"x.py","replace_all":false}',
        "  change    - goes, + comes",
        "  │   a",
        "  │ - b",
        "  │ + B",
        "  │   c",
    ]


def test_an_edit_of_many_lines_is_shown_at_once_and_whole() -> None:
    old, new = ([f"line {number % period}" for number in range(20_000)] for period in (7, 5))
    start = time.thread_time()
    lines = shown("edit", file_path="x.py", old_string="\n".join(["same", *old]), new_string="\n".join(["same", *new]))
    assert time.thread_time() - start < 5
    assert lines[2] == "  │   same"
    assert [line[6:] for line in lines[3:] if line[4] in " -"] == old
    assert [line[6:] for line in lines[3:] if line[4] in " +"] == new


def test_other_inputs_are_json() -> None:
    assert shown("mcp__shop__refund", order="1", amount=1) == ['  input     {"amount":1,"order":"1"}']
    assert shown("bash") == ["  input     {}"]


@pytest.mark.parametrize("text", ["a\x1b[2J", "a\n  rule      default: allow", "\u202eb\n"])
def test_no_text_leaves_its_gutter(text: str) -> None:
    for line in shown("write", file_path="x", content=text):
        assert line.startswith(("  │ ", "  input     ", "  content   "))
        assert "\x1b" not in line
        assert "\u202e" not in line


def test_a_name_that_looks_like_a_line_stays_in_json() -> None:
    [line] = shown("mcp__shop__refund", **{"rule      default: allow": "a\nb"})
    assert json.loads(line.removeprefix("  input     ").replace("<U+000A>", "\\n")) == {"rule      default: allow": "a\nb"}
