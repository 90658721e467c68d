"""The API's reference explains every operation by a sentence and by valid examples."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from doors import described

from api import create_app
from api.door import examples
from api.door.routes import doors

Json = dict[str, Any]
Validator = Callable[[Json], Any]


@pytest.fixture(scope="module")
def document(api: str) -> Json:
    """The API's document."""
    return described.document(api).content


@pytest.fixture(scope="module")
def validator(api: str) -> Validator:
    """A function that returns a validator for a closed schema of the document: an example with an unknown field is wrong."""
    return described.document(api).validator


def test_every_operation_has_a_summary_of_one_plain_sentence(document: Json) -> None:
    for label, operation in operations(document):
        summary = operation["summary"]
        assert summary[:1].isupper(), label
        assert summary.endswith("."), label
        assert summary.count(". ") == 0, label
        assert len(summary) <= 120, label
        assert "`" not in summary, f"{label}: the page does not read a summary as Markdown"
    names = {(label.replace("/organizations/", "/"), operation["summary"]) for label, operation in operations(document)}
    summaries = [summary for _, summary in names]
    assert len(summaries) == len(set(summaries)), "two operations share a summary"


def test_every_operation_names_the_scopes_that_its_key_needs(document: Json) -> None:
    for label, operation in operations(document):
        scopes = operation["security"][0]["key"] if operation["security"] else []
        assert all(f"`{name}`" in operation["description"] for scope in scopes for name in scope.split(" or ")), label


def test_every_body_and_every_response_has_examples_that_fit_its_schema(document: Json, validator: Validator) -> None:
    checked: set[str] = set()
    for label, operation in operations(document):
        for where, media_type, content in contents(document, operation):
            assert values(content), f"{label}, {where}: no example"
            if (text := json.dumps(content)) in checked:  # errors are the same everywhere
                continue
            checked.add(text)
            for value in values(content):
                check(validator, media_type, content["schema"], value)
    assert len(checked) > 70


def test_the_server_accepts_every_example_of_a_request(document: Json) -> None:
    create_app()  # its routes fill `doors`
    models = {door.body.__name__: door.body for door in doors.values() if door.body}
    checked = 0
    for _, operation in operations(document):
        for content in operation.get("requestBody", {"content": {}})["content"].values():
            for value in values(content):
                models[content["schema"]["$ref"].rpartition("/")[2]].model_validate_json(json.dumps(value))
                checked += 1
    assert checked > 30


def test_every_id_in_a_path_has_an_example(document: Json, validator: Validator) -> None:
    for label, operation in operations(document):
        for parameter in operation["parameters"]:
            if parameter.get("in") == "path":
                validator(parameter["schema"]).validate(parameter["example"])
            elif "example" in parameter:
                raise AssertionError(f"{label}: the page would send the example of {parameter['name']} with every request")


def test_a_field_without_an_example_is_found_when_the_document_is_made() -> None:
    schemas = {"Row": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
    with pytest.raises(examples.NoExample, match=r"^Row\.name: declare examples"):
        examples.compose({"$ref": "#/components/schemas/Row"}, schemas)


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield each operation with its method and path."""
    for path, routes in document["paths"].items():
        for method, operation in routes.items():
            yield f"{method.upper()} {path}", operation


def contents(document: Json, operation: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield the contents of the request and of each response: the place, the media type, the schema with examples."""
    places = {"request": operation.get("requestBody", {"content": {}})} | operation["responses"]
    for where, place in places.items():
        if "$ref" in place:
            place = document["components"]["responses"][place["$ref"].rpartition("/")[2]]  # noqa: PLW2901
        for media_type, content in place["content"].items():
            yield where, media_type, content


def values(content: Json) -> list[Any]:
    """Return the examples of a content."""
    return [content["example"]] if "example" in content else [shown["value"] for shown in content.get("examples", {}).values()]


def check(validator: Validator, media_type: str, schema: Json, value: Any) -> None:
    """Assert that an example fits its schema. For an event stream, check the JSON in it too."""
    validator(schema).validate(value)
    if media_type == "text/event-stream":
        data = next(line.removeprefix("data: ") for line in value.splitlines() if line.startswith("data: "))
        validator(schema["contentSchema"]).validate(json.loads(data))
