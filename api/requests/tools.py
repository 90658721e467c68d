"""Tools as clients send them, into the normal form that `models.agent` describes."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from jsonschema import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from pydantic import AfterValidator, Field, StringConstraints, field_validator
from pydantic_core.core_schema import ValidationInfo
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from api.requests.base import Body
from api.requests.policy import ApprovalConfig, Policy
from models.agent import BUILTIN_TOOLS, TOOLSET
from models.pure.canonical import canonical
from models.pure.fitting import unusable_pattern

MAX_TOOLS = 256

ASK: dict[str, Any] = {"type": "always_ask"}

BuiltIn = Literal["bash", "edit", "read", "write", "glob", "grep", "web_fetch", "web_search"]


class DefaultConfig(Body):
    """What holds for every tool of the set that says nothing else. Without a policy its calls ask."""

    enabled: bool | None = None
    permission_policy: Policy | None = None


class ToolConfig(Body):
    """What holds for one built-in tool. Its policy takes the place of the toolset's."""

    name: BuiltIn
    type: BuiltIn | None = None
    enabled: bool | None = None
    permission_policy: Policy | None = None
    policy_from: Literal["tool", "toolset", "default"] | None = Field(
        None, description="As it came: a policy that is still the toolset's, or nobody's, stays so. Leave it out for a new one."
    )
    approval: ApprovalConfig | None = None

    @field_validator("policy_from")
    @classmethod
    def _beside_its_policy(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("permission_policy", value) is None:
            raise ValueError("says whose the permission_policy beside it is; send both or neither.")
        return value


class Toolset(Body):
    """The built-in tools."""

    type: Literal["agent_toolset_20260401"]
    configs: list[ToolConfig] | None = Field(None, max_length=8)
    default_config: DefaultConfig | None = None

    def normal(self) -> dict[str, Any]:
        """Every tool spelled out. Raises ValueError on a tool given twice, or on a web tool that is enabled."""
        default = self.default_config or DefaultConfig()
        enabled = default.enabled is not False
        given: dict[str, ToolConfig] = {config.name: config for config in self.configs or []}
        _check_configs(self.configs or [], enabled)
        configs = [
            _config(given.get(name) or ToolConfig.model_validate({"name": name}), enabled, default.permission_policy)
            for name in BUILTIN_TOOLS
        ]
        return {
            "type": TOOLSET,
            "default_config": {"enabled": enabled, "permission_policy": default.permission_policy or ASK},
            "configs": configs,
        }


def _check_configs(configs: list[ToolConfig], enabled: bool) -> None:
    names = [config.name for config in configs]
    if len(set(names)) < len(names):
        raise ValueError("configs: a tool is configured twice; configure each once.")
    for config in configs:
        if config.type not in {None, config.name}:
            raise ValueError(f"configs: type {config.type!r} must be the name, {config.name!r}.")
        wanted = enabled if config.enabled is None else config.enabled
        if config.name not in BUILTIN_TOOLS and wanted:
            raise ValueError(f"configs: {config.name} is not supported by this server; leave it out or disable it.")


def _config(config: ToolConfig, enabled: bool, of_toolset: dict[str, Any] | None) -> dict[str, Any]:
    source = _source(config, of_toolset)
    said: dict[str, Any] = {
        "type": config.name,
        "name": config.name,
        "enabled": enabled if config.enabled is None else config.enabled,
        "permission_policy": {"tool": config.permission_policy, "toolset": of_toolset, "default": ASK}[source],
        "policy_from": source,
    }
    return said | ({"approval": config.approval.normal()} if config.approval else {})


def _source(config: ToolConfig, of_toolset: dict[str, Any] | None) -> Literal["tool", "toolset", "default"]:
    """Whose policy holds. One that came with an answer and is sent back unchanged is still whose it was."""
    if config.permission_policy is None:
        return "toolset" if of_toolset else "default"
    if config.policy_from == "default" and config.permission_policy == ASK and of_toolset in (None, ASK):
        return "default"
    # By their canonical texts: to Python, 1 is True.
    same = of_toolset is not None and canonical(config.permission_policy) == canonical(of_toolset)
    return "toolset" if config.policy_from == "toolset" and same else "tool"


_UNKNOWN: Any = None


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema that can be trusted to validate inputs: it is one, it fetches nothing, and it ends."""
    if schema.get("type") != "object":
        raise ValueError('must have "type": "object".')
    if any(isinstance(ref, str) and not ref.startswith("#") for ref in _refs(schema)):
        raise ValueError("$ref may only point inside the schema, such as #/$defs/item.")
    dialect = schema.get("$schema", Draft202012Validator.META_SCHEMA["$schema"])
    checker: Any = validator_for({"$schema": dialect}, default=_UNKNOWN) if isinstance(dialect, str) else _UNKNOWN
    if checker is _UNKNOWN:
        raise ValueError(f"$schema names no known dialect; leave it out for {Draft202012Validator.META_SCHEMA['$schema']}.")
    try:
        checker.check_schema(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        _follow(schema)
    except SchemaError as error:
        raise ValueError(f"is no JSON Schema: {error.message[:200]} at {error.json_path}.") from None
    except (RecursionError, Unresolvable):
        raise ValueError("has a $ref that leads nowhere or back to itself.") from None
    if pattern := unusable_pattern(schema):
        raise ValueError(f"has the pattern {pattern[:200]!r}; use one without look-around and back-references (RE2's syntax).")
    return schema


def _follow(schema: dict[str, Any]) -> None:
    """Raises Unresolvable for a `$ref` that leads nowhere, RecursionError for one that leads to itself and looks at no input.

    Nothing is validated here: that could take for ever, and is done where there is a time limit.
    """
    resolver = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    open_: set[int] = set()
    done: set[int] = set()

    def visit(part: Any) -> None:
        if not isinstance(part, dict) or id(part) in done:
            return
        if id(part) in open_:
            raise RecursionError
        open_.add(id(part))
        if isinstance(part.get("$ref"), str):
            visit(resolver.lookup(part["$ref"]).contents)
        for inner in [part.get(name) for name in ("not", "if", "then", "else")]:
            visit(inner)
        for inner in [inner for name in ("allOf", "anyOf", "oneOf") for inner in part.get(name) or []]:
            visit(inner)
        done.add(id(part))

    for part in _parts(schema):
        visit(part)


def _parts(schema: Any) -> Iterator[Any]:
    yield schema
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for part in inner:
        yield from _parts(part)


def _refs(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [ref for item in schema for ref in _refs(item)]
    if not isinstance(schema, dict):
        return []
    here = [schema[name] for name in ("$ref", "$dynamicRef") if name in schema]
    return here + [ref for item in schema.values() for ref in _refs(item)]


class Custom(Body):
    """A tool that the client runs. Without a policy its calls are allowed: posting the result is the client's act."""

    type: Literal["custom"]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    description: str = Field(max_length=10_000)
    input_schema: Annotated[dict[str, Any], AfterValidator(_schema)]
    permission_policy: Policy | None = None
    approval: ApprovalConfig | None = None

    def normal(self) -> dict[str, Any]:
        """As it was sent, without what was not."""
        said = self.model_dump(include={"type", "name", "description", "input_schema"})
        if self.permission_policy:
            said["permission_policy"] = self.permission_policy
        return said | ({"approval": self.approval.normal()} if self.approval else {})


Tool = Annotated[Toolset | Custom, Field(discriminator="type")]


def _tools(tools: list[Toolset | Custom] | None) -> list[Toolset | Custom] | None:
    names: list[str] = []
    for tool in tools or []:
        said = tool.normal()
        names += [tool.name] if isinstance(tool, Custom) else [c["name"] for c in said["configs"] if c["enabled"]]
    if sum(isinstance(tool, Toolset) for tool in tools or []) > 1:
        raise ValueError(f"{TOOLSET} is given twice; give it once.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two tools are named {twice[0]!r}; names must be unique.")
    if len(names) > MAX_TOOLS:
        raise ValueError(f"at most {MAX_TOOLS} tools over all toolsets; these are {len(names)}.")
    return tools


Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS), AfterValidator(_tools)]


def normal_tools(tools: list[Toolset | Custom] | None) -> list[dict[str, Any]]:
    """The normal form of an agent's tools."""
    return [tool.normal() for tool in tools or []]
