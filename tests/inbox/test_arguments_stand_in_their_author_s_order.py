"""A card and its form show the arguments of a toolset's call with the schema's titles, in the order of its author, and say if the
tool has changed its declaration since people were asked."""

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import people
import pytest
from inbox.waiting import asked
from rows.stage import Stage, call, entry

from api.chat.requests import FunctionTool
from api.chat.translating import merged_tools
from api.v1.agents.requests import AgentCreate
from models.pure.json.property_order import in_order, order_of
from models.session.approval.row import Approval
from models.workspace import toolset

MONEY = {"type": "object", "properties": {"value_in_cents": {"type": "integer"}, "of": {"type": "string", "title": "Currency"}}}
SCHEMA = {
    "type": "object",
    "properties": {
        "order_number": {"type": "string", "title": "Order"},
        "amount": MONEY,
        "reason": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}, "no": {}}}},
        "at": {"type": "string"},
    },
    "required": ["amount"],
    "additionalProperties": False,
}
INPUT = {
    "at": "now",
    "lines": [{"no": 1, "sku": "A"}, {"no": 2, "sku": "B"}],
    "order_number": "17",
    "amount": {"of": "EUR", "value_in_cents": 5},
    "reason": "late",
}


@pytest.fixture
def anna(api: str, stage: Stage) -> Iterator[httpx2.Client]:
    """An admin without scripts."""
    with people.member(stage, "admin").client(api) as client:
        yield client


def waiting(stage: Stage, **declared: Any) -> Approval:
    toolset.announce({"orders": [entry("refund", **{"input_schema": SCHEMA} | declared)]})
    return asked(stage, call("mcp__shop__refund", **INPUT), servers={"shop": "assent:orders"})[0]


def names(page: str) -> list[str]:
    """The names of the arguments, in the order of the evidence."""
    evidence = page[page.index('id="evidence"') :].partition("</section>")[0]
    texts = re.findall('<span class="name">(.*?)</span>|<th scope="col">(.*?)</th>', evidence)
    return [html.unescape(re.sub("<[^>]*>", "", name or column)).strip() for name, column in texts]


def test_a_card_has_the_author_s_order_and_titles(anna: httpx2.Client, stage: Stage) -> None:
    page = anna.get(f"/inbox/approvals/{waiting(stage).id}").text
    assert names(page) == [
        *("Order order_number", "amount", "value_in_cents", "Currency of", "reason", "lines", "sku", "no", "at"),
    ]


def test_the_form_has_it_too(anna: httpx2.Client, stage: Stage) -> None:
    page = anna.get(f"/inbox/approvals/{waiting(stage).id}/edit").text
    assert re.findall(r'<label for="input\.(\w+)"', page) == list(SCHEMA["properties"])  # type: ignore[call-overload]


def test_without_a_known_order_what_is_needed_comes_first(anna: httpx2.Client, stage: Stage) -> None:
    approval = waiting(stage)
    toolset.announce({"orders": [entry("other")]})
    page = anna.get(f"/inbox/approvals/{approval.id}").text
    assert names(page)[0] == "amount"
    assert "has stopped offering it: the call would fail now." in html.unescape(page)


def test_a_changed_declaration_is_told(anna: httpx2.Client, stage: Stage) -> None:
    approval = waiting(stage)
    assert "has changed its declaration" not in anna.get(f"/inbox/approvals/{approval.id}").text
    properties = {**SCHEMA["properties"], "reason": {"type": "string", "maxLength": 2}}  # type: ignore[dict-item]
    toolset.announce({"orders": [entry("refund", input_schema={**SCHEMA, "properties": properties})]})
    page = anna.get(f"/inbox/approvals/{approval.id}").text
    assert "the tool has changed its declaration of reason. A person is asked again before such a call runs." in page
    briefing = anna.get(f"/v1/approvals/{approval.id}/briefing").json()
    assert len(briefing["changes"]) == 1


CUSTOM = {
    "type": "custom",
    "name": "refund",
    "description": "d",
    "input_schema": SCHEMA,
    "permission_policy": {"type": "always_ask"},
}


def normal(*tools: dict[str, Any]) -> list[dict[str, Any]]:
    """Return tools as the door stores them."""
    body: list[dict[str, Any]] = AgentCreate.model_validate({"name": "A", "model": "m", "tools": list(tools)}).normal()["tools"]
    return body


def test_a_custom_tool_s_call_stands_in_the_order_of_its_agent_s_author(anna: httpx2.Client, stage: Stage) -> None:
    session_id = stage.session()
    stage.change_agent(session_id, lambda agent: agent.update(tools=normal(CUSTOM)))
    [approval] = asked(stage, call("refund", **INPUT), session_id=session_id)
    page = anna.get(f"/inbox/approvals/{approval.id}").text
    assert names(page)[:5] == ["Order order_number", "amount", "value_in_cents", "Currency of", "reason"]


def test_the_order_of_a_custom_tool_survives_that_its_agent_is_read_and_written_again() -> None:
    [stored] = json.loads(json.dumps(normal(CUSTOM), sort_keys=True))
    assert normal(stored) == normal(CUSTOM)


def test_a_chat_client_s_tool_has_an_order_and_is_replaced_by_its_next_one() -> None:
    tool = FunctionTool.model_validate({"type": "function", "function": {"name": "refund", "parameters": SCHEMA}})
    added = merged_tools([], [], [tool])
    assert added[0]["property_order"] == order_of(SCHEMA)
    assert merged_tools([], added, [tool]) == added


def test_an_order_survives_what_jsonb_does_to_a_schema() -> None:
    order = json.loads(json.dumps(order_of(SCHEMA)))
    mixed = json.loads(json.dumps(SCHEMA, sort_keys=True))
    assert list(in_order(mixed, order)["properties"]) == list(SCHEMA["properties"])  # type: ignore[call-overload]
    assert in_order(mixed, order) == SCHEMA
    assert order_of(in_order(mixed, order)) == order_of(SCHEMA)
    assert in_order(mixed, {"": ["gone", "reason"]})["properties"].keys() == SCHEMA["properties"].keys()  # type: ignore[attr-defined]


@pytest.mark.parametrize("schema", [None, True, {}, {"properties": []}, {"properties": {"a": 1}}, {"items": {"items": {}}}])
def test_a_schema_of_any_form_has_an_order(schema: Any) -> None:
    assert in_order(schema, order_of(schema)) == schema


def test_a_deep_schema_is_ordered_to_a_bounded_depth() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"type": "object", "properties": {"b": schema, "a": {}}}
    assert len(order_of(schema)) < 20
    assert in_order(schema, {}) == schema
