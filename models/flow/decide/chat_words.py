"""Decisions by chat words, in sessions that turn them on. An uncertain word decides nothing: the session asks back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from models.errors import Invalid, Refusal
from models.flow.carry_on.listing import GrantKey, Listed, allowed_by_words, by_words, covered, grant_key, list_waiting, say
from models.flow.carry_on.next_step import one_step
from models.flow.decide.decisions import check, decide
from models.flow.decide.edits import check_runs
from models.flow.judge.approvers import who_may_decide
from models.flow.judge.grants import session_policies
from models.pure import chat
from models.session.approval.deadline import overdue
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.event.of_session import StoredMessage
from models.session.event.row import Event
from models.session.locked import Locked

READ_SECONDS = 2
"""A listing that is younger cannot have been read, so no word refers to it."""


@dataclass(frozen=True)
class _About:
    """The approvals to which a word refers."""

    approvals: list[Approval]
    shown_inputs: dict[str, str] = field(default_factory=dict)
    """The hashes of the inputs that the writer was shown, by approval."""


def take_word(locked: Locked, event: dict[str, Any]) -> Event | None:
    """Decide by a chat word. Returns the word's event, or None if the message is not a chat word or no approval waits."""
    word = _word(locked, event)
    pending = Approval.pending(locked.db, locked.session.id) if word else []
    if word is None or not pending:
        return None
    about = _about(locked, pending, event.get("seen"))
    stored = locked.emit(StoredMessage(type="user.message", content=event["content"]))
    locked.note("message.received", stored.id)
    why_not = about if isinstance(about, str) else _decide(locked, word, pending, about)
    if why_not:
        list_again(locked, f"Nothing was decided: {why_not}")
    return stored


def tell_what_waits(locked: Locked) -> None:
    """List again what waits, after a message that is not a chat word, so that its writer learns why the agent does not reply."""
    session = locked.session
    if session.chat_approvals and session.status == "waiting" and Approval.pending(locked.db, session.id):
        list_again(locked, "Your message is sent to the agent when it goes on.")


def list_again(locked: Locked, before: str) -> None:
    """List what waits after the sentence `before`. The idle event comes last, as the SDKs' runners expect."""
    list_waiting(locked, before)
    locked.rest_again()


def _word(locked: Locked, event: dict[str, Any]) -> chat.Word | None:
    content = event["content"]
    if not locked.session.chat_approvals or len(content) != 1 or content[0]["type"] != "text":
        return None
    return chat.meaning(content[0]["text"], locked.policies["chat_words"])


def _about(locked: Locked, pending: list[Approval], seen: str | None) -> _About | str:
    """Return the approvals to which the word refers, or why they are not certain, as the end of a sentence."""
    session = locked.session
    if seen is not None:
        last = locked.db.value(
            "SELECT seq FROM event WHERE session_id = %(session)s AND id = %(seen)s", session=session.id, seen=seen
        )
        if last is None:
            raise Invalid("seen", f"session {session.id} has no event {seen!r}; send the id of the last event that was shown.")
        shown = {approval_id for (approval_id,) in locked.db.rows(_SHOWN, session=session.id, last=last)}
        about = [approval for approval in pending if approval.id in shown]
        return _About(about) if about else "what waits was asked after the last event that you were shown."
    listed = Listed.newest(locked)
    if listed is None:
        return "something has changed since you were told what waits. Look again, then repeat your word."
    if locked.now - listed.at < timedelta(seconds=READ_SECONDS):
        return f"your word came less than {READ_SECONDS} s after what it would decide. Look again, then repeat it."
    return _About([approval for approval in pending if approval.id in listed.approval_ids], listed.shown_inputs)


_SHOWN = """
    SELECT coalesce(body ->> 'approval_id', body -> 'approval' ->> 'id') FROM event
    WHERE session_id = %(session)s AND seq <= %(last)s AND (type = 'approval.requested' OR body ? 'approval')
"""


