"""Votes: the people who may decide an approval, and whether enough have agreed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from models.audit.principal import Principal
from models.database import ids
from models.database.rows import Db
from models.errors import Conflict, Forbidden
from models.flow.judge.approvers import CONFIRM, who_may_decide, why_excluded
from models.people.deciders import NOBODY_NAMED
from models.people.delegation import Right, names_of
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure.json.canonical import digest
from models.pure.quorum import Quorum
from models.session.approval import events as approval_events
from models.session.approval.decider import Decider
from models.session.approval.decision import GRANT_FIELDS, Decision, choice_of
from models.session.approval.row import Approval
from models.session.approval.vote import Ballot, Vote
from models.session.locked import Locked


def right_to_decide(locked: Locked, approval: Approval, decision: Decision) -> Right | None:
    """Return the right by which the principal decides. None for an API key that may decide.

    Raises Forbidden, with a sentence on the people who may decide; Conflict if every right was used by another vote.
    """
    db, principal = locked.db, locked.actor
    quorum = Quorum.of(approval.quorum)
    if not isinstance(principal, PersonPrincipal):
        if quorum.needs_people:
            raise Forbidden(f"An API key may not decide approval {approval.id}. {who_may_decide(db, approval)}")
        return None
    if principal.through and quorum.needs_sign_in:
        raise Forbidden(f"Only people who are signed in decide approval {approval.id}. {who_may_decide(db, approval)}")
    decider = Decider.of(db, principal.person_id, locked.now, principal.makers, lock=True)
    if not decider.rights:
        raise Forbidden(f"Your role does not decide approvals. {who_may_decide(db, approval)}")
    if quorum.lacks_starter(approval.started_by) and not _is_denial(decision):
        raise Forbidden(f"Approval {approval.id} needs four eyes. {NOBODY_NAMED}")
    votes = Vote.of_approval(db, approval.id)
    takes_back = _takes_back(principal, decision, votes)
    if approval.excludes(decider.people) and not takes_back:
        raise Forbidden(f"{why_excluded(db, approval, principal)} {who_may_decide(db, approval)}")
    rights = decider.rights_on(approval, takes_back=takes_back)
    if not rights:
        raise Forbidden(f"You are not one of those who may decide approval {approval.id}. {who_may_decide(db, approval)}")
    free = decider.unused(rights, votes)
    if not free and not _is_denial(decision):
        raise Conflict(
            f"A vote on approval {approval.id} was cast on your behalf already. You may still deny it.", _standing(db, approval)
        )
    return (free or rights)[0]


def cast(locked: Locked, right: Right, approval: Approval, decision: Decision) -> tuple[Decision | None, str]:
    """Record a vote. Returns the decision that it completes, or None while votes are missing; and the id of the vote's event.

    An equal vote by the same person changes nothing, unless the person has confirmed their sign-in since. Raises Conflict for a
    different one, unless it is a denial, which replaces it; Forbidden for a vote that would not count beside another.
    """
    db, principal = locked.db, locked.actor
    votes = Vote.of_approval(db, approval.id)
    own = next((vote for vote in votes if vote.person_id == principal.id), None)
    is_equal = own is not None and own.decision == decision.stored
    if own is not None and is_equal and tuple(own.makers or ()) == principal.makers:
        return None, own.event_id
    if own is not None and not is_equal and not _is_denial(decision):
        raise Conflict(f"You have voted on approval {approval.id} already. You may still deny it.", _standing(db, approval))
    if not _is_denial(decision):
        choice = _choice(approval, decision.stored)
        _check_beside(db, principal, approval, [vote for vote in votes if vote.choice_sha256 == choice])
    vote = _vote(locked, right, approval, decision)
    replaced = [before for before in votes if before is own or before.for_person_id == vote.for_person_id]
    for before in replaced:
        before.voided_at = locked.now
    db.save()
    db.insert(vote)
    standing = [one for one in votes if one not in replaced] + [vote]
    _tell(locked, approval, vote, standing)
    if vote.result != "allow":
        return (decision if vote.result == "deny" else None), vote.event_id
    same = [one for one in standing if one.choice_sha256 == vote.choice_sha256]
    return (_agreed(decision, same) if is_enough(db, approval, same) else None), vote.event_id


def void(locked: Locked, approval: Approval) -> None:
    """Void all votes, because the input has changed."""
    for vote in Vote.of_approval(locked.db, approval.id):
        vote.voided_at = locked.now
        locked.note("vote.voided", approval.id, vote=vote.id, by=f"user:{vote.person_id}")
    locked.db.save()


def is_enough(db: Db, approval: Approval, votes: Iterable[Vote], quorum: Quorum | None = None) -> bool:
    """True if these votes meet the approval's quorum, or another one, by the roles and groups that people have now."""
    ballots = [vote.ballot for vote in votes if vote.result == "allow"]
    return meets(db, quorum or Quorum.of(approval.quorum), ballots, approval.started_by)


def for_choice(db: Db, approval: Approval, decision: Mapping[str, Any]) -> list[Vote]:
    """Return the valid votes that chose what the stored decision does to the input that would run, oldest first."""
    choice = _choice(approval, decision)
    return [vote for vote in Vote.of_approval(db, approval.id) if vote.choice_sha256 == choice]


