"""Checks every response in the API's tests against the API's OpenAPI document."""

import json
import re
from contextlib import suppress
from typing import Any

import httpx2
import jsonschema_rs

Json = dict[str, Any]
_OFFSET = re.compile(r'_at": ?"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"')
"""A time whose offset is not spelled Z."""
URN = "urn:assent:document"
"""The document's name in a registry. A validator with all schemas in its own schema would take 15 ms instead of 1 ms to create."""


class Document:
    """The document of one server, with closed schemas: a property that the document does not name is an error."""

    def __init__(self, content: Json) -> None:
        for schema in content["components"]["schemas"].values():
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)
        self.content = content
        plain_first = sorted(content["paths"].items(), key=lambda item: item[0].count("{"))  # OpenAPI's order of matching
        self._paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), routes) for path, routes in plain_first]
        components = {"components": {"schemas": content["components"]["schemas"]}}
        self._registry = jsonschema_rs.Registry([(URN, components)], draft=jsonschema_rs.Draft202012)
        self._validators: dict[str, Any] = {}

    def check(self, response: httpx2.Response) -> None:
        """Assert that the document describes this response: status, headers, media type, body."""
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
            assert not _OFFSET.search(response.text), "a time is spelled with Z"
            self.validator(described["content"][media_type]["schema"]).validate(response.json())

    def _route(self, request: httpx2.Request) -> Json | None:
        for pattern, routes in self._paths:
            if pattern.fullmatch(request.url.path):
                route: Json | None = routes.get(request.method.lower())
                return route
        return None

    def _resolved(self, node: Any) -> Any:
        if node and "$ref" in node:
            _, _, kind, name = node["$ref"].split("/")
            return self.content["components"][kind][name]
        return node

    def validator(self, schema: Json) -> Any:
        """Return a validator for a schema of the document."""
        text = json.dumps(schema)
        if text not in self._validators:
            absolute = json.loads(text.replace('"#/components/', f'"{URN}#/components/'))
            self._validators[text] = jsonschema_rs.Draft202012Validator(absolute, registry=self._registry)
        return self._validators[text]


def check(url: str, response: httpx2.Response) -> None:
    """Check a response of the server at `url` against its document. If the server has ended, check nothing."""
    with suppress(httpx2.HTTPError):
        document(url).check(response)


_DOCUMENTS: list[Document] = []


def document(url: str) -> Document:
    """Return the document of the server at `url`, or that of an earlier server of this test process, which is the same.

    A document follows from the code alone. Its generation costs a server a second of CPU time.
    """
    if not _DOCUMENTS:
        response = httpx2.get(f"{url}/openapi.json", timeout=20)
        assert response.status_code == 200, response.text
        _DOCUMENTS.append(Document(response.json()))
    return _DOCUMENTS[0]
