"""Toolsets as clients send them, the built-in one and those of MCP servers, into the normal form that `models.workspace.agent`
describes."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator
from pydantic_core.core_schema import ValidationInfo

from api.requests.approval_settings import ApprovalConfig, ApprovalDefaults
from api.requests.base import Body
from api.requests.policy import Policy
from models.pure.canonical import canonical
from models.workspace.agent import BUILTIN_TOOLS, TOOLSET

MAX_TOOLS = 256

ASK: dict[str, Any] = {"type": "always_ask"}

BuiltIn = Literal["bash", "edit", "read", "write", "glob", "grep", "web_fetch", "web_search"]
ServerName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


def twice(names: Iterable[str]) -> str | None:
    """A name that is there more than once, if one is."""
    return next((name for name, following in pairwise(sorted(names)) if name == following), None)


def _beside_its_policy(value: str | None, info: ValidationInfo) -> str | None:
    if value and info.data.get("permission_policy", value) is None:
        raise ValueError("says whose the permission_policy beside it is; send both or neither.")
    return value


PolicyFrom = Annotated[
    Literal["tool", "toolset", "default"] | None,
    AfterValidator(_beside_its_policy),
    Field(description="As it came: a policy that is still the toolset's, or nobody's, stays so. Leave it out for a new one."),
]


class DefaultConfig(Body):
    """What holds for every tool of the set that says nothing else. Without a policy its calls ask."""

    enabled: bool | None = None
    permission_policy: Policy | None = None
    approval: ApprovalDefaults | None = None

    @property
    def asking(self) -> dict[str, Any]:
        """Its `approval` in normal form, as a field; nothing where it has none."""
        return {"approval": self.approval.normal()} if self.approval else {}


class ToolConfig(Body):
    """What holds for one built-in tool. Its policy takes the place of the toolset's."""

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
        """Every tool spelled out. Raises ValueError on a tool given twice, or on a web tool that is enabled."""
        default = self.default_config or DefaultConfig()
        enabled = default.enabled is not False
        given: dict[str, ToolConfig] = {config.name: config for config in self.configs or []}
        _check_configs(self.configs or [], enabled)
        wanted = [given.get(name) or ToolConfig.model_validate({"name": name}) for name in BUILTIN_TOOLS]
        # What came back as the toolset's `always_ask` may have been nobody's.
        unsaid = default.permission_policy in (None, ASK)
        configs = [{"type": c.name} | _config(c, enabled, default.permission_policy, unsaid=unsaid) for c in wanted]
        return {
            "type": TOOLSET,
            "default_config": {"enabled": enabled, "permission_policy": default.permission_policy or ASK} | default.asking,
            "configs": configs,
        }


class ServerDefaultConfig(DefaultConfig):
    """What holds for every tool of an MCP server that has no config of its own. Without a policy its calls ask."""

    policy_from: Annotated[
        Literal["toolset", "default"] | None,
        AfterValidator(_beside_its_policy),
        Field(description="As it came: a policy that is nobody's stays so. Leave it out for a new one."),
    ] = None

    @property
    def said(self) -> dict[str, Any] | None:
        """Its policy; None where that is nobody's."""
        return None if self.policy_from == "default" and self.permission_policy == ASK else self.permission_policy


class ServerToolConfig(Body):
    """What holds for one tool of an MCP server, by the tool's own name. Its policy takes the place of the toolset's."""

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
            raise ValueError(f"the tool {name!r} is configured twice; configure each once.")
        return configs

    def normal(self) -> dict[str, Any]:
        """The default spelled out, and the tools that were named."""
        default = self.default_config or ServerDefaultConfig()
        enabled, said = default.enabled is not False, default.said
        return {
            "type": "mcp_toolset",
            "mcp_server_name": self.mcp_server_name,
            "default_config": {
                "enabled": enabled,
                "permission_policy": said or ASK,
                "policy_from": "toolset" if said else "default",
            }
            | default.asking,
            "configs": [_config(config, enabled, said, unsaid=said is None) for config in self.configs or []],
        }


def _check_configs(configs: list[ToolConfig], enabled: bool) -> None:
    if twice(config.name for config in configs):
        raise ValueError("configs: a tool is configured twice; configure each once.")
    for config in configs:
        if config.type not in {None, config.name}:
            raise ValueError(f"configs: type {config.type!r} must be the name, {config.name!r}.")
        wanted = enabled if config.enabled is None else config.enabled
        if config.name not in BUILTIN_TOOLS and wanted:
            raise ValueError(f"configs: {config.name} is not supported by this server; leave it out or disable it.")


def _config(
    config: ToolConfig | ServerToolConfig, enabled: bool, of_toolset: dict[str, Any] | None, *, unsaid: bool
) -> dict[str, Any]:
    source = _source(config, of_toolset, unsaid)
    said: dict[str, Any] = {
        "name": config.name,
        "enabled": enabled if config.enabled is None else config.enabled,
        "permission_policy": {"tool": config.permission_policy, "toolset": of_toolset, "default": ASK}[source],
        "policy_from": source,
    }
    return said | ({"approval": config.approval.normal()} if config.approval else {})


def _source(
    config: ToolConfig | ServerToolConfig, of_toolset: dict[str, Any] | None, unsaid: bool
) -> Literal["tool", "toolset", "default"]:
    """Whose policy holds. One that came with an answer and is sent back unchanged is still whose it was.

    `unsaid`: the toolset's own may be nobody's.
    """
    if config.permission_policy is None:
        return "toolset" if of_toolset else "default"
    if config.policy_from == "default" and config.permission_policy == ASK and unsaid:
        return "default"
    # By their canonical texts: to Python, 1 is True.
    same = of_toolset is not None and canonical(config.permission_policy) == canonical(of_toolset)
    return "toolset" if config.policy_from == "toolset" and same else "tool"
