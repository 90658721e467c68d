"""A tool's questions in a terminal: a form, field by field, or a page to visit."""

import json
from collections.abc import Mapping
from typing import Any

import click

from models.pure.text.visible import visible

Answer = dict[str, Any]

_TYPES: dict[Any, "click.ParamType[Any]"] = {"integer": click.INT, "number": click.FLOAT, "boolean": click.BOOL}


def ask_all(questions: Mapping[str, Any]) -> dict[str, Answer]:
    """Ask a person each question. Returns the answers by key."""
    return {key: _answer(question) for key, question in questions.items()}


def declined(questions: Mapping[str, Any]) -> dict[str, Answer]:
    """Return a refusal to answer for each question. The tool decides how it continues."""
    return {key: {"action": "decline"} for key in questions}


def _answer(question: Mapping[str, Any]) -> Answer:
    click.echo(visible(str(question["message"])))
    if "url" in question:
        click.echo(f"  The tool asks you to visit {visible(str(question['url']))}")
        return {"action": "accept" if click.confirm("Have you visited it?") else "decline"}
    schema = question["schema"]
    parts, required_names = schema.get("properties", {}), schema.get("required", [])
    # The list of required fields has an order. Postgres does not keep the order of the others.
    names = [name for name in required_names if name in parts] + sorted(parts.keys() - set(required_names))
    fields = {name: _field(name, parts[name], needed=name in required_names) for name in names}
    return {"action": "accept", "content": {name: value for name, value in fields.items() if value is not None}}


def _field(name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
    """Ask for one value of a form. Returns None if it is left out."""
    label = visible(str(schema.get("title") or name))
    if schema.get("description"):
        click.echo(f"  {visible(str(schema['description']))}")
    choices = [str(each) for each in schema.get("enum", ())] or [str(each["const"]) for each in schema.get("oneOf", ())]
    if schema.get("type") == "array":
        items = click.prompt(f"{label}, as JSON", default=json.dumps(schema.get("default", [])), value_proc=json.loads)
        return items if items or needed else None
    kind = click.Choice(choices) if choices else _TYPES.get(schema.get("type"), click.STRING)
    default = schema.get("default", None if needed else "")
    left_out = "" if default == "" and not needed else None
    value = click.prompt(
        label if not choices else f"{label} ({', '.join(choices)})",
        default=default,
        show_default=default not in (None, ""),
        value_proc=lambda text: text if text == left_out else kind.convert(text, None, None),
    )
    return None if value == left_out else value
