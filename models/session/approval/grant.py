"""Grants: rules that a decision creates, for the rest of a session or for all sessions of an agent, until they end."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from typing_extensions import TypedDict

from models.audit import acts
from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.query import select
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.errors import Conflict, Invalid, NotFound
from models.pure import policy
from models.pure.offer import Offer
from models.pure.policy import Rule
from models.pure.policy.destroying import destroys
from models.pure.policy.likeness import program
from models.pure.shell import read
from models.pure.times import rfc3339
from models.session.approval.decision import Decision
from models.session.approval.grant_use import GrantUse, uses_of
from models.session.approval.reach import COVERS_AGENT, COVERS_SESSION, Kind, Reach, values_of
from models.session.approval.row import Approval
from models.session.event.fields import ApprovalId, GrantId, Time, one_of
from models.session.locked import Locked
from models.session.thread.row import Thread
from models.settings import settings

MAX_OF_SESSION = 1000
"""Live grants that one session may have."""
MAX_OF_AGENT = 1000
_OF_AGENTS = "session_id IS NULL AND revoked_at IS NULL"
"""Grants for all sessions of an agent. They always expire, so that the index `grant_of_agent` can leave out those that did."""


class GrantFacts(TypedDict):
    """A grant in its event and in the audit."""

    grant_id: GrantId
    scope: Annotated[str, one_of("session", "always")]
    tool: str
    covers: str
    reach: str
    """The agents whose calls it covers, in words."""
    include_sub_agents: bool
    expires_at: Time | None
    max_uses: int | None


class GrantGiven(GrantFacts):
    """A decision created a grant, which allows later calls."""

    type: Literal["grant.given"]
    approval_id: ApprovalId


class Grant(Base):
    """A rule that allows later calls."""

    __tablename__ = "approval_grant"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    scope: Mapped[str]
    """`session`: for the rest of one session. `always`: for every session of the agent."""
    agent_id: Mapped[str] = mapped_column(sa.ForeignKey("agent.id"))
    agent_version: Mapped[int | None]
    """The version of the agent that asked."""
    session_id: Mapped[str | None]
    """Null for `always`."""
    thread_id: Mapped[str | None]
    """The thread that asked."""
    reach_kind: Mapped[Kind] = mapped_column(sa.String, default="agent", server_default="agent")
    """`Reach.kind`."""
    reach: Mapped[str] = mapped_column(default="", server_default="")
    """The agents whose calls it covers, in words for people."""
    approval_id: Mapped[str]
    """The approval whose decision created the grant."""
    tool: Mapped[str]
    identity: Mapped[str]
    """The tool's `SessionPolicies.identity`: another session may have a different tool under the same name."""
    match: Mapped[str | dict[str, Any]] = mapped_column(JSONB)
    """The covered calls, as in `models.pure.policy.spelled_rule`."""
    covers: Mapped[str]
    """`match` in words for people."""
    given_by: Mapped[str]
    voters: Mapped[list[list[Any]] | None] = mapped_column(JSONB(none_as_null=True))
    """`Ballot`s of the people who gave the grant. Null: an API key decided."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    max_uses: Mapped[int | None]
    uses: Mapped[int] = mapped_column(default=0)
    """Calls that the grant allowed. Of a grant that `is_shared`, those that a sweep has added up: see `uses_of`."""
    last_used_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When the last of these was allowed. None also for a grant that no call has used since a release without this column."""
    revoked_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    revoked_by: Mapped[str | None]
    swept_to: Mapped[str | None]
    """The last session whose waiting calls a sweep has judged with this grant."""
    swept_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When a sweep had judged every call that already waited when the grant was created."""

    __table_args__ = (
        sa.Index("grant_of_session", "session_id", postgresql_where=sa.text("session_id IS NOT NULL")),
        sa.Index("grant_of_agent", "agent_id", "tool", "expires_at", postgresql_where=sa.text(_OF_AGENTS)),
        sa.Index("grant_newest", "workspace_id", "created_at", "id"),
        sa.Index("grant_unswept", "created_at", postgresql_where=sa.text("revoked_at IS NULL AND swept_at IS NULL")),
        sa.CheckConstraint("session_id IS NOT NULL OR expires_at IS NOT NULL", name="grant_of_agent_expires"),
    )

    @classmethod
    def give(
        cls,
        locked: Locked,
        approval: Approval,
        decision: Decision,
        identity: str,
        voters: list[list[Any]] | None = None,
    ) -> "list[Grant]":
        """Create the grants of a decision: one, or one for each of its `matches`. `voters`: the `Ballot`s of those who gave them.

        Raises Invalid for a faulty match, Conflict above the limit of live grants.
        """
        rules = rules_for(approval, decision)
        cls._check_limit(locked, always=decision.scope == "always", more=len(rules))
        rows = [cls._new(locked, approval, decision, rule) for rule in rules]
        for row in rows:
            row.identity, row.voters = identity, voters
            locked.db.insert(row)
            locked.emit(GrantGiven({"type": "grant.given", "approval_id": approval.id, **row.facts}))
            locked.note("grant.given", row.id, **{**row.facts, "covers": Text(row.covers), "reach": Text(row.reach)})
            outbox(locked.db).hints.append(row.hint)
        return rows

    @classmethod
    def _new(cls, locked: Locked, approval: Approval, decision: Decision, rule: Rule) -> "Grant":
        """Return the grant of a decision with this rule. Raises Invalid for a scope that its thread cannot have."""
        session, thread = locked.session, locked.thread
        always = decision.scope == "always"
        reach = Reach.of(thread, decision.scope, include_sub_agents=decision.include_sub_agents)
        if always and reach.kind != "agent":
            raise Invalid("scope", "always is for agents with an id; this sub-agent exists in its thread alone: send session.")
        seconds = decision.expires_in_seconds or (settings().grant_seconds if always else None)
        return cls(
            id=ids.new("grnt"),
            workspace_id=session.workspace_id,
            scope=decision.scope,
            agent_id=reach.agent_id,
            agent_version=reach.agent_version,
            session_id=reach.session_id,
            thread_id=reach.thread_id,
            reach_kind=reach.kind,
            reach=reach.in_words(thread.name),
            approval_id=approval.id,
            tool=approval.tool,
            match=policy.rule_as_json(rule)["match"],
            covers=policy.covers(rule),
            given_by=str(locked.actor),
            created_at=locked.now,
            expires_at=locked.now + timedelta(seconds=seconds) if seconds else None,
            max_uses=decision.max_uses,
            uses=0,
        )

    @classmethod
    def find(cls, db: Db, grant_id: str) -> "Grant":
        """Return a grant. Raises NotFound."""
        grant = db.get(cls, grant_id)
        if grant is None:
            raise NotFound("grant", grant_id)
        return grant

    @classmethod
    def live(cls, db: Db, thread: Thread, tools: Iterable[str]) -> list["Grant"]:
        """Return the live grants that cover the thread's calls of these tools."""
        return db.find(cls, f"{_OF_THREAD} ORDER BY id", **values_of(thread), tools=sorted(set(tools)))

    @classmethod
    def to_use(cls, db: Db, thread: Thread, tools: Iterable[str]) -> list["Grant"]:
        """Return the grants of `live`, for callers that count uses: locked in the order of their ids, `is_shared` ones shared."""
        values = {**values_of(thread), "tools": sorted(set(tools))}
        own, shared = db.read(
            select(cls, f"{_OF_THREAD} AND NOT {_SHARED} ORDER BY id FOR NO KEY UPDATE", **values),
            select(cls, f"{_OF_THREAD} AND {_SHARED} ORDER BY id FOR KEY SHARE", **values),
        )
        return sorted([*own, *shared], key=lambda grant: grant.id)

    @classmethod
    def spend(cls, locked: Locked, grants: Sequence["Grant"]) -> str | None:
        """Count one use of each of these grants of `to_use`, and return None. If one has ended, return its id and count nothing."""
        if over := next((grant.id for grant in grants if not grant.is_live(locked.now)), None):
            return over
        with locked.acting_as(system("policy", locked.session.workspace_id)):
            for grant in grants:
                grant.count_use(locked)
                locked.note("grant.used", grant.id)
        return None

    def count_use(self, locked: Locked) -> None:
        """Count one use."""
        if self.is_shared:
            use = GrantUse(id=ids.new("guse"), workspace_id=self.workspace_id, grant_id=self.id, used_at=locked.now)
            locked.db.insert(use)
            return
        self.uses += 1
        self.last_used_at = max(self.last_used_at or locked.now, locked.now)

    @property
    def is_shared(self) -> bool:
        """True if any number of sessions may use the grant at once: `_SHARED`."""
        return self.session_id is None and self.max_uses is None

    @classmethod
    def standing(cls, locked: Locked, grant_ids: Iterable[str]) -> list["Grant"]:
        """Return those of the grants that are neither revoked nor expired, locked. Their uses were counted earlier."""
        ids = sorted(set(grant_ids))
        return locked.db.find(cls, _STANDING_AMONG, ids=ids, now=locked.now) if ids else []

    @classmethod
    def end_all(cls, locked: Locked) -> None:
        """Revoke the grants of a session that ends."""
        of_session = "WHERE session_id = %(session)s AND revoked_at IS NULL ORDER BY id FOR NO KEY UPDATE"
        with locked.acting_as(system("session", locked.session.workspace_id)):
            for grant in locked.db.find(cls, of_session, session=locked.session.id):
                grant.revoked_at, grant.revoked_by = locked.now, "session"
                locked.note("grant.revoked", grant.id, uses=grant.uses)

    def revoke(self, db: Db, principal: Principal) -> None:
        """Revoke the grant. Its calls that no worker has begun are judged again. Idempotent.

        A call that a client already has stays with the client.
        """
        db.find(Grant, "WHERE id = %(id)s FOR UPDATE", id=self.id)  # waits for every transaction that uses the grant
        if self.revoked_at is not None:
            return
        self.revoked_at, self.revoked_by = clock.now(db), str(principal)
        uses = uses_of(db, [self.id])[self.id].calls
        acts.record(db, principal, "grant.revoked", self.id, {"tool": self.tool, "scope": self.scope, "uses": uses})

    def stands(self, now: datetime) -> bool:
        """True if the grant is neither revoked nor expired at `now`: `stands_sql`. A call keeps the use that it has counted."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def is_live(self, now: datetime) -> bool:
        """True if the grant may still allow calls at `now`, since it stands and has uses left: `live_sql`."""
        return self.stands(now) and (self.max_uses is None or self.uses < self.max_uses)

    def per_day(self, uses: int, now: datetime) -> float:
        """Return the mean number of uses in a day: up to `now`, or until the grant ended. Within the first day: all uses."""
        ends = [moment for moment in (self.revoked_at, self.expires_at) if moment is not None]
        return uses / max(1.0, (min([now, *ends]) - self.created_at) / timedelta(days=1))

    @property
    def threads(self) -> Reach:
        """The threads whose calls the grant covers."""
        return Reach(self.reach_kind, self.session_id, self.agent_id, self.agent_version, self.thread_id)

    @property
    def include_sub_agents(self) -> bool:
        """True if the grant covers the calls of every agent of its session."""
        return self.reach_kind == "session"

    @property
    def rule(self) -> Rule:
        """The grant as a rule of the policy."""
        rule = {"effect": "allow", "match": self.match}
        return policy.rule_of(rule, where="grant", source="grant", id=self.id)

    def is_offered(self, offer: Offer) -> bool:
        """True if the tool, whose present offer this is, still offers such a grant. A grant that is not offered allows nothing."""
        return offer.gives(self.scope, exact=is_exact(self.rule))

    def why_not_offered(self, offer: Offer) -> str:
        """Return a sentence that says why the tool no longer offers such a grant; empty if it does."""
        return offer.why_no_grant(self.tool, self.scope, exact=is_exact(self.rule))

    @property
    def hint(self) -> Hint:
        """The queue message that says waiting calls may be released."""
        return Hint("sweep.release_granted", (self.id, self.workspace_id))

    @property
    def facts(self) -> GrantFacts:
        """The grant in events and in the audit."""
        return {
            "grant_id": self.id,
            "scope": self.scope,
            "tool": self.tool,
            "covers": self.covers,
            "reach": self.reach,
            "include_sub_agents": self.include_sub_agents,
            "expires_at": rfc3339(self.expires_at) if self.expires_at else None,
            "max_uses": self.max_uses,
        }

    @staticmethod
    def _check_limit(locked: Locked, *, always: bool, more: int) -> None:
        """Raise Conflict if the agent (`always`) or the session would have more than its maximum of live grants."""
        session, agent_id = locked.session, locked.thread.agent_id
        owner = f"{_OF_AGENTS} AND agent_id = %(agent)s AND expires_at > %(now)s" if always else "session_id = %(session)s"
        where = {"agent": agent_id} if always else {"session": session.id}
        statement = f"SELECT count(*) FROM approval_grant WHERE {owner} AND {live_sql('%(now)s')}"  # noqa: S608 - names of our own
        count = locked.db.value(statement, now=locked.now, **where)
        if always and count + more > MAX_OF_AGENT:
            raise Conflict(f"Agent {agent_id} has {count} standing grants already, of {MAX_OF_AGENT}; revoke some first.")
        if not always and count + more > MAX_OF_SESSION:
            raise Conflict(f"Session {session.id} has {count} grants already, of {MAX_OF_SESSION}; revoke some, or allow once.")


def stands_sql(now: str) -> str:
    """Return `Grant.stands` as an SQL condition, at the time `now`."""
    return f"(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now}))"


def live_sql(now: str) -> str:
    """Return `Grant.is_live` as an SQL condition, at the time `now`. These two are the only definitions of a live grant."""
    return f"({stands_sql(now)} AND (max_uses IS NULL OR uses < max_uses))"


_OF_TOOLS = f"tool = ANY(%(tools)s) AND {live_sql(clock.STARTED)}"
_OF_THREAD = f"""
    WHERE id = ANY (ARRAY(
        SELECT id FROM approval_grant WHERE {COVERS_SESSION} AND {_OF_TOOLS}
        UNION ALL SELECT id FROM approval_grant
        WHERE {COVERS_AGENT} AND revoked_at IS NULL AND expires_at > {clock.STARTED} AND {_OF_TOOLS}
    )) AND {live_sql("assent_now()")}
