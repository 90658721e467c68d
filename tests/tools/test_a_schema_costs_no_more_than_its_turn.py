"""A tool's schema comes from a client and its input from a model: together they must not stop the process of all other turns."""

import itertools
import time

import pytest
from jsonschema import Draft202012Validator

from models.pure.fitting import misfit

DEEP = 20
"""Each level doubles the time: this is minutes, for every turn of the process."""


def test_an_input_is_checked_in_bounded_time() -> None:
    doubling = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(DEEP)} | {f"a{DEEP}": {}}
    # Only a text meets the costly part, so that the door's own trial (nulls) does not.
    schema = {
        "type": "object",
        "$defs": doubling,
        "properties": {"x": {"if": {"type": "string"}, "then": {"$ref": "#/$defs/a0"}}},
    }

    assert misfit(schema, {"x": "go"}) == "input: the tool's schema takes too long to check"


def test_a_pause_of_the_machine_does_not_make_an_input_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    minutes = itertools.count(0, 60)
    monkeypatch.setattr(time, "monotonic", lambda: next(minutes))

    assert misfit({"type": "object", "properties": {"x": {"type": "string"}}}, {"x": "go"}) is None


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_jsonschema_still_matches_patterns_by_backtracking(keyword: str) -> None:
    """It accepts look-ahead, which no linear-time engine has. When this fails, `models.pure.fitting` needs fewer keywords."""
    pattern = "(?=a)ab"
    schema = {keyword: pattern if keyword == "pattern" else {pattern: {"type": "null"}}}
    assert not Draft202012Validator(schema).is_valid("b" if keyword == "pattern" else {"ab": 1})
