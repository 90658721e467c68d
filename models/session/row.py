"""Sessions: a durable conversation with one agent. The row is the lock, the counter of events and the head of the audit chain."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from models.audit import acts
from models.audit.principal import Principal
from models.database.columns import Mapped, mapped_column
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.people.names import Names
from models.policy.effective_tool import with_toolset
from models.policy.session_policies import SessionPolicies
from models.pure.pricing.money import monetary
from models.session.thread.held_work import HeldWork
from models.session.thread.inline_agent import InlineAgent
from models.session.thread.progress import Progress
from models.session.thread.row import Thread, own_id
from models.workspace.agent import AgentVersion
from models.workspace.toolset import OF_SESSION, listings_of

AT_WORK = "status IN ('running', 'rescheduling', 'stopping')"
"""The condition on sessions that go on by themselves."""
NEEDS_ATTENTION = "status = 'idle' AND (stop_reason ->> 'type' <> 'end_turn' OR stop_reason ->> 'limit_reached' IS NOT NULL)"
"""The condition on sessions whose run ended unfinished: `ENDED_EARLY` in `models.pure.state_words` has their states."""


class Session(Progress, Base):
    """A conversation, in one or several threads. Every verb of its turns, calls and approvals works under its lock."""

    __tablename__ = "session"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    agent_id: Mapped[str]
    """No foreign key, as for the workspace: both are never deleted, and each check would lock their rows."""
    agent_version: Mapped[int]
    """The agent's version that the session's creation named, else the newest at that time."""
    overrides: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The session's own values for fields of the agent's body."""
    environment_id: Mapped[str] = mapped_column(sa.ForeignKey("environment.id"))
    self_hosted: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True if the client's own worker runs the built-in tools. The environment's type, which never changes, decides this."""
    title: Mapped[str | None]
    metadata_: Mapped[dict[str, str]] = mapped_column("metadata", JSONB(none_as_null=True))
    max_turns: Mapped[int]
    chat_approvals: Mapped[bool] = mapped_column(default=False)
    on_ask: Mapped[str] = mapped_column(default="inbox", server_default="inbox")
    """If a policy asks about a call: `inbox` asks people, `deny` denies the call at once."""
    on_behalf_of: Mapped[str | None]
    """The person for whom the session was created."""
    speakers: Mapped[list[str]] = mapped_column(ARRAY(sa.Text), server_default="{}")
    """Ids of the people who started the present run, or sent a message to it, by name."""
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """Ids of the people who made the API keys, or the links behind the sign-ins, that created the session or sent it a message."""
    last_seq: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    archived_through: Mapped[int] = mapped_column(sa.BigInteger, default=0, server_default="0")
    """Events up to this number are in the archive, with the replies, inputs and results of their time. 0: none are."""
    archived_lines: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    """How the session began and what was said last, as `models.session.event.last_lines` has it, once events are in the archive."""
    archive_from: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """A sweep looks for events to archive once this time is as old as the workspace says. None: `created_at`."""
    threads_begun: Mapped[int] = mapped_column(default=0, server_default="0")
    """Threads of sub-agents, archived ones included."""
    agent_messages: Mapped[int] = mapped_column(default=0, server_default="0")
    """Messages that agents sent to sub-agents since the last user message. The setting `max_agent_messages` limits them."""
    max_list_cost: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    """The budget in US dollars. None: no budget; only the session's creation can set a first one."""
    spend_limits_from: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    """Spend limits stop the session only from this list cost on, because a person allowed it to spend more. None: always."""
    long_results: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True once a result was too long for the model and is stored whole. The agent then has a tool to read such results."""
    stream_positions: Mapped[dict[str, int]] = mapped_column(JSONB(none_as_null=True))
    """Where a stream that names no position begins, by principal: behind the last event that the principal sent in this run.

    A principal who was streamed the run's end is removed. A principal without an entry begins at the newest event.
    """
    git_written: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True once a call began that may write files from which git runs programs, or a worker found such files. From then on no git
    command counts as a read."""
    storage_id: Mapped[str | None]
    """The workdir root that holds the session's files. Set by the first tools worker that creates them."""
    shell_start: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Where the next shell command starts, as the worker saw it that ended the last call with files: the evidence of `bash`.
    None while such a call runs, and after one whose end nobody saw."""
    audit_seq: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    audit_head: Mapped[str] = mapped_column(Hex, default=acts.GENESIS)
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("session_newest", "workspace_id", "created_at"),
        sa.Index("session_to_archive", "workspace_id", sa.text("coalesce(archive_from, created_at)")),
        sa.Index("session_waiting", "workspace_id", "waits_for", "created_at"),
        sa.Index("session_at_work", "workspace_id", "created_at", postgresql_where=sa.text(AT_WORK)),
        sa.Index("session_needing_attention", "workspace_id", "created_at", postgresql_where=sa.text(NEEDS_ATTENTION)),
    )

    @staticmethod
    def heads(db: Db, session_ids: list[str]) -> dict[str, int]:
        """Return `last_seq` by id of these sessions, which may be of any workspace. Deleted sessions are left out."""
        return dict(db.rows("SELECT id, last_seq FROM assent_session_heads(CAST(%(ids)s AS text[]))", ids=session_ids))

    @classmethod
    def locking(cls, session_id: str, how: str = "") -> "Query[Session]":
        """Return the query that locks a session. Read the clock after it. `how`: `SKIP LOCKED`, or empty to wait."""
        return select(cls, f"WHERE id = %(id)s FOR NO KEY UPDATE {how}", id=session_id)

    @staticmethod
    def held_work(db: Db, rows: "Iterable[Session]") -> HeldWork:
        """Return what a halt holds of these sessions. Reads nothing if none of them would go on by itself."""
        return HeldWork.of(db, [row.id for row in rows if row.status in {"running", "rescheduling"}])

    def stream_behind(self, principal: Principal, seq: int) -> None:
        """Have the principal's next stream begin behind the event `seq`, which the principal sent."""
        self.stream_positions = self.stream_positions | {principal.id: seq}

    @property
    def askers(self) -> list[str]:
        """Ids of the people who may be behind the present run. With four eyes they may not decide its calls."""
        return sorted({*self.speakers, *(self.makers or ())})

    @property
    def spender(self) -> str | None:
        """The person who pays: the person for whom the session was created, else the only speaker of the present run."""
        return self.on_behalf_of or (self.speakers[0] if len(self.speakers) == 1 else None)

    def starter(self, db: Db) -> str:
        """Return the name of who started the session: a person's, or `the key “CI”`; empty if it is not known."""
        act = db.first(acts.Audit, "WHERE chain = %(chain)s AND action = 'session.created'", chain=self.id)
        name = Names.of(db, [act.principal])[act.principal] if act else ""
        return "" if act and name == act.principal else name

    @property
    def budget(self) -> dict[str, Any] | None:
        """The budget as the wire has it."""
        return None if self.max_list_cost is None else {"type": "limit", "max_list_cost": monetary(self.max_list_cost)}

    def agent(self, db: Db) -> dict[str, Any]:
        """Return the agent for a turn of the session's own thread: `configured`, with the tools of the session."""
        return self._equipped(self.configured(db))

    def agent_of(self, db: Db, thread: Thread) -> dict[str, Any]:
        """Return the agent for a turn of a thread. A sub-agent has no sub-agents.

        The session's overrides hold for its own agent, also where this agent is its own sub-agent.
        """
        if thread.parent_id is None:
            return self.agent(db)
        if thread.inline:
            agent = InlineAgent.body_of(db, self.id, thread.id)
        elif (thread.agent_id, thread.agent_version) == (self.agent_id, self.agent_version):
            agent = self.configured(db)
        else:
            agent = AgentVersion.of_session(db, thread.agent_id, thread.agent_version).snapshot()
        return self._equipped({**agent, "multiagent": None})

    def policies_of(self, db: Db, thread: Thread, workspace: Mapping[str, Any]) -> SessionPolicies:
        """Return the policies that apply to the calls of a thread now. `workspace`: `Workspace.policies`."""
        agent, parent = self.agent_of(db, thread), self.policies_of_parent(db, thread, workspace)
        policies = SessionPolicies.of(agent, workspace, listings_of(db, agent), parent)
        return policies.in_session(git_written=self.git_written, inline=thread.inline)

    def policies_of_parent(self, db: Db, thread: Thread, workspace: Mapping[str, Any]) -> SessionPolicies | None:
        """Return the policies of the thread that began a thread; None for the session's own."""
        if thread.parent_id is None:
            return None
        parent = db.get_one(Thread, self.id, thread.parent_id)
        agent, above = self.agent_of(db, parent), self.policies_of_parent(db, parent, workspace)
        return SessionPolicies.of(agent, workspace, listings_of(db, agent), above)

    def own_thread(self, name: str) -> Thread:
        """Return the new session's own thread. `name` is the agent's."""
        return Thread(
            session_id=self.id,
            id=own_id(self.id),
            workspace_id=self.workspace_id,
            agent_id=self.agent_id,
            agent_version=self.agent_version,
            name=name,
            status=self.status,
            turn_number=0,
            turn_count=0,
            unread=0,
            usage={},
            created_at=self.created_at,
            updated_at=self.created_at,
        )

    def _equipped(self, agent: dict[str, Any]) -> dict[str, Any]:
        """Return the agent with the tool for long results, if the session has any."""
        return with_toolset(agent, OF_SESSION) if self.long_results else agent

    def configured(self, db: Db) -> dict[str, Any]:
        """Return the wire's body of the agent's version, with the session's overrides."""
        return AgentVersion.of_session(db, self.agent_id, self.agent_version).snapshot(self.overrides)
