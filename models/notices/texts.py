"""Notices of approvals: the texts of a notification, with their secrets masked and their lengths limited."""

import json
from typing import Any

from models.briefing.because import sentence
from models.briefing.reasons import MOST_SHOWN, last_words
from models.database.rows import Db
from models.notices.channel import Channel
from models.notices.flood import Flood
from models.notices.link import issue
from models.notices.notice import Notice, Stage
from models.notices.notification import Notification
from models.notices.slack_button import Result
from models.people.delegation import Delegation
from models.people.names import Names
from models.pure.offer import Offer
from models.pure.quorum import Quorum
from models.pure.shell import in_directory
from models.pure.text.line_diff import hunks
from models.pure.text.visible import visible
from models.session.approval import sentences
from models.session.approval.decider import why_sign_in
from models.session.approval.evidence import Evidence
from models.session.approval.face import MESSAGE, Face
from models.session.approval.offers import offer_now
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.settings import settings

MOST_EVIDENCE = 3000
"""Most characters of a notice's evidence. A cut says how many it leaves out."""
_MOST_TITLE = 150
WITHDRAWN = "Withdrawn: its session was deleted"


def notice(db: Db, row: Notification, channel: Channel, approval: Approval | None, stage: Stage) -> Notice:
    """Return the notice of an approval at this stage. `approval` is None if its session was deleted."""
    if approval is None:
        title = "An approval was withdrawn"
        return Notice(row.approval_id, row.workspace_id, "decided", title, title, outcome=WITHDRAWN, url=f"{_public_url()}/inbox")
    session = db.get_one(Session, approval.session_id)
    agent = approval.path(db)
    waits = stage != "decided"
    offer = offer_now(db, session, approval) if waits else approval.offer
    evidence, buttons = _question(db, approval, offer) if waits else ("", ())
    url, code = _link(db, approval, channel) if waits else (sentences.page_of(approval.id), None)
    return Notice(
        approval_id=approval.id,
        workspace_id=approval.workspace_id,
        stage=stage,
        title=_one_line(": ".join(part for part in sentences.title(approval) if part)),
        sentence=_one_line(sentences.headline(approval, agent)),
        evidence=evidence,
        agent=_one_line(agent),
        deadline=approval.expires_at if waits else None,
        afterwards=" ".join([sentences.afterwards(approval), *offer.limits]) if waits else "",
        outcome="" if waits else sentences.ending(approval, Names.of(db, [approval.decided_by])[approval.decided_by]),
        came_of="" if waits else _came_of(db, approval),
        mark="" if waits else approval.state.character,
        url=url,
        code=code,
        buttons=buttons,
        input_sha256=approval.runs,
        **(_background(db, approval, session, channel) if waits and channel.kind == "mail" else {}),
    )


def _background(db: Db, approval: Approval, session: Session, channel: Channel) -> dict[str, str]:
    """Return what a mail says beside the question. A room does not get the agent's words: it may have more readers than a card."""
    words = last_words(db, approval) if channel.person_id else ""
    return {
        "session": _one_line(session.title or ""),
        "last_words": sentences.shortened(words, MOST_SHOWN),
        "why": sentences.shortened(sentence(approval.rule, "ask")),
    }


def _came_of(db: Db, approval: Approval) -> str:
    """Return what came of an allowed call, in words. Its output stays on the card: a message may have more readers."""
    call = db.get(ToolCall, approval.tool_call_id) if approval.tool_call_id and approval.status == "allowed" else None
    if call is None or call.settled_at is None:
        return ""
    return "The call failed" if call.is_error else "The call is done"


def test_notice(row: Notification) -> Notice:
    """Return the notice by which a channel is tested."""
    sentence = "This is a test: messages about approvals arrive here"
    return Notice(row.approval_id, row.workspace_id, "test", "Test message", sentence, url=f"{_public_url()}/inbox")


