"""Generates the OpenAPI document from the routes and their doors. No route is named here."""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import replace
from http import HTTPStatus
from importlib.metadata import version
from threading import Lock
from typing import Any

import gevent
from flask import Flask
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from werkzeug.routing import Rule

from api.door import errors, examples
from api.door.parsing import ID
from api.door.responses import Error
from api.door.routes import CSV, EVENT_STREAM, HTML, IDEMPOTENCY_KEY, JSON, METRICS, Door, doors
from api.reference.model_schemas import Schemas, query_parameter
from models import DISTRIBUTION

Json = dict[str, Any]

_ABOUT = (
    "Assent runs AI agents that must ask a person before they act. The API has the shape of Claude's Managed Agents API: the "
    "official SDKs are its clients. The headers `anthropic-version` and `anthropic-beta` and the query `?beta=true` are accepted "
    "and change nothing.\n\nSend an API key as `x-api-key` or as `authorization: Bearer`."
)
_LICENSE = {"name": "Apache 2.0", "identifier": "Apache-2.0"}
_TEXT = {"type": "string"}
_TEXTS = {
    HTML: "<!doctype html>",
    METRICS: 'assent_queue_runnable{queue="turns"} 0.0\n',
    CSV: "name,title,asks,waiting,allows,denials\r\nbash,bash,3,1,2,0\r\n",
}
"""Media types without JSON, each with an example."""
_HEADERS: dict[str, Json] = {
    "request-id": {"description": "The request's id in the server's log.", "required": True, "schema": _TEXT},
    "x-should-retry": {
        "description": "Always `false`: the same request would fail again.",
        "required": True,
        "schema": {"const": "false"},
    },
    "retry-after": {
        "description": "The seconds to wait before the next try.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "idempotent-replayed": {
        "description": "The response repeats the response to an earlier identical request.",
        "schema": {"const": "true"},
    },
    "location": {"description": "The address of the page.", "required": True, "schema": _TEXT},
    "anthropic-ratelimit-requests-limit": {"description": "The largest burst of requests that the key may send.", "schema": _TEXT},
    "anthropic-ratelimit-requests-remaining": {"description": "The requests of the burst that are left.", "schema": _TEXT},
    "anthropic-ratelimit-requests-reset": {
        "description": "The time at which the whole burst is available again.",
        "schema": {"type": "string", "format": "date-time"},
    },
}
_REQUEST_HEADERS: dict[str, Json] = {
    "Idempotency-Key": {
        "description": "A request with the same key and body gets the same response for 24 hours. A different body gets a 409.",
        "schema": {"type": "string", "pattern": f"^{IDEMPOTENCY_KEY.pattern}$"},
    },
    "Last-Event-ID": {
        "description": "The stream begins after the event with this id.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
    },
    "anthropic-workspace-id": {"description": "The workspace's id. It must be the key's own workspace.", "schema": _TEXT},
}
_generating = Lock()
_SECURITY = {
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def document(app: Flask) -> Json:
    """Return the document of all routes of `app` that have a door. Generates the document once per app.

    A thread of its own generates the document, which takes about a second of CPU time: other requests go on meanwhile, and the
    request that happens to be the first is not ended for it.
    """
    with _generating:
        cached: Json | None = app.extensions.get("openapi")
        if cached is None:
            cached = app.extensions["openapi"] = gevent.get_hub().threadpool.apply(copy_context().run, (_document, app))
    return cached


def _document(app: Flask) -> Json:
    routes = list(_routes(app))
    schemas = _schemas([door for _, _, door in routes])
    paths: dict[str, Json] = {}
    for rule, method, door in routes:
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        about = inspect.getdoc(app.view_functions[rule.endpoint]) or ""
        paths.setdefault(path, {})[method] = _operation(rule, door, about, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Assent", "version": version(DISTRIBUTION), "description": _ABOUT, "license": _LICENSE},
        "servers": [{"url": "/", "description": "The server that serves this document."}],
        "tags": _tags(app, {rule.endpoint.partition(".")[0] for rule, _, _ in routes}),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {_name(status): _error(status) for status in _ERRORS},
            "headers": _HEADERS,
            "parameters": {name: {"name": name, "in": "header", **header} for name, header in _REQUEST_HEADERS.items()},
            "securitySchemes": _SECURITY,
        },
    }


def _routes(app: Flask) -> Iterator[tuple[Rule, str, Door]]:
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        door = doors.get(app.view_functions[rule.endpoint])
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            if door:
                yield rule, method.lower(), door


def _tags(app: Flask, names: set[str]) -> list[Json]:
    """Return the tags with these names, each with the first line of its blueprint's module."""
    modules = {name: sys.modules[blueprint.import_name] for name, blueprint in app.blueprints.items() if name in names}
    return [{"name": name, "description": (inspect.getdoc(module) or "").partition("\n")[0]} for name, module in modules.items()]


def _schemas(all_doors: list[Door]) -> Json:
    models: dict[type[BaseModel], None] = {Error: None}
    for door in all_doors:
        models_of_door = (door.body, door.response, door.frame, door.error)
        models |= dict.fromkeys(model for model in models_of_door if model and (model is not door.body or model.model_fields))
    pairs: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "validation") for model in models]
    _, generated = models_json_schema(pairs, ref_template="#/components/schemas/{model}", schema_generator=Schemas)
    schemas: Json = generated["$defs"]
    return schemas


