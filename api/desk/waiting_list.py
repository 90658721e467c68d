"""The waiting list of the inbox: the approvals that a person sees, their order, and the next card."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import quote

from flask import request

from api.door.framed import query_value
from api.door.paging import Count, Selection
from api.door.parsing import ID
from api.door.requests import EARLIEST, LATEST
from api.v1.approvals.requests import MAX_DECISIONS
from api.v1.approvals.visible import may_see, sees_all
from api.v1.approvals.waiting_list import OLDEST_DEADLINE, before, waiting_for
from models.database import clock
from models.database.rows import Db
from models.database.transactions import outbox
from models.flow.judge.approvers import who_may_decide, why_excluded
from models.people.group import Group
from models.people.member import Member
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure.text.relative_time import number_with_noun
from models.session.approval import sentences
from models.session.approval.decider import Decider
from models.session.approval.evidence import FRESH_SECONDS, SHOWN_WITH_FILES, Evidence, look_hint
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.last_lines import names_of
from models.workspace.agent import Agent

ORDER = OLDEST_DEADLINE
_CHOICES = 200
_LOOKED_AT = 1000
"""Approvals whose values can be chosen: those with the earliest deadlines."""
_SESSIONS = 50
"""Sessions to choose from: the newest. The page of any session shows its own approvals."""
_MOST_TITLE = 80
"""Most characters of a session's title in a choice."""
_SEARCHED = 10_000
"""Decided approvals that a search looks at: the newest."""
_NEWEST_DECIDED = "SELECT id FROM approval WHERE decided_at IS NOT NULL ORDER BY decided_at DESC LIMIT %(most_searched)s"
_OF_GROUP = "EXISTS (SELECT FROM jsonb_array_elements(quorum -> 'approvers') one WHERE one ? %(of_group)s)"


def matching(
    db: Db, person: PersonPrincipal, filters: dict[str, str | None], *, mine: bool, status: str = "pending"
) -> Selection[Approval]:
    """Return the approvals that fit the filters: those that wait for the person or, for a person who reads everything, all.

    `status`: `pending`, or `decided` for those that are decided. These alone are filtered by the `person` who decided and by the
    `day` of the decision, in UTC. A search looks at prompts and tools, which show no secrets.
    """
    if status == "decided":
        selection = _by_decision(_past(person), filters)
    elif mine or "read" not in person.scopes:
        selection = waiting_for(db, person.person_id, person.makers)
    else:
        selection = Selection(Approval).where("status = 'pending'")
    names = {"agent_id": filters.get("agent"), "tool": filters.get("tool"), "session_id": filters.get("session")}
    selection = selection.equal(**names, kind=filters.get("kind"))
    if group := filters.get("group"):
        selection = selection.where(_OF_GROUP, of_group=f"group:{group}")
    if words := filters.get("q"):
        pattern = "%" + words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        selection = selection.where("(prompt ILIKE %(words)s OR tool ILIKE %(words)s)", words=pattern)
        if status == "decided":
            selection = selection.where(f"id IN ({_NEWEST_DECIDED})", most_searched=_SEARCHED)
    return selection


def _past(person: PersonPrincipal) -> Selection[Approval]:
    """Return the decided approvals that the person sees: all or, for a person who reads only their own, those that they decided."""
    selection = Selection(Approval).where("decided_at IS NOT NULL")
    return selection if "read" in person.scopes else selection.equal(decided_by=str(person))


def _by_decision(selection: Selection[Approval], filters: dict[str, str | None]) -> Selection[Approval]:
    if person_id := filters.get("person"):
        selection = selection.equal(decided_by=f"user:{person_id}")
    if day := day_named(filters.get("day")):
        start = datetime.combine(day, time(), UTC)
        condition = "decided_at >= %(day_start)s AND decided_at < %(day_end)s"
        selection = selection.where(condition, day_start=start, day_end=start + timedelta(days=1))
    return selection


def day_named(text: str | None) -> date | None:
    """Return the day that a text such as `2026-11-20` names; None for every other text."""
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return day if EARLIEST.date() <= day < LATEST.date() else None


def choices(db: Db, person: PersonPrincipal, *, mine: bool, status: str = "pending") -> dict[str, list[Any]]:
    """Return the values of the list's filters: those of the first waiting, or the newest decided approvals that the person sees."""
    end = "ORDER BY decided_at DESC" if status == "decided" else "ORDER BY expires_at"
    tools, agents, session_ids = matching(db, person, {}, mine=mine, status=status).values_of(
        db, ("tool", "agent_id", "session_id"), f"{end} LIMIT %(looked_at)s", looked_at=_LOOKED_AT
    )
    versions = [Agent.find(db, agent_id).at(db) for agent_id in agents[:_CHOICES]]
    newest = session_ids[-_SESSIONS:]
    sessions = sorted(names_of(db, newest).items(), key=lambda session: (session[1], session[0]))
    selection = Selection(Group)
    if not sees_all(person):
        selection = selection.where("id = ANY(%(own)s)", own=sorted(person.group_ids))
    groups = selection.select(db, "ORDER BY name, id LIMIT %(most)s", most=_CHOICES)
    return {
        "tool": tools[:_CHOICES],
        "agent": sorted(((row.agent_id, row.body["name"]) for row in versions), key=lambda agent: agent[1]),
        "session": [(id_, sentences.shortened(title, _MOST_TITLE)) for id_, title in sessions],
        "group": [(row.id, row.name) for row in groups],
        "person": Member.names(db, _CHOICES) if status == "decided" and "read" in person.scopes else [],
    }


