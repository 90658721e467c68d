"""The OpenAPI document, made from the routes and what their doors say of themselves: nothing here knows any of them."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from flask import Flask
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema
from werkzeug.routing import Rule

from api.answers.base import Error
from api.door import EVENT_STREAM, IDEMPOTENCY_KEY, JSON, Door, doors
from api.parsing import ID

Json = dict[str, Any]

_ABOUT = (
    "Runs AI agents that must ask a person before they act. In the shape of Claude's Managed Agents API: the official SDKs are "
    "clients. Any `anthropic-version`, `anthropic-beta` and `?beta=true` are taken and change nothing."
)
_TEXT = {"type": "string"}
_HEADERS: dict[str, Json] = {
    "request-id": {"description": "The request's name in the server's log.", "required": True, "schema": _TEXT},
    "x-should-retry": {"description": "Coming back is of no use.", "required": True, "schema": {"const": "false"}},
    "retry-after": {"description": "Seconds.", "required": True, "schema": {"type": "string", "pattern": "^[0-9]+$"}},
    "idempotent-replayed": {"description": "The answer that was given before.", "schema": {"const": "true"}},
    "anthropic-ratelimit-requests-limit": {"description": "Requests at once, after a rest.", "schema": _TEXT},
    "anthropic-ratelimit-requests-remaining": {"description": "How many of them are left.", "schema": _TEXT},
    "anthropic-ratelimit-requests-reset": {
        "description": "When all of them are there again.",
        "schema": {"type": "string", "format": "date-time"},
    },
}
_ASKED: dict[str, Json] = {
    "Idempotency-Key": {
        "description": "The same key again gets the same answer, for 24 hours; another body under it is a 409.",
        "schema": {"type": "string", "pattern": f"^{IDEMPOTENCY_KEY.pattern}$"},
    },
    "Last-Event-ID": {
        "description": "Go on behind this event; without it the stream begins now.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
    },
    "anthropic-workspace-id": {"description": "If given, the key's own workspace.", "schema": _TEXT},
}
_SECURITY = {
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


class _Schemas(GenerateJsonSchema):
    """Schemas without a title on each field: its name says as much."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """Never."""
        return False


def document(app: Flask) -> Json:
    """The document of all routes of `app` that have a door."""
    made: Json | None = app.extensions.get("openapi")
    if made is None:
        made = app.extensions["openapi"] = _document(app)
    return made


def _document(app: Flask) -> Json:
    found = list(_routes(app))
    paths: dict[str, Json] = {}
    for rule, method, door in found:
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        about = app.view_functions[rule.endpoint].__doc__ or ""
        paths.setdefault(path, {})[method] = _operation(rule, door, about)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Assent", "version": version("assent"), "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": _schemas([door for _, _, door in found]),
            "responses": {_name(status): _error(status) for status in _ERRORS},
            "headers": _HEADERS,
            "parameters": {name: {"name": name, "in": "header", **said} for name, said in _ASKED.items()},
            "securitySchemes": _SECURITY,
        },
    }


def _routes(app: Flask) -> Iterator[tuple[Rule, str, Door]]:
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        door = doors.get(app.view_functions[rule.endpoint])
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            if door:
                yield rule, method.lower(), door


def _schemas(found: list[Door]) -> Json:
    wanted: dict[type[BaseModel], None] = {Error: None}
    for door in found:
        wanted |= dict.fromkeys(model for model in (door.body, door.answer) if model)
    pairs: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "validation") for model in wanted]
    _, made = models_json_schema(pairs, ref_template="#/components/schemas/{model}", schema_generator=_Schemas)
    schemas: Json = made["$defs"]
    return schemas


def _operation(rule: Rule, door: Door, about: str) -> Json:
    said: Json = {
        "operationId": rule.endpoint.replace(".", "_"),
        "summary": about.partition("\n")[0],
        "tags": [rule.endpoint.partition(".")[0]],
        "parameters": list(_parameters(rule, door)),
        "responses": _responses(rule, door),
        "security": [{name: list(door.scopes)} for name in _SECURITY] if door.key else [],
    }
    if door.body and door.body.model_fields:
        needed = any(field.is_required() for field in door.body.model_fields.values())
        said["requestBody"] = {"required": needed, "content": {JSON: {"schema": _ref("schemas", door.body.__name__)}}}
    return said


def _parameters(rule: Rule, door: Door) -> Iterator[Json]:
    for name in sorted(rule.arguments):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": f"^{ID.pattern}$"}}
    if door.query:
        schema = door.query.model_json_schema(by_alias=True, schema_generator=_Schemas)
        for name, said in schema.get("properties", {}).items():
            if "enum" not in said or None not in said["enum"]:  # what can only be left out
                yield _query(name, said, name in schema.get("required", ()))
    names = [*door.headers, *(["anthropic-workspace-id"] if door.key else []), *(["Idempotency-Key"] if door.body else [])]
    for name in names:
        yield _ref("parameters", name) if name in _ASKED else {"name": name, "in": "header", "schema": _TEXT}


def _query(name: str, schema: Json, required: bool) -> Json:
    said = dict(schema)
    known = [one for one in said.get("anyOf", []) if one != {"type": "null"}]
    if len(known) == 1:  # a query says null by leaving it out
        del said["anyOf"]
        said |= known[0]
    if said.get("default", 0) is None:
        del said["default"]
    listed = {"style": "form", "explode": True} if said.get("type") == "array" else {}
    return {"name": f"{name}[]" if listed else name, "in": "query", "required": required, "schema": said, **listed}


_ERRORS = (400, 401, 403, 404, 405, 408, 409, 412, 413, 414, 415, 429, 431, 500, 503)


def _responses(rule: Rule, door: Door) -> Json:
    headers = ["request-id"]
    errors = {405, 414, 431, 500, *door.errors}
    if door.key:
        headers += [name for name in _HEADERS if name.startswith("anthropic-ratelimit")]
        errors |= {400, 401, 403, 429, 503} | ({404} if rule.arguments else set())
    if door.body:
        headers.append("idempotent-replayed")
        errors |= {408, 409, 413, 415}
    good = {"headers": _refs(headers), "content": {door.media_type: {"schema": _content(door)}}}
    said: Json = {str(status): {"description": HTTPStatus(status).phrase, **good} for status in door.statuses}
    errors -= set(door.statuses)
    return said | {str(status): _ref("responses", _name(status)) for status in sorted(errors)}


def _content(door: Door) -> Json:
    schema = _ref("schemas", _component(door.answer)) if door.answer else {}
    if door.media_type == EVENT_STREAM:
        return {"type": "string", "contentMediaType": EVENT_STREAM, "contentSchema": schema}
    return schema if door.media_type == JSON else _TEXT


def _error(status: int) -> Json:
    names = ["request-id"]
    if status in {429, 503}:
        names.append("retry-after")
    elif status < 500:
        names.append("x-should-retry")
    if status not in {401, 405, 414, 431}:
        names += [name for name in _HEADERS if name.startswith("anthropic-ratelimit")]
    return {
        "description": HTTPStatus(status).phrase,
        "headers": _refs(names),
        "content": {JSON: {"schema": _ref("schemas", Error.__name__)}},
    }


def _name(status: int) -> str:
    return re.sub(r"\W", "", HTTPStatus(status).phrase.title())


def _component(model: type[BaseModel]) -> str:
    return re.sub(r"[^a-zA-Z0-9.\-_]", "_", model.__name__)  # as pydantic spells a generic


def _refs(headers: list[str]) -> Json:
    return {name: _ref("headers", name) for name in headers}


def _ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}
