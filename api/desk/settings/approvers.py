"""The workspace's approvers, for admins: the people and groups who must approve every call that asks."""

from typing import Any, NamedTuple

from flask import request

from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import text
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.policy.requests import PolicyUpdate
from api.v1.policy.routes import change
from models.database.rows import Db
from models.errors import Refusal
from models.people import deciders
from models.people.group import Group, Membership
from models.people.names import approver_names
from models.people.principal import PersonPrincipal
from models.pure.quorum import Quorum, combined
from models.workspace.row import Workspace

_MOST_GROUPS = 500
_MOST_FACES = 6
"""Members of a group by name. The others are counted."""


class GroupChoice(NamedTuple):
    """A group that may be named, with those of its members who may decide."""

    name: str
    title: str
    members: list[str]
    more: int


@page("/inbox/approvers", "approvers", "admin")
def approvers(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show who must approve calls in this workspace, beside what agents and tools demand."""
    settings = db.get_one(Workspace, person.workspace_id).approval or {}
    names = request.form.getlist("approvers") if refusal else settings.get("approvers") or []
    people = deciders.of(db, Quorum())
    groups = _groups(db, dict(people))
    choices = {*(f"user:{id_}" for id_, _ in people), *(group.name for group in groups)}
    quorum = combined([settings])[0]
    return FramedPage(
        "settings/approvers.html",
        people=[(f"user:{id_}", name) for id_, name in people],
        groups=groups,
        names=names,
        gone=[approver_names(db, [name]).get(name, name) for name in names if name not in choices],
        required=text("required_approvals") if refusal else quorum.required_people,
        four_eyes=request.form.get("four_eyes") == "yes" if refusal else quorum.four_eyes,
        able=[name for _, name in deciders.of(db, quorum)],
        quorum=quorum,
        refusal=str(refusal or ""),
    )


@action("/inbox/approvers", "admin", section="approvers", again=approvers)
def set_approvers(db: Db, person: PersonPrincipal) -> str:
    """Store who must approve. The other settings of approvals stay."""
    settings = db.get_one(Workspace, person.workspace_id, lock=True).approval or {}
    demands: dict[str, Any] = {
        "approvers": request.form.getlist("approvers"),
        "required_approvals": text("required_approvals") or "1",
        "four_eyes": request.form.get("four_eyes") == "yes",
    }
    if demands["required_approvals"] == "1":
        demands["required_approvals"] = None
    approval = {name: value for name, value in {**settings, **demands}.items() if value not in (None, [], False)}
    change(db, person, validated(PolicyUpdate, {"approval": approval or None}, strict=False))
    return "/inbox/approvers"


def _groups(db: Db, people: dict[str, str]) -> list[GroupChoice]:
    """Return the groups by name. `people`: who may decide, by id."""
    rows = db.find(Group, "ORDER BY name, id LIMIT %(most)s", most=_MOST_GROUPS)
    members: dict[str, list[str]] = {row.id: [] for row in rows}
    for one in db.find(Membership, "WHERE person_id = ANY(%(ids)s)", ids=list(people)):
        members.get(one.group_id, []).append(people[one.person_id])
    choices = []
    for row in rows:
        names = sorted(members[row.id])
        choices.append(GroupChoice(f"group:{row.id}", row.name, names[:_MOST_FACES], len(names[_MOST_FACES:])))
    return choices
