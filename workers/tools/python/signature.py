"""A plain typed function as a tool's input: the JSON Schema of its signature, the texts of its docstring, arguments from JSON."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema

from models.pure.fitting import unusable_pattern
from workers.tools.errors import ToolError

_ERRORS = 3
_SECTION = re.compile(r"(Args|Arguments|Raises):\s*")
_DOCUMENTED = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True)
class Signature:
    """What one function takes."""

    description: str
    """Its docstring without what that says of arguments and exceptions."""
    input_schema: dict[str, Any]
    contexts: tuple[str, ...]
    """The parameters that get the context; the schema does not have them."""
    _model: type[BaseModel]

    @property
    def parameters(self) -> list[str]:
        """What the model gives, by name."""
        return list(self.input_schema["properties"])

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Python values from JSON's. What is not given is left to the function's own defaults. Errors: ToolError."""
        try:
            found = self._model.model_validate_json(json.dumps(given))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False, include_context=False)[:_ERRORS]
            raise ToolError("; ".join(".".join(["input", *map(str, f["loc"])]) + f": {f['msg']}" for f in faults)) from None
        fields = type(found).model_fields
        return {str(fields[field].alias): getattr(found, field) for field in found.model_fields_set}


def read(function: Callable[..., Any], context: type, masked: tuple[str, ...] | str = ()) -> Signature:
    """The signature of a function whose parameters of the type `context` are ours to give.

    Errors: TypeError and ValueError that name the function, the parameter and the remedy.
    """
    where = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
    hints = _hints(function, where)
    if hints.get("return") in (bytes, bytearray):
        raise TypeError(f"{where}: a model cannot read bytes; return an Image or a Document")
    description, documented = _documented(where, inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    contexts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if _bare(hints.get(parameter.name)) is context:
            contexts.append(parameter.name)
        else:
            fields[parameter.name] = _field(where, parameter, hints, documented.get(parameter.name))
    _all_known(where, "its docstring's Args", documented, [*fields, *contexts])
    if isinstance(masked, str):
        raise TypeError(f"{where}: masked is a text; write a tuple, as in masked=({masked!r},)")
    _all_known(where, "masked", masked, list(fields))
    numbered = {f"p{n}": field for n, field in enumerate(fields.values())}  # any name is good for a parameter, not for a field
    model = create_model("Input", __config__=ConfigDict(extra="forbid"), **numbered)
    schema = model.model_json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    for name in masked:
        schema["properties"][name]["writeOnly"] = True
    schema.setdefault("properties", {})
    if pattern := unusable_pattern(schema):
        raise ValueError(
            f"{where}: the pattern {pattern!r} has look-around or back-references; write it without, or check it inside"
        )
    return Signature(description, schema, tuple(contexts), model)


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    if not inspect.isfunction(function):
        raise TypeError(f"{where}: is no plain function; decorate one made by def")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{where}: is async; write it with plain def, and call asyncio.run() in it where you need to")
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{where}: is a generator; return a list")
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{where}: its annotations name {error.name!r}, which its module does not know; import it there") from error


def _field(where: str, parameter: inspect.Parameter, hints: dict[str, Any], documented: str | None) -> tuple[Any, FieldInfo]:
    named = f"{where}, parameter {parameter.name}"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{named}: a model cannot fill *args or **kwargs; name each parameter, or take one list or dict")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{named}: is positional-only, and a model gives arguments by name; remove the / behind it")
    if parameter.name not in hints:
        raise TypeError(f"{named}: has no type; annotate it, as in {parameter.name}: str")
    if isinstance(parameter.default, FieldInfo):
        raise TypeError(f"{named}: Field is its default; write {parameter.name}: Annotated[..., Field(...)] with a plain default")
    hint = hints[parameter.name]
    try:
        TypeAdapter(hint).json_schema(schema_generator=_Schema)
    except (PydanticUserError, TypeError) as error:
        words = str(error).splitlines()[0]
        raise TypeError(
            f"{named}: its type cannot be said in JSON Schema ({words}); take plain types, or a pydantic model"
        ) from error
    own = FieldInfo.from_annotation(hint)
    default = ... if parameter.default is parameter.empty else parameter.default
    if own.default is not PydanticUndefined or own.default_factory is not None:
        raise TypeError(f"{named}: its default is in Field; write it behind =, so that Python knows it, too")
    return hint, Field(default, alias=parameter.name, description=own.description or documented)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _all_known(where: str, what: str, named: Any, known: list[str]) -> None:
    for name in named:
        if name not in known:
            raise ValueError(
                f"{where}: {what} names {name!r}, which is none of its parameters; they are: {', '.join(known) or 'none'}"
            )


def _documented(where: str, text: str) -> tuple[str, dict[str, str]]:
    """A docstring, and what its section Args says, by parameter."""
    if not text.strip():
        raise ValueError(f"{where}: has no docstring; say in it what the tool does: it is what the model reads")
    kept: list[str] = []
    told: dict[str, str] = {}
    section, depth, name = "", 0, ""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if found := _SECTION.fullmatch(line):
            section, depth, name = found[1], 0, ""
        elif not section or (line and not indent):
            section = ""
            kept.append(line)
        elif section != "Raises" and line.strip():
            depth = depth or indent
            told_here = _DOCUMENTED.fullmatch(line.strip()) if indent <= depth else None
            if told_here:
                name, words = told_here.groups()
            else:
                words = line.strip()
            told[name] = f"{told.get(name, '')} {words}".strip()
    told.pop("", None)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), told


class _Schema(GenerateJsonSchema):
    """Without what says nothing to a model, and with expressions that the linear-time engine knows."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's own

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's own
        return False

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        found = super().decimal_schema(schema)
        for choice in found.get("anyOf", [found]):
            if "pattern" in choice:
                choice["pattern"] = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
        return found
