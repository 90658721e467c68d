"""`/openapi.json` is made from the code, and the code answers nothing else, whatever schemathesis sends it."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import schemathesis
from doors import described
from doors.served import PARTS, Caller, good, message
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Unsatisfiable
from rows.stage import Stage, call
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks as spec

from api import create_app, pages

EXAMPLES = int(os.environ.get("EXAMPLES", "2"))
"""Of each route and kind: few, and the same each time. For a long run: EXAMPLES=100 and pytest's --timeout 0."""
CHECKS: list[Any] = [
    schemathesis.checks.not_a_server_error,
    spec.status_code_conformance,
    spec.content_type_conformance,
    spec.response_headers_conformance,
    spec.response_schema_conformance,
]


class World:
    """Rows for the routes to find: a session that waits for a decision, and one whose tools a worker of the client's runs."""

    def __init__(self, caller: Caller, stage: Stage) -> None:
        self.caller, self.stage = caller, stage
        self.ids = self.fresh("")

    def fresh(self, path: str) -> dict[str, str]:
        """New rows, for a route that ends or removes them."""
        if "/work" in path:
            config = {"type": "self_hosted"}
            environment = good(self.caller.post("/v1/environments", json={"name": "E", "config": config}))
            self.caller.say(self.caller.session(environment_id=environment["id"])["id"])
            work = good(self.caller.get(f"/v1/environments/{environment['id']}/work/poll"))
            return self.ids | {"environment_id": environment["id"], "work_id": work["id"]}
        # A request before may have halted the workspace, or allowed or denied all of its calls.
        good(self.caller.delete("/v1/halt"))
        good(self.caller.post("/v1/policy", json={"permission_policy": None}))
        session = self.caller.session()
        self.caller.say(session["id"])
        self.stage.reply(session["id"], call())
        [waiting] = good(self.caller.get(f"/v1/sessions/{session['id']}"))["waiting_on"]
        [thread] = good(self.caller.get(f"/v1/sessions/{session['id']}/threads"))["data"]
        return {
            "agent_id": session["agent"]["id"],
            "environment_id": good(self.caller.post("/v1/environments", json={"name": "E"}))["id"],
            "session_id": session["id"],
            "thread_id": thread["id"],
            "approval_id": waiting["approval_id"],
        }

    def put_into(self, case: Case) -> None:
        """Have a request that is valid meet rows that are there."""
        if case.method != "GET" or "/work" in case.path:
            self.ids = self.fresh(case.path)
        for name in set(case.path_parameters or {}) & set(self.ids):
            case.path_parameters[name] = self.ids[name]
        for given, name in ((case.headers, "anthropic-workspace-id"), (case.headers, "Authorization"), (case.query, "page")):
            (given or {}).pop(name, None)
        if case.path == "/v1/sessions" and isinstance(case.body, dict):
            case.body |= {"agent": self.ids["agent_id"], "environment_id": self.ids["environment_id"]}
        if case.path.endswith("/decision") and isinstance(case.body, dict):
            case.body = {"result": "deny", "deny_message": case.body.get("deny_message"), "interrupt": case.body.get("interrupt")}


@pytest.fixture
def world(caller: Caller, stage: Stage) -> World:
    """Rows for the routes to find."""
    return World(caller, stage)


@pytest.fixture
def schema(api: str) -> Any:
    """The document that the API serves, closed; without the streams, which do not end."""
    loaded = schemathesis.openapi.from_dict(described.document(api).content)
    loaded.config.update(base_url=api)
    return loaded.exclude(path_regex="stream$")


@pytest.mark.timeout(400)  # hundreds of requests
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.slow)])
def test_whatever_is_sent_the_document_describes_the_answer(schema: Any, world: World, mode: GenerationMode) -> None:
    wrong: list[Any] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        try:
            with suppress(Unsatisfiable):  # there is nothing wrong that one could send to a route that takes nothing
                _ask(operation, mode, world)
        except (AssertionError, FailureGroup) as error:
            wrong.append((operation.label, error))
    assert not wrong, "\n\n".join(f"{label}: {_said(error)}" for label, error in wrong)


def _ask(operation: APIOperation, mode: GenerationMode, world: World) -> None:
    """Send EXAMPLES requests that fit the document, or that do not."""

    @hypothesis.seed(1)
    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        if mode is GenerationMode.POSITIVE:
            world.put_into(case)
        case.call_and_validate(headers={"x-api-key": world.caller.headers["x-api-key"]}, checks=CHECKS, timeout=20)

    ask()


def _said(error: BaseException) -> str:
    return "\n".join(str(one) for one in getattr(error, "exceptions", [error]))


@pytest.fixture(scope="module")
def document(api: str) -> dict[str, Any]:
    """The document."""
    return described.document(api).content


def test_every_route_is_in_the_document_and_nothing_else_but_the_files_of_pages(document: dict[str, Any]) -> None:
    app = create_app()
    served = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        if rule.rule not in PARTS and not pages.is_page(rule.endpoint)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert served == {(path, method) for path, routes in document["paths"].items() for method in routes}


def test_every_json_answer_has_a_schema(document: dict[str, Any]) -> None:
    for path, method, route in _routes(document):
        for status, answer in route["responses"].items():
            content = answer.get("content", {})
            if "application/json" in content:
                assert content["application/json"]["schema"], (method, path, status)
            if "text/event-stream" in content:
                assert content["text/event-stream"]["schema"]["contentSchema"], (method, path)


def test_a_route_says_which_scope_its_key_needs(document: dict[str, Any]) -> None:
    decide = document["paths"]["/v1/approvals/{approval_id}/decision"]["post"]
    assert decide["security"] == [{"key": ["approvals"]}, {"bearer": ["approvals"]}]
    assert document["paths"]["/healthz"]["get"]["security"] == []


def test_names_in_the_document_are_plain(document: dict[str, Any]) -> None:
    names = [*document["components"]["schemas"], *(route["operationId"] for _, _, route in _routes(document))]
    assert not [name for name in names if "__" in name], "two models share a name"
    assert len(names) == len(set(names))


def test_a_stream_s_frames_are_described(caller: Caller, stage: Stage, document: dict[str, Any]) -> None:
    session = caller.session()
    caller.tell(session["id"], message())
    stage.reply(session["id"], call())
    frame = described.validator(document, {"$ref": "#/components/schemas/StreamFrame"})
    for event in caller.events(session["id"], include="approvals"):
        frame.validate(event)
    deltas: list[dict[str, Any]] = [
        {"type": "event_start", "event": {"id": "sevt_1", "type": "agent.message"}},
        {
            "type": "event_delta",
            "event_id": "sevt_1",
            "delta": {"type": "content_delta", "index": 0, "content": {"type": "text", "text": ""}},
        },
    ]
    for delta in deltas:
        frame.validate(delta)


def test_a_document_that_says_less_than_is_answered_is_found_out(caller: Caller, document: dict[str, Any]) -> None:
    answer = caller.get("/v1/agents/agent_none")
    poorer = described.Document(document | {"paths": {"/v1/agents/{agent_id}": {"get": {"responses": {}}}}})
    with pytest.raises(AssertionError, match="404 is not described"):
        poorer.check(answer)


def _routes(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, routes in document["paths"].items():
        for method, route in routes.items():
            yield path, method, route
