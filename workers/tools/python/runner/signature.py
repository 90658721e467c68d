"""The signature of a plain typed function: its JSON Schema, the texts of its docstring, and arguments from JSON."""

import inspect
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema

from assent import ToolError

_ERRORS = 3
_SECTION = re.compile(r"(Args|Arguments|Raises):\s*")
_DOCUMENTED = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True)
class Signature:
    """The parameters of one function."""

    description: str
    """The docstring without its sections Args and Raises."""
    input_schema: dict[str, Any]
    contexts: tuple[str, ...]
    """The parameters that get the context. The schema leaves them out."""
    _model: type[BaseModel]

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that the model fills."""
        return list(self.input_schema["properties"])

    @property
    def no_parameter(self) -> str:
        """The end of an error message about a name that is not a parameter."""
        return _none_of(self.parameters)

    def arguments(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return JSON's values as Python's. A missing field is left to the function's own default. Raises ToolError."""
        try:
            model = self._model.model_validate_json(json.dumps(fields))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False, include_context=False)[:_ERRORS]
            raise ToolError("; ".join(".".join(["input", *map(str, f["loc"])]) + f": {f['msg']}" for f in faults)) from None
        declared = type(model).model_fields
        return {str(declared[name].alias): getattr(model, name) for name in model.model_fields_set}


def read(function: Callable[..., Any], context: type, secret_names: tuple[str, ...], where: str) -> Signature:
    """Return the signature of a function, whose parameters of the type `context` the caller fills. `where` names the function in
    errors.

    Raises TypeError and ValueError that name the function, the parameter and the remedy.
    """
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
    _require_known(where, "its docstring's Args", documented, [*fields, *contexts])
    _require_known(where, "masked", secret_names, list(fields))
    numbered = {f"p{n}": field for n, field in enumerate(fields.values())}  # pydantic refuses some names, such as `_hidden`
    model = create_model("Input", __config__=ConfigDict(extra="forbid"), **numbered)
    schema = model.model_json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    schema.setdefault("properties", {})
    for name in secret_names:
        schema["properties"][name]["writeOnly"] = True
    return Signature(description, schema, tuple(contexts), model)


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    if not inspect.isfunction(function):
        raise TypeError(f"{where}: is not a plain function; decorate a function made by def")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{where}: is async; write it with plain def, and call asyncio.run() inside")
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{where}: is a generator; return a list")
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{where}: its annotations name {error.name!r}, which its module does not know; import the name there"
        ) from error


def _field(where: str, parameter: inspect.Parameter, hints: dict[str, Any], documented: str | None) -> tuple[Any, FieldInfo]:
    label = f"{where}, parameter {parameter.name}"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{label}: a model cannot fill *args or **kwargs; name each parameter, or take one list or dict")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{label}: is positional-only, and a model gives arguments by name; remove the / after it")
    if parameter.name not in hints:
        raise TypeError(f"{label}: has no type; annotate it, as in {parameter.name}: str")
    if isinstance(parameter.default, FieldInfo):
        raise TypeError(f"{label}: Field is its default; write {parameter.name}: Annotated[..., Field(...)] with a plain default")
    hint = hints[parameter.name]
    try:
        TypeAdapter(hint).json_schema(schema_generator=_Schema)
    except (PydanticUserError, TypeError) as error:
        words = str(error).splitlines()[0]
        raise TypeError(f"{label}: its type has no JSON Schema ({words}); use plain types or a pydantic model") from error
    own = FieldInfo.from_annotation(hint)
    default = ... if parameter.default is parameter.empty else parameter.default
    if own.default is not PydanticUndefined or own.default_factory is not None:
        raise TypeError(f"{label}: its default is in Field; write it after =, so that Python knows it too")
    return hint, Field(default, alias=parameter.name, description=own.description or documented)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _require_known(where: str, source: str, names: Iterable[str], parameters: list[str]) -> None:
    for name in names:
        if name not in parameters:
            raise ValueError(f"{where}: {source} names {name!r}, which is {_none_of(parameters)}")


def _none_of(parameters: list[str]) -> str:
    return f"none of its parameters; they are: {', '.join(parameters) or 'none'}"


def _documented(where: str, docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its sections, and the texts of its section Args, by parameter."""
    if not docstring.strip():
        raise ValueError(f"{where}: has no docstring; describe the tool in one, for the model to read")
    description: list[str] = []
    texts: dict[str, str] = {}
    section, depth, name = "", 0, ""
    for line in docstring.splitlines():
        indent = len(line) - len(line.lstrip())
        if header := _SECTION.fullmatch(line):
            section, depth, name = header[1], 0, ""
        elif not section or (line and not indent):
            section = ""
            description.append(line)
        elif section != "Raises" and line.strip():
            depth = depth or indent
            entry = _DOCUMENTED.fullmatch(line.strip()) if indent <= depth else None
            name, text = entry.groups() if entry else (name, line.strip())
            texts[name] = f"{texts.get(name, '')} {text}".strip()
    texts.pop("", None)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(description)).strip(), texts


class _Schema(GenerateJsonSchema):
    """Schemas without titles, and with expressions that RE2 knows."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's own

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's own
        return False

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        generated = super().decimal_schema(schema)
        for choice in generated.get("anyOf", [generated]):
            if "pattern" in choice:
                choice["pattern"] = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
        return generated
