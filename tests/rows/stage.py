"""A workspace with sessions on it, driven verb by verb, as the doors and the tasks would, without any process."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

from rows.invariants import Invariants

from models import flow
from models.audit.principal import Principal
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transaction
from models.pure.charges import Charge
from models.pure.naming import OURS
from models.pure.storable import storable
from models.pure.usage import Usage
from models.session.approval import Approval
from models.session.call_result import CallResult
from models.session.decision import Decision
from models.session.event import Event
from models.session.session import Session
from models.session.tool_call import ToolCall
from models.session.turn import Turn
from models.workspace import toolset
from models.workspace.agent import Agent
from models.workspace.environment import Environment
from models.workspace.toolset import Entry
from models.workspace.workspace import Workspace
from workers.agent_tools import AgentTools
from workers.tools import sources

T = TypeVar("T")

USAGE = Usage(input_tokens=10, output_tokens=5)
QUOTE = Charge("anthropic", "stand-in", None, Usage(input_tokens=10, output_tokens=100), estimated=True)
"""What a request may consume at most."""
ALL_SCOPES = frozenset({"agents", "sessions", "approvals", "read", "admin"})


def call(name: str = "bash", **arguments: Any) -> dict[str, Any]:
    """A `tool_use` block of a reply."""
    return {"type": "tool_use", "id": ids.new("toolu"), "name": name, "input": arguments or {"command": "true"}}


def say(text: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": text}


def _policy(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {"type": said}


def rules(*said: tuple[str, Any], default: str = "ask") -> dict[str, Any]:
    """A policy of rules: `rules(("deny", "bash(rm *)"))`."""
    return {"type": "rules", "rules": [{"effect": effect, "match": match} for effect, match in said], "default": default}


def entry(name: str, *, idempotent: bool = False, **more: Any) -> dict[str, Any]:
    """A tool of a toolset, as its worker announces it; it takes `n`, a whole number."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    said = {"name": name, "description": name, "input_schema": schema, "effect": "write", "idempotent": idempotent}
    said |= {"seconds": None, "prompt": None, "cache": None, "policy": None, "queue": None, "workdir": False, "annotations": {}}
    return said | more


def _server(name: str, policy: Any) -> dict[str, Any]:
    said = _policy(policy) if policy else {"type": "always_ask"}
    default = {"enabled": True, "permission_policy": said, "policy_from": "toolset" if policy else "default"}
    return {"type": "mcp_toolset", "mcp_server_name": name, "default_config": default, "configs": []}


def confirmation(call_id: str, result: str = "allow", **more: Any) -> dict[str, Any]:
    """A `user.tool_confirmation` as the verbs take it. `more` are fields of `Decision`."""
    return {"type": "user.tool_confirmation", "tool_use_id": call_id, "decision": Decision(result=result, **more)}  # type: ignore[arg-type]


def entry_of(address: str | None, tool: str) -> Entry | None:
    """The entry of a tool of Assent. The worker has no toolsets, which other tests of this process may have."""
    brought = address is None or address.removeprefix(OURS) in sources.OF_THE_HOUSE
    return sources.entry_of(address, tool) if brought else None


