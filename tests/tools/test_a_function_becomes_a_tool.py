"""A plain typed function under a decorator: its schema, its arguments, its result, and what is refused with a remedy."""

import asyncio
import enum
import json
import logging
import re
import threading
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from looking import text
from pydantic import BaseModel, Field

from assent import Cache, Context, Document, Image, ToolError, Toolset
from models.pure.json.fitting import misfit
from models.pure.masking import mask
from workers.tools import execution
from workers.tools.kinds import Tool, ToolResult
from workers.tools.python import checking, child, running
from workers.tools.python.runner.tools import TRIES, RunnableTool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    """One line of an order."""

    sku: str
    count: int = Field(gt=0)


@dataclass
class Point:
    x: int
    on: date


@pytest.fixture
def shop():
    return Toolset("shop", description="A shop.")


@pytest.fixture
def declared(shop):
    """Declares a function as a tool that reads, and gives the tool, whose calls run in this process."""

    def declare(function, **options):
        assert shop.tool(**{"effect": "read", **options})(function) is function
        return in_this_process(RunnableTool(shop.name, shop.tools[function.__name__]))

    return declare


def in_this_process(runnable):
    """A listed tool as the worker has it, without a process of its own."""
    assert checking.fault(runnable.entry) is None

    def run(context, fields):
        return ToolResult(**runnable.run(child._call_of(context), fields, context.cancelled))

    return Tool.of_entry(runnable.entry, run)


def test_a_functions_signature_is_the_tools_schema(declared):
    def order(sku: str, count: Annotated[int, Field(ge=1, le=9)] = 1, way: Literal["post", "van"] | None = None) -> str:
        """Order something.

        Nothing is paid yet.

        Args:
            sku: What to order,
                by its number.
            way (str): How it travels.

        Raises:
            ToolError: Not here.
        """
        return sku

    tool = declared(order)
    assert tool.description == "Order something.\n\nNothing is paid yet."
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "sku": {"type": "string", "description": "What to order, by its number."},
            "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
            "way": {
                "anyOf": [{"type": "string", "enum": ["post", "van"]}, {"type": "null"}],
                "default": None,
                "description": "How it travels.",
            },
        },
        "required": ["sku"],
        "additionalProperties": False,
    }


def test_a_description_in_the_annotation_wins_over_the_docstring(declared):
    def look(at: Annotated[str, Field(description="near")], of: str) -> None:
        """Look.

        Args:
            at: far
            of: only here
        """

    properties = declared(look).input_schema["properties"]
    assert (properties["at"]["description"], properties["of"]["description"]) == ("near", "only here")


def test_a_function_without_parameters_takes_an_empty_object(declared, context):
    def ping() -> str:
        "Ping."
        return "pong"

    tool = declared(ping)
    assert misfit(tool.input_schema, {}) is None
    assert misfit(tool.input_schema, {"a": 1}) == "input: a is not a field of this tool"
    assert text(execution.execute(tool, context(), {})) == "pong"


def test_arguments_come_as_the_types_that_are_declared(declared, context):
    got: list[Any] = []

    def take(
        on: date, at: datetime, colour: Colour, price: Decimal, lines: list[Line], point: Point, where: Path, some: set[int]
    ) -> None:
        "Take."
        got.extend((on, at, colour, price, lines, point, where, some))

    tool = declared(take)
    fields = {
        "on": "2024-02-29",
        "at": "2024-02-29T12:00:00Z",
        "colour": "red",
        "price": "12.10",
        "lines": [{"sku": "a", "count": 2}],
        "point": {"x": 1, "on": "2024-01-01"},
        "where": "a/b",
        "some": [1, 2],
    }
    assert misfit(tool.input_schema, fields) is None
    tool.run(context(), fields)
    assert got == [
        date(2024, 2, 29),
        datetime.fromisoformat("2024-02-29T12:00:00+00:00"),
        Colour.RED,
        Decimal("12.10"),
        [Line(sku="a", count=2)],
        Point(1, date(2024, 1, 1)),
        Path("a/b"),
        {1, 2},
    ]


