"""The effect of a request, in one transaction: a new session or changes to one, and the messages and results that it brings."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel

from api.chat import asking, deciding, translating
from api.chat.requests import MODEL, ChatAssistantMessage, ChatCreate
from api.door import parsing
from api.v1.approvals import visible
from api.v1.policy.approvers import check_agent_approvers
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Conflict, Invalid, NotFound
from models.flow.begin import messages, sessions, updates
from models.flow.lock import lock
from models.session.event.row import Event
from models.session.locked import Locked
from models.session.row import Session
from models.settings import settings
from models.workspace.agent import Agent, AgentVersion, patched
from models.workspace.row import Workspace

OURS = frozenset({"approvals", "chat_approvals", "session_id", "environment_id", "on_behalf_of"})
"""Names in a request's metadata that the session's metadata does not get."""


class UnknownModel(NotFound):
    """The model is not an agent of the workspace."""

    field = "model"


class Place(BaseModel):
    """Where the response to a request begins. Stored for retries, which wait from the same place."""

    session_id: str
    model: str
    created: int
    """Seconds since 1970."""
    after: int
    """The number of the event after which the reply's text begins."""
    rests_after: int
    """The run rests with the first idle or terminated event after this number."""
    added: bool
    """True if the request added something, so that its client does not know yet what the session waits for."""
    ignored: list[str]
    approvals: asking.How = "text"
    """How the client is asked for approvals."""


@contextmanager
def _named_as_sent() -> Iterator[None]:
    """Name the field of a refusal by its place in the request, if the request's metadata has it."""
    try:
        yield
    except Invalid as refusal:
        if refusal.field not in OURS:
            raise
        raise refusal.renamed(f"metadata.{refusal.field}") from None


@_named_as_sent()
def begin(db: Db, principal: Principal, body: ChatCreate, session_id: str) -> Place:
    """Make the request's effect. `session_id` is empty for a new session. Raises Invalid, NotFound, Conflict."""
    if not body.agent_id:
        raise UnknownModel("model", body.model[:80])
    locked = _continued(db, principal, body, session_id) if session_id else _created(db, principal, body)
    session = locked.session
    how = _how(body, AgentVersion.of_session(db, session.agent_id, session.agent_version))
    sentences = {} if session_id else asking.recognised(db, _earlier_replies(body))
    added = translating.news(body, new_session=not session_id, sentences=sentences)
    after = rests_after = _position(db, session, principal)
    # The event of a decision has no number while a halt withholds the event.
    numbers = [event.seq for event in receive(locked, added) if event.seq]
    if numbers:
        # A result that is sent again is stored already: its response is sent again.
        after, rests_after = min(after, *numbers), max(numbers)
    return Place(
        session_id=session.id,
        model=MODEL + session.agent_id,
        created=int(locked.now.timestamp()),
        after=after,
        rests_after=rests_after,
        added=bool(added.events),
        ignored=[*body.ignored(), *added.ignored],
        approvals=how,
    )


def receive(locked: Locked, added: translating.News) -> list[Event]:
    """Add messages to a locked session. Returns their stored events. Raises Invalid, which names the message, and Conflict."""
    events = [
        deciding.event(locked, event["message"], f"messages.{place}") if event["type"] == translating.DECISION else event
        for place, event in zip(added.places, added.events, strict=True)
    ]
    try:
        return messages.receive(locked, events) if events else []
    except Invalid as refusal:
        raise added.renamed(refusal) from None


def _how(body: ChatCreate, version: AgentVersion) -> asking.How:
    """Return how the client is asked for approvals: as the request says, else as the agent does. Raises Invalid."""
    requested = (body.metadata or {}).get("approvals")
    if requested is None:
        return version.body.get("completion_approvals") or "text"
    how = next((known for known in asking.HOWS if known == requested), None)
    if how is None:
        raise Invalid("metadata.approvals", "must be tools, for calls of client_requestApproval, or text, for sentences.")
    return how


def _earlier_replies(body: ChatCreate) -> Iterator[str]:
    """Yield the texts of the replies that a request repeats."""
    for message in body.messages:
        if isinstance(message, ChatAssistantMessage):
            yield translating.text_of(message.content) or ""


def _created(db: Db, principal: Principal, body: ChatCreate) -> Locked:
    try:
        agent, version = Agent.with_version(db, body.agent_id, None)
    except NotFound:
        raise UnknownModel("model", body.model[:80]) from None
    if agent.archived_at:
        raise Invalid("model", f"{agent.id} is archived; choose an agent that is not.")
    own = version.body["tools"]
    overrides = {"tools": translating.merged_tools(own, own, body.tools)} if body.tools else {}
    check_agent_approvers(db, version.snapshot(overrides), Workspace.policies(db), (), at="agent.")
    metadata = body.metadata or {}
    new = sessions.NewSession(
        version=version,
        overrides=overrides,
        environment_id=metadata.get("environment_id") or None,
        metadata=patched({}, _of_session(metadata)),
        max_turns=version.body["max_turns"] or settings().max_turns,
        chat_approvals=_chat_approvals(body, bool(version.body.get("chat_approvals"))),
        on_behalf_of=metadata.get("on_behalf_of"),
    )
    return sessions.create(db, principal, new)


def _of_session(metadata: dict[str, str]) -> dict[str, str]:
    """Return those pairs of a request's metadata that the session's metadata gets."""
    return {name: value for name, value in metadata.items() if name not in OURS}


def _chat_approvals(body: ChatCreate, default: bool) -> bool:
    """Return whether chat words decide in the session, by the request's metadata. Raises Invalid."""
    value = (body.metadata or {}).get("chat_approvals")
    if value not in {None, "true", "false"}:
        raise Invalid("metadata.chat_approvals", 'must be "true" or "false"; leave it out for what the agent says.')
    return default if value is None else value == "true"


def _continued(db: Db, principal: Principal, body: ChatCreate, session_id: str) -> Locked:
    """Lock the session, and give it the request's metadata and tools."""
    parsing.check_ids({"session_id": session_id})
    visible.check_session(db, principal, session_id)
    locked = lock(db, session_id, principal)
    session = locked.session
    if session.agent_id != body.agent_id:
        raise Invalid(
            "model", f"session {session.id} is of the agent {MODEL}{session.agent_id}; name that, or start another session."
        )
    if session.status == "terminated":
        raise Conflict(f"Session {session.id} is archived and takes no more messages.")
    if _chat_approvals(body, session.chat_approvals) != session.chat_approvals:
        raise Invalid("metadata.chat_approvals", "can only be set when the session begins; leave it out, or start another session.")
    changes: translating.Json = {}
    if body.tools is not None:
        own = AgentVersion.of_session(db, session.agent_id, session.agent_version).body["tools"]
        changes["tools"] = translating.merged_tools(own, session.configured(db)["tools"], body.tools)
    pairs = _of_session(body.metadata or {})
    updates.update(locked, changes | ({"metadata": pairs} if pairs else {}))
    return locked


def _position(db: Db, session: Session, principal: Principal) -> int:
    """Return the number of the last event that this client knows.

    If no number is stored for the client: the beginning of the present run, or the newest event of an idle session.
    """
    known = session.stream_positions.get(principal.id)
    if known is not None:
        return known
    if session.status == "idle":
        return session.last_seq
    number: int | None = db.value(_RUN_BEGAN, session=session.id)
    return max(number or 0, session.archived_through)  # what is in the archive is of earlier runs


_RUN_BEGAN = """
    SELECT max(seq) FROM event WHERE session_id = %(session)s AND type = 'session.status_idle'
    AND body -> 'stop_reason' ->> 'type' <> 'requires_action'
"""
