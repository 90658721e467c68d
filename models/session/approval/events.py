"""The bodies of the events `approval.*`, and the field `approval` of a call's own event."""

from typing import Any

from models.audit.principal import Principal
from models.database.rows import Db
from models.people.deciders import shortage
from models.pure.quorum import Quorum
from models.pure.times import rfc3339
from models.session.approval.columns import ApprovalColumns
from models.session.approval.vote import Vote

Body = dict[str, Any]


def in_call_event(db: Db, approval: ApprovalColumns) -> Body:
    """Return the field `approval` of the event of the call that waits."""
    body = {
        "id": approval.id,
        "kind": approval.kind,
        "expires_at": rfc3339(approval.expires_at),
        "input_sha256": approval.input_sha256,
        "prompt": approval.prompt,
        "rule": approval.rule,
        **requirements(db, approval),
        "votes": [],
    }
    return body | ({"annotations": approval.annotations} if approval.annotations else {})


def requested(db: Db, approval: ApprovalColumns) -> Body:
    """Return the body of `approval.requested`."""
    body = in_call_event(db, approval)
    return {"approval_id": body.pop("id"), **body, "tool_use_id": approval.tool_call_id, "tool": approval.tool}


def extended(db: Db, approval: ApprovalColumns, principal: Principal) -> Body:
    """Return the body of `approval.extended`."""
    return _named(approval) | {"by": str(principal), "expires_at": rfc3339(approval.expires_at), **voting(db, approval)}


def reminded(db: Db, approval: ApprovalColumns) -> Body:
    """Return the body of `approval.reminded`."""
    return _named(approval) | {"tool": approval.tool, "expires_at": rfc3339(approval.expires_at), **voting(db, approval)}


def closed(db: Db, approval: ApprovalColumns, principal: Principal) -> Body:
    """Return the body of `approval.decided`, `approval.expired` or `approval.cancelled`."""
    may_have_votes = approval.quorum or principal.kind == "user"
    votes = voting(db, approval) if may_have_votes else requirements(db, approval) | {"votes": []}
    return _named(approval) | {"status": approval.status, "decided_by": str(principal), **votes}


def requirements(db: Db, approval: ApprovalColumns) -> Body:
    """Return who may decide, how many must agree, whether they are too few, and their answers, as events and responses have it."""
    quorum = Quorum.of(approval.quorum)
    return {
        "required_approvals": quorum.required,
        "approvers": [list(one) for one in quorum.approvers],
        "four_eyes": quorum.four_eyes,
        "people_only": quorum.needs_people,
        "started_by": [f"user:{person_id}" for person_id in approval.started_by],
        "shortage": shortage(db, quorum, approval.started_by) if approval.status == "pending" else None,
        **answers(approval),
    }


def answers(approval: ApprovalColumns) -> Body:
    """Return the answers that people may give, as events and responses have them."""
    if not approval.traits.asks_to_run:
        return {"options": None, "not_offered": {}, "default_scope": None, "widest_match": None}
    offer = approval.offer
    grants = {"default_scope": offer.scope, "widest_match": offer.widest if offer.scopes else None}
    return {"options": [*offer.options, "deny"], "not_offered": offer.left_out, **grants}


def voting(db: Db, approval: ApprovalColumns) -> Body:
    """Return `requirements`, and the votes so far."""
    return requirements(db, approval) | {"votes": [vote.summary for vote in Vote.of_approval(db, approval.id)]}


def _named(approval: ApprovalColumns) -> Body:
    return {"approval_id": approval.id, "tool_use_id": approval.tool_call_id}
