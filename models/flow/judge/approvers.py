"""Describes the people who may decide an approval."""

from collections.abc import Sequence

from models.audit.principal import Principal
from models.database.rows import Db
from models.people.deciders import shortage
from models.people.delegation import DECIDING_ROLES
from models.people.names import Names, approver_names
from models.pure.quorum import Quorum
from models.pure.text.visible import visible
from models.session.approval.row import Approval

CONFIRM = "Confirm your way to sign in first: the page /inbox/account says how."


def who_may_decide(db: Db, approval: Approval, *, on_page: bool = False) -> str:
    """Return a sentence that says who may decide an approval.

    On a page, whose reader is signed in, groups and people have names alone. Elsewhere their ids stand beside them, and the
    sentence says that people sign in and vote.
    """
    quorum = Quorum.of(approval.quorum)
    called = approver_names(db, (name for one in quorum.approvers for name in one))
    names = {name: title if on_page else f"{name} ({title})" for name, title in called.items()}
    sets = [" or ".join(names.get(name, name) for name in one) for one in quorum.approvers]
    of = f"of {' and of '.join(sets)}" if sets else f"with the role {' or '.join(DECIDING_ROLES)}"
    is_one = quorum.required_people == 1
    one = f"One {of}" if sets and on_page else f"One person {of}"
    people = f"{one} must approve" if is_one else f"{quorum.required_people} people must approve, each {of}"
    but = ", but nobody who started the run, sent a message to it or edited this call" if quorum.four_eyes else ""
    lack = shortage(db, quorum, approval.started_by)
    voting = "" if on_page else f"; {'this person' if is_one else 'each'} signs in and votes"
    return f"{people}{but}{voting}.{f' {lack}' if lack else ''}"


def awaited_names(db: Db, approvals: Sequence[Approval]) -> dict[str, str]:
    """Return for whom each approval waits, by its id, in few words: `finance`, `Anna or Ben, and legal`, or `a person`."""
    quorums = {approval.id: Quorum.of(approval.quorum) for approval in approvals}
    called = approver_names(db, (name for quorum in quorums.values() for one in quorum.approvers for name in one))
    words = {}
    for approval_id, quorum in quorums.items():
        sets = [" or ".join(visible(called.get(name, name)) for name in one) for one in quorum.approvers]
        needed = quorum.required_people
        words[approval_id] = ", and ".join(sets) or ("a person" if needed == 1 else f"{needed} people")
    return words


def why_excluded(db: Db, approval: Approval, principal: Principal) -> str:
    """Return why four eyes exclude a person from a call, as a sentence."""
    if principal.id in approval.started_by:
        return (
            "You started this run or sent a message to it, edited this call, or made the API key or the sign-in link that did: "
            "somebody else decides."
        )
    maker = min({*approval.started_by} & {*principal.makers})
    name = Names.of(db, [f"user:{maker}"])[f"user:{maker}"]
    return f"You signed in by a link that {name} made, and {name} asked for this call: somebody else decides. {CONFIRM}"
