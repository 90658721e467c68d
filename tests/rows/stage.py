"""A workspace whose sessions tests drive verb by verb, as routes and tasks do, without any process."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from own_database import Clock
from rows.invariants import Invariants

from models.audit.principal import Principal, system
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transact, transaction
from models.flow.begin import sessions
from models.flow.begin.messages import receive
from models.flow.decide import decisions
from models.flow.decide.deadlines import expire_due
from models.flow.judge.grants import session_policies
from models.flow.lock import lock
from models.flow.run import history, results
from models.flow.run.claims import ClaimedCall, ClaimingWorker, queued_call
from models.flow.run.rejudging import UNSEEN, Files, Unresolved
from models.flow.run.results import Outcome, rescue_call
from models.flow.run.turns import ReplyToStore, TurnFailure, checkpoint, fail_turn, queued_turn, rescue_turn
from models.pure.json.storable import storable
from models.pure.naming import OURS
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.approval.decision import Decision
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.locked import Locked
from models.session.row import Session
from models.session.thread.row import Thread, own_id
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace import toolset
from models.workspace.agent import Agent
from models.workspace.environment import Environment, NewEnvironment
from models.workspace.row import Workspace
from models.workspace.toolset import Entry
from workers.agent_tools import AgentTools
from workers.tools import sources

T = TypeVar("T")

USAGE = Usage(input_tokens=10, output_tokens=5)
QUOTE = Charge("anthropic", "stand-in", None, Usage(input_tokens=10, output_tokens=100), estimated=True)
"""What a request may consume at most."""
REFUND = "mcp__shop__refund"
QUESTION = {"requests": {"who": {"message": "Whose?", "schema": {"type": "object"}}}, "state": None}
"""A question that a tool asks back."""
ALL_SCOPES = frozenset({"agents", "sessions", "approvals", "read", "admin"})


def call(name: str = "bash", **arguments: Any) -> dict[str, Any]:
    """A `tool_use` block of a reply."""
    return {"type": "tool_use", "id": ids.new("toolu"), "name": name, "input": arguments or {"command": "true"}}


def say(text: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": text}


def _policy(policy: Any) -> dict[str, Any]:
    return policy if isinstance(policy, dict) else {"type": policy}


def rules(*pairs: tuple[str, Any], default: str = "ask") -> dict[str, Any]:
    """A policy of rules: `rules(("deny", "bash(rm *)"))`."""
    return {"type": "rules", "rules": [{"effect": effect, "match": match} for effect, match in pairs], "default": default}


def entry(name: str, *, idempotent: bool = False, **more: Any) -> dict[str, Any]:
    """A tool of a toolset, as its worker announces it. Its input is `n`, a whole number."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    tool = {"name": name, "description": name, "input_schema": schema, "effect": "write", "idempotent": idempotent}
    tool |= {"seconds": None, "prompt": None, "cache": None, "policy": None, "queue": None, "workdir": False, "annotations": {}}
    return tool | more


def _server(name: str, policy: Any) -> dict[str, Any]:
    permission = _policy(policy or "always_ask")
    default = {"enabled": True, "permission_policy": permission, "policy_from": "toolset" if policy else "default"}
    return {"type": "mcp_toolset", "mcp_server_name": name, "default_config": default, "configs": []}


def confirmation(call_id: str, result: str = "allow", **more: Any) -> dict[str, Any]:
    """A `user.tool_confirmation` as the verbs take it. `more` are fields of `Decision`."""
    return {"type": "user.tool_confirmation", "tool_use_id": call_id, "decision": Decision(result=result, **more)}  # type: ignore[arg-type]


def entry_of(address: str | None, tool: str) -> Entry | None:
    """The entry of a built-in tool. The stage's worker has no toolsets, though other tests of this process may have some."""
    built_in = address is None or address.removeprefix(OURS) in sources.WORKER_TOOLSETS
    return sources.entry_of(address, tool) if built_in else None


