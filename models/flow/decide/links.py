"""Decisions by the links of messages: a link's state, and the few decisions that a link and its code can make."""

from dataclasses import replace
from datetime import datetime
from typing import Literal

from models.database import clock
from models.database.rows import Db
from models.errors import Conflict, Forbidden, Invalid
from models.flow.decide.decisions import decide
from models.notices.link import Link
from models.pure.quorum import Quorum
from models.session.approval import decider
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.row import Session
from models.workspace.halt import have_passed
from models.workspace.row import Workspace

State = Literal["open", "sign_in", "changed", "over", "decided"]
"""`open`: the code decides. `sign_in`: only a signed-in person decides. `changed`: the input that would run is not the input of the
message. `over`: the link's deadline has passed, and the approval waits. `decided`: the approval has ended."""
_BY_CODE = frozenset({"result", "deny_message"})


def state(db: Db, session: Session, approval: Approval, link: Link, now: datetime) -> State:
    """Return the link's state at `now`."""
    if approval.status != "pending":
        return "decided"
    if any(have_passed(db, [(link.expires_at, link.deadline_from)], now)):
        return "over"
    if approval.runs != link.input_sha256:
        return "changed"
    return "sign_in" if why_sign_in(db, session, approval) else "open"


def why_sign_in(db: Db, session: Session, approval: Approval) -> str:
    """Return why a code is not enough to decide the approval, as a sentence; empty if a code is enough."""
    policies = session.policies_of(db, approval.thread(db), Workspace.policies(db))
    configured = policies.quorum(approval.tool, approval.level)
    return decider.why_sign_in(approval, Quorum.of(approval.quorum).and_also(configured))


def decide_by_link(locked: Locked, approval: Approval, link: Link, decision: Decision) -> None:
    """Decide for the link's person, whose code was right, and mark the link as used. The session, approval and link are locked.

    Raises Conflict if the link no longer decides; Forbidden if only a sign-in decides; Invalid for a decision that is
    more than to allow once, to deny, or to deny with a message; and whatever `decide` raises.
    """
    if link.used_at is not None or link.person_id != locked.actor.id or link.approval_id != approval.id:
        raise Conflict("This link was used before. Nothing was decided.")
    standing = state(locked.db, locked.session, approval, link, locked.now)
    if standing == "sign_in":
        raise Forbidden(f"Sign in to decide this. {why_sign_in(locked.db, locked.session, approval)}")
    if standing != "open":
        raise Conflict("This link decides nothing any more. Nothing was decided.")
    if decision.stored.keys() - _BY_CODE:
        raise Invalid("do", "a link only allows once or denies; sign in for any other decision.")
    decide(locked, approval, replace(decision, expected_input_sha256=link.input_sha256, link_id=link.id))
    link.used_at = clock.now(locked.db)
