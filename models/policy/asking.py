"""How people are asked about a tool call: the question, its deadline and its approvers."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

OnTimeout = Literal["deny", "end_run", "escalate", "allow"]


@dataclass(frozen=True)
class Asking:
    """How people are asked about a call, and what happens if nobody answers."""

    prompt: str
    """The text above the input."""
    seconds: float
    """Time from the question to the deadline."""
    on_timeout: OnTimeout = "deny"
    remind_after_seconds: float | None = None
    input_schema: dict[str, Any] | None = None
    """The schema that an edited input must fit, and that marks secret fields."""
    identity: str | None = None
    """The tool's `SessionPolicies.identity`."""
    annotations: dict[str, Any] | None = None
    """The tool server's own hints about the tool, such as MCP's `readOnlyHint`. People see them."""
    quorum: dict[str, Any] | None = None
    """Who must approve, and by which options: `Quorum.as_json`."""
    escalation: dict[str, Any] | None = None
    """With `on_timeout` escalate: `Escalation.as_json`."""

    @property
    def as_json(self) -> dict[str, Any]:
        """The fields as JSON, stored with a call about which people may have to be asked later."""
        return asdict(self)
