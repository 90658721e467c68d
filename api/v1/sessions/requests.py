"""Requests about sessions."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from api.door.examples import IDS
from api.door.requests import (
    AtMost,
    Body,
    Created,
    Id,
    Metadata,
    MetadataPatch,
    Paged,
    PersonName,
    System,
    Unsupported,
    Version,
    examples,
)
from api.v1.agents.requests import MaxTurns
from api.v1.agents.servers import McpServers, normal_servers
from api.v1.agents.tools import Tools, normal_tools
from api.v1.events.requests import UserMessage
from api.v1.model import ModelParam
from api.v1.policy.approval_settings import ApprovalDefaults
from api.v1.policy.requests import Policy
from models.pure.pricing.prices import dollars_of

Title = Annotated[str, Field(max_length=512)]


class AmountParams(Body):
    """An amount of money."""

    amount: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,11}$"), Field(examples=["2500"])]
    """Cents, as an integer in a string: `2500` is $25.00."""
    currency: Literal["USD"]


class BudgetParams(Body):
    """The most that a session may cost at list prices."""

    type: Literal["limit"]
    max_list_cost: AmountParams

    @property
    def dollars(self) -> Decimal:
        """The limit in US dollars."""
        return dollars_of(self.max_list_cost.amount)


class Reference(Body):
    """An agent at a version, by default the newest."""

    type: Literal["agent"]
    id: Id
    version: Version | None = None

    def overrides(self) -> dict[str, Any]:
        """Return no fields."""
        return {}


class Overridden(Body):
    """An agent at a version, with some of its fields replaced for this session."""

    type: Literal["agent_with_overrides"]
    id: Id
    version: Version | None = None
    mcp_servers: McpServers | None = None
    skills: Unsupported = None
    model: ModelParam | None = None
    system: System | None = None
    tools: Tools | None = None
    permission_policy: Policy | None = None
    approval: ApprovalDefaults | None = None

    def overrides(self) -> dict[str, Any]:
        """Return the fields that were sent, in normal form."""
        fields = {
            "system": self.system or None,
            "tools": normal_tools(self.tools),
            "mcp_servers": normal_servers(self.mcp_servers),
            "permission_policy": self.permission_policy,
            "approval": self.approval.normal() if self.approval else None,
        }
        return self.sent(fields) | ({"model": self.model.normal()} if self.model else {})


Agent = Annotated[
    Annotated[Reference | Overridden, Field(discriminator="type")],
    BeforeValidator(
        lambda a: {"type": "agent", "id": a} if isinstance(a, str) else a,
        json_schema_input_type=Id | Annotated[Reference | Overridden, Field(discriminator="type")],
    ),
]


class SessionCreate(Body):
    """A new session."""

    model_config = examples(
        {"agent": IDS["agent_id"], "title": "Order 1042"},
        {
            "agent": {"type": "agent", "id": IDS["agent_id"], "version": 1},
            "environment_id": IDS["environment_id"],
            "initial_events": [{"type": "user.message", "content": [{"type": "text", "text": "Please refund order 1042."}]}],
        },
    )

    agent: Agent
    environment_id: Id | None = Field(
        None, description="Left out, or `default`: the built-in environment of this name, Assent's own workers."
    )
    title: Title | None = None
    metadata: Metadata | None = None
    initial_events: Annotated[list[UserMessage], AtMost("max_events_per_post")] | None = None
    max_turns: MaxTurns | None = None
    chat_approvals: bool | None = Field(
        None, description="Whether words such as `approve` in a message decide approvals. Left out: as the agent says."
    )
    on_ask: Literal["inbox", "deny"] | None = Field(
        None, description="`deny`: a call that would need an approval is denied at once. Left out: people are asked."
    )
    on_behalf_of: PersonName | None = Field(None, description="The person for whom the API key speaks in this session.")
    budget: BudgetParams | None = Field(None, description="The most that the session may cost. Left out: no limit, permanently.")
    resources: Unsupported = None
    vault_ids: Unsupported = None


class SessionAgentUpdate(Body):
    """Changes of a session's agent. A list is replaced as a whole."""

    tools: Tools | None = None
    mcp_servers: McpServers | None = None

    def changes(self) -> dict[str, Any]:
        """Return the lists that were sent, in normal form."""
        return self.sent({"tools": normal_tools(self.tools), "mcp_servers": normal_servers(self.mcp_servers)})


class SessionUpdate(Body):
    """Changes of a session. A field that is left out is kept, and metadata is a patch."""

    model_config = examples(
        {"title": "Order 1042, closed", "metadata": {"order": "1042"}},
    )

    agent: SessionAgentUpdate | None = None
    title: Title | None = None
    metadata: MetadataPatch | None = None
    budget: BudgetParams | None = Field(None, description="Another budget, or null to remove the budget permanently.")
    vault_ids: Unsupported = None

    def changes(self) -> dict[str, Any]:
        """Return the fields that were sent: `title`, `metadata` (a patch), `budget` (dollars), `tools` and `mcp_servers`."""
        budget = self.budget.dollars if self.budget else None
        changes = self.sent({"title": self.title or None, "metadata": self.metadata or {}, "budget": budget})
        return changes | (self.agent.changes() if self.agent else {})


class SessionList(Created):
    """GET /v1/sessions."""

    agent_id: str | None = Field(None, max_length=128)
    agent_version: Version | None = None
    include_archived: bool = False
    order: Literal["asc", "desc"] = "desc"
    statuses: list[Literal["rescheduling", "running", "idle", "terminated"]] = Field(default_factory=list)
    waiting: Literal["approval", "client", "any", "none"] | None = None
    """Only sessions with a call that waits for people (`approval`), or for a client or its worker (`client`), or for either
    (`any`); or only sessions in which nothing waits (`none`)."""
    deployment_id: SkipJsonSchema[Unsupported] = None
    memory_store_id: SkipJsonSchema[Unsupported] = None


class ResourceList(Paged):
    """GET /v1/sessions/{id}/resources."""

    limit: int = Field(1000, ge=1, le=1000)
