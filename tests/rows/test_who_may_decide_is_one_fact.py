"""Who may decide an approval is decided in one place: in SQL for lists, and in Python for one approval, a vote and a message."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import product
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from people import Somebody, group, member
from rows.stage import Stage
from rows.voting import ask

from api.v1.approvals import visible, waiting_list
from models.audit.principal import system
from models.database import clock as database_clock
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Forbidden
from models.flow.judge.votes import right_to_decide
from models.notices.recipients import may_be_told
from models.people.deciders import count
from models.people.delegation import Delegation
from models.people.member import Member
from models.pure.quorum import Quorum
from models.session.approval.approver_set import ApproverSet
from models.session.approval.decider import Decider
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.locked import Locked, lock_alone

PEOPLE = 3
GROUPS = 2
PERSON = st.integers(0, PEOPLE - 1)
SEVERAL = st.lists(PERSON, unique=True, max_size=2)
STATES = st.sampled_from(["approver", "approver", "approver", "viewer", "deactivated"])
MEMBERSHIPS = st.lists(st.integers(0, GROUPS - 1), unique=True)
WORLDS = st.fixed_dictionaries(
    {
        "people": st.lists(st.tuples(STATES, MEMBERSHIPS), min_size=PEOPLE, max_size=PEOPLE),
        "delegations": st.lists(st.tuples(PERSON, PERSON, st.none() | st.integers(0, GROUPS - 1)), max_size=2),
        "makers": SEVERAL,
        "approvals": st.lists(
            st.fixed_dictionaries(
                {
                    "approvers": st.lists(
                        st.lists(
                            st.sampled_from([*product(["user"], range(PEOPLE)), *product(["group"], range(GROUPS))]), min_size=1
                        ),
                        max_size=2,
                    ),
                    "required": st.integers(1, 2),
                    "four_eyes": st.booleans(),
                    "started_by": SEVERAL,
                    "status": st.sampled_from(["pending", "pending", "pending", "denied"]),
                    "votes": st.lists(st.tuples(PERSON, PERSON, st.booleans()), max_size=2),
                }
            ),
            min_size=3,
            max_size=6,
        ),
    }
)


_ANYBODY = {"approvers": [], "required": 1, "four_eyes": False, "started_by": [], "status": "pending", "votes": []}
GIVER_ASKED = {
    "people": [("approver", []), ("approver", []), ("approver", [])],
    "delegations": [(0, 1, None)],
    "makers": [],
    "approvals": [_ANYBODY | {"approvers": [[("user", 0)]], "four_eyes": True, "started_by": [0]}],
}
"""The receiver may not use the right of a giver who asked for the call."""
LEFT_WITH_A_GROUP = {
    "people": [("approver", [0]), ("approver", []), ("approver", [])],
    "delegations": [(0, 1, 0), (1, 2, None)],
    "makers": [],
    "approvals": [_ANYBODY | {"required": 2, "votes": [(2, 1, False)]}],
}
"""The receiver's own right is used, and what is delegated for a group counts only where the group is named."""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=WORLDS)
@example(world=GIVER_ASKED)
@example(world=LEFT_WITH_A_GROUP)
def test_lists_votes_and_messages_agree_on_everybody(clean_database: None, world: dict[str, Any]) -> None:
    stage = Stage()
    people, groups = _people(stage, world)
    about = ask(stage, stage.session())
    with transaction(stage.workspace_id) as db:
        approvals = [_approval(db, about, people, groups, **shape) for shape in world["approvals"]]
    makers = [people[number].person_id for number in world["makers"]]
    with transaction(stage.workspace_id) as db:
        locked = lock_alone(db, about.session_id, stage.principal)
        now, votes = locked.now, Vote.of(db, approvals)
        rows = [db.get_one(Approval, approval_id) for approval_id in approvals]
        deciders = [Decider.of(db, who.person_id, now, others) for who in people for others in ((), makers)]
        for decider in deciders:
            awaited = {row.id for row in rows if decider.is_awaited(row, votes[row.id])}
            selection = waiting_list.waiting_for(db, decider.person_id, decider.makers).where("id <> %(about)s", about=about.id)
            assert {row.id for row in selection.select(db, "")} == awaited
            owned = visible.owned(db, decider.person_id).where("id <> %(about)s", about=about.id).select(db, "")
            assert {row.id for row in owned} == {row.id for row in rows if decider.owns(row)}
        for row in rows:
            may = {who.person_id for who in people if _may_deny(locked, who, row)}
            told = may_be_told(db, row, [who.person_id for who in people], now)
            took_back = {vote.person_id for vote in votes[row.id]}
            assert told.keys() | took_back >= may >= told.keys()
            quorum = Quorum.of(row.quorum)
            own = [
                one for who in people for one in Decider.of(db, who.person_id, now).rights_on(row) if one.person_id == who.person_id
            ]
            assert count(db, quorum, row.started_by) == len(own)


