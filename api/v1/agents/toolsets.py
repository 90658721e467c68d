"""Toolsets in requests, the built-in one and those of MCP servers, and their normal form, which `models.workspace.agent`
describes."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator
from pydantic_core.core_schema import ValidationInfo

from api.door.requests import Body, twice
from api.v1.policy.approval_settings import ApprovalConfig, ApprovalDefaults
from api.v1.policy.requests import Policy
from models.pure.json.canonical import canonical
from models.workspace.agent import BUILTIN_TOOLS, TOOLSET

MAX_TOOLS = 256

ASK: dict[str, Any] = {"type": "always_ask"}

BuiltIn = Literal["bash", "edit", "read", "write", "glob", "grep", "web_fetch", "web_search"]
ServerName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


def _beside_its_policy(value: str | None, info: ValidationInfo) -> str | None:
    if value and info.data.get("permission_policy", value) is None:
        raise ValueError("names the origin of permission_policy; send both or neither.")
    return value


_ORIGIN: Any = Field(description="The origin of the policy, as the server returned it. Leave it out for a new policy.")
PolicyFrom = Annotated[Literal["tool", "toolset", "default"] | None, AfterValidator(_beside_its_policy), _ORIGIN]


class DefaultConfig(Body):
    """The settings of every tool of the toolset without settings of its own. Without a policy its calls ask."""

    enabled: bool | None = None
    permission_policy: Policy | None = None
    approval: ApprovalDefaults | None = None

    @property
    def approval_field(self) -> dict[str, Any]:
        """The field `approval` in normal form. Empty if the request leaves the field out."""
        return {"approval": self.approval.normal()} if self.approval else {}


class ToolConfig(Body):
    """The settings of one built-in tool. Its policy replaces the toolset's."""

    name: BuiltIn
    type: BuiltIn | None = None
    enabled: bool | None = None
    permission_policy: Policy | None = None
    policy_from: PolicyFrom = None
    approval: ApprovalConfig | None = None


class Toolset(Body):
    """The built-in tools."""

    type: Literal["agent_toolset_20260401"]
    configs: list[ToolConfig] | None = Field(None, max_length=8)
    default_config: DefaultConfig | None = None

    def normal(self) -> dict[str, Any]:
        """Return the normal form, with every tool. Raises ValueError for a tool that appears twice, or an enabled web tool."""
        default = self.default_config or DefaultConfig()
        enabled = default.enabled is not False
        by_name: dict[str, ToolConfig] = {config.name: config for config in self.configs or []}
        _check_configs(self.configs or [], enabled)
        all_configs = [by_name.get(name) or ToolConfig.model_validate({"name": name}) for name in BUILTIN_TOOLS]
        # The server returns `always_ask` also for a toolset without a policy.
        unset = default.permission_policy in (None, ASK)
        configs = [{"type": c.name} | _config(c, enabled, default.permission_policy, unset=unset) for c in all_configs]
        return {
            "type": TOOLSET,
            "default_config": {"enabled": enabled, "permission_policy": default.permission_policy or ASK} | default.approval_field,
            "configs": configs,
        }


class ServerDefaultConfig(DefaultConfig):
    """The settings of every tool of an MCP server without settings of its own. Without a policy its calls ask."""

    policy_from: Annotated[Literal["toolset", "default"] | None, AfterValidator(_beside_its_policy), _ORIGIN] = None

    @property
    def own_policy(self) -> dict[str, Any] | None:
        """The toolset's own policy; None for the default that the server filled in."""
        return None if self.policy_from == "default" and self.permission_policy == ASK else self.permission_policy


class ServerToolConfig(Body):
    """The settings of one tool of an MCP server, by the tool's own name. Its policy replaces the toolset's."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    enabled: bool | None = None
    permission_policy: Policy | None = None
    policy_from: PolicyFrom = None
    approval: ApprovalConfig | None = None


class ServerToolset(Body):
    """The tools of one of `mcp_servers`."""

    type: Literal["mcp_toolset"]
    mcp_server_name: ServerName
    configs: list[ServerToolConfig] | None = Field(None, max_length=MAX_TOOLS)
    default_config: ServerDefaultConfig | None = None

    @field_validator("configs")
    @classmethod
    def _each_once(cls, configs: list[ServerToolConfig] | None) -> list[ServerToolConfig] | None:
        if name := twice(config.name for config in configs or []):
            raise ValueError(f"the tool {name!r} is configured twice; configure each tool once.")
        return configs

    def normal(self) -> dict[str, Any]:
        """Return the normal form: the complete default, and the tools that the request names."""
        default = self.default_config or ServerDefaultConfig()
        enabled, own_policy = default.enabled is not False, default.own_policy
        return {
            "type": "mcp_toolset",
            "mcp_server_name": self.mcp_server_name,
            "default_config": {
                "enabled": enabled,
                "permission_policy": own_policy or ASK,
                "policy_from": "toolset" if own_policy else "default",
            }
            | default.approval_field,
            "configs": [_config(config, enabled, own_policy, unset=own_policy is None) for config in self.configs or []],
        }


def _check_configs(configs: list[ToolConfig], enabled: bool) -> None:
    if name := twice(config.name for config in configs):
        raise ValueError(f"configs: the tool {name!r} is configured twice; configure each tool once.")
    for config in configs:
        if config.type not in {None, config.name}:
            raise ValueError(f"configs: type {config.type!r} must be the name, {config.name!r}.")
        tool_enabled = enabled if config.enabled is None else config.enabled
        if config.name not in BUILTIN_TOOLS and tool_enabled:
            raise ValueError(f"configs: {config.name} is not supported by this server; leave it out or disable it.")


def _config(
    config: ToolConfig | ServerToolConfig, enabled: bool, of_toolset: dict[str, Any] | None, *, unset: bool
) -> dict[str, Any]:
    source = _source(config, of_toolset, unset)
    fields: dict[str, Any] = {
        "name": config.name,
        "enabled": enabled if config.enabled is None else config.enabled,
        "permission_policy": {"tool": config.permission_policy, "toolset": of_toolset, "default": ASK}[source],
        "policy_from": source,
    }
    return fields | ({"approval": config.approval.normal()} if config.approval else {})


def _source(
    config: ToolConfig | ServerToolConfig, of_toolset: dict[str, Any] | None, unset: bool
) -> Literal["tool", "toolset", "default"]:
    """Return the origin of a tool's policy. A policy that a client sends back unchanged keeps its origin.

    `unset`: the toolset may have no policy of its own.
    """
    if config.permission_policy is None:
        return "toolset" if of_toolset else "default"
    if config.policy_from == "default" and config.permission_policy == ASK and unset:
        return "default"
    # Compared in canonical form, since 1 and True are equal in Python.
    same = of_toolset is not None and canonical(config.permission_policy) == canonical(of_toolset)
    return "toolset" if config.policy_from == "toolset" and same else "tool"