def test_every_schema_can_be_checked_in_linear_time(declared):
    def pay(price: Decimal, most: Annotated[Decimal, Field(max_digits=5, decimal_places=2)]) -> None:
        "Pay."

    schema = declared(pay).input_schema
    assert misfit(schema, {"price": "1.5", "most": "123.45"}) is None
    assert misfit(schema, {"price": 1.5, "most": 1}) is None
    assert misfit(schema, {"price": [], "most": 1}) is not None


def test_a_value_that_only_the_type_refuses_is_an_error_with_the_field_and_without_the_value(declared, context):
    def on(day: date, line: Line) -> None:
        "On a day."

    result = execution.execute(declared(on), context(), {"day": "secretly", "line": {"sku": "a", "count": 2}})
    assert result.is_error
    assert text(result).startswith("on: input.day: Input should be a valid date")
    assert "secretly" not in text(result)


def test_a_missing_argument_is_the_functions_own_default(declared, context):
    default = [date(2024, 1, 1)]
    got = []

    def take(days: list[date] = default, more: Any = default) -> None:
        "Take."
        got.extend((days, more))

    declared(take).run(context(), {})
    assert got[0] is default
    assert got[1] is default


def test_any_name_is_good_for_a_parameter(declared, context):
    def odd(json: str, _hidden: int, model_config: bool, schema: str = "s", copy: int = 1) -> dict[str, Any]:
        "Odd names."
        return locals()

    fields = {"json": "j", "_hidden": 2, "model_config": True}
    assert declared(odd).run(context(), fields).structured == fields | {"schema": "s", "copy": 1}


def test_the_context_is_given_and_not_in_the_schema(declared, context, files):
    got: list[Context] = []

    def write(name: str, ctx: Context) -> None:
        """Write.

        Args:
            ctx: Ours.
        """
        got.append(ctx)

    call = context()
    call.principal, call.attempt, call.workspace_id = "policy", 2, "wrkspc_1"
    tool = declared(write, workdir=True)
    assert list(tool.input_schema["properties"]) == ["name"]
    tool.run(call, {"name": "a"})
    [seen] = got
    assert (seen.call_id, seen.session_id, seen.principal, seen.attempt) == ("sevt_call", "sesn_1", "policy", 2)
    assert (seen.workspace_id, seen.workdir) == ("wrkspc_1", files)
    assert seen.cancelled is call.cancelled
    assert isinstance(seen.log, logging.Logger)


def test_a_tool_has_files_only_with_workdir(declared, context):
    def write(ctx: Context) -> str:
        "Write."
        return str(ctx.workdir)

    tool = declared(write)
    assert tool.workdir is False
    with pytest.raises(RuntimeError, match="workdir=True"):
        tool.run(context(), {})


def test_a_function_stays_itself(shop):
    @shop.tool(effect="write")
    def pay(cents: int, ctx: Context) -> str:
        "Pay."
        return f"{cents} by {ctx.call_id}"

    assert pay(3, Context("call_1")) == "3 by call_1"