def decidable(db: Db, person: PersonPrincipal, rows: Iterable[Approval], votes: Mapping[str, Sequence[Vote]]) -> set[str]:
    """Return the ids of the approvals that the person may decide now and has not voted on. `votes`: their valid votes, by id."""
    if "approvals" not in person.scopes:
        return set()
    decider = Decider.of(db, person.person_id, clock.now(db), person.makers)
    return {row.id for row in rows if decider.is_awaited(row, votes[row.id])}


def why_not(db: Db, person: PersonPrincipal, approval: Approval, votes: Sequence[Vote]) -> str | None:
    """Return why the person may not allow the approval, and who may; None if the person may."""
    if decidable(db, person, [approval], {approval.id: votes}):
        return None
    if "approvals" not in person.scopes:
        return f"Your role, {person.role}, does not decide. {who_may_decide(db, approval, on_page=True)}"
    if own := next((vote for vote in votes if vote.person_id == person.person_id), None):
        own_vote = "You have edited the input." if own.result == "edit" else "You have voted to allow this."
        return f"{own_vote} You may still deny. {who_may_decide(db, approval, on_page=True)}"
    if approval.excludes(person.people):
        return f"{why_excluded(db, approval, person)} {who_may_decide(db, approval, on_page=True)}"
    return f"You are not one of those who may decide this. {who_may_decide(db, approval, on_page=True)}"


def following(db: Db, person: PersonPrincipal, after: str | None, held_ids: Sequence[str] = ()) -> Approval | None:
    """Return the first approval of the person's waiting list behind `after`, or else the first of all; None if nothing waits.

    Approvals in `held_ids`, which the page is about to decide, are skipped.
    """
    mine = matching(db, person, {}, mine=True).where("id <> ALL(%(held_ids)s)", held_ids=[after or "", *held_ids])
    end = "ORDER BY expires_at, id LIMIT 1"
    passed = db.get(Approval, after) if after else None
    if passed is not None:
        behind = mine.where("(expires_at, id) > (%(deadline)s, %(after)s)", deadline=passed.expires_at, after=passed.id)
        if result := behind.select(db, end):
            return result[0]
    return next(iter(mine.select(db, end)), None)


def address_of_next(
    db: Db, person: PersonPrincipal, *, notice_of: str | None, after: str | None = None, held_ids: Sequence[str] = ()
) -> str:
    """Return the address of the next card, or of the list if nothing else waits.

    The next card is the one behind `after`, or else behind the approval `notice_of`, whose decision the next page reports.
    """
    row = following(db, person, after or notice_of, held_ids)
    query = f"?decided={quote(notice_of)}" if notice_of else ""
    return f"/inbox/approvals/{row.id}{query}" if row else f"/inbox{query}"


def address_of_first(db: Db, person: PersonPrincipal) -> str:
    """Return the address at which a newcomer begins: the card of the one approval that waits for the person, or else the inbox."""
    rows = matching(db, person, {}, mine=True).select(db, "ORDER BY expires_at, id LIMIT 2")
    return f"/inbox/approvals/{rows[0].id}" if len(rows) == 1 else "/inbox"


def position(db: Db, person: PersonPrincipal, approval: Approval) -> tuple[Count, Count] | None:
    """Return the approval's place in the person's waiting list, from 1, and the list's length; None outside the list."""
    if not decidable(db, person, [approval], Vote.of(db, [approval.id])):
        return None
    mine = waiting_for(db, person.person_id, person.makers)
    return Count(before(db, mine, approval) + 1), mine.count(db)


def look(db: Db, approval: Approval) -> dict[str, Any] | None:
    """Return what `seen` returns. For a pending approval with old evidence, have a tools worker look at the files again."""
    if approval.tool not in SHOWN_WITH_FILES:
        return None
    result = db.get(Evidence, approval.id)
    fresh = result is not None and (clock.now(db) - result.looked_at).total_seconds() < FRESH_SECONDS
    # A page that refreshes itself must not be the cause of its next refresh.
    if approval.status == "pending" and not fresh and "x-refresh" not in request.headers:
        outbox(db).hints.append(look_hint(approval.id, approval.session_id, approval.workspace_id, approval.tool))
    return seen(db, approval)


def seen(db: Db, approval: Approval) -> dict[str, Any] | None:
    """Return the evidence that a tools worker read from the session's files, masked; None if no worker has looked."""
    result = db.get(Evidence, approval.id)
    return result.body if result is not None else None


def decision_notices(db: Db, person: PersonPrincipal, now: datetime) -> list[dict[str, Any]]:
    """Return what the person has just decided, for the next page: one notice for each outcome; none without a decision or vote."""
    ids = [id_ for id_ in (query_value("decided") or "").split() if ID.fullmatch(id_)][:MAX_DECISIONS]
    found_rows = db.find(Approval, "WHERE id = ANY(%(ids)s) ORDER BY expires_at, id", ids=ids) if ids else []
    rows = [row for row in found_rows if may_see(db, person, row)]
    names, votes = Names.of(db, [row.decided_by for row in rows]), Vote.of(db, [row.id for row in rows])
    by_outcome: dict[str, list[Approval]] = {}
    for row in rows:
        is_open = row.status == "pending"
        outcome = sentences.votes(row, votes[row.id]) if is_open else sentences.outcome(row, names[row.decided_by], now)
        by_outcome.setdefault(outcome, []).append(row)
    by_outcome.pop("", None)
    return [_notice(outcome, alike) for outcome, alike in by_outcome.items()]


def _notice(outcome: str, rows: Sequence[Approval]) -> dict[str, Any]:
    if len(rows) == 1:
        return {"path": f"/inbox/approvals/{rows[0].id}", "title": sentences.title(rows[0])[0], "outcome": outcome}
    is_open = rows[0].status == "pending"
    path = "/inbox?show=all" if is_open else "/inbox?show=decided"
    return {"path": path, "title": number_with_noun(len(rows), "call"), "outcome": outcome}