def delegation_notice(db: Db, row: Notification, delegation: Delegation) -> Notice:
    """Return the notice that asks the giver to accept a delegation."""
    names = Names.of(db, [delegation.created_by, f"user:{delegation.to_person_id}"])
    to, by = names[f"user:{delegation.to_person_id}"], names[delegation.created_by]
    title = _one_line(f"May {to} decide for you?")
    sentence = f"{by} gives {to} your decisions until {delegation.ends_at:%Y-%m-%d %H:%M} UTC, if you accept"
    return Notice(
        row.approval_id,
        row.workspace_id,
        "delegation",
        title,
        _one_line(sentence),
        url=f"{_public_url()}/inbox/account#delegations",
    )


def flood_notice(db: Db, row: Notification, flood: Flood, person_id: str | None) -> Notice:
    """Return the notice that too many approvals wait for a person. `person_id`: who is notified."""
    most = settings().flood_approvals
    if flood.person_id == person_id:
        title, url = f"{most} approvals wait for you", f"{_public_url()}/inbox"
    else:
        name = Names.of(db, [f"user:{flood.person_id}"])[f"user:{flood.person_id}"]
        title, url = f"{most} approvals wait for {name}", f"{_public_url()}/inbox/insights?show=people"
    sentence = f"{title}, or more. Until half of them are decided, each new one is told at once only to those with the fewest"
    return Notice(row.approval_id, row.workspace_id, "flood", _one_line(title), _one_line(sentence), url=url)


def _question(db: Db, approval: Approval, offer: Offer) -> tuple[str, tuple[Result, ...]]:
    """Return what a message shows of a pending approval, and the decisions for which it may have buttons."""
    face = Face.of(approval, MESSAGE)
    buttons: tuple[Result, ...] = ("allow", "deny") if face.is_whole and offer.has("once") else ("deny",)
    text = face.text if face.is_whole else ""
    return text or evidence(db, approval), buttons if _is_plain(approval) else ()


def evidence(db: Db, approval: Approval) -> str:
    """Return the facts to decide the call by: its command, its change of a file as a diff, its questions, or its input as JSON."""
    if approval.questions is not None:
        text = "\n".join(str(question["message"]) for question in (approval.shown("questions") or {}).values())
    else:
        arguments: dict[str, Any] = approval.decided_shown or approval.masked.arguments
        row = db.get(Evidence, approval.id)
        text = _of_call(approval.tool, arguments, row.body if row else None)
    return sentences.shortened(text, MOST_EVIDENCE)


def _of_call(tool: str, arguments: dict[str, Any], look: dict[str, Any] | None) -> str:
    if tool == "bash" and isinstance(arguments.get("command"), str):
        directory = arguments.get("working_directory")
        return in_directory(str(arguments["command"]), None if directory is None else str(directory))
    path = arguments.get("file_path")
    if tool in {"edit", "write"} and isinstance(path, str):
        change = (look or {}).get("hunks")
        if change is None:
            before, after = arguments.get("old_string", ""), arguments.get("new_string", arguments.get("content", ""))
            change = hunks(str(before), str(after))[0]
        return "\n".join([path, *(line for hunk in change for line in hunk["lines"])])
    return json.dumps(arguments, indent=1, ensure_ascii=False)


def _is_plain(approval: Approval) -> bool:
    """True if one person decides the approval by one click."""
    return not why_sign_in(approval, Quorum.of(approval.quorum))


def _link(db: Db, approval: Approval, channel: Channel) -> tuple[str, str | None]:
    """Return the page on which the approval is decided, and the code for it. A link is for one person; a room gets the inbox."""
    if channel.person_id is None:
        return sentences.page_of(approval.id), None
    url, code = issue(db, approval, channel.person_id)
    return url, code if _is_plain(approval) else None


def _public_url() -> str:
    return settings().public_url.rstrip("/")


def _one_line(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _MOST_TITLE else f"{line[: _MOST_TITLE - 1]}…"
