"""A turn's next request, read under the session's lock: its messages, its estimated cost, and the turns to fold first."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from models.database.exchange import Statement
from models.database.query import Query
from models.flow.run import history
from models.flow.run.folds import Folding, fit
from models.flow.run.history import joined
from models.flow.run.turns import QueuedTurn
from models.flow.spend.pricing import window_of
from models.policy.session_policies import SessionPolicies
from models.pure.folding import Part, tokens_of
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import NOTHING
from models.pure.text import words
from models.settings import settings
from models.workspace import provider_key
from models.workspace.provider_key import ProviderKey
from models.workspace.toolset import ToolListing, listings_of
from workers import charging
from workers.agent_tools import AgentTools
from workers.providers import ModelError, ModelRequest, choosing
from workers.providers.choosing import Candidate


@dataclass(frozen=True)
class Offer:
    """A session's next request, with the rows that were read under the lock."""

    agent: dict[str, Any]
    policies: dict[str, Any]
    listings: dict[str, ToolListing]
    keys: dict[str, ProviderKey]
    """The workspace's own keys by provider."""
    messages: list[dict[str, Any]]
    charge: Charge
    """The highest charge that the request may cause."""
    folding: Folding | None = None
    """The turns that must be folded first: then the request asks for their summary, instead of continuing the conversation."""
    tokens: int = 0
    """An estimate of the request's input."""
    self_hosted: bool = False
    """True if the client's own worker runs the built-in tools."""
    parent: SessionPolicies | None = None
    """The policies of the thread that began this one."""
    inline: bool = False
    """True if the agent exists in its thread alone."""

    @staticmethod
    def reads(session_id: str, turn_id: str) -> "tuple[Query[ProviderKey] | Statement, ...]":
        """Return the queries for `of`, which the turn's lock sends along."""
        return provider_key.of_workspace(), *history.reads_for(session_id, turn_id)

    @classmethod
    def of(cls, queued_turn: QueuedTurn) -> "Offer":
        """Return the request of a queued turn, which was locked with the queries of `reads`."""
        locked, turn = queued_turn.locked, queued_turn.turn
        db, session = locked.db, locked.session
        agent, policies = locked.agent, locked.policies
        keys, *rows = queued_turn.rows
        tools, parts = listings_of(db, agent), history.parts(db, locked.thread, rows)
        charge = Charge("", agent["model"]["id"], None, NOTHING, estimated=True)
        by_provider = {key.provider: key for key in keys}
        offer = cls(
            agent,
            policies,
            tools,
            by_provider,
            joined(parts),
            charge,
            self_hosted=session.self_hosted,
            parent=session.policies_of_parent(db, locked.thread, policies),
            inline=locked.thread.inline,
        )
        with suppress(ModelError):  # nobody serves the model: the request says so
            order = choosing.candidates(agent["model"], policies.get("model"), turn.kept)
            charge = charging.quote_for(locked, agent, offer.messages, order) or charge
            return _fitted(replace(offer, charge=charge), queued_turn, parts, order[0])
        return offer

    def tools(self, listings: dict[str, ToolListing]) -> AgentTools:
        """Return the agent's tools, by what its servers list now."""
        policies = SessionPolicies.of(self.agent, self.policies, listings, self.parent)
        of_thread = policies.in_session(git_written=False, inline=self.inline)
        return AgentTools.of(self.agent, of_thread, listings, self_hosted=self.self_hosted)

    def request(self, tools: AgentTools) -> ModelRequest:
        """Return the request to the model."""
        parallel = not self.agent.get("disable_parallel_tool_use")
        return ModelRequest(
            model=self.agent["model"]["id"],
            system=_system_prompt(self.agent["system"], parallel=parallel),
            messages=self.folding.messages if self.folding else self.messages,
            tools=tools.for_model(),
            max_tokens=settings().max_tokens,
            folds=self.folding is not None,
            tokens=self.tokens,
            parallel=parallel,
            long_wait=tools.asks,
            effort=(self.agent["model"].get("effort") or {}).get("type"),
        )


def _fitted(offer: Offer, queued_turn: QueuedTurn, parts: Sequence[Part], first: Candidate) -> Offer:
    """Return the offer, shortened or with `folding` if it would not fit into the window of the model that is tried first."""
    locked, tokens = queued_turn.locked, offer.charge.usage.context_tokens
    window = window_of(first.entry, first.model, locked.now)
    fitting, folding = fit(locked, queued_turn.turn, parts, tokens=tokens, window=window)
    if fitting is parts and not folding:
        return replace(offer, tokens=tokens)
    messages = joined(fitting)
    tokens = tokens * tokens_of(folding.messages if folding else messages) // max(1, tokens_of(offer.messages))
    return replace(offer, messages=messages, folding=folding, tokens=tokens)


def _system_prompt(system: str | None, *, parallel: bool) -> str | None:
    """Return the system prompt, with a word to an agent that must call one tool at a time.

    White space counts as none, because models refuse it.
    """
    texts = [system or "", "" if parallel else words.one_at_a_time()]
    return "\n\n".join(text for text in texts if text.strip()) or None