def _operation(rule: Rule, door: Door, about: str, schemas: Json) -> Json:
    summary, _, description = about.partition("\n")
    if door.key and door.scopes:
        names = " and ".join(f"`{scope}`".replace(" or ", "` or `") for scope in door.scopes)
        description += f"\n\nThe key needs the {'scope' if len(door.scopes) == 1 else 'scopes'} {names}."
    operation: Json = {
        "operationId": rule.endpoint.replace(".", "_"),
        "summary": summary,
        "description": description.strip(),
        "tags": [rule.endpoint.partition(".")[0]],
        "parameters": list(_parameters(rule, door)),
        "responses": _responses(rule, door, schemas),
        "security": [{name: list(door.scopes)} for name in _SECURITY] if door.key else [],
    }
    if door.body and door.body.model_fields:
        needed = any(field.is_required() for field in door.body.model_fields.values())
        schema = _ref("schemas", door.body.__name__)
        operation["requestBody"] = {
            "required": needed,
            "content": {JSON: {"schema": schema, **examples.media(schema, schemas)}},
        }
    return operation


def _parameters(rule: Rule, door: Door) -> Iterator[Json]:
    for name in sorted(rule.arguments):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": f"^{ID.pattern}$"},
            "example": examples.IDS[name],
        }
    if door.query:
        schema = door.query.model_json_schema(by_alias=True, schema_generator=Schemas)
        for name, field in schema.get("properties", {}).items():
            yield query_parameter(name, field, name in schema.get("required", ()))
    names = [*door.headers, *(["anthropic-workspace-id"] if door.key else []), *(["Idempotency-Key"] if door.body else [])]
    for name in names:
        yield _ref("parameters", name) if name in _REQUEST_HEADERS else {"name": name, "in": "header", "schema": _TEXT}


_ERRORS = (400, 401, 403, 404, 405, 408, 409, 412, 413, 414, 415, 429, 431, 500, 503)


def _responses(rule: Rule, door: Door, schemas: Json) -> Json:
    headers = ["request-id"]
    statuses = {405, 414, 431, 500, *door.errors}
    if door.key:
        headers += [name for name in _HEADERS if name.startswith("anthropic-ratelimit")]
        statuses |= {400, 401, 403, 429, 503} | ({404} if rule.arguments else set())
    if door.body:
        headers.append("idempotent-replayed")
        statuses |= {408, 409, 413, 415}
    good: Json = {"headers": _refs(headers), "content": {door.media_type: _content(door, schemas)}}
    if door.frame:
        frames = replace(door, response=door.frame, media_type=EVENT_STREAM)
        good["content"][EVENT_STREAM] = _content(frames, schemas)
    responses: Json = {str(status): {"description": HTTPStatus(status).phrase, **good} for status in door.statuses}
    if door.browsers_go_to:
        responses["303"] = {
            "description": f"For a browser: redirects to `{door.browsers_go_to}`.",
            "headers": _refs(["request-id", "location"]),
            "content": {HTML: {"schema": _TEXT, "example": ""}},
        }
    return responses | {str(status): _refusal(door, status, schemas) for status in sorted(statuses - set(door.statuses))}


def _refusal(door: Door, status: int, schemas: Json) -> Json:
    """Return the response of an error. The web server sends 414 and 431 before a route is known, always in the API's format."""
    if door.error is Error or status in {414, 431}:
        return _ref("responses", _name(status))
    schema = _ref("schemas", door.error.__name__)
    return _error(status) | {"content": {JSON: {"schema": schema, **examples.media(schema, schemas)}}}


def _content(door: Door, schemas: Json) -> Json:
    """Return the schema of a response, with examples. Streams and JSON lines are texts whose examples contain JSON."""
    if door.media_type in _TEXTS:
        return {"schema": _TEXT, "example": _TEXTS[door.media_type]}
    schema = _ref("schemas", _component(door.response)) if door.response else {}
    if door.media_type == JSON:
        return {"schema": schema, **examples.media(schema, schemas)}
    content = {"type": "string", "contentMediaType": door.media_type, "contentSchema": schema}
    value = examples.compose(schema, schemas)
    text = json.dumps(value, separators=(",", ":"))
    if door.media_type == EVENT_STREAM:
        head = f"id: 7\nevent: {value['type']}\n" if "type" in value else ""
        return {"schema": content, "example": f"{head}data: {text}\n\n"}
    return {"schema": content, "example": f"{text}\n"}


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
        "content": {
            JSON: {"schema": _ref("schemas", Error.__name__), "example": examples.of_error(status, errors.type_of(status))}
        },
    }


def _name(status: int) -> str:
    return re.sub(r"\W", "", HTTPStatus(status).phrase.title())


def _component(model: type[BaseModel]) -> str:
    return re.sub(r"[^a-zA-Z0-9.\-_]", "_", model.__name__)  # as pydantic spells a generic


def _refs(headers: list[str]) -> Json:
    return {name: _ref("headers", name) for name in headers}


def _ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}
