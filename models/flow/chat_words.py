"""Decisions by chat words, in sessions that turn them on. An uncertain word decides nothing: the session asks back."""

from datetime import timedelta
from typing import Any

from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Invalid
from models.flow.approvers import described
from models.flow.decisions import decide
from models.flow.grants import session_policies
from models.pure import chat, policy
from models.pure.quorum import Quorum
from models.session.approval import Approval
from models.session.call_result import text
from models.session.decision import Decision
from models.session.event import Event
from models.session.grant import rule_for
from models.session.session import Session
from models.session.tool_call import ToolCall

QUIET_SECONDS = 10
"""A word without `seen` decides only if nothing was asked or settled for this long."""


def take_word(db: Db, session: Session, principal: Principal, event: dict[str, Any]) -> Event | None:
    """Decide by a chat word. Returns the word's event, or None if the message is no chat word or no approval waits."""
    word = _word(session, event)
    waiting = [a for a in Approval.pending(db, session.id) if a.kind == "tool_call"] if word else []
    if word is None or not waiting:
        return None
    stored = session.emit(db, "user.message", {"content": event["content"]})
    session.note(principal, "message.received", stored.id)
    about = _about(db, session, waiting, event.get("seen"))
    if "approvals" not in principal.scopes:
        _ask_back(db, session, "This API key may send messages, but it may not decide: nothing was decided.")
    elif isinstance(about, str):
        _ask_back(db, session, about)
    elif of_people := _of_people(db, session, about):
        _ask_back(db, session, f"Words in a chat do not decide {of_people.tool}. {described(db, of_people)} Nothing was decided.")
    elif word.result == "allow" and (why := _not_offered(about)):
        _ask_back(db, session, f"{why} Nothing was decided.")
    elif word.result == "allow" and len(about) > 1 and not word.all:
        tools = ", ".join(sorted({approval.tool for approval in about}))
        _ask_back(
            db, session, f'{len(about)} calls wait ({tools}). Say "approve all", or decide them one by one: nothing was decided.'
        )
    else:
        _decide(db, session, principal, word, about)
    return stored


def _word(session: Session, event: dict[str, Any]) -> chat.Word | None:
    content = event["content"]
    if not session.chat_approvals or len(content) != 1 or content[0]["type"] != "text":
        return None
    return chat.meaning(content[0]["text"])


def _about(db: Db, session: Session, waiting: list[Approval], seen: str | None) -> list[Approval] | str:
    """Return the approvals that the word decides, or a sentence that says why they are not certain."""
    if seen is not None:
        last = db.value("SELECT seq FROM event WHERE session_id = %(session)s AND id = %(seen)s", session=session.id, seen=seen)
        if last is None:
            raise Invalid("seen", f"session {session.id} has no event {seen!r}; send the id of the last event that was shown.")
        shown = {approval_id for (approval_id,) in db.rows(_SHOWN, session=session.id, last=last)}
        about = [approval for approval in waiting if approval.id in shown]
        return about or "What waits was asked after the last event that you were shown: nothing was decided."
    if len(waiting) > 1:
        return f"{len(waiting)} calls wait, and it is not sure which you were shown: decide them one by one. Nothing was decided."
    if _changed_just_now(db, session):
        return f"Something was asked or settled just now: look again, and repeat it after {QUIET_SECONDS} s. Nothing was decided."
    return waiting


def _of_people(db: Db, session: Session, about: list[Approval]) -> Approval | None:
    """Return the first of these approvals that only signed-in people may decide."""
    rules = session_policies(db, session)
    for approval in about:
        approval.tighten(db, rules.quorum(approval.tool, approval.level))
    return next((approval for approval in about if Quorum.of(approval.quorum).needs_people), None)


def _not_offered(about: list[Approval]) -> str:
    """Return a sentence for the first of these approvals that does not offer to allow once; empty if all do."""
    return next(filter(None, (approval.offer.why_not(approval.tool, "once") for approval in about)), "")


def _changed_just_now(db: Db, session: Session) -> bool:
    since, calls = session.now - timedelta(seconds=QUIET_SECONDS), ToolCall.of_turn(db, session)
    if db.rows(_MOVED, calls=[call.id for call in calls], since=since):
        return True
    return any(call.settled_at and call.settled_at > since for call in calls)


_SHOWN = """
    SELECT coalesce(body ->> 'approval_id', body -> 'approval' ->> 'id') FROM event
    WHERE session_id = %(session)s AND seq <= %(last)s AND (type = 'approval.requested' OR body ? 'approval')
"""
_MOVED = """
    SELECT FROM approval WHERE tool_call_id = ANY(%(calls)s) AND (created_at > %(since)s OR decided_at > %(since)s) LIMIT 1
"""


def _decide(db: Db, session: Session, principal: Principal, word: chat.Word, about: list[Approval]) -> None:
    granted: dict[str, str] = {}
    for approval in about:
        scope = "session" if word.all and approval.tool not in granted and approval.offer.has("session") else "once"
        if scope == "session":
            granted[approval.tool] = policy.covers(rule_for(approval, None))
        decide(db, session, principal, approval, Decision(word.result, deny_message=word.reason, scope=scope))  # type: ignore[arg-type]  # one of the two
    if word.all and word.result == "allow":
        covered = f"Allowed, and from now on in this session: {'; '.join(granted.values())}." if granted else "Allowed once."
        single = ", ".join(sorted({approval.tool for approval in about} - granted.keys()))
        limit = f" Every call of {single} is asked about: no grant for the session is offered." if single else ""
        session.emit(db, "agent.message", {"content": text(covered + limit)})
        if session.status == "waiting":
            session.rest_again(db)


def _ask_back(db: Db, session: Session, words: str) -> None:
    """Ask in a message of the session, which the model never sees. The idle event comes last, as the SDKs' runners expect."""
    session.emit(db, "agent.message", {"content": text(words)})
    session.rest_again(db)
