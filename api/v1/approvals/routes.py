"""Routes of approvals: the inbox over all sessions, and the decision."""

from collections.abc import Callable, Sequence

from flask import Blueprint, Response

from api.door import auth
from api.door.paging import MOST_COUNTED, Order, Selection, page
from api.door.requests import NoQuery
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.approvals import responses, visible, waiting_list
from api.v1.approvals.briefing import Briefing
from api.v1.approvals.bulk import NoneDecided, decide_all
from api.v1.approvals.requests import ApprovalList, ApprovalShow, DecisionBody, DecisionsBody, ExtendBody, PreviewBody
from api.v1.grants import grants_by_approval, would_release
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Forbidden, Invalid
from models.flow.decide import decisions
from models.pure import policy
from models.session.approval import deadline as approval_deadline
from models.session.approval.decision import Decision
from models.session.approval.grant import is_exact, rules_for
from models.session.approval.offers import offer_now
from models.session.approval.reach import Reach
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.row import Session
from models.session.thread.row import Thread

approvals = Blueprint("approvals", __name__, url_prefix="/v1/approvals")

OLDEST: Order[Approval] = Order("approvals", (Approval.created_at, Approval.id), descending=False)


@approvals.get("")
@reads(ApprovalList, "read or own", response=Page[responses.Approval])
def index(db: Db, principal: Principal, query: ApprovalList) -> Callable[[], Page[responses.Approval]]:
    """List the workspace's approvals, oldest first by default.

    With `for`, list the waiting list of a person: the approvals that wait for the person's vote, the oldest deadline first. A
    person whose role may read only their own approvals always gets their own waiting list.
    """
    columns = ("status", "session_id", "agent_id", "tool", "kind")
    person = query.for_ or (None if "read" in principal.scopes else "me")
    person_id = waiting_list.person_of(principal, person) if person else None
    makers = principal.makers if person_id == principal.id else ()
    own = waiting_list.waiting_for(db, person_id, makers) if person_id else None
    selection = (own or Selection(Approval)).equal(**{column: getattr(query, column) for column in columns})
    if query.expires_before is not None:
        selection = selection.where("expires_at < %(before)s", before=query.expires_before)
    order = waiting_list.OLDEST_DEADLINE if own else OLDEST if query.order == "asc" else OLDEST.reversed()
    rows, after = page(db, selection, order, query.limit, query.page)
    first = None
    if own and rows:
        earlier = waiting_list.before(db, selection, rows[0]) if query.page else 0
        first = 1 + earlier if earlier < MOST_COUNTED else None
    listed = _listed(db, rows, first)
    return lambda: Page[responses.Approval](data=listed(), next_page=after)


@approvals.get("/<approval_id>")
@reads(ApprovalShow, "read or own", response=responses.Approval, writes_if="reveal")
def show(db: Db, principal: Principal, query: ApprovalShow, approval_id: str) -> Callable[[], responses.Approval]:
    """Get an approval with its question, the input that was shown, the votes so far, and its decision.

    `reveal` shows masked secrets. It needs the scope `reveal`, and is audited.
    """
    approval = visible.find(db, principal, approval_id)
    if query.reveal:
        auth.require(principal, "reveal")
        locked, approval = visible.lock_approval(db, principal, approval_id)
        locked.note("approval.revealed", approval.id, input_sha256=approval.input_sha256)
    return _shown(db, approval, reveal=query.reveal)


@approvals.get("/<approval_id>/briefing")
@reads(NoQuery, "read or own", response=Briefing)
def brief(db: Db, principal: Principal, _query: NoQuery, approval_id: str) -> Callable[[], Briefing]:
    """Get what people are told beside an approval.

    A card shows the same: the stakes, the reasons, what has changed since, what was decided before, and what came
    of the call.
    """
    return Briefing.of(db, principal, visible.find(db, principal, approval_id))


@approvals.post("/<approval_id>/decision")
@writes(DecisionBody, "approvals", once=True, response=responses.Approval)
def decide(db: Db, principal: Principal, body: DecisionBody, approval_id: str) -> responses.Approval:
    """Decide an approval.

    Idempotent: the same decision again gets the same response. A different decision is a 409, with the first decision as `winner`.
    """
    locked, approval = visible.lock_approval(db, principal, approval_id)
    decisions.decide(locked, approval, body.decision())
    return _response(db, approval)