def _decide(locked: Locked, word: chat.Word, pending: list[Approval], about: _About) -> str | None:
    """Decide as the word says. Returns why nothing was decided, as the end of a sentence; None if something was."""
    if word.result == "unclear":
        return "it is not clear whether your message allows or denies. It was not sent to the agent."
    if "approvals" not in locked.actor.scopes:
        return "this API key may send messages, but it may not decide."
    if word.result == "allow" and len(about.approvals) > 1 and not word.all:
        return f'{len(about.approvals)} decisions wait. Say "approve all", or decide them one by one.'
    chosen = _choice(locked, word, about.approvals)
    if isinstance(chosen, str):
        return chosen
    granted = covered(locked, chosen, pending) if word.all else {}
    decisions = _decisions(word, [(a, grant_key(locked, a)) for a in chosen], granted, about.shown_inputs)
    try:
        for approval, decision in decisions:
            check(locked.at(approval), approval, decision)
            if word.result == "allow":
                check_runs(locked.at(approval), approval)
    except Refusal as refusal:
        return str(refusal)
    _carry_out(locked, decisions, _grants(locked, chosen, granted) if word.all else "")
    return None


def _carry_out(locked: Locked, decisions: list[tuple[Approval, Decision]], words: str) -> None:
    """Make the decisions. `words` tell what `approve all` allows from then on."""
    session = locked.session
    with one_step(locked):
        for approval, decision in decisions:
            decide(locked, approval, decision)
        if words:
            say(locked, words, {"kind": "decided", "approval_ids": [approval.id for approval, _ in decisions]})
        before = session.last_seq
    if session.status == "waiting" and session.last_seq == before:  # for the same calls, which the client now runs
        locked.rest_again()


def _choice(locked: Locked, word: chat.Word, approvals: list[Approval]) -> list[Approval] | str:
    """Return those of the approvals that the word decides, or why it decides none."""
    late = overdue(locked.db, approvals, locked.now)
    waiting = [approval for approval in approvals if approval not in late]
    if not waiting:
        return "the deadline has passed."
    rules = {each.thread.id: session_policies(each) for each in locked.each}
    for approval in waiting:
        approval.tighten(locked.db, rules[approval.thread_id].quorum(approval.tool, approval.level))
    by_word = [approval for approval in waiting if by_words(approval)]
    if not by_word:
        one = next((approval for approval in waiting if approval.traits.asks_to_run), None)
        return (
            f"words in a chat do not decide {one.tool}. {who_may_decide(locked.db, one)}" if one else "no word decides what waits."
        )
    if word.result == "deny":
        return by_word
    if allowed := [approval for approval in by_word if allowed_by_words(approval)]:
        return allowed
    reasons = (approval.offer.why_not(approval.tool, "once") for approval in by_word)
    return next(filter(None, reasons), "no word allows what is not wholly shown.")


def _grants(locked: Locked, chosen: list[Approval], granted: Mapping[GrantKey, str]) -> str:
    """Return which later calls `approve all` allows too, in sentences."""
    words = f"Allowed, and from now on in this session: {'; '.join(granted.values())}." if granted else "Allowed once."
    single = ", ".join(sorted({a.tool for a in chosen if not a.offer.gives("session", exact=False)}))
    words += f" Every call of {single} is asked about: no grant for the session is offered." if single else ""
    left_out = (a for a in chosen if a.offer.gives("session", exact=False) and grant_key(locked, a) not in granted)
    others = ", ".join(sorted({a.tool for a in left_out}))
    return words + (f" Later calls of {others} are asked about, because other calls of it still wait." if others else "")


def _decisions(
    word: chat.Word, chosen: list[tuple[Approval, GrantKey]], granted: Collection[GrantKey], shown_inputs: Mapping[str, str]
) -> list[tuple[Approval, Decision]]:
    """Return the decision on each approval. The first one of each key in `granted` gives the grant."""
    decisions, keys = [], set(granted)
    for approval, key in chosen:
        if word.result == "deny":
            decision = Decision("deny", deny_message=word.reason)
        else:
            scope: Literal["session", "once"] = "session" if key in keys else "once"
            decision = Decision("allow", scope=scope, expected_input_sha256=shown_inputs.get(approval.id))
        keys.discard(key)
        decisions.append((approval, decision))
    return decisions
