"""A turn's next request, read under the session's lock: its messages, its estimated cost, and the turns to fold first."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from models.database.rows import Db
from models.flow.judge.grants import workspace_policies
from models.flow.run import folds, history
from models.flow.run.folds import Folding
from models.flow.run.history import history_reads
from models.flow.spend.pricing import window_of
from models.pure.folding import Part, tokens_of
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import NOTHING
from models.pure.text import words
from models.session.row import Session
from models.session.turn.row import Turn
from models.settings import settings
from models.workspace.provider_key import ProviderKey
from models.workspace.provider_key import of_workspace as provider_keys
from models.workspace.toolset import Listed, listed
from workers import charging
from workers.agent_tools import AgentTools
from workers.providers import ModelError, ModelRequest, choosing
from workers.providers.choosing import Candidate


class Offer:
    """A session's next request, which `quote` reads while the turn is claimed. Most fields are unset before that."""

    agent: dict[str, Any]
    policies: dict[str, Any]
    listed: dict[str, Listed]
    self_hosted: bool
    messages: list[dict[str, Any]]
    keys: dict[str, ProviderKey]
    """The workspace's own keys by provider."""
    charge: Charge
    """The highest charge that the request may cause."""

    def __init__(self, db: Db) -> None:
        self._db = db
        self.folding: Folding | None = None
        """The turns that must be folded first: then the request asks for their summary."""
        self.tokens = 0
        """An estimate of the request's input."""

    def quote(self, session: Session, turn: Turn) -> Charge:
        """Read the request, and return the highest charge that it may cause. Called once, after the turn has read its messages."""
        self.agent, self.policies = session.agent(self._db), workspace_policies(self._db, session)
        self.charge = Charge("", self.agent["model"]["id"], None, NOTHING, estimated=True)
        *rows, keys = self._db.read(*history_reads(session.id), provider_keys())
        self.keys = {key.provider: key for key in keys}
        self.listed, self.self_hosted = listed(self._db, self.agent), session.self_hosted
        parts = history.parts(self._db, rows)
        self.messages = history.joined(parts)
        with suppress(ModelError):  # nobody serves the model: the request says so
            order = choosing.candidates(self.agent["model"], self.policies.get("model"), turn.kept)
            self.charge = charging.quoted(session, self.agent, self.messages, order) or self.charge
            self._fit(session, turn, parts, order[0])
        return self.charge

    def _fit(self, session: Session, turn: Turn, parts: Sequence[Part], first: Candidate) -> None:
        """Shorten the request, or set `folding`, if it would not fit into the window of the model that is tried first."""
        window = window_of(first.entry, first.model, session.now)
        tokens = self.charge.usage.context_tokens
        fitting, self.folding = folds.fit(self._db, session, turn, parts, tokens=tokens, window=window)
        self.tokens = tokens
        if fitting is not parts or self.folding:
            whole, self.messages = self.messages, history.joined(fitting)
            sent = self.folding.messages if self.folding else self.messages
            self.tokens = tokens * tokens_of(sent) // max(1, tokens_of(whole))


@dataclass(frozen=True)
class Claimed:
    """A turn, with the rows that were read under the lock."""

    turn: Turn
    agent: dict[str, Any]
    policies: dict[str, Any]
    listed: dict[str, Listed]
    messages: list[dict[str, Any]]
    quote: Charge
    folding: Folding | None = None
    """The turns that the request summarizes, instead of continuing the conversation."""
    tokens: int = 0
    """An estimate of the request's input."""
    keys: dict[str, ProviderKey] = field(default_factory=dict)
    """The workspace's own keys by provider."""
    self_hosted: bool = False
    """True if the client's own worker runs the built-in tools."""

    def request(self, tools: AgentTools) -> ModelRequest:
        """Return the request to the model."""
        parallel = not self.agent.get("disable_parallel_tool_use")
        return ModelRequest(
            model=self.agent["model"]["id"],
            system=self.agent["system"] if parallel else _guided(self.agent["system"]),
            messages=self.folding.messages if self.folding else self.messages,
            tools=tools.offered(),
            max_tokens=settings().max_tokens,
            folds=self.folding is not None,
            tokens=self.tokens,
            parallel=parallel,
            long_wait=tools.asks,
            effort=(self.agent["model"].get("effort") or {}).get("type"),
        )


def _guided(system: str | None) -> str:
    """Return the system prompt of an agent that must call one tool at a time."""
    return f"{system}\n\n{words.one_at_a_time()}" if system else words.one_at_a_time()