@approvals.post("/decisions")
@writes(DecisionsBody, "approvals", once=True, response=responses.AllDecided, errors=(404,))
def decide_several(db: Db, principal: Principal, body: DecisionsBody) -> responses.AllDecided:
    """Decide several approvals in one transaction, all of them or none.

    An error lists the outcome of each decision in `details`.
    """
    outcomes = decide_all(db, principal, body.decisions)
    approvals = zip(outcomes, _listed(db, [row for row, _ in outcomes])(), strict=True)
    decided = [
        responses.BulkDecided(approval_id=row.id, outcome=outcome, approval=approval) for (row, outcome), approval in approvals
    ]
    return responses.AllDecided(data=decided)


@approvals.errorhandler(NoneDecided)
def _none_decided(refusal: NoneDecided) -> Response:
    return refusal.response()


@approvals.post("/<approval_id>/extend")
@writes(ExtendBody, "approvals", response=responses.Approval)
def extend(db: Db, principal: Principal, body: ExtendBody, approval_id: str) -> responses.Approval:
    """Move the deadline of an approval to a later time.

    The new deadline is `seconds` from now. The response is a 409 if the deadline has passed or would not move to a later time.
    """
    locked, approval = visible.lock_approval(db, principal, approval_id)
    approval_deadline.extend(locked, approval, body.seconds)
    return _response(db, approval)


@approvals.post("/<approval_id>/preview")
@writes(PreviewBody, "approvals", response=responses.GrantPreview)
def preview(db: Db, principal: Principal, body: PreviewBody, approval_id: str) -> responses.GrantPreview:
    """Preview the grants that a decision would create.

    The response names the covered calls, and the number of waiting calls that the grants would release. It is a 403 if
    the tool offers no such grant.
    """
    approval = visible.find(db, principal, approval_id)
    if not approval.traits.asks_to_run:
        raise Invalid("scope", "only an approval of the kind tool_call can create a grant; send a decision without scope.")
    offer = offer_now(db, db.get_one(Session, approval.session_id), approval)
    rules = rules_for(approval, Decision("allow", scope=body.scope, match=body.match, matches=tuple(body.matches or ())))
    if why := next(filter(None, (offer.why_no_grant(approval.tool, body.scope, exact=is_exact(rule)) for rule in rules)), ""):
        raise Forbidden(why)
    if body.match and body.matches:
        raise Invalid("matches", "are several grants, and match is one: send one of them.")
    if body.include_sub_agents and body.scope == "always":
        raise Invalid("include_sub_agents", "is for one session: send scope session, or leave it out.")
    thread = approval.thread(db)
    reach = Reach.of(thread, body.scope, include_sub_agents=bool(body.include_sub_agents))
    each = [responses.CoveredCalls(match=policy.rule_as_json(rule)["match"], covers=policy.covers(rule)) for rule in rules]
    return responses.GrantPreview(
        type="grant_preview",
        scope=body.scope,
        match=each[0].match,
        covers=each[0].covers,
        grants=each,
        reach=reach.in_words(thread.name),
        waiting=would_release(db, approval, rules, reach),
    )


def _response(db: Db, approval: Approval) -> responses.Approval:
    return _shown(db, approval)()


def _shown(db: Db, approval: Approval, *, reveal: bool = False) -> Callable[[], responses.Approval]:
    """Return a function that returns the response for an approval, and reads nothing."""
    grants, votes = grants_by_approval(db, [approval]).get(approval.id, ()), Vote.of(db, [approval.id])[approval.id]
    return responses.Approval.read(db, approval, responses.Beside(grants, votes), reveal=reveal)


def _listed(db: Db, rows: Sequence[Approval], first: int | None = None) -> Callable[[], list[responses.Approval]]:
    """Return a function that returns the responses for approvals, with their grants and votes, and reads nothing.

    `first` is the first approval's place in a waiting list.
    """
    Thread.read_ahead(db, rows)
    grants, votes = grants_by_approval(db, rows), Vote.of(db, [row.id for row in rows])
    positions = (None if first is None else first + number for number in range(len(rows)))
    beside = [responses.Beside(grants.get(row.id, ()), votes[row.id], at) for row, at in zip(rows, positions, strict=True)]
    deferred_responses = [responses.Approval.read(db, row, more) for row, more in zip(rows, beside, strict=True)]
    return lambda: [response() for response in deferred_responses]
