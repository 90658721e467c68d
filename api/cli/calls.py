"""The input of a call as people read it: a command and a text with their lines, an edit as a diff. The rest is JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

import click
import rfc8785

from models.pure.text.line_diff import whole_change
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible

_DIFF = ("old_string", "new_string")
_COLOURS = {"-": "red", "+": "green"}


def input_lines(tool: str, call_input: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines that show an input whole: first JSON with all short fields, then each text behind a gutter."""
    edit = _DIFF if tool == "edit" and all(isinstance(call_input.get(name), str) for name in _DIFF) else ()
    texts = [name for name, value in call_input.items() if name not in edit and _is_text(tool, name, value)]
    others = {name: value for name, value in call_input.items() if name not in {*edit, *texts}}
    if others or not (edit or texts):
        yield f"  input     {visible(rfc8785.dumps(others).decode())}"
    for name in texts:
        lines = call_input[name].split("\n")
        yield f"  {visible(name):<9} {number_with_noun(len(lines), 'line')}"
        yield from (f"  │ {visible(line)}" for line in lines)
    if edit:
        yield "  change    - goes, + comes"
        yield from _diff(call_input["old_string"].split("\n"), call_input["new_string"].split("\n"))


def _is_text(tool: str, name: str, value: Any) -> bool:
    """True if a value is shown with its lines. JSON shows an empty text, and names that would not look like names."""
    return isinstance(value, str) and name.isidentifier() and ("\n" in value or (tool, name) == ("bash", "command"))


def _diff(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield every line of both texts, those of the old one that go before those that come."""
    for line in whole_change(old, new):
        text = f"  │ {line[0]} {visible(line[1:])}"
        yield click.style(text, fg=_COLOURS[line[0]]) if line[0] in _COLOURS else text
