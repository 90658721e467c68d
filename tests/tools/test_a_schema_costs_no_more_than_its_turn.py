"""A tool's schema comes from a client and its input from a model: together they must not stop the process of all other turns."""

import itertools
import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from models.pure.json.fitting import misfit
from models.pure.json.tool_schema import schema_fault

DEEP = 20
"""Each level doubles the time: this is minutes, for every turn of the process."""
CPU_SECONDS = 0.75
"""Two checks of 0.25 s, and what one step takes beyond."""
TOO_SLOW = "input: the tool's schema takes too long to check"
MIXED = [item for i in range(2000) for item in (i, {"a": i})]


def _doubling(levels: int) -> dict[str, Any]:
    return {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)} | {f"a{levels}": {}}


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"properties": {"x": {"type": MIXED}}}, "is not a JSON Schema"),
        ({"required": MIXED}, "is not a JSON Schema"),
        ({"properties": {"x": {"enum": MIXED}}}, None),
        ({"properties": {f"p{i}": {} for i in range(4000)}}, None),
        ({"allOf": [{}] * 9000}, None),
        ({"properties": {"x": {"pattern": "a?" * 15_000}}}, "has the pattern"),
        ({"patternProperties": {rf"(\pL\pM*){{20}}{i}": {} for i in range(1500)}}, "has the pattern"),
        ({"$ref": "#/$defs/a0", "$defs": _doubling(DEEP)}, "takes too long"),
        ({"$ref": "#/$defs/a0", "unevaluatedProperties": False, "$defs": _doubling(DEEP)}, "takes too long"),
    ],
)
def test_a_schema_itself_is_checked_in_bounded_time(schema: dict[str, Any], fault: str | None) -> None:
    before = time.thread_time()
    problem = schema_fault({"type": "object"} | schema)
    assert time.thread_time() - before < CPU_SECONDS
    assert any(word in (problem or "None") for word in (str(fault), "takes too long"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"pattern": "(?:(?:a?b?){1000})c"}, "ab" * 500_000),
        ({"uniqueItems": True}, MIXED * 5),
        ({"patternProperties": {f"^x{i}$": {} for i in range(1000)}}, {f"a{i}": 1 for i in range(20_000)}),
        ({"items": {"enum": list(range(10_000))}}, [-1] * 40_000),
    ],
)
def test_a_long_input_is_checked_in_bounded_time(field: dict[str, Any], value: object) -> None:
    before = time.thread_time()
    assert misfit({"type": "object", "properties": {"x": field}}, {"x": value}) is not None
    assert time.thread_time() - before < CPU_SECONDS


def test_equal_items_are_those_that_json_schema_calls_equal() -> None:
    schema = {"type": "object", "properties": {"x": {"uniqueItems": True}}}
    assert misfit(schema, {"x": [1, True, "1", None, {"a": 1}, {"a": 2}]}) is None
    for twice in ([1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["é", "é"]):
        assert misfit(schema, {"x": twice}) == "input.x: must fit uniqueItems true"


def test_an_input_is_checked_in_bounded_time() -> None:
    # Only a text meets the costly part, so that the door's own trial (nulls) does not.
    schema = {
        "type": "object",
        "$defs": _doubling(DEEP),
        "properties": {"x": {"if": {"type": "string"}, "then": {"$ref": "#/$defs/a0"}}},
    }

    assert misfit(schema, {"x": "go"}) == TOO_SLOW


def test_a_pause_of_the_machine_does_not_make_an_input_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    minutes = itertools.count(0, 60)
    monkeypatch.setattr(time, "monotonic", lambda: next(minutes))

    assert misfit({"type": "object", "properties": {"x": {"type": "string"}}}, {"x": "go"}) is None


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_jsonschema_still_matches_patterns_by_backtracking(keyword: str) -> None:
    """It accepts look-ahead, which no linear-time engine has. When this fails, `models.pure.json.fitting` needs fewer keywords."""
    pattern = "(?=a)ab"
    schema = {keyword: pattern if keyword == "pattern" else {pattern: {"type": "null"}}}
    assert not Draft202012Validator(schema).is_valid("b" if keyword == "pattern" else {"ab": 1})
