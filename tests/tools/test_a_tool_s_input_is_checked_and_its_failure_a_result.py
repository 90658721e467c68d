"""The built-in tools, what a tool's input must be, and that a tool's failure is a result."""

import gc
import logging
import sys
import threading
import time
from functools import reduce

import pytest
from looking import text

from assent import ToolError
from models.pure.json.fitting import misfit
from workers.tools import execution
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET
from workers.tools.kinds import Tool, ToolResult, text_result
from workers.tools.output import OutcomeUnknown

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": False}


def tool(run, **changes):
    fields = {"name": "probe", "description": "", "input_schema": SCHEMA, "effect": "read", "idempotent": True}
    return Tool(**{**fields, "seconds": None, "prompt": "", "run": run, **changes})


def test_the_six_built_in_tools_have_their_effects():
    effects = {t.name: (t.effect, t.idempotent) for t in AGENT_TOOLSET.values()}
    assert effects == {
        "bash": ("write", False),
        "read": ("read", True),
        "write": ("write", True),
        "edit": ("write", False),
        "glob": ("read", True),
        "grep": ("read", True),
    }


def test_the_six_built_in_tools_take_the_fields_of_the_agent_toolset_and_bash_a_directory_too():
    from anthropic.types import beta

    for known in AGENT_TOOLSET.values():
        theirs = getattr(beta, f"BetaManagedAgentsAgentToolset20260401{known.name.title()}Input").model_json_schema()
        ours = {"working_directory"} if known.name == "bash" else set()
        assert set(known.input_schema["properties"]) == set(theirs["properties"]) | ours
        assert set(known.input_schema.get("required", [])) == set(theirs.get("required", []))


def test_no_built_in_tool_takes_a_field_that_it_does_not_declare():
    for known in AGENT_TOOLSET.values():
        assert "nonsense" in (misfit({**known.input_schema, "required": []}, {"nonsense": 1}) or "")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "input.path: is required"),
        ({"path": 3}, "input.path: must be string, not integer"),
        ({"path": True}, "input.path: must be string, not boolean"),
        ({"path": None}, "input.path: must be string, not null"),
        ({"path": "x", "pth": 1}, "input: pth is not a field of this tool"),
        ([], "input: must be object, not array"),
        ({"path": "x"}, None),
    ],
)
def test_a_wrong_input_is_an_error_that_names_the_field(value, says):
    assert misfit(SCHEMA, value) == says


def test_an_error_is_short_and_has_no_invisible_characters():
    schema = {"type": "object", "properties": {}, "additionalProperties": {"enum": ["x"]}}
    error = misfit(schema, {f"\0{n}" * 1_000: "secret" * 10_000 for n in range(100)})
    assert error is not None
    assert len(error) < 6_000
    assert "\0" not in error


def test_nested_fields_are_named():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    assert misfit(schema, {"a": [1, "x"]}) == "input.a[1]: must be integer, not string"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "https://localhost:1/schema"},
        {"type": 5},
        {"properties": 5},
        {"additionalProperties": False, "patternProperties": {"(": {}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"unevaluatedProperties": False, "patternProperties": {"(a*)*b": {}}},
    ],
)
def test_a_wrong_schema_is_an_error(schema):
    """On a slow machine an endless schema may reach its time limit first."""
    error = misfit(schema, {"a": "x"}) or ""
    assert "schema cannot be used" in error or ("$ref" in schema and "schema takes too long" in error)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(x+x+)+y$"}}},
        {"properties": {"a": {"pattern": "^" + "x?" * 40 + "x" * 40 + "$"}}},
        {"patternProperties": {"^(x+x+)+y$": {}}},
        {"patternProperties": {"^(x+x+)+y$": {}}, "additionalProperties": False},
    ],
)
def test_a_hostile_pattern_is_matched_quickly(schema):
    begun = time.process_time()
    misfit(schema, {"a": "x" * 1_000, "x" * 1_000: 1})
    assert time.process_time() - begun < 0.5