@pytest.mark.parametrize(
    ("value", "shown", "structured"),
    [
        ("a\nb", "a\nb", None),
        ("", "(nothing)", None),
        (None, "(nothing)", None),
        ({"a": Decimal("1.5"), "b": date(2024, 1, 1)}, '{\n "a": "1.5",\n "b": "2024-01-01"\n}', {"a": "1.5", "b": "2024-01-01"}),
        (Line(sku="ü", count=1), '{\n "sku": "ü",\n "count": 1\n}', {"sku": "ü", "count": 1}),
        (Point(1, date(2024, 1, 1)), '{\n "x": 1,\n "on": "2024-01-01"\n}', {"x": 1, "on": "2024-01-01"}),
        ([Point(1, date(2024, 1, 1))], None, {"result": [{"x": 1, "on": "2024-01-01"}]}),
        ([], "[]", {"result": []}),
        (3, "3", {"result": 3}),
        (True, "true", {"result": True}),
        (Colour.RED, '"red"', {"result": "red"}),
        (float("nan"), "null", {"result": None}),
        ({1: {2}}, '{\n "1": [\n  2\n ]\n}', {"1": [2]}),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_return_value_becomes_text_and_data(declared, context, value, shown, structured):
    def give() -> Any:
        "Give."
        return value

    result = declared(give).run(context(), {})
    assert not result.is_error
    assert shown is None or text(result) == shown
    assert result.structured == structured
    json.dumps(result.structured, allow_nan=False)


def test_images_and_documents_are_blocks_of_their_own(declared, context):
    def show() -> list[Any]:
        "Show."
        return ["Look:", Image(b"\x89PNG"), Document(b"%PDF", title="T"), Document("plain", "text/plain")]

    assert declared(show).run(context(), {}).content == [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "title": "T"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
    ]


@pytest.mark.parametrize("value", [b"bytes", object(), {"a": object()}, {"a": b"\xff"}])
def test_a_value_without_json_is_an_error_that_says_that_the_function_ran(declared, context, value):
    def give() -> Any:
        "Give."
        return value

    result = declared(give).run(context(), {})
    assert result.is_error
    assert "it ran to its end, but its return value" in text(result)


def test_a_tool_errors_text_is_the_result(declared, context):
    def refuse() -> None:
        "Refuse."
        raise ToolError("no such order")

    result = execution.execute(declared(refuse), context(), {})
    assert (result.is_error, text(result)) == (True, "refuse: no such order")


def test_masked_parameters_are_shown_to_nobody(declared):
    def pay(cents: int, card: str, to: Line | None = None) -> None:
        "Pay."

    schema = declared(pay, masked=("card", "to")).input_schema
    shown = mask({"cents": 1, "card": "4111", "to": {"sku": "a", "count": 1}}, schema).arguments
    assert shown == {"cents": 1, "card": "«masked»", "to": "«masked»"}


@pytest.fixture
def flaky(declared, monkeypatch):
    """A tool that fails with the given errors, one by one, then succeeds; and the ids of its calls."""
    monkeypatch.setattr("workers.tools.python.runner.tools.WAIT_SECONDS", 0.001)

    def make(*errors, retry_on=(ConnectionError,)):
        ids, left = [], list(errors)

        def call(ctx: Context) -> str:
            "Call."
            ids.append(ctx.call_id)
            if left:
                raise left.pop(0)
            return "at last"

        return declared(call, retry_on=retry_on), ids

    return make


def test_retry_on_repeats_the_call_under_the_same_key(flaky, context):
    tool, ids = flaky(ConnectionResetError(), ConnectionError())
    assert text(tool.run(context(), {})) == "at last"
    assert ids == ["sevt_call"] * 3


def test_a_call_is_tried_a_limited_number_of_times(flaky, context):
    tool, ids = flaky(*[ConnectionError()] * 9)
    with pytest.raises(ConnectionError):
        tool.run(context(), {})
    assert len(ids) == TRIES


def test_other_errors_are_not_retried(flaky, context):
    tool, ids = flaky(KeyError())
    with pytest.raises(KeyError):
        tool.run(context(), {})
    assert len(ids) == 1


def test_a_tool_error_is_never_retried(flaky, context):
    tool, ids = flaky(ToolError("no"), retry_on=(Exception,))
    with pytest.raises(ToolError):
        tool.run(context(), {})
    assert len(ids) == 1


def test_a_cancelled_call_is_not_retried(flaky, context):
    tool, ids = flaky(ConnectionError())
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(ConnectionError):
        tool.run(context(cancelled=cancelled), {})
    assert len(ids) == 1


def test_a_reading_tool_is_idempotent_unless_declared_otherwise(shop):
    for name, options in {"a": {"effect": "read"}, "b": {"effect": "read", "idempotent": False}, "c": {"effect": "write"}}.items():

        def plain() -> None:
            "Plain."

        plain.__name__ = name
        shop.tool(**options)(plain)
    assert [declaration.idempotent for declaration in shop.tools.values()] == [True, False, False]


def test_all_that_is_declared_is_described_and_read_back(declared):
    rules = {"type": "rules", "default": "ask", "rules": [{"effect": "deny", "match": "pay:to=x*"}]}

    def pay(to: str, cents: int = 1) -> None:
        "Pay."

    tool = declared(
        pay,
        idempotent=False,
        seconds=3,
        cache=Cache(9, "workspace"),
        prompt="Pay {cents} {tool}",
        policy=rules,
        options=("once", "session"),
        default_scope="session",
        widest_match="exact",
        queue="heavy.1",
    )
    entry = json.loads(json.dumps(tool.as_entry))
    assert entry == {
        "name": "pay",
        "description": "Pay.",
        "input_schema": tool.input_schema,
        "effect": "read",
        "idempotent": False,
        "seconds": 3,
        "prompt": "Pay {cents} {tool}",
        "cache": {"seconds": 9, "scope": "workspace"},
        "policy": rules,
        "approval": {"options": ["once", "session"], "default_scope": "session", "widest_match": "exact"},
        "queue": "heavy.1",
        "workdir": False,
        "annotations": {},
    }
    assert running.toolset_tool("shop", entry).as_entry == entry


def test_a_policy_may_be_one_word(declared):
    def pay(to: str) -> None:
        "Pay."

    assert declared(pay, policy="always_deny").policy == {"type": "always_deny"}


async def later(a: str) -> None:
    "Later."


def many(*a: str) -> None:
    "Many."


def named(**a: str) -> None:
    "Named."


def untyped(a) -> None:
    "Untyped."


def positional(a: str, /) -> None:
    "Positional."


def unspeakable(a: asyncio.Queue) -> None:
    "Unspeakable."


def unknown(a: "Nowhere") -> None:  # noqa: F821 - that is the fault
    "Unknown."


def in_field(a: str = Field("x")) -> None:
    "In field."


def looking_round(a: Annotated[str, Field(json_schema_extra={"pattern": "(?=a)b"})]) -> None:
    "Looking round."


def generator(a: str):
    "Generator."
    yield a


def silent(a: str) -> None: ...


def misdocumented(a: str) -> None:
    """Misdocumented.

    Args:
        b: What is b?
    """


def raw(a: str) -> bytes:
    "Raw."
    return b""


def good(a: str) -> None:
    "Good."


RULE = {"effect": "deny", "match": {"tool": "good", "input": [{"path": "/b", "gt": 1}]}}
OTHER = {"effect": "deny", "match": "bash"}
WRONG = {"effect": "deny"}


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (lambda: None, {}, "its name cannot be a tool's"),
        (good, {"effect": "delete"}, "good: unknown effect 'delete'; use 'read' or 'write'"),
        (good, {"seconds": 0}, "good: seconds is 0; use a number above 0"),
        (good, {"seconds": float("nan")}, "good: seconds is nan; use a number above 0"),
        (good, {"cache": 60}, r"good: cache is not a Cache; write Cache\(seconds\)"),
        (good, {"effect": "write", "cache": Cache(60)}, "good: cache hides that .* leave it out"),
        (good, {"effect": "write", "retry_on": (OSError,)}, "good: retry_on calls the function again; write idempotent=True"),
        (good, {"retry_on": [OSError]}, "good: retry_on must be a tuple of exceptions"),
        (good, {"retry_on": (KeyboardInterrupt,)}, "good: retry_on must be a tuple of exceptions"),
        (good, {"masked": "a"}, "good: masked is a text; write a tuple"),
        (good, {"options": ("deny",)}, r"good: options is \('deny',\); write a tuple of 'once', .* people may always deny"),
        (good, {"options": ()}, r"good: options is \(\); write a tuple"),
        (good, {"options": "once"}, "good: options is 'once'; write a tuple"),
        (good, {"default_scope": "once"}, "good: default_scope is 'once'; use 'session' or 'always'"),
        (good, {"options": ("once",), "default_scope": "always"}, "good: default_scope is 'always'; .* one of the options"),
        (good, {"widest_match": "all"}, "good: widest_match is 'all'; use 'tool' or 'exact'"),
        (good, {"queue": "no such"}, "good: queue 'no such': use up to 64"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or "-".join(value if isinstance(value, dict) else ()) or "",
)
def test_a_wrong_declaration_is_refused_where_it_stands_with_a_remedy(shop, function, options, says):
    with pytest.raises(ValueError, match=says):
        shop.tool(**{"effect": "read", **options})(function)
    assert shop.tools == {}


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (later, {}, "later: is async; write it with plain def"),
        (many, {}, "many, parameter a: a model cannot fill .*; name each parameter"),
        (named, {}, "named, parameter a: a model cannot fill"),
        (untyped, {}, "untyped, parameter a: has no type; annotate it, as in a: str"),
        (positional, {}, "positional, parameter a: is positional-only.*; remove the /"),
        (unspeakable, {}, "unspeakable, parameter a: its type has no JSON Schema.*; use plain types"),
        (unknown, {}, "unknown: its annotations name 'Nowhere'.*; import the name there"),
        (in_field, {}, "in_field, parameter a: Field is its default; write a: Annotated"),
        (generator, {}, "generator: is a generator; return a list"),
        (silent, {}, "silent: has no docstring; describe the tool in one"),
        (misdocumented, {}, "misdocumented: its docstring's Args names 'b', which is none of its parameters; they are: a"),
        (raw, {}, "raw: a model cannot read bytes; return an Image or a Document"),
        (Point, {}, "Point: is not a plain function; decorate a function made by def"),
        (good, {"masked": ("b",)}, "good: masked names 'b', which is none of its parameters; they are: a"),
        (good, {"prompt": "Do {b.c}"}, "good: prompt names 'b', which is none of its parameters"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or "-".join(value if isinstance(value, dict) else ()) or "",
)
def test_a_signature_that_no_model_can_fill_is_refused_at_the_listing(shop, function, options, says):
    shop.tool(effect="read", **options)(function)
    with pytest.raises((ValueError, TypeError), match=says):
        RunnableTool(shop.name, next(iter(shop.tools.values())))


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (looking_round, {}, r"the pattern '\(\?=a\)b' has look-around.*; write it without"),
        (good, {"policy": "always"}, "policy: type: unknown policy 'always'; use always_allow"),
        (good, {"policy": {"type": "rules", "default": "ask", "rules": [WRONG]}}, "policy: rules.0.match: must be"),
        (good, {"policy": {"type": "rules", "default": "ask", "rules": [RULE]}}, "policy names 'b', which is none"),
        (good, {"policy": {"type": "rules", "default": "ask", "rules": [OTHER]}}, "policy: a rule is about 'bash'; match"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or "-".join(value if isinstance(value, dict) else ()) or "",
)
def test_a_policy_and_a_pattern_are_checked_by_the_worker(shop, function, options, says):
    shop.tool(effect="read", **options)(function)
    fault = checking.fault(RunnableTool(shop.name, next(iter(shop.tools.values()))).entry)
    assert re.match(says, fault)


def test_a_tools_name_is_unique_and_valid(shop):
    shop.tool(effect="read")(good)
    with pytest.raises(ValueError, match="toolset shop has a tool of that name already; rename one"):
        shop.tool(effect="read")(good)

    def size() -> None:
        "Size."

    size.__name__ = "größe"
    with pytest.raises(ValueError, match="its name cannot be a tool's; use 1 to 64 letters"):
        shop.tool(effect="read")(size)


@pytest.mark.parametrize("name", ["", "Shop", "my shop", "a__b", "a_", "1a", "builtin", "session", "a" * 49, "a:b"])
def test_a_toolset_name_that_cannot_be_part_of_an_address_or_a_tools_name_is_refused(name):
    with pytest.raises(ValueError, match=f"toolset '{name}': .*use"):
        Toolset(name)


def test_unknown_options_are_refused(shop):
    with pytest.raises(TypeError, match="idempotant"):
        shop.tool(effect="read", idempotant=True)