"""  # noqa: S608 - conditions of our own
"""Two selections, since one with OR would fit no index. The conditions of the row are checked again once it is locked."""
_SHARED = "(session_id IS NULL AND max_uses IS NULL)"
_STANDING_AMONG = f"WHERE id = ANY(%(ids)s) AND {stands_sql('%(now)s')} ORDER BY id FOR KEY SHARE"
"""Users share the grant by FOR KEY SHARE, which lets others count its uses meanwhile, but not revoke it."""


def is_exact(rule: Rule) -> bool:
    """True if the rule covers one exact input only."""
    return rule.match.input_sha256 is not None


def rule_for(approval: Approval, match: str | None) -> Rule:
    """Return the rule of a grant with this `match`, created by the approval's decision. Raises Invalid.

    Without a match, the grant covers as much as the approval offers.
    """
    try:
        return policy.grant(approval.tool, match or approval.offer.widest, approval.input_sha256, id="")
    except ValueError as error:
        raise Invalid("match", str(error).removeprefix("match: ")) from None


def rules_for(approval: Approval, decision: Decision) -> list[Rule]:
    """Return the rules of the grants of a decision. Raises Invalid."""
    if not decision.matches:
        return [rule_for(approval, decision.match)]
    return rules_of_parts(approval, decision.matches)


def rules_of_parts(approval: Approval, matches: Sequence[str]) -> list[Rule]:
    """Return a rule for each of these texts. Raises Invalid for a faulty one, for two that are equal, and for a line that no grant
    may cover by its parts: one with a command that takes something away."""
    rules: list[Rule] = []
    for number, match in enumerate(matches):
        try:
            rule = policy.grant_of_part(approval.tool, match, id="")
        except ValueError as error:
            raise Invalid(f"matches.{number}", str(error).removeprefix("match: ")) from None
        if rule in rules:
            raise Invalid(f"matches.{number}", f"{match!r} covers the same calls as an earlier one; name each once.")
        rules.append(rule)
    command = json.loads(approval.input).get("command") if approval.tool == "bash" else None
    line = read(command) if isinstance(command, str) else None
    if line and line.doubt:
        raise Invalid("matches", f"no pattern of commands covers this line: {line.doubt}. Allow it once.")
    if line and (destroying := next(filter(destroys, line.commands), None)):
        raise Invalid("matches", f"`{program(destroying)}` in this line takes something away, so a person is asked each time.")
    return rules
