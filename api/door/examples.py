"""Examples of requests and responses, composed from their JSON Schemas, so that each value is declared once, at its field.

A model or a field shows the `examples` that it declares. Every other object is composed of its fields' examples. An optional field
is left out unless it declares an example. A nullable field is null unless its other type declares an example.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from models.database import ids

Json = dict[str, Any]

REF = "#/components/schemas/"
_SUMMARY_LENGTH = 60

IDS = {
    kind: ids.example(prefix)
    for kind, prefix in {
        "agent_id": "agent",
        "api_key_id": "key",
        "approval_id": "appr",
        "channel_id": "chan",
        "delegation_id": "dlgt",
        "delivery_id": "whdl",
        "environment_id": "env",
        "event_id": "sevt",
        "grant_id": "grnt",
        "invite_id": "invite",
        "legal_hold_id": "hold",
        "provider_key_id": "pkey",
        "rbac_group_id": "grp",
        "request_id": "req",
        "session_id": "sesn",
        "slack_user_id": "slku",
        "spend_limit_id": "spl",
        "thread_id": "sthr",
        "user_id": "user",
        "webhook_id": "whep",
        "work_id": "work",
        "workspace_id": "wrkspc",
    }.items()
}
"""An id of each kind, by its name in paths and in other objects."""

TIME = "2026-01-31T12:00:00.000000Z"

_MESSAGES = {
    400: "limit: must be at most 100.",
    401: "No API key: send one as x-api-key or as authorization: Bearer.",
    403: "The key lacks the scope agents.",
    404: f"There is no agent '{IDS['agent_id']}'.",
    408: "The body did not arrive within 60 s, the longest that this server waits.",
    409: "The approval was decided before, and differently.",
    412: "expected_last_heartbeat: is not the last one.",
    413: "The body is larger than 33554432 bytes, the most that this server takes; send less at once.",
    415: "Send the body as JSON, with `content-type: application/json` and without `content-encoding`.",
    429: "Too many requests with this key; try again in 1 s.",
    500: "Something failed here that should not have. Its trace is in the server's log under this request id.",
    503: "The server is busy or its database is away; try again in a moment.",
}


class NoExample(Exception):
    """A schema declares no example, and none can be composed."""


def of_error(status: int, error_type: str) -> Json:
    """Return an example of an error's body with this status."""
    message = _MESSAGES.get(status, f"{HTTPStatus(status).description}.")
    return {
        "type": "error",
        "error": {"type": error_type, "message": message},
        "request_id": IDS["request_id"],
    }


def media(schema: Json, schemas: Mapping[str, Json]) -> Json:
    """Return the examples of a media type: a single one, or several from which a reader can choose."""
    declared = _resolve(schema, schemas).get("examples", [])
    if len(declared) < 2:
        return {"example": compose(schema, schemas)}
    return {"examples": {f"example-{number}": _example_of_type(value) for number, value in enumerate(declared, 1)}}


def compose(schema: Json, schemas: Mapping[str, Json], where: str = "") -> Any:
    """Return an example of the schema. Raises NoExample, with the path of the field that lacks one."""
    values = schema.get("examples") or ([schema["const"]] if "const" in schema else schema.get("enum"))
    if values:
        return values[0]
    if "$ref" in schema:
        return compose(schemas[schema["$ref"].removeprefix(REF)], schemas, where or schema["$ref"].removeprefix(REF))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        nullable = {"type": "null"} in options
        return None if nullable and "examples" not in options[0] else compose(options[0], schemas, where)
    if "default" in schema:
        return schema["default"]
    return _of_type(schema, schemas, where)


def _of_type(schema: Json, schemas: Mapping[str, Json], where: str) -> Any:
    if schema.get("format") == "date-time":
        return TIME
    match schema.get("type"):
        case "object":
            required_names = schema.get("required", ())
            fields = schema.get("properties", {}).items()
            return {
                name: compose(field, schemas, f"{where}.{name}")
                for name, field in fields
                if name in required_names or "examples" in field
            }
        case "array":
            empty = schema.get("maxItems") == 0
            return [] if empty else [compose(schema["items"], schemas, f"{where}[]")]
        case "boolean":
            return False
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "null":
            return None
    raise NoExample(f"{where}: declare examples at the field.")


def _resolve(schema: Json, schemas: Mapping[str, Json]) -> Json:
    while "$ref" in schema and "examples" not in schema:
        schema = schemas[schema["$ref"].removeprefix(REF)]
    return schema


def _example_of_type(value: Any) -> Json:
    text = json.dumps(value, ensure_ascii=False)
    return {"summary": text if len(text) <= _SUMMARY_LENGTH else text[:_SUMMARY_LENGTH] + "…", "value": value}