def _may_deny(locked: Locked, who: Somebody, approval: Approval) -> bool:
    """True if the person has a right to deny the approval, used or not."""
    with suppress(Forbidden), locked.acting_as(who.principal):
        return right_to_decide(locked, approval, Decision("deny")) is not None
    return False


def _people(stage: Stage, world: dict[str, Any]) -> tuple[list[Somebody], list[str]]:
    groups = [group(stage, f"group {number}") for number in range(GROUPS)]
    people = [
        member(stage, "viewer" if state == "viewer" else "approver", groups=[groups[number] for number in joined])
        for state, joined in world["people"]
    ]
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
        for who, (state, _) in zip(people, world["people"], strict=True):
            if state == "deactivated":
                Member.deactivate(db, who.person_id, by=system("test", stage.workspace_id))
        for giver, receiver, group_number in world["delegations"]:
            if giver != receiver:
                row = Delegation(
                    id=ids.new("dlgt"),
                    workspace_id=stage.workspace_id,
                    from_person_id=people[giver].person_id,
                    to_person_id=people[receiver].person_id,
                    group_id=None if group_number is None else groups[group_number],
                    starts_at=now - timedelta(hours=1),
                    ends_at=now + timedelta(hours=1),
                    created_at=now,
                    created_by="user:somebody",
                    accepted_at=now,
                )
                db.insert(row)
    return people, groups


def _approval(
    db: Db,
    about: Approval,
    people: list[Somebody],
    groups: list[str],
    *,
    approvers: list[list[tuple[str, int]]],
    required: int,
    four_eyes: bool,
    started_by: list[int],
    status: str,
    votes: list[tuple[int, int, bool]],
) -> str:
    """Insert an approval with this quorum and these votes. Returns its id."""
    sets = tuple(
        tuple(f"user:{people[number].person_id}" if kind == "user" else f"group:{groups[number]}" for kind, number in one)
        for one in approvers
    )
    quorum = Quorum(sets, required, four_eyes)
    columns = {name: getattr(about, name) for name in Approval.__table__.columns.keys()}  # noqa: SIM118
    columns |= {"id": ids.new("appr"), "status": status, "quorum": quorum.as_json, "approver_set": ApproverSet.of(db, quorum)}
    row = Approval(**columns | {"started_by": [people[number].person_id for number in started_by]})
    db.insert(row)
    for vote in _votes(row, people, votes):
        db.insert(vote)
    return row.id


def _votes(approval: Approval, people: list[Somebody], votes: list[tuple[int, int, bool]]) -> Iterator[Vote]:
    voters, owners = set[int](), set[int]()
    for voter, owner, is_void in votes:
        if voter not in voters and owner not in owners:
            voters.add(voter)
            owners.add(owner)
            yield Vote(
                id=ids.new("vote"),
                workspace_id=approval.workspace_id,
                session_id=approval.session_id,
                approval_id=approval.id,
                person_id=people[voter].person_id,
                for_person_id=people[owner].person_id,
                result="allow",
                input_sha256=approval.input_sha256,
                choice_sha256="",
                decision={"result": "allow"},
                event_id=ids.new("sevt"),
                created_at=approval.created_at,
                voided_at=approval.created_at if is_void else None,
            )
