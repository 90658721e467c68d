"""`/openapi.json` is generated from the code, and describes every response, whatever schemathesis sends."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from doors import described
from doors.served import PARTS, Caller, good, message
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Unsatisfiable
from rows.stage import Stage, call

from api import create_app
from api.door import pages
from models.database.transactions import transaction

if TYPE_CHECKING:
    from requests import Session
    from schemathesis import APIOperation, Case, GenerationMode

EXAMPLES = int(os.environ.get("EXAMPLES", "2"))
"""Requests per route, the same each time. For a long run: EXAMPLES=100 and pytest's --timeout 0."""


TABLES = ("agent", "environment", "session", "thread", "approval", "work")
"""Tables with rows for the routes to find. A path parameter has the name of its table and `_id`."""


class World:
    """Rows for the routes to find: a session that waits for a decision, and a session in a self-hosted environment."""

    def __init__(self, caller: Caller, stage: Stage) -> None:
        self.caller, self.stage = caller, stage
        self._last: dict[str, tuple[dict[str, str], Any]] = {}
        """The last rows, by the name of the method that created them: their ids, and the rows as they were then."""

    def ids(self, path: str) -> dict[str, str]:
        """Return the ids of rows for a route, by path parameter."""
        ids = self._unchanged(self._create)
        return ids | self._unchanged(self._create_work) if "/work" in path else ids

    def _unchanged(self, create: Callable[[], dict[str, str]]) -> dict[str, str]:
        """Return the ids of the rows that `create` created last, or of new rows if a request has changed the last ones."""
        ids, rows = self._last.get(create.__name__, ({}, None))
        if not ids or self._read(ids) != rows:
            ids = create()
            self._last[create.__name__] = ids, self._read(ids)
        return ids

    def _create(self) -> dict[str, str]:
        # An earlier request may have halted the workspace, or set a policy that allows or denies all calls.
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

    def _create_work(self) -> dict[str, str]:
        config = {"type": "self_hosted"}
        environment = good(self.caller.post("/v1/environments", json={"name": "E", "config": config}))
        self.caller.say(self.caller.session(environment_id=environment["id"])["id"])
        work = good(self.caller.get(f"/v1/environments/{environment['id']}/work/poll"))
        return {"environment_id": environment["id"], "work_id": work["id"]}

    def _read(self, ids: dict[str, str]) -> Any:
        """Return the rows with these ids, and those that hold for the whole workspace, without the heads of audits."""
        sources = ["workspace t", "halt t WHERE ended_at IS NULL"]
        sources += [f"{name} t WHERE id = %({name}_id)s" for name in TABLES if f"{name}_id" in ids]
        selects = [f"SELECT to_jsonb(t) - '{{audit_seq,audit_head}}'::text[] FROM {source}" for source in sources]
        with transaction(self.stage.workspace_id) as db:
            return db.rows(" UNION ALL ".join(selects), **ids)

    def put_into(self, case: "Case") -> None:
        """Replace the generated ids of a valid request by those of existing rows."""
        ids = self.ids(case.path)
        for name in set(case.path_parameters or {}) & set(ids):
            case.path_parameters[name] = ids[name]
        for values, name in ((case.headers, "anthropic-workspace-id"), (case.headers, "Authorization"), (case.query, "page")):
            (values or {}).pop(name, None)
        if case.path == "/v1/sessions" and isinstance(case.body, dict):
            case.body |= {"agent": ids["agent_id"], "environment_id": ids["environment_id"]}
        if case.path.endswith("/decision") and isinstance(case.body, dict):
            case.body = {"result": "deny", "deny_message": case.body.get("deny_message"), "interrupt": case.body.get("interrupt")}


@pytest.fixture
def world(caller: Caller, stage: Stage) -> World:
    """Rows for the routes to find."""
    return World(caller, stage)


@pytest.fixture
def schema(api: str) -> Any:
    """The API's document with closed schemas. Streams are excluded, because they do not end."""
    import schemathesis  # here, because only one of all test processes needs it

    loaded = schemathesis.openapi.from_dict(described.document(api).content)
    loaded.config.update(base_url=api)
    return loaded.exclude(path_regex="stream$")


@pytest.fixture
def session(world: World) -> "Iterator[Session]":
    """One connection for all requests, with the API key. It looks for no proxy in the environment, as each request would."""
    from requests import Session

    with Session() as session:
        session.trust_env = False
        session.headers["x-api-key"] = world.caller.headers["x-api-key"]
        yield session


