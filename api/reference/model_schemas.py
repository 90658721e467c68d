"""JSON Schemas of models, with the docstrings below their fields as descriptions.

The source is read when the API's document is generated. pydantic's `use_attribute_docstrings` reads the source whenever a class is
created, which adds half a second of CPU to each start of the API.
"""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from api.door.responses import typed_dict_of


class Schemas(GenerateJsonSchema):
    """Schemas without titles for fields, which would repeat the names, and without null as a default.

    A generated client may send a default. In an update null removes a value, and a field that is left out keeps it.
    """

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of a field that may be left out."""
        generated = super().default_schema(schema)
        if generated.get("default", 0) is None:
            del generated["default"]
        return generated

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """Return False."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the model's schema, with the fields' docstrings as descriptions."""
        model = schema["cls"]
        names = {name: field.alias or name for name, field in model.model_fields.items()}
        return _with_descriptions(
            super().model_schema(schema), {names[name]: text for name, text in _docstrings_of_model(model).items()}
        )

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """Return the typed dict's schema, with the fields' docstrings as descriptions."""
        return _with_descriptions(super().typed_dict_schema(schema), _docstrings_of_typed_dict(schema["cls"]))


def _with_descriptions(schema: JsonSchemaValue, docstrings: Mapping[str, str]) -> JsonSchemaValue:
    for name, docstring in docstrings.items():
        field = schema["properties"].get(name)
        if field is not None:
            field.setdefault("description", docstring)
    return schema


def _docstrings_of_model(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field that has one, by the field's name. Fields of base classes are included."""
    docstrings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel and not base.__pydantic_generic_metadata__["origin"]:
            docstrings |= _docstrings_by_class(base.__module__)[base.__qualname__]
        if base in typed_dict_of:
            docstrings |= _docstrings_of_typed_dict(typed_dict_of[base])
    return docstrings


def _docstrings_of_typed_dict(typed_dict: type) -> dict[str, str]:
    """Return the docstring below each field that has one, by the field's name. A typed dict keeps its bases apart."""
    docstrings: dict[str, str] = {}
    for base in getattr(typed_dict, "__orig_bases__", ()):
        docstrings |= _docstrings_of_typed_dict(base)
    return docstrings | _docstrings_by_class(typed_dict.__module__).get(typed_dict.__qualname__, {})


@cache
def _docstrings_by_class(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of each class in a module, by the class's name."""
    classes = [node for node in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(node, ast.ClassDef)]
    return {definition.name: _docstrings(definition) for definition in classes}


def _docstrings(definition: ast.ClassDef) -> dict[str, str]:
    docstrings = {}
    for field, docstring in zip(definition.body, definition.body[1:], strict=False):
        match field, docstring:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = inspect.cleandoc(text)
    return docstrings


def query_parameter(name: str, schema: dict[str, Any], is_required: bool) -> dict[str, Any]:
    """Return the parameter of a query for a field with this schema."""
    schema = dict(schema)
    about = {"description": schema.pop("description")} if "description" in schema else {}
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:  # a query leaves a parameter out instead of sending null
        del schema["anyOf"]
        schema |= options[0]
    list_style = {"style": "form", "explode": True} if schema.get("type") == "array" else {}
    return {
        "name": f"{name}[]" if list_style else name,
        "in": "query",
        "required": is_required,
        "schema": schema,
        **about,
        **list_style,
    }
