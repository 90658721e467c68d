"""Why an agent asks: its last words before the call, the request that it works on, and what it was told since."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from models.database.exchange import Statement
from models.database.rows import Db
from models.people.names import Names
from models.pure.masking import Echoes
from models.pure.text.visible import visible_lines
from models.session.approval.row import Approval
from models.session.archive.reading import readable_rows_at
from models.session.event.log import EventFilter, events_before
from models.session.event.row import MESSAGE, MESSAGES
from models.session.row import Session
from models.session.tool_call.echoes import NO_ECHOES, echoes_of
from models.session.turn.reply import Reply
from models.session.turn.row import Turn

_TURNS = 5
"""The replies of so many turns are searched for the agent's last words."""
_MESSAGES = 200
"""The messages of the session that are searched for those of the thread: the newest."""
_MOST = 4_000
"""Characters of a text that are read."""
MOST_SHOWN = 600
"""Characters of a text that a card or a message shows. The session's page has the rest."""


@dataclass(frozen=True)
class Message:
    """A message to the agent."""

    by: str
    """Who wrote it, for people: a name, `its coordinator`, or empty if the message came by an API key."""
    text: str


@dataclass(frozen=True)
class Reasons:
    """Why an agent asks. Every character of a text is visible, and the secrets of the call's input are masked in it."""

    last_words: str
    """What the agent said last before the call; empty if it said nothing."""
    request: Message | None
    """The last message that it had when people were asked."""
    since: Message | None
    """The last message that came after people were asked."""

    @classmethod
    def of(cls, db: Db, approval: Approval) -> "Reasons":
        """Return the reasons of an approval."""
        bounds = {"at": approval.created_at, "messages": _MESSAGES}
        before, since = (Statement(_MESSAGE.format(sign=sign), {**_place(approval), **bounds}) for sign in ("<=", ">"))
        rows_before, rows_since = db.read(before, since)
        echoes = _echoes(db, approval)
        request = _message(db, rows_before or _archived(db, approval), echoes)
        return cls(_last_words(db, approval, echoes), request, _message(db, rows_since, echoes))


def last_words(db: Db, approval: Approval) -> str:
    """Return what the agent said last before the call, as `Reasons` has it."""
    return _last_words(db, approval, _echoes(db, approval))


def _place(approval: Approval) -> dict[str, Any]:
    return {"session": approval.session_id, "thread": approval.thread_id, "most": _MOST}


def _echoes(db: Db, approval: Approval) -> Echoes:
    return echoes_of(db, approval.call(db)) if approval.tool_call_id else NO_ECHOES


class _Row(NamedTuple):
    kind: str
    on_behalf_of: str | None
    from_agent: str | None
    text: str | None


def _message(db: Db, rows: list[Any], echoes: Echoes) -> Message | None:
    if not rows:
        return None
    row = _Row(*rows[0])
    by = Names.of(db, [row.on_behalf_of])[row.on_behalf_of] if row.on_behalf_of else ""
    if row.kind != "user.message":
        by = row.from_agent or "its coordinator"
    return Message(by, visible_lines(echoes.text(row.text or "")))


def _archived(db: Db, approval: Approval) -> list[_Row]:
    """Return the last message that the agent had when people were asked, if it is in the archive."""
    session = db.get_one(Session, approval.session_id)
    which = EventFilter(session, approval.thread_id, frozenset(MESSAGES), between=(("lte", approval.created_at),))
    events = events_before(db, which, None, 1)[0] if session.archived_through else []
    bodies = [(event.type, event.body) for event in events if event.type in MESSAGES]
    return [_Row(kind, body.get("on_behalf_of"), body.get("from_agent_name"), _text(body["content"])) for kind, body in bodies]


def _text(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")[:_MOST]


def _last_words(db: Db, approval: Approval, echoes: Echoes) -> str:
    if approval.tool_call_id is None:
        return ""
    turn = db.get_one(Turn, approval.call(db).turn_id)
    words: str | None = db.value(_WORDS, **_place(approval), first=turn.number - _TURNS + 1, last=turn.number)
    if words is None:
        replies = readable_rows_at(db, Reply, turn.session_id, turn.ended_at)
        words = next((_text(reply.content) for reply in replies if reply.turn_id == turn.id), "")
    return visible_lines(echoes.text(words or ""))


_WORDS = """
    SELECT words.text FROM turn JOIN reply ON turn_id = turn.id CROSS JOIN LATERAL (
        SELECT left(string_agg(block ->> 'text', E'\n' ORDER BY place), %(most)s) AS text
        FROM jsonb_array_elements(content) WITH ORDINALITY blocks(block, place) WHERE block ->> 'type' = 'text'
    ) words
    WHERE session_id = %(session)s AND thread_id = %(thread)s AND number BETWEEN %(first)s AND %(last)s
    AND words.text <> '' ORDER BY number DESC LIMIT 1
"""
_MESSAGE = f"""
    SELECT type, body ->> 'on_behalf_of', body ->> 'from_agent_name', (
        SELECT left(string_agg(block ->> 'text', E'\n' ORDER BY place), %(most)s)
        FROM jsonb_array_elements(body -> 'content') WITH ORDINALITY blocks(block, place) WHERE block ->> 'type' = 'text'
    )
    FROM (SELECT * FROM event WHERE session_id = %(session)s AND {MESSAGE} ORDER BY seq DESC LIMIT %(messages)s) event
    WHERE thread_id = %(thread)s AND created_at {{sign}} %(at)s ORDER BY seq DESC LIMIT 1
"""  # noqa: S608 - a condition of our own
