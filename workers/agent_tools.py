"""The tools of an agent: describes them for the model, and turns the calls of its reply into proposals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.database import ids
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.session_policies import SessionPolicies
from models.pure.json.canonical import canonical
from models.pure.json.fitting import misfit
from models.pure.json.storable import DEPTH, is_deep, storable
from models.pure.masking import mask
from models.pure.text import words
from models.session.tool_call.proposal import MAX_INPUT_BYTES, Origin, Proposal
from models.settings import settings
from models.workspace.toolset import ToolListing
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET, HOSTED_TOOLSET
from workers.tools.kinds import Tool


@dataclass(frozen=True)
class AgentTools:
    """The tools of one session's agent, with the policies that judge their calls."""

    tools: dict[str, EffectiveTool]
    policies: SessionPolicies
    builtin: Mapping[str, Tool]
    """The built-in tools as their runner has them."""

    @classmethod
    def of(
        cls, agent: dict[str, Any], policies: SessionPolicies, listings: Mapping[str, ToolListing], *, self_hosted: bool = False
    ) -> "AgentTools":
        """Return the tools of a thread's `agent`, with the policies that apply to its calls, and its servers' listings.

        `self_hosted`: True if the client's own worker runs the built-in tools.
        """
        tools = {tool.name: tool for tool in effective_tools(agent, listings)}
        builtin = HOSTED_TOOLSET if self_hosted else AGENT_TOOLSET
        return cls(tools, policies, builtin)

    def for_model(self) -> list[dict[str, Any]]:
        """Return the tools for the model, in the Messages API's shape, without those that are always denied."""
        return [self._tool_for_model(tool) for tool in self.tools.values() if not self.policies.is_always_denied(tool.name)]

    @property
    def asks(self) -> bool:
        """True if a call may wait for a person."""
        return any(self.policies.asks(name) for name in self.tools)

    def proposals(self, content: list[dict[str, Any]]) -> list[Proposal]:
        """Return the calls of a reply, in order. Policies judge a call when it is stored."""
        return [self._propose(block) for block in content if block["type"] == "tool_use"]

    def _propose(self, block: dict[str, Any]) -> Proposal:
        name, arguments = storable(block["name"]), block["input"]
        tool = self.tools.get(name)
        problem = words.broken_input(storable(block["problem"])) if block.get("problem") else _unusable(arguments)
        if problem:
            arguments = {}
        elif tool is None:
            problem = words.unknown_tool(name)
        elif fault := misfit(self._entry(tool)["input_schema"], arguments):
            problem = words.invalid_input(fault)
        masked_input = mask(arguments, self._entry(tool)["input_schema"] if tool else None)
        return Proposal(
            id=ids.new("sevt"),
            provider_id=storable(block["id"]),
            name=name,
            kind=tool.kind if tool else "builtin",
            input=arguments,
            problem=problem,
            idempotent=bool(tool and self._entry(tool).get("idempotent")),
            asking=self.policies.asking(name, masked_input.arguments, self._entry(tool)) if tool else None,
            masked=masked_input,
            answer_seconds=(tool and tool.answer_seconds) or settings().client_tool_seconds,
            origin=self._origin(tool) if tool else None,
        )

    def _origin(self, tool: EffectiveTool) -> Origin | None:
        if tool.entry is None or tool.server is None or tool.address is None:
            return None
        cache = tool.entry.get("cache")
        return Origin(
            server=tool.server,
            address=tool.address,
            tool=tool.entry["name"],
            queue=tool.entry.get("queue"),
            workdir=bool(tool.entry.get("workdir")),
            cache={**cache, "identity": self.policies.identity(tool.name, self_hosted=False)} if cache else None,
        )

    def _tool_for_model(self, tool: EffectiveTool) -> dict[str, Any]:
        entry = self._entry(tool)
        return {"name": tool.name, "description": entry["description"] or "", "input_schema": entry["input_schema"]}

    def _entry(self, tool: EffectiveTool) -> Mapping[str, Any]:
        """Return the tool's entry, as in `models.workspace.toolset`. A custom tool's entry has only some of the fields."""
        if tool.kind == "custom":
            return {"description": tool.description, "input_schema": tool.input_schema or {"type": "object"}}
        if tool.entry is not None:
            return tool.entry
        builtin = self.builtin.get(tool.name)
        assert builtin is not None, "an agent's built-in tools are those of the agent toolset"
        return builtin.as_entry


def _unusable(arguments: Any) -> str | None:
    """Return the reason, for the model, why an input cannot be stored, shown and hashed exactly; None if it can."""
    if not isinstance(arguments, dict):
        return words.invalid_input("The input must be a JSON object.")
    if is_deep(arguments):
        return words.invalid_input(f"The input is nested deeper than {DEPTH} levels.")
    try:
        text = canonical(arguments)
    except (ValueError, RecursionError):
        return words.invalid_input("The input holds a number or a text that JSON cannot express exactly.")
    if b"\\u0000" in text:
        return words.invalid_input("The input holds a NUL character.")
    if len(text) > MAX_INPUT_BYTES:
        return words.invalid_input(f"The input is longer than {MAX_INPUT_BYTES} bytes.")
    return None
