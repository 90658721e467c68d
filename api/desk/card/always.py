"""The page on which a person allows a call and gives a grant for calls like it."""

from collections.abc import Sequence
from typing import Any

from flask import request

from api.desk.card import patterns
from api.desk.card.deciding import decide_by_form, onwards
from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.v1.approvals import responses
from api.v1.approvals.decisions import MAX_MATCHES
from api.v1.approvals.visible import find, lock_approval
from api.v1.grants import would_release
from models.database.rows import Db
from models.errors import Forbidden, Invalid, NotFound, Refusal
from models.people.principal import PersonPrincipal
from models.pure import policy
from models.pure.offer import SCOPES, Offer
from models.pure.policy import Rule
from models.pure.policy.patterns import Part
from models.session.approval import sentences
from models.session.approval.grant import is_exact, rule_for, rules_of_parts
from models.session.approval.offers import offer_now
from models.session.approval.reach import Reach
from models.session.approval.row import Approval
from models.session.row import Session
from models.workspace.roster import has_sub_agents

EACH = "each"
"""What the form sends as its match for a grant of each command of the line."""
ALL_AGENTS = "all_agents"
"""What the form sends as its scope for a grant that covers every agent of the session."""


@page("/inbox/approvals/<approval_id>/always", "inbox", "approvals")
def always_form(db: Db, person: PersonPrincipal, approval_id: str, refusal: Refusal | None = None) -> FramedPage:
    """Show the patterns for a grant, each with the calls that it covers and the number of waiting calls that it releases."""
    approval, match = find(db, person, approval_id), request.values.get("match")
    if not approval.traits.asks_to_run:
        raise NotFound("grant", "of a call that has begun")
    session = db.get_one(Session, approval.session_id)
    offer = offer_now(db, session, approval)
    if not offer.scopes:
        raise Forbidden(offer.why_not(approval.tool, *SCOPES))
    each = _each(db, approval, offer)
    suggestions = ["exact"] if offer.widest == "exact" else ["exact", *([] if each else patterns.suggested(approval)), "tool"]
    own = match if match and match not in {*suggestions, EACH} else None
    fault = ""
    options = []
    for suggestion in [*([own] if own else []), *suggestions]:
        try:
            options.append(_option(db, approval, suggestion, offer))
        except (Invalid, Forbidden) as problem:
            fault = str(problem)
    return FramedPage(
        "card/always.html",
        approval=approval,
        headline=sentences.headline(approval, approval.path(db)),
        input=_input(responses.Approval.of(db, approval)),
        options=options,
        each=each,
        destroying=[part.command for part in patterns.parts_of(approval) if part.destroys],
        chosen=match if match in {*(option["match"] for option in options), *([EACH] if each else [])} else options[0]["match"],
        own=own or "",
        offer=offer,
        reach=responses.Reaches.of(approval.thread(db), offer) if has_sub_agents(session.configured(db)) else None,
        scope=request.form.get("scope") or offer.scope,
        commands=patterns.commands_of(approval),
        doubt=patterns.why_none(approval),
        fault=fault,
        refusal=str(refusal) if refusal and not fault else "",
        form=request.form,
    )


@action("/inbox/approvals/<approval_id>/always", "approvals", again=always_form)
def always(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Allow the call, and those like it."""
    locked, approval = lock_approval(db, person, approval_id)
    values: dict[str, Any] = {name: request.form.get(name) for name in ("max_uses", "expires_in_seconds") if request.form.get(name)}
    match, scope = request.form.get("match"), request.form.get("scope")
    if scope == ALL_AGENTS:
        scope, values = "session", {**values, "include_sub_agents": True}
    which = {"match": match} if match != EACH else {"matches": _selection(patterns.parts_of(approval))}
    decide_by_form(locked, approval, {"result": "allow", "scope": scope} | which | values)
    return onwards(db, person, approval)


def _input(response: responses.Approval) -> str:
    """Return the input as the page shows it: a command alone as it is, any other input as JSON."""
    command = response.input.get("command")
    return command if isinstance(command, str) and len(response.input) == 1 else response.input_canonical


def _option(db: Db, approval: Approval, match: str, offer: Offer) -> dict[str, Any]:
    """Return one pattern with its coverage, and the number of waiting calls that it releases here and in all sessions.

    Raises Invalid for a faulty pattern, Forbidden for one that is not offered.
    """
    rule = rule_for(approval, match)
    if why := offer.why_no_grant(approval.tool, offer.scopes[0], exact=is_exact(rule)):
        raise Forbidden(why)
    return {
        "match": match,
        "spelled": policy.rule_as_json(rule)["match"],
        "covers": policy.covers(rule),
        **_releases(db, approval, [rule]),
    }


def _releases(db: Db, approval: Approval, rules: Sequence[Rule]) -> dict[str, int]:
    """Return how many waiting calls these grants release together: in the session, for all its agents, in all sessions."""
    thread = approval.thread(db)
    return {
        "session": would_release(db, approval, rules, Reach.of(thread, "session")),
        "all_agents": would_release(db, approval, rules, Reach.of(thread, "session", include_sub_agents=True)),
        "always": would_release(db, approval, rules, Reach.of(thread, "always")),
    }


def _each(db: Db, approval: Approval, offer: Offer) -> dict[str, Any] | None:
    """Return the commands of the line, each with what its patterns cover; None if there is no grant for each of them.

    The narrowest pattern that fits other calls as well is chosen at first.
    """
    parts = patterns.parts_of(approval)
    is_covered = all(part.patterns and not part.destroys for part in parts)
    if offer.widest == "exact" or not is_covered or not 0 < len(parts) <= MAX_MATCHES:
        return None
    selection = _selection(parts)
    covers = {text: policy.covers(policy.grant_of_part(approval.tool, text, id="")) for part in parts for text in part.patterns}
    try:
        rules = rules_of_parts(approval, selection)
    except Invalid:
        return None
    return {"parts": parts, "selection": selection, "covers": covers, **_releases(db, approval, rules)}


def _selection(parts: Sequence[Part]) -> list[str]:
    """Return the pattern of each command that the form has; else the narrowest that is open."""
    return [request.form.get(f"part{n}") or part.suggestion for n, part in enumerate(parts)]
