"""`/openapi.json` is valid, and generators make clients and types from all of it."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import warm
from doors.served import MODEL, Caller, good
from openapi_spec_validator import OpenAPIV31SpecValidator

Json = dict[str, Any]
pytestmark = [pytest.mark.slow, pytest.mark.ci]

OPTIONS = "content_type_overrides:\n  application/jsonl: text/plain\npost_hooks: []\n"
"""JSON lines are a text for a generated client. The formatters that it would run need no test."""
WITHOUT_COLLECTIONS = "import gc, runpy, sys; gc.disable(); del sys.argv[0]; runpy.run_module(sys.argv[0], run_name='__main__')"
"""A program that runs a module. A generator makes little garbage, and collections would take a quarter of its CPU time."""


@pytest.fixture(scope="module")
def file(api: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the API's document, in a folder of its own."""
    path = tmp_path_factory.mktemp("generated") / "openapi.json"
    path.write_text(httpx2.get(f"{api}/openapi.json", timeout=60).text)
    return path


@pytest.fixture(scope="module")
def document(file: Path) -> Json:
    """The API's document."""
    document: Json = json.loads(file.read_text())
    return document


@pytest.fixture(scope="module")
def client(file: Path) -> Iterator[Path]:
    """The folder of a client that openapi-python-client generates without a warning."""
    folder, options = file.with_name("generated_client"), file.with_name("options.yaml")
    options.write_text(OPTIONS)
    command = ["generate", "--path", file, "--output-path", folder, "--meta", "none", "--config", options, "--fail-on-warning"]
    run("openapi_python_client", *command)
    sys.path.insert(0, str(folder.parent))
    yield folder
    sys.path.remove(str(folder.parent))


def test_a_validator_accepts_the_document(document: Json) -> None:
    OpenAPIV31SpecValidator(document).validate()


def test_every_tag_of_an_operation_is_explained(document: Json) -> None:
    tags = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert {tag["name"] for tag in document["tags"] if tag["description"]} == tags


def test_no_schema_is_left_over(document: Json) -> None:
    text = json.dumps(document)
    assert [name for name in document["components"]["schemas"] if f'"#/components/schemas/{name}"' not in text] == []


def test_a_generated_client_has_a_function_for_every_operation(document: Json, client: Path) -> None:
    modules = {f"{path.parent.name}.{path.stem}" for path in client.glob("api/*/*.py") if path.stem != "__init__"}
    assert modules == {f"{operation['tags'][0]}.{operation['operationId']}" for _, operation in operations(document)}


def test_a_generated_client_sends_only_what_its_caller_sets(api: str, caller: Caller, client: Path) -> None:
    from generated_client import AuthenticatedClient
    from generated_client.api.agents import agents_create, agents_update
    from generated_client.models import AgentCreate, AgentUpdate

    condition = {"path": "/amount", "gt": 100}
    policy = {"type": "rules", "default": "allow", "rules": [{"effect": "ask", "match": {"tool": "refund", "input": [condition]}}]}
    body = AgentCreate.from_dict(
        {"name": "A", "model": MODEL, "description": "Refunds orders.", "skills": [], "permission_policy": policy}
    )
    with AuthenticatedClient(api, caller.headers["x-api-key"], raise_on_unexpected_status=True) as http:
        agent = agents_create.sync(client=http, body=body)
        agents_update.sync(agent.id, client=http, body=AgentUpdate.from_dict({"version": agent.version, "name": "B"}))
    stored = good(caller.get(f"/v1/agents/{agent.id}"))
    assert (stored["name"], stored["description"]) == ("B", "Refunds orders.")
    assert stored["permission_policy"]["rules"][0]["match"]["input"] == [condition]


def test_types_can_be_generated_from_every_schema(document: Json, file: Path) -> None:
    source = file.with_name("types.py")
    options = ["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel", "--formatters", "builtin"]
    run("datamodel_code_generator", "--input", file, "--output", source, *options)
    classes = {node.name for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef)}
    assert {name.replace("_", "") for name in document["components"]["schemas"]} <= classes


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield each operation with its path."""
    for path, routes in document["paths"].items():
        for operation in routes.values():
            yield path, operation


def run(module: str, *options: str | Path) -> None:
    """Run a generator. Fails with its messages."""
    done = warm.run("-c", WITHOUT_COLLECTIONS, module, *map(str, options), seconds=100)
    assert done.returncode == 0, done.stdout + done.stderr
