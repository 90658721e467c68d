"""Holds every answer against the API's own document: whatever is sent in these tests, the document says what may come back."""

import re
from functools import cache
from typing import Any

import httpx
import jsonschema_rs

Json = dict[str, Any]


class Document:
    """The document of one server, closed: what it does not name may not come."""

    def __init__(self, said: Json) -> None:
        for schema in said["components"]["schemas"].values():
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)
        self.said = said
        plain_first = sorted(said["paths"].items(), key=lambda item: item[0].count("{"))  # as OpenAPI has it
        self._paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), routes) for path, routes in plain_first]
        self._validators: dict[str, Any] = {}

    def check(self, response: httpx.Response) -> None:
        """Assert that the document describes this answer: status, headers, media type, body."""
        route = self._route(response.request)
        if route is None:
            return
        described = self._resolved(route["responses"].get(str(response.status_code)))
        assert described, f"{response.request.method} {response.request.url.path}: {response.status_code} is not described"
        for name, header in described["headers"].items():
            if self._resolved(header).get("required"):
                assert name in response.headers, f"{response.status_code} without {name}"
        media_type = response.headers["content-type"].partition(";")[0]
        assert media_type in described["content"], f"{media_type} is not described"
        if media_type == "application/json":
            response.read()
            self._validator(described["content"][media_type]["schema"]).validate(response.json())

    def _route(self, request: httpx.Request) -> Json | None:
        for pattern, routes in self._paths:
            if pattern.fullmatch(request.url.path):
                found: Json | None = routes.get(request.method.lower())
                return found
        return None

    def _resolved(self, thing: Any) -> Any:
        if thing and "$ref" in thing:
            _, _, kind, name = thing["$ref"].split("/")
            return self.said["components"][kind][name]
        return thing

    def _validator(self, schema: Json) -> Any:
        name = str(schema)
        if name not in self._validators:
            self._validators[name] = validator(self.said, schema)
        return self._validators[name]


def validator(document: Json, schema: Json) -> Any:
    """What validates against a schema of the document's."""
    return jsonschema_rs.Draft202012Validator(schema | {"components": {"schemas": document["components"]["schemas"]}})


def check(url: str, response: httpx.Response) -> None:
    """Hold an answer of the server at `url` against its document; a server that is gone by now says nothing."""
    try:
        found = document(url)
    except httpx.HTTPError:
        return
    found.check(response)


@cache
def document(url: str) -> Document:
    """The document that the server at `url` serves."""
    answer = httpx.get(f"{url}/openapi.json", timeout=20)
    assert answer.status_code == 200, answer.text
    return Document(answer.json())