class Stage:
    """One workspace. Every method is one transaction, as one request or one task's step would be."""

    def __init__(self) -> None:
        self.workspace_id = ids.new("wrkspc")
        self.quote = QUOTE
        self.principal = Principal("api_key", "key_test", self.workspace_id, ALL_SCOPES)
        with transaction(self.workspace_id) as db:
            Workspace.create(db, "Stage")

    def session(
        self,
        max_turns: int = 5,
        custom: tuple[str, ...] = (),
        approval: dict[str, Any] | None = None,
        *,
        self_hosted: bool = False,
        agent_policy: dict[str, Any] | None = None,
        agent_approval: dict[str, Any] | None = None,
        chat_approvals: bool = False,
        on_ask: str = "inbox",
        on_behalf_of: str | None = None,
        budget: str | None = None,
        model: str = "stand-in",
        of_agent: str | None = None,
        policy_from: str = "tool",
        servers: dict[str, str] | None = None,
        **policies: Any,
    ) -> str:
        """A new session; `policies` by built-in tool (`bash="always_ask"`), `custom` names client tools.

        `servers` are MCP servers: addresses by name. Their policy is that of `policies` by their names; without one, none.
        """
        default = {"type": "always_ask"}
        configs = [
            {"type": name, "name": name, "enabled": True, "permission_policy": _policy(policy), "approval": approval}
            | {"policy_from": policy_from}
            for name, policy in (policies or {"bash": "always_ask"}).items()
            if name not in (servers or {})
        ]
        tools: list[dict[str, Any]] = [
            {
                "type": "agent_toolset_20260401",
                "default_config": {"enabled": True, "permission_policy": default},
                "configs": configs,
            }
        ]
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tools += [
            {"type": "custom", "name": name.removesuffix("?"), "description": name, "input_schema": schema}
            | ({"permission_policy": default} if name.endswith("?") else {})
            for name in custom
        ]
        tools += [_server(name, policies.get(name)) for name in servers or {}]
        body = {"name": "Agent", "description": None, "model": {"id": model}, "system": None, "tools": tools, "metadata": {}}
        body |= {"mcp_servers": [{"type": "url", "name": name, "url": url} for name, url in (servers or {}).items()]}
        body |= {"permission_policy": agent_policy, "approval": agent_approval}
        if not of_agent:
            with transaction(self.workspace_id) as db:  # of its own: then all read the agent as the database spells it
                of_agent = Agent.create(db, self.principal, body)[0].id
        with transaction(self.workspace_id) as db:
            version = Agent.find(db, of_agent).at(db)
            environment = db.first(Environment)
            if self_hosted:
                environment = Environment.create(db, self.principal, name="Theirs", self_hosted=True)
            assert environment
            session = flow.create(
                db,
                self.principal,
                version=version,
                environment_id=environment.id,
                self_hosted=self_hosted,
                title=None,
                metadata={},
                max_turns=max_turns,
                chat_approvals=chat_approvals,
                on_ask=on_ask,
                on_behalf_of=on_behalf_of,
            )
            session.max_list_cost = Decimal(budget) if budget else None  # the stand-in has no price
            return session.id

    def change_agent(self, session_id: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Have the session's own agent otherwise than it was created."""

        def verb(db: Db, session: Session) -> None:
            agent = json.loads(json.dumps(session.agent(db)))
            change(agent)
            session.overrides = {key: value for key, value in agent.items() if key not in {"id", "type", "version"}}

        self.locked(session_id, verb)

    def locked(self, session_id: str, verb: Callable[[Db, Session], T]) -> T:
        """Run a verb in a transaction of its own."""
        with transaction(self.workspace_id) as db:
            return verb(db, flow.lock(db, session_id))

    def send(self, session_id: str, *events: dict[str, Any]) -> list[Event]:
        """Post events."""
        return self.locked(session_id, lambda db, session: flow.receive(db, session, self.principal, list(events)))

    def message(self, session_id: str, text: str = "Do it.") -> Event:
        """Post a message."""
        return self.send(session_id, {"type": "user.message", "content": [say(text)]})[0]

    def confirm(self, session_id: str, call_id: str, result: str = "allow", **more: Any) -> Event:
        """Post a decision."""
        return self.send(session_id, confirmation(call_id, result, **more))[0]

    def decide(self, approval: Approval, **decision: Any) -> str:
        """Decide an approval by its id, as the inbox does."""

        def verb(db: Db, session: Session) -> str:
            return flow.decide(db, session, self.principal, db.get_one(Approval, approval.id), Decision(**decision))

        return self.locked(approval.session_id, verb)

    def claim(self, session_id: str) -> Turn | None:
        """Claim the current turn. Its request may consume `quote`."""
        return self.locked(
            session_id, lambda db, session: flow.claim_turn(db, session, session.turn_id or "", "worker", lambda _turn: self.quote)
        )

    def reply(
        self,
        session_id: str,
        *content: dict[str, Any],
        stop_reason: str | None = None,
        turn: Turn | None = None,
        charge: Charge | None = None,
    ) -> list[ToolCall]:
        """The model's whole turn: claim it unless given, and keep this reply. Returns its calls."""
        held = turn or self.claim(session_id)
        assert held is not None, "there is a turn to claim"
        blocks = list(content)
        why = stop_reason or ("tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn")

        def verb(db: Db, session: Session) -> list[ToolCall]:
            flow.checkpoint(
                db,
                session,
                Turn.held(db, held.id, held.fence),
                content=storable(blocks),
                stop_reason=why,
                stop_details=None,
                charges=[charge or Charge("anthropic", "stand-in", None, USAGE)],
                proposals=self.tools(db, session).proposals(blocks),
                message_id=ids.new("sevt"),
            )
            return db.find(ToolCall, "WHERE turn_id = %(turn_id)s ORDER BY position", turn_id=held.id)

        return self.locked(session_id, verb)

    def tools(self, db: Db, session: Session) -> AgentTools:
        """As a turn has it, of listings as they are known."""
        agent = session.agent(db)
        return AgentTools.of(agent, Workspace.policies(db), toolset.listed(db, agent))

    def claim_call(
        self,
        found: ToolCall,
        storage_id: str = "stor_1",
        *,
        has: Callable[[str], bool] = lambda _address: True,
        links: dict[str, str] | None = None,
        git_may_run: bool = False,
    ) -> ToolCall | None:
        """Claim a tool call. `links`: where paths lead; all others lead where they say. `git_may_run`: what the look finds."""
        hands = flow.Hands("worker", storage_id, has, entry_of)
        while True:
            taken = self.locked(found.session_id, lambda db, session, hands=hands: flow.claim_call(db, session, found.id, hands))
            if not isinstance(taken, flow.Unresolved):
                return taken.call if taken else None
            places = {path: (links or {}).get(path, path) for path in taken.paths}
            hands = replace(hands, places=places, git_may_run=git_may_run if taken.git_line else None)

    def run_call(self, found: ToolCall, output: str = "ok", *, is_error: bool = False) -> None:
        """A tool's whole run."""
        held = self.claim_call(found)
        assert held is not None, "the call is there to claim"
        self.finish_call(held, output, is_error=is_error)

    def finish_call(self, held: ToolCall, output: str = "ok", *, is_error: bool = False, **more: Any) -> None:
        """Record a claimed call's result; `more` as in `flow.Outcome`."""

        def verb(db: Db, session: Session) -> None:
            outcome = flow.Outcome([say(output)], is_error, **more)
            flow.finish_call(db, session, ToolCall.held(db, held.id, held.fence), outcome)

        self.locked(held.session_id, verb)

    def fail(self, turn: Turn, *, retryable: bool = True, **more: Any) -> None:
        """The model gave an error."""

        def verb(db: Db, session: Session) -> None:
            held = Turn.held(db, turn.id, turn.fence)
            flow.fail_turn(db, session, held, kind="model_overloaded_error", message="Overloaded", retryable=retryable, **more)

        self.locked(turn.session_id, verb)

    def expire(self, session_id: str) -> int:
        """What the sweep does to one session."""
        return flow.expire_due(self.workspace_id, session_id)

    def rescue(self, row: Turn | ToolCall) -> None:
        """What the sweep does to one row."""
        verb = flow.rescue_turn if isinstance(row, Turn) else flow.rescue_call
        self.locked(row.session_id, lambda db, session: verb(db, session, row.id))

    def get(self, table: type[T], *key: Any) -> T:
        """A row as it is now."""
        with transaction(self.workspace_id) as db:
            return db.get_one(table, *key)

    def read(self, session_id: str) -> Session:
        """The session as it is now."""
        return self.get(Session, session_id)

    def read_agent(self, session_id: str) -> dict[str, Any]:
        """The session's agent as it is now."""
        return self.locked(session_id, lambda db, session: session.agent(db))

    def approvals(self, session_id: str) -> list[Approval]:
        """All approvals of the session, the oldest first; those of one turn in the order of its calls."""
        position = "(SELECT position FROM tool_call WHERE id = tool_call_id)"
        with transaction(self.workspace_id) as db:
            return db.find(Approval, f"WHERE session_id = %(session)s ORDER BY created_at, {position}", session=session_id)

    def events(self, session_id: str, kind: str = "") -> list[Event]:
        """The session's events, of one type or all."""
        with transaction(self.workspace_id) as db:
            found = db.find(Event, "WHERE session_id = %(session_id)s ORDER BY seq", session_id=session_id)
            return [event for event in found if not kind or event.type == kind]

    def history(self, session_id: str) -> list[dict[str, Any]]:
        """What the model would be sent now."""
        with transaction(self.workspace_id) as db:
            return flow.history(db, session_id)

    def prompt(self, turn: Turn | None) -> list[dict[str, Any]]:
        """The content of the messages that a turn read."""
        assert turn, "the turn was claimed"
        return [block for event in self.events(turn.session_id) if event.turn_id == turn.id for block in event.body["content"]]

    def result(self, found: ToolCall) -> str:
        """The text that the model gets for a call."""
        text: str = self.get(CallResult, found.id).content[0]["text"]
        return text

    def check(self, session_id: str) -> None:
        """What must hold in every state that a transaction leaves behind."""
        Invariants.read(self.workspace_id, session_id).check()
