"""The acts of the audit in sentences: who did what, to what."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode

from api.desk.audit.actions import phrase
from api.desk.audit.things import Thing, Things
from models.audit.acts import Audit

_DECIDED = {"allowed": "allowed", "denied": "denied", "answered": "answered"}
_VOTED = {"allow": "voted to allow", "deny": "voted to deny", "edit": "edited"}
_SCOPES = {"session": ", and more of its kind for this session", "always": ", and more of its kind from now on"}
_PERIODS = {"daily": "a day", "weekly": "a week", "monthly": "a month"}
_OF_AGENTS = ("budget", "turn", "thread", "message")
"""The nouns of acts that Assent writes for an agent."""
_IN_SESSIONS = frozenset({"message", "session", "thread", "turn", "work", "spend_limit", "events", "grant"})
"""The nouns of acts that name their session if they name nothing else."""


@dataclass(frozen=True)
class Part:
    """A part of a sentence."""

    text: str
    path: str = ""
    is_code: bool = False

    @classmethod
    def of(cls, thing: Thing) -> "Part":
        """Return the name of a thing, with its address."""
        return cls(thing.name, thing.path, thing.is_code)


def sentence(act: Audit, things: Things, texts: Mapping[str, str]) -> list[Part]:
    """Return the act as a sentence, part by part. `texts`: its texts that are not erased."""
    parts = [_who(act, things), *_what(act, things, texts)]
    first = parts[0]
    if not first.is_code:
        parts[0] = Part(first.text[:1].upper() + first.text[1:], first.path)
    return [part for part in parts if part.text]


def _who(act: Audit, things: Things) -> Part:
    """Return who acted. For an act that Assent writes for a tool or an agent, that is the tool or the agent."""
    noun, is_system = act.action.partition(".")[0], act.principal.startswith("system:")
    if is_system and noun == "tool_call" and (call := things.calls.get(act.subject_id)):
        return Part(call.tool, is_code=True)
    if is_system and (noun in _OF_AGENTS or act.action == "approval.requested") and (agent := things.agent_of(act)):
        return Part.of(agent)
    return Part(things.principal(act.principal), f"/inbox/audit?{urlencode({'who': act.principal})}")


def _what(act: Audit, things: Things, texts: Mapping[str, str]) -> Iterator[Part]:
    noun = act.action.partition(".")[0]
    if noun == "tool_call":
        yield from _of_call(act, things)
    elif noun in {"approval", "vote"}:
        yield from _of_approval(act, things, texts)
    else:
        subject, words = things.subject(act, texts), phrase(act.action)
        if noun == "budget" or (subject is None and noun in _IN_SESSIONS and act.chain != act.workspace_id):
            subject = things.sessions.get(act.chain, Thing("a session that is gone"))
        if act.action in {"group.member_added", "group.member_removed"}:
            words = words.replace("a member", things.principal(f"user:{act.details.get('user_id')}"))
        yield Part(f" {words} " if subject else f" {words.rstrip(':,')}")
        if subject:
            yield Part.of(subject)
        yield from _more(act, things)


def _of_call(act: Audit, things: Things) -> Iterator[Part]:
    call = things.calls.get(act.subject_id)
    words = phrase(act.action)
    if not act.principal.startswith("system:") and call:
        yield Part(" reported that ")
        yield Part(call.tool, is_code=True)
    if call is None:
        yield Part(f": a call {words}")
        return
    yield Part(f" {words}")
    if call.gist:
        yield Part(": ")
        yield Part(call.gist, is_code=True)
    if call.outcome and act.action == "tool_call.finished":
        failed = "failed" if call.outcome.is_error else "without an error"
        yield Part(f", exit {call.outcome.exit_code}" if call.outcome.exit_code is not None else f", {failed}")


def _of_approval(act: Audit, things: Things, texts: Mapping[str, str]) -> Iterator[Part]:
    words = phrase(act.action)
    if act.action == "approval.decided":
        words = _DECIDED.get(str(act.details.get("status")), words)
    elif act.action == "approval.voted":
        words = _VOTED.get(str(act.details.get("result")), words)
    subject, agent = things.subject(act, texts), things.agent_of(act)
    yield Part(f" {words} ")
    yield Part.of(subject or Thing("a call that is gone"))
    yield Part(f" {subject.more}" if subject and subject.more else "")
    if agent and act.action != "approval.requested":
        yield Part(" of ")
        yield Part.of(agent)
    yield Part(_SCOPES.get(str(act.details.get("scope")), ""))
    if reason := texts.get("deny_message"):
        yield Part(f": “{reason.strip()[:200]}”")


def _more(act: Audit, things: Things) -> Iterator[Part]:
    """Yield what a sentence says behind its subject."""
    match act.action:
        case "session.created" if agent := things.agent_of(act):
            session = things.sessions.get(act.chain)
            if session and not session.name.startswith("a session of"):
                yield Part(" of ")
                yield Part.of(agent)
        case "person.role_changed" if "to" in act.details:
            yield Part(f": {act.details['to']} instead of {act.details.get('from')}")
        case "person.invited" | "person.added" if "role" in act.details:
            yield Part(f" as {act.details['role']}")
        case "person.signed_in" if "method" in act.details:
            yield Part(f" by {str(act.details['method']).replace('_', ' ')}")
        case "delegation.given" | "delegation.accepted" | "delegation.ended" if "from" in act.details:
            one, other = (things.principal(f"user:{act.details.get(end)}") for end in ("from", "to"))
            yield Part(f" of {one} to {other}")
        case "spend_limit.set" | "spend_limit.deleted" if period := _PERIODS.get(str(act.details.get("period"))):
            amount = act.details.get("to" if act.action.endswith("set") else "from")
            most = f" of ${Decimal(amount):,.2f} {period}" if amount else f": no limit {period}"
            yield Part(f"{most} for {things.scope(act)}")
        case "vote.voided":
            yield Part(f" of {things.principal(str(act.details.get('by')))}")
