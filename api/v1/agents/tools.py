"""Tools in requests, and their normal form, which `models.workspace.agent` describes."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from api.door.requests import YEAR, Body, twice
from api.v1.agents.schemas import InputSchema
from api.v1.agents.toolsets import MAX_TOOLS, ServerToolset, Toolset
from api.v1.policy.approval_settings import ApprovalConfig
from api.v1.policy.requests import Policy
from models.pure.json.property_order import order_field
from models.pure.naming import RESERVED, is_reserved
from models.workspace.agent import TOOLSET


class Custom(Body):
    """A tool that the client runs. Without a policy its calls are allowed, since the client decides whether to run them."""

    type: Literal["custom"]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    description: str = Field(max_length=10_000)
    input_schema: InputSchema
    property_order: dict[str, list[str]] | None = Field(
        None, description="The order of the schema's properties for people. Left out: the order in which `input_schema` has them."
    )
    permission_policy: Policy | None = None
    approval: ApprovalConfig | None = None
    result_timeout_seconds: Annotated[float, Field(gt=0, le=YEAR)] | None = Field(
        None, description="The time that the client has for a call. After it the run continues without a result. Default: a day."
    )

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, name: str) -> str:
        if is_reserved(name):
            raise ValueError(RESERVED)
        return name

    def normal(self) -> dict[str, Any]:
        """Return the normal form: the fields that the request sets."""
        fields = self.model_dump(include={"type", "name", "description", "input_schema"}) | order_field(self.input_schema)
        if self.property_order:
            fields["property_order"] = self.property_order
        if self.permission_policy:
            fields["permission_policy"] = self.permission_policy
        if self.result_timeout_seconds:
            fields["result_timeout_seconds"] = self.result_timeout_seconds
        return fields | ({"approval": self.approval.normal()} if self.approval else {})


AnyTool = Toolset | ServerToolset | Custom
Tool = Annotated[AnyTool, Field(discriminator="type")]


def _tools(tools: list[AnyTool] | None) -> list[AnyTool] | None:
    configured_tools = tools or []
    names = [name for tool in configured_tools for name in _names(tool)]
    if sum(isinstance(tool, Toolset) for tool in configured_tools) > 1:
        raise ValueError(f"{TOOLSET} appears twice; send it once.")
    if name := twice(tool.mcp_server_name for tool in configured_tools if isinstance(tool, ServerToolset)):
        raise ValueError(f"two toolsets name the MCP server {name!r}; send one toolset per server.")
    if name := twice(names):
        raise ValueError(f"two tools are named {name!r}; names must be unique.")
    if len(names) > MAX_TOOLS:
        raise ValueError(f"at most {MAX_TOOLS} tools over all toolsets; these are {len(names)}.")
    return tools


def _names(tool: AnyTool) -> Iterator[str]:
    """Yield the names of the tools that are enabled by name. The other tools of an MCP server are unknown here."""
    if isinstance(tool, Custom):
        yield tool.name
        return
    prefix = f"{tool.mcp_server_name}: " if isinstance(tool, ServerToolset) else ""
    yield from (prefix + config["name"] for config in tool.normal()["configs"] if config["enabled"])


Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS), AfterValidator(_tools)]


def normal_tools(tools: list[AnyTool] | None) -> list[dict[str, Any]]:
    """Return the normal form of an agent's tools."""
    return [tool.normal() for tool in tools or []]