@dataclass(frozen=True)
class _OfThread:
    """Names a thread, as rows do."""

    thread_id: str


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
        agent_name: str = "Agent",
        policy_from: str = "tool",
        servers: dict[str, str] | None = None,
        **policies: Any,
    ) -> str:
        """Create a session, and return its id. `custom` names client tools; a name that ends in `?` always asks.

        `servers` are the addresses of MCP servers by name. `policies` are those of built-in tools and servers, by name
        (`bash="always_ask"`); a server that is not among them has no policy.
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
        body = {"name": agent_name, "description": None, "model": {"id": model}, "system": None, "tools": tools, "metadata": {}}
        body |= {"mcp_servers": [{"type": "url", "name": name, "url": url} for name, url in (servers or {}).items()]}
        body |= {"permission_policy": agent_policy, "approval": agent_approval}
        if not of_agent:
            with transaction(self.workspace_id) as db:  # a transaction of its own: all read the agent as the database spells it
                of_agent = Agent.create(db, self.principal, body)[0].id
        with transaction(self.workspace_id) as db:
            version = Agent.find(db, of_agent).at(db)
            environment = db.first(Environment)
            if self_hosted:
                environment = Environment.create(db, self.principal, NewEnvironment("Theirs", self_hosted=True))
            assert environment
            new = sessions.NewSession(
                version=version,
                environment_id=environment.id,
                max_turns=max_turns,
                chat_approvals=chat_approvals,
                on_ask=on_ask,
                on_behalf_of=on_behalf_of,
            )
            locked = sessions.create(db, self.principal, new)
            locked.session.max_list_cost = Decimal(budget) if budget else None  # the stand-in has no price
            return locked.session.id

    def change_agent(self, session_id: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Apply `change` to the session's own copy of the agent."""

        def verb(locked: Locked) -> None:
            agent = json.loads(json.dumps(locked.session.agent(locked.db)))
            change(agent)
            locked.session.overrides = {key: value for key, value in agent.items() if key not in {"id", "type", "version"}}

        self.locked(session_id, verb)

    def change_policies(self, **changes: Any) -> None:
        """Change the workspace's `policy` or `approval`."""
        with transaction(self.workspace_id) as db:
            Workspace.change_policies(db, self.principal, changes)

    def revoke_grants(self) -> None:
        """Revoke all grants of the workspace."""
        with transaction(self.workspace_id) as db:
            for grant in db.find(Grant):
                grant.revoke(db, self.principal)

    def thread(self, session_id: str) -> Thread:
        """Return the session's own thread."""
        with transaction(self.workspace_id) as db:
            return db.get_one(Thread, session_id, own_id(session_id))

    def locked(self, session_id: str, verb: Callable[[Locked], T], by: Principal | None = None) -> T:
        """Run a verb on the locked session, in a transaction of its own. `by`: its actor. Returns the verb's result."""
        return transact(self.workspace_id, lambda db: verb(lock(db, session_id, by or self.principal)))

    def worked(self, row: Turn | ToolCall, verb: Callable[[Locked], T]) -> T:
        """Run a verb on the locked session of a row, as a worker that has claimed the row. Returns the verb's result."""
        return self.locked(row.session_id, verb, system(row.TASK, self.workspace_id))

    def list_tools(self, url: str, *tools: dict[str, Any]) -> None:
        """Store the tools of an MCP server, as the turn does that listed them."""
        toolset.keep_listing(self.workspace_id, url, list(tools), toolset.time_before_listing(self.workspace_id))

    def send(self, session_id: str, *events: dict[str, Any]) -> list[Event]:
        """Post events."""
        return self.locked(session_id, lambda locked: receive(locked, list(events)))

    def message(self, session_id: str, text: str = "Do it.") -> Event:
        """Post a message."""
        return self.send(session_id, {"type": "user.message", "content": [say(text)]})[0]

    def confirm(self, session_id: str, call_id: str, result: str = "allow", **more: Any) -> Event:
        """Post a decision."""
        return self.send(session_id, confirmation(call_id, result, **more))[0]

    def decide(self, approval: Approval, **decision: Any) -> str:
        """Decide an approval, as the inbox does. Returns the id of the decision's event."""

        def verb(locked: Locked) -> str:
            return decisions.decide(locked, locked.db.get_one(Approval, approval.id), Decision(**decision))

        return self.locked(approval.session_id, verb)

    def claim(self, session_id: str) -> Turn | None:
        """Claim the current turn. Its request may consume `quote`."""
        return self.claim_turn(session_id, self.thread(session_id).turn_id or "")

    def claim_turn(self, session_id: str, turn_id: str) -> Turn | None:
        """Claim this turn, as `claim` does."""
        with transaction(self.workspace_id) as db:
            queued = queued_turn(db, session_id, turn_id)
            return queued.claim("worker", self.quote) if queued else None

    def begin(self, session_id: str) -> Turn:
        """Claim the current turn, which is free to claim."""
        turn = self.claim(session_id)
        assert turn, "there is a turn to claim"
        return turn

    def propose(self, session_id: str, block: dict[str, Any] | None = None) -> ToolCall:
        """Post a message, and have the model reply with one tool call, which is returned."""
        self.message(session_id)
        return self.reply(session_id, block or call())[0]

    def reply(
        self,
        session_id: str,
        *content: dict[str, Any],
        stop_reason: str | None = None,
        turn: Turn | None = None,
        charge: Charge | None = None,
        charges: Sequence[Charge] = (),
    ) -> list[ToolCall]:
        """Store the model's reply to a turn, by default the current one, which is claimed first. Returns the tool calls."""
        held = turn or self.begin(session_id)
        blocks = list(content)
        why = stop_reason or ("tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn")

        def verb(locked: Locked) -> list[ToolCall]:
            reply = ReplyToStore(
                content=storable(blocks),
                stop_reason=why,
                stop_details=None,
                charges=charges or [charge or Charge("anthropic", "stand-in", None, USAGE)],
                proposals=self.tools(locked.at(held)).proposals(blocks),
                message_id=ids.new("sevt"),
            )
            checkpoint(locked, held.as_held(locked.db), reply)
            return locked.db.find(ToolCall, "WHERE turn_id = %(turn_id)s ORDER BY position", turn_id=held.id)

        return self.worked(held, verb)

    def tools(self, locked: Locked) -> AgentTools:
        """Return the agent's tools, by the listings that are stored."""
        agent, policies = locked.agent, session_policies(locked)
        return AgentTools.of(agent, policies, toolset.listings_of(locked.db, agent), self_hosted=locked.session.self_hosted)

    def claim_call(
        self,
        tool_call: ToolCall,
        storage_id: str = "stor_1",
        *,
        has: Callable[[str], bool] = lambda _address: True,
        links: dict[str, str] | None = None,
        git_may_run: bool = False,
    ) -> ToolCall | None:
        """Claim a tool call. Returns None if it is not free to claim.

        `has` says which addresses the worker serves, `links` where symbolic links lead, and `git_may_run` whether git would run
        programs in the session's files.
        """
        claimed = self.take(tool_call.session_id, tool_call.id, storage_id=storage_id, has=has)
        while isinstance(claimed, Unresolved):
            places = {path: (links or {}).get(path, path) for path in claimed.paths}
            files = Files(places, git_may_run if claimed.git_line else None)
            claimed = self.take(tool_call.session_id, tool_call.id, files, storage_id=storage_id, has=has)
        return claimed.call if claimed else None

    def take(
        self,
        session_id: str,
        call_id: str,
        files: Files = UNSEEN,
        *,
        storage_id: str = "stor_1",
        has: Callable[[str], bool] = lambda _address: True,
    ) -> ClaimedCall | Unresolved | None:
        """Claim a tool call once, under the lock of this session, as a worker that saw so much of the files."""
        with transaction(self.workspace_id) as db:
            queued = queued_call(db, session_id, call_id)
            if queued is None:
                return None
            address, tool = queued.call.address, queued.call.tool or queued.call.name
            has_toolset = address is None or has(address)
            return queued.claim(ClaimingWorker("worker", storage_id, has_toolset, entry_of(address, tool)), files)

    def begin_call(self, tool_call: ToolCall) -> ToolCall:
        """Claim a tool call, which is free to claim."""
        held = self.claim_call(tool_call)
        assert held, "the call is there to claim"
        return held

    def run_call(self, tool_call: ToolCall, output: str = "ok", *, is_error: bool = False) -> None:
        """Claim a call, and record its result."""
        self.finish_call(self.begin_call(tool_call), output, is_error=is_error)

    def finish_call(self, held: ToolCall, output: str = "ok", *, is_error: bool = False, **more: Any) -> None:
        """Record a claimed call's result; `more` as in `Outcome`."""

        def verb(locked: Locked) -> None:
            outcome = Outcome(**{"content": [say(output)], "is_error": is_error} | more)
            results.finish_call(locked, held.as_held(locked.db), outcome)

        self.worked(held, verb)

    def fail(self, turn: Turn, *, retryable: bool = True, **more: Any) -> None:
        """Record that the model answered with an error."""

        def verb(locked: Locked) -> None:
            held = turn.as_held(locked.db)
            fail_turn(locked, held, TurnFailure("model_overloaded_error", "Overloaded", retryable, **more))

        self.worked(turn, verb)

    def expire(self, session_id: str) -> int:
        """Apply the passed deadlines of a session, as the sweep does. Returns how many there were."""
        return expire_due(self.workspace_id, session_id)

    def rescue(self, row: Turn | ToolCall) -> None:
        """Take back a row whose lease has ended, as the sweep does."""
        verb = rescue_turn if isinstance(row, Turn) else rescue_call
        self.worked(row, lambda locked: verb(locked, row.id))

    def lose(self, row: Turn | ToolCall, clock: Clock) -> None:
        """Have the row's worker die: its lease ends, and the sweep takes the row back."""
        clock.advance(60)
        self.rescue(row)

    def get(self, table: type[T], *key: Any) -> T:
        """A row as it is now."""
        with transaction(self.workspace_id) as db:
            return db.get_one(table, *key)

    def read(self, session_id: str) -> Session:
        """The session as it is now."""
        return self.get(Session, session_id)

    def read_agent(self, session_id: str) -> dict[str, Any]:
        """The session's agent as it is now."""
        return self.locked(session_id, lambda locked: locked.session.agent(locked.db))

    def approvals(self, session_id: str) -> list[Approval]:
        """All approvals of the session, the oldest first; those of one turn in the order of its calls."""
        position = "(SELECT position FROM tool_call WHERE id = tool_call_id)"
        with transaction(self.workspace_id) as db:
            return db.find(Approval, f"WHERE session_id = %(session)s ORDER BY created_at, {position}", session=session_id)

    def events(self, session_id: str, kind: str = "") -> list[Event]:
        """The session's events, of one type or all."""
        with transaction(self.workspace_id) as db:
            events = db.find(Event, "WHERE session_id = %(session_id)s ORDER BY seq", session_id=session_id)
            return [event for event in events if not kind or event.type == kind]

    def history(self, session_id: str) -> list[dict[str, Any]]:
        """The messages that the model would be sent now."""
        return self.history_of(session_id, own_id(session_id))

    def history_of(self, session_id: str, thread_id: str) -> list[dict[str, Any]]:
        """The messages that the model of a thread would be sent now."""
        return transact(self.workspace_id, lambda db: history.history(db, db.get_one(Thread, session_id, thread_id)))

    def offered(self, session_id: str, turn_id: str) -> list[dict[str, Any]]:
        """The messages that a worker reads as it locks a queued turn, which has then read them. It does not claim the turn."""

        def messages(db: Db) -> list[dict[str, Any]]:
            queued = queued_turn(db, session_id, turn_id, *history.reads_for(session_id, turn_id))
            assert queued, "there is a turn to claim"
            return history.joined(history.parts(db, queued.locked.thread, queued.rows))

        return transact(self.workspace_id, messages)

    def archive_thread(self, session_id: str, thread_id: str) -> None:
        """Archive a thread."""
        self.locked(session_id, lambda locked: sessions.archive_thread(locked.at(_OfThread(thread_id))))

    def prompt(self, turn: Turn | None) -> list[dict[str, Any]]:
        """The content of the messages that a turn read."""
        assert turn, "the turn was claimed"
        return [block for event in self.events(turn.session_id) if event.turn_id == turn.id for block in event.body["content"]]

    def result(self, tool_call: ToolCall) -> str:
        """The text that the model gets for a call."""
        text: str = self.get(CallResult, tool_call.id).content[0]["text"]
        return text

    def check(self, session_id: str) -> None:
        """Assert the session's invariants."""
        Invariants.read(self.workspace_id, session_id).check()