def still_allows(db: Db, approval: Approval, quorum: Quorum) -> bool:
    """True if the people who voted for the approval's decision are enough for the quorum that holds now."""
    return not quorum.needs_people or is_enough(db, approval, for_choice(db, approval, approval.decision or {}), quorum)


def meets(db: Db, quorum: Quorum, ballots: Sequence[Ballot], started_by: Iterable[str]) -> bool:
    """True if enough ballots count for the quorum. A ballot counts if its voter is active, its right is of a person in every set,
    and with four eyes neither the owner of the right nor anybody who may have cast it is in `started_by`. Each human being and each
    right counts once."""
    starters = set(started_by) if quorum.four_eyes else set()
    if quorum.lacks_starter(starters):
        return False
    names = names_of(db, [person for ballot in ballots for person in (ballot.voter, ballot.right)])
    by_right: dict[str, Ballot] = {}
    for ballot in ballots:
        right = Right.of(ballot.right, names.get(ballot.right, frozenset()), group_id=ballot.group)
        counts = ballot.voter in names and bool(right.names) and right.meets(quorum)
        if counts and starters.isdisjoint({*ballot.people, ballot.right}):
            by_right.setdefault(ballot.right, ballot)
    return _human_beings(by_right.values()) >= quorum.required_people


def _human_beings(ballots: Iterable[Ballot]) -> int:
    """Return how many human beings cast the ballots at least. People who may be one are joined, also across several ballots."""
    groups: list[set[str]] = []
    for ballot in ballots:
        same = [group for group in groups if not group.isdisjoint(ballot.people)]
        groups = [group for group in groups if group not in same] + [ballot.people.union(*same)]
    return len(groups)


def _check_beside(db: Db, principal: Principal, approval: Approval, votes: Iterable[Vote]) -> None:
    """Raise Forbidden if the same human being may have cast one of the votes, so that the principal's vote would not count too."""
    for vote in votes:
        shared = vote.ballot.people & set(principal.people)
        if vote.result == "allow" and vote.person_id != principal.id and shared and Quorum.of(approval.quorum).required_people > 1:
            names = Names.of(db, [f"user:{vote.person_id}", f"user:{min(shared)}"])
            voter, maker = names[f"user:{vote.person_id}"], names[f"user:{min(shared)}"]
            link = "you made" if shared == {principal.id} else f"{maker} made"
            whose = voter if principal.id in shared else "you"
            raise Forbidden(
                f"Your vote does not count beside the vote of {voter}: {whose} signed in by a link that {link}, so one person may "
                f"have cast both. {CONFIRM}"
            )


def _takes_back(principal: Principal, decision: Decision, votes: Iterable[Vote]) -> bool:
    """True if a person who edited the input, or voted, denies it or edits it again."""
    may = _is_denial(decision) or decision.updated_input is not None
    return may and any(vote.person_id == principal.id for vote in votes)


def _vote(locked: Locked, right: Right, approval: Approval, decision: Decision) -> Vote:
    principal = locked.actor
    is_denial = _is_denial(decision)
    is_edit = not is_denial and approval.excludes(principal.people)
    return Vote(
        id=ids.new("vote"),
        workspace_id=approval.workspace_id,
        session_id=approval.session_id,
        approval_id=approval.id,
        person_id=principal.id,
        for_person_id=principal.id if is_edit else right.person_id,
        makers=list(principal.makers) or None,
        delegation_id=right.delegation_id,
        group_id=right.group_id,
        result="deny" if is_denial else "edit" if is_edit else "allow",
        input_sha256=approval.runs,
        choice_sha256=_choice(approval, decision.stored),
        decision=decision.stored,
        event_id=ids.new("sevt"),
        created_at=locked.now,
    )


def _tell(locked: Locked, approval: Approval, vote: Vote, standing: list[Vote]) -> None:
    locked.emit(approval_events.voted(locked.db, approval, vote, standing), id=vote.event_id)
    locked.note(
        "approval.voted",
        approval.id,
        vote=vote.id,
        result=vote.result,
        input_sha256=vote.input_sha256,
        on_behalf_of=f"user:{vote.for_person_id}",
        delegation=vote.delegation_id,
    )


def _is_denial(decision: Decision) -> bool:
    return decision.result == "deny" or decision.outcome == "give_up"


def _choice(approval: Approval, decision: Mapping[str, Any]) -> str:
    """Return the hash of a stored decision's choice and of the input that would run."""
    return digest({"choice": choice_of(decision), "input_sha256": approval.runs})


def _agreed(decision: Decision, votes: list[Vote]) -> Decision:
    """Return the decision, with its grant only if every vote asks for the same grant: a grant needs the same quorum."""
    grants = [{name: vote.decision.get(name) for name in GRANT_FIELDS} for vote in votes]
    if all(one == grants[0] for one in grants):
        return decision
    return replace(decision, scope="once", match=None, matches=(), expires_in_seconds=None, max_uses=None, include_sub_agents=False)


def _standing(db: Db, approval: Approval) -> dict[str, object]:
    votes = [vote.summary for vote in Vote.of_approval(db, approval.id)]
    return {"status": approval.status, "votes": votes, "required_approvals": Quorum.of(approval.quorum).required_people}