@pytest.mark.timeout(400)  # hundreds of requests
@pytest.mark.parametrize("mode", ["positive", pytest.param("negative", marks=pytest.mark.slow)])
def test_the_document_describes_the_response_to_every_request(schema: Any, world: World, session: "Session", mode: str) -> None:
    from schemathesis import GenerationMode
    from schemathesis.core.failures import FailureGroup

    wrong: list[Any] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        try:
            with suppress(Unsatisfiable):  # a route without parameters has no invalid request
                _ask(operation, GenerationMode(mode), world, session)
        except (AssertionError, FailureGroup) as error:
            wrong.append((operation.label, error))
    assert not wrong, "\n\n".join(f"{label}: {_text(error)}" for label, error in wrong)


def _ask(operation: "APIOperation", mode: "GenerationMode", world: World, session: "Session") -> None:
    """Send EXAMPLES requests, valid or invalid by `mode`."""
    import schemathesis
    from schemathesis.specs.openapi import checks as spec

    checks: list[Any] = [
        schemathesis.checks.not_a_server_error,
        spec.status_code_conformance,
        spec.content_type_conformance,
        spec.response_headers_conformance,
        spec.response_schema_conformance,
    ]

    @hypothesis.seed(1)
    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(operation.as_strategy(generation_mode=mode))
    def ask(case: "Case") -> None:
        if mode.is_positive:
            world.put_into(case)
        case.call_and_validate(session=session, checks=checks, timeout=20)

    ask()


def _text(error: BaseException) -> str:
    return "\n".join(str(one) for one in getattr(error, "exceptions", [error]))


@pytest.fixture(scope="module")
def document(api: str) -> dict[str, Any]:
    """The API's document."""
    return described.document(api).content


def test_the_document_has_exactly_the_routes_that_are_no_pages(document: dict[str, Any]) -> None:
    app = create_app()
    served = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        if rule.rule not in PARTS and not pages.is_page(rule.endpoint)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert served == {(path, method) for path, routes in document["paths"].items() for method in routes}


def test_every_json_response_and_stream_has_a_schema(document: dict[str, Any]) -> None:
    for path, method, route in _routes(document):
        for status, answer in route["responses"].items():
            content = answer.get("content", {})
            if "application/json" in content:
                assert content["application/json"]["schema"], (method, path, status)
            if "text/event-stream" in content:
                assert content["text/event-stream"]["schema"]["contentSchema"], (method, path)


def test_a_route_names_the_scope_that_its_key_needs(document: dict[str, Any]) -> None:
    decide = document["paths"]["/v1/approvals/{approval_id}/decision"]["post"]
    assert decide["security"] == [{"key": ["approvals"]}, {"bearer": ["approvals"]}]
    assert document["paths"]["/healthz"]["get"]["security"] == []


def test_names_in_the_document_are_unique_and_without_module_prefixes(document: dict[str, Any]) -> None:
    names = [*document["components"]["schemas"], *(route["operationId"] for _, _, route in _routes(document))]
    assert not [name for name in names if "__" in name], "two models share a name"
    assert len(names) == len(set(names))


def test_a_stream_s_frames_are_described(caller: Caller, stage: Stage, api: str) -> None:
    session = caller.session()
    caller.tell(session["id"], message())
    stage.reply(session["id"], call())
    frame = described.document(api).validator({"$ref": "#/components/schemas/StreamFrame"})
    for event in caller.events(session["id"], include="approvals"):
        frame.validate(event)
    frame.validate({"type": "event_start", "event": {"id": "sevt_1", "type": "agent.message"}})
    delta = {"type": "content_delta", "index": 0, "content": {"type": "text", "text": ""}}
    frame.validate({"type": "event_delta", "event_id": "sevt_1", "delta": delta})


def test_a_response_that_the_document_does_not_describe_fails_a_test(caller: Caller, document: dict[str, Any]) -> None:
    answer = caller.get("/v1/agents/agent_none")
    poorer = described.Document(document | {"paths": {"/v1/agents/{agent_id}": {"get": {"responses": {}}}}})
    with pytest.raises(AssertionError, match="404 is not described"):
        poorer.check(answer)


def _routes(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, routes in document["paths"].items():
        for method, route in routes.items():
            yield path, method, route
