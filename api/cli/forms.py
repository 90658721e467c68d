"""What a tool asks before it goes on, asked in a terminal: a form field by field, or a page to visit."""

import json
from collections.abc import Mapping
from typing import Any

import click

from models.pure.visible import visible

Answer = dict[str, Any]

_TYPES: dict[Any, "click.ParamType[Any]"] = {"integer": click.INT, "number": click.FLOAT, "boolean": click.BOOL}


def answered(questions: Mapping[str, Any]) -> dict[str, Answer]:
    """An answer to each question, by its key, as a person gives them."""
    return {key: _answer(asked) for key, asked in questions.items()}


def declined(questions: Mapping[str, Any]) -> dict[str, Answer]:
    """A no to all of them; the tool goes on as it sees fit."""
    return {key: {"action": "decline"} for key in questions}


def _answer(asked: Mapping[str, Any]) -> Answer:
    click.echo(visible(str(asked["message"])))
    if "url" in asked:
        click.echo(f"  It wants you to visit {visible(str(asked['url']))}")
        return {"action": "accept" if click.confirm("Have you?") else "decline"}
    schema = asked["schema"]
    parts, required = schema.get("properties", {}), schema.get("required", [])
    # What is required has an order; of the rest, stored JSON keeps none.
    names = [name for name in required if name in parts] + sorted(parts.keys() - set(required))
    fields = {name: _field(name, parts[name], needed=name in required) for name in names}
    return {"action": "accept", "content": {name: value for name, value in fields.items() if value is not None}}


def _field(name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
    """One value of a form; None for one that was left out."""
    label = visible(str(schema.get("title") or name))
    if schema.get("description"):
        click.echo(f"  {visible(str(schema['description']))}")
    choices = [str(each) for each in schema.get("enum", ())] or [str(each["const"]) for each in schema.get("oneOf", ())]
    if schema.get("type") == "array":
        said = click.prompt(f"{label}, as JSON", default=json.dumps(schema.get("default", [])), value_proc=json.loads)
        return said if said or needed else None
    kind = click.Choice(choices) if choices else _TYPES.get(schema.get("type"), click.STRING)
    default = schema.get("default", None if needed else "")
    left_out = "" if default == "" and not needed else None
    said = click.prompt(
        label if not choices else f"{label} ({', '.join(choices)})",
        default=default,
        show_default=default not in (None, ""),
        value_proc=lambda said: said if said == left_out else kind.convert(said, None, None),
    )
    return None if said == left_out else said
