"""A reply's calls, judged before anybody is asked: was the tool given, does the input fit, what does the policy say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.database import ids
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.ruling import Ruling
from models.pure import words
from models.pure.canonical import canonical
from models.pure.fitting import misfit
from models.pure.masking import mask
from models.pure.storable import DEPTH, is_deep, storable
from models.session.proposal import MAX_INPUT_BYTES, Origin, Proposal
from models.settings import settings
from models.workspace.toolset import Listed
from workers.tools import registry


@dataclass(frozen=True)
class Judge:
    """The tools of one session's agent, as its turn needs them."""

    tools: dict[str, EffectiveTool]
    ruling: Ruling

    @classmethod
    def of(cls, agent: dict[str, Any], policies: dict[str, Any], listed: Mapping[str, Listed]) -> "Judge":
        """For a session's `agent`, its workspace's policies as `models.policy.ruling` takes them, and what its MCP servers have."""
        return cls({tool.name: tool for tool in effective_tools(agent, listed)}, Ruling.of(agent, policies, listed))

    def given(self) -> list[dict[str, Any]]:
        """What the model is given, in the Messages API's shape; tools that are always denied are not."""
        return [_spelled(tool) for tool in self.tools.values() if not self.ruling.never(tool.name)]

    @property
    def asks(self) -> bool:
        """Whether a person may be waited for."""
        return any(self.ruling.asks(name) for name in self.tools)

    def proposals(self, content: list[dict[str, Any]]) -> list[Proposal]:
        """The calls of a reply, in order: what is allowed is decided when they are kept."""
        return [self._propose(block) for block in content if block["type"] == "tool_use"]

    def _propose(self, block: dict[str, Any]) -> Proposal:
        name, arguments = storable(block["name"]), block["input"]
        tool = self.tools.get(name)
        problem = _unspeakable(arguments)
        if problem:
            arguments = {}
        elif tool is None:
            problem = words.unknown_tool(name)
        elif fault := misfit(_entry(tool)["input_schema"], arguments):
            problem = words.invalid_input(fault)
        masked = mask(arguments, _entry(tool)["input_schema"] if tool else None)
        return Proposal(
            id=ids.new("sevt"),
            provider_id=storable(block["id"]),
            name=name,
            kind=tool.kind if tool else "builtin",
            input=arguments,
            problem=problem,
            idempotent=bool(tool and _entry(tool).get("idempotent")),
            asking=self.ruling.asking(name, masked.shown, _entry(tool)) if tool else None,
            masked=masked,
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
            cache={**cache, "identity": self.ruling.identity(tool.name, self_hosted=False)} if cache else None,
        )


def _spelled(tool: EffectiveTool) -> dict[str, Any]:
    entry = _entry(tool)
    return {"name": tool.name, "description": entry["description"] or "", "input_schema": entry["input_schema"]}


def _entry(tool: EffectiveTool) -> Mapping[str, Any]:
    """What is known of a tool, whoever runs it: an entry as `models.workspace.toolset` has them, of a client's own tool only part
    of one."""
    if tool.kind == "custom":
        return {"description": tool.description, "input_schema": tool.input_schema or {"type": "object"}}
    if tool.entry is not None:
        return tool.entry
    builtin = registry.look_up(tool.name)
    assert builtin is not None, "an agent's built-in tools are those of the registry"
    return builtin.described


def _unspeakable(arguments: Any) -> str | None:
    """Why an input could not be stored, shown and hashed as it is, in the words for the model; None if it can."""
    if not isinstance(arguments, dict):
        return words.invalid_input("The input must be a JSON object.")
    if is_deep(arguments):
        return words.invalid_input(f"It is nested deeper than {DEPTH} levels.")
    try:
        spelled = canonical(arguments)
    except (ValueError, RecursionError):
        return words.invalid_input("It holds a number or a text that JSON cannot say exactly.")
    if b"\\u0000" in spelled:
        return words.invalid_input("It holds a NUL character.")
    if len(spelled) > MAX_INPUT_BYTES:
        return words.invalid_input(f"It is longer than {MAX_INPUT_BYTES} bytes.")
    return None