def test_patterns_work():
    schema = {"properties": {"a": {"pattern": "^[a-z]+-[0-9]+$"}}, "patternProperties": {"^x": {"type": "integer"}}}
    schema = {**schema, "additionalProperties": False}
    assert misfit(schema, {"a": "ab-12", "x1": 1}) is None
    assert misfit(schema, {"a": "ab12"}) == "input.a: must match the pattern ^[a-z]+-[0-9]+$"
    assert misfit(schema, {"x1": "1"}) == "input.x1: must be integer, not string"
    assert misfit(schema, {"y": 1}) == "input: y is not a field of this tool"


@pytest.mark.parametrize(
    "rule", [{"minLength": 40}, {"enum": ["a"]}, {"const": "a"}, {"anyOf": [{"maxLength": 1}]}, {"pattern": "^a$"}, {"not": {}}]
)
def test_no_error_repeats_a_value_that_may_be_a_secret(rule):
    error = misfit({"properties": {"password": {"type": "string", **rule}}}, {"password": "hunter2"}) or ""
    assert error.startswith("input.password: must ")
    assert "hunter2" not in error


@pytest.fixture
def collects_no_garbage():
    """Pause the garbage collector. At the end of the stack, finalizers of other tests' objects would fail."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collects_no_garbage")
def test_too_deeply_nested_input_is_an_error():
    value: object = 1
    for _ in range(sys.getrecursionlimit() * 2):
        value = {"a": value}
    schema = {"properties": {"a": {"$ref": "#"}}}
    assert misfit(schema, value) is not None


def test_a_tool_never_sees_input_that_does_not_fit(context):
    def run(_context, _fields):
        raise AssertionError("ran")

    result = execution.execute(tool(run), context(), {"path": 1})
    assert result.is_error
    assert text(result) == "probe: input.path: must be string, not integer"


def test_a_cancelled_call_does_not_begin(call):
    cancelled = threading.Event()
    cancelled.set()
    assert text(call("bash", cancelled=cancelled, command="touch ran")) == "bash: cancelled before it began"


def test_a_tool_error_and_an_unexpected_exception_are_results(context, caplog):
    def refuses(_context, _fields):
        raise ToolError("not today \0")

    def breaks(_context, fields):
        raise KeyError(fields["path"])

    assert text(execution.execute(tool(refuses), context(), {"path": "x"})) == "probe: not today \\x00"
    with caplog.at_level(logging.ERROR):
        result = execution.execute(tool(breaks), context(), {"path": "secret"})
    assert result.is_error
    assert text(result) == "probe: failed inside (KeyError)"
    assert "secret" not in caplog.text
    assert "sevt_call" in caplog.text


def test_an_unknown_outcome_is_raised_to_the_worker(context):
    def lost(_context, _fields):
        raise OutcomeUnknown("who knows")

    with pytest.raises(OutcomeUnknown):
        execution.execute(tool(lost), context(), {"path": "x"})


def test_results_are_cleaned_and_never_empty(context):
    assert text(execution.execute(tool(lambda *_: text_result("a\0")), context(), {"path": "x"})) == "a\\x00"
    assert text(execution.execute(tool(lambda *_: text_result("", "")), context(), {"path": "x"})) == "(nothing)"


@pytest.mark.parametrize(
    "data", [{"a": "x" * 1_000_000}, reduce(lambda inside, _: {"a": inside}, range(900), {})], ids=["long", "deep"]
)
def test_data_that_is_too_long_or_too_deep_is_left_out(context, data):
    result = execution.execute(
        tool(lambda *_: ToolResult([{"type": "text", "text": "done"}], structured=data)), context(), {"path": "x"}
    )
    assert (text(result), result.structured) == ("done", None)


def test_a_tools_own_time_limit_wins_over_the_setting():
    assert tool(None).time_limit == 120
    assert tool(None, seconds=3).time_limit == 3
