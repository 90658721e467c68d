"""A person's own page: their sign-ins, passkeys and password, and their other workspaces."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from flask import Response, request

from api import pages
from api.errors import Denied
from api.inbox import viewing
from api.pages import page
from api.signing_in.blueprint import let_in, signing_in, start
from api.signing_in.passwords import check_allowed
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid, NotFound
from models.flow.names import Names
from models.people import password
from models.people.arrival import workspaces_of
from models.people.confirming import confirm, makers_of
from models.people.delegation import Delegation
from models.people.member import Member
from models.people.passkey import Passkey
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.people.sign_in import SignIn
from models.people.slack_user import SlackUser
from models.settings import settings
from models.workspace.workspace import Workspace

RECENT = timedelta(minutes=15)
"""Age limit of a sign-in that adds a way to sign in: a browser that was left open is not enough."""
ACCOUNT = "/inbox/account"


@signing_in.get(ACCOUNT)
@page("read or own")
def show_account(person: PersonPrincipal) -> Response:
    """Show a person's own sign-ins and ways to sign in."""
    with transaction(person.workspace_id) as db:
        makers = makers_of(db, [person.person_id]).get(person.person_id, [])
        delegations = Delegation.live(db, [person.person_id], clock.now(db))
        parties = {id_ for row in delegations for id_ in (row.from_person_id, row.to_person_id)}
        names = Names.of(db, [f"user:{id_}" for id_ in {*makers, *parties}])
        values: dict[str, Any] = {
            "row": db.get_one(Person, person.person_id),
            "workspace": db.get_one(Workspace, person.workspace_id).name,
            "sign_ins": SignIn.of_member(db, person.person_id),
            "passkeys": Passkey.of_member(db, person.person_id),
            "slack_users": SlackUser.of_person(db, person.person_id),
            "has_password": Member.find(db, person.person_id).password_hash is not None,
            "is_recent": _is_recent(db, person),
            "delegations": [_delegation(row, person, names) for row in delegations],
            "makers": [names[f"user:{maker}"] for maker in makers],
            "section": "account",
            **viewing.frame(db, person),
        }
        can_move = _can_move(db, person)
    others = _other_workspaces(person) if can_move else {}
    values |= {"passwords": settings().passwords, "shortest": password.SHORTEST, "new": "new" in request.args, "others": others}
    return pages.html("account.html", person, **values)


@signing_in.post(f"{ACCOUNT}/sign-ins/<sign_in_id>/end")
@page("read or own")
def end_sign_in(person: PersonPrincipal, sign_in_id: str) -> Response:
    """End one of the person's sign-ins."""
    with transaction(person.workspace_id) as db:
        SignIn.end(db, person.person_id, sign_in_id, by=person)
    return pages.see(ACCOUNT)


@signing_in.post(f"{ACCOUNT}/sign-ins/end")
@page("read or own")
def end_other_sign_ins(person: PersonPrincipal) -> Response:
    """End the person's sign-ins in all other browsers."""
    with transaction(person.workspace_id) as db:
        SignIn.end_all(db, person.person_id, by=person, but=person.sign_in_id)
    return pages.see(ACCOUNT)


@signing_in.post(f"{ACCOUNT}/confirm")
@page("read or own")
def confirm_own(person: PersonPrincipal) -> Response:
    """Confirm the person's own ways to sign in, in a sign-in by an issuer or by an earlier way."""
    with transaction(person.workspace_id) as db:
        confirm(db, person.person_id, by=person)
    return pages.see(ACCOUNT)


@signing_in.post(f"{ACCOUNT}/delegations/<delegation_id>")
@page("approvals")
def change_delegation(person: PersonPrincipal, delegation_id: str) -> Response:
    """Accept a delegation of the person's decisions, or end one from or to the person."""
    with transaction(person.workspace_id) as db:
        row = Delegation.find(db, delegation_id, lock=True)
        if person.person_id not in {row.from_person_id, row.to_person_id}:
            raise NotFound("delegation", delegation_id)
        match request.form.get("do"):
            case "accept":
                row.accept(db, person)
            case "end":
                row.end(db, person)
            case _:
                raise Invalid("do", "must be accept or end.")
    return pages.see(ACCOUNT)


@signing_in.post(f"{ACCOUNT}/passkeys/<passkey_id>/remove")
@page("read or own")
def remove_passkey(person: PersonPrincipal, passkey_id: str) -> Response:
    """Remove a passkey."""
    with transaction(person.workspace_id) as db:
        Passkey.remove(db, person.person_id, passkey_id, by=person)
    return pages.see(ACCOUNT)


@signing_in.post(f"{ACCOUNT}/password")
@page("read or own")
def set_password(person: PersonPrincipal) -> Response:
    """Set the person's password, or remove it by an empty one.

    All other sign-ins end.
    """
    check_allowed()
    check_recent(person)
    new_password = request.form.get("password", "")
    password_hash = password.hashed(new_password) if new_password else None
    with transaction(person.workspace_id) as db:
        password.store(db, person.person_id, password_hash, by=person)
        SignIn.end_all(db, person.person_id, by=person, but=person.sign_in_id)
    return pages.see(ACCOUNT)


@signing_in.post(f"{ACCOUNT}/workspace")
@page("read or own")
def move(person: PersonPrincipal) -> Response:
    """Go to another workspace of the person. The sign-in must come from an issuer or the proxy."""
    workspace_id = request.form.get("workspace_id", "")
    with transaction(person.workspace_id) as db:
        method = SignIn.method_of(db, person.sign_in_id) if _can_move(db, person) else ""
    if not method or workspace_id not in workspaces_of(person.person_id):
        raise Denied(403, "Sign in to that workspace by itself: a link, a passkey or a password opens one workspace.")
    with transaction(workspace_id) as db:
        there = Member.find(db, person.person_id).principal(db)
        secret = start(db, replace(there, address=person.address), method)
    return let_in(secret, None)


def _delegation(row: Delegation, person: PersonPrincipal, names: Names) -> dict[str, Any]:
    """Return a delegation from or to the person, as the page shows it."""
    gives = row.from_person_id == person.person_id
    other = names[f"user:{row.to_person_id if gives else row.from_person_id}"]
    return {"row": row, "gives": gives, "other": other, "waits": row.accepted_at is None}


def check_recent(person: PersonPrincipal) -> None:
    """Raise Denied (403) if the person's sign-in is older than RECENT."""
    with transaction(person.workspace_id) as db:
        if not _is_recent(db, person):
            minutes = int(RECENT.total_seconds() // 60)
            raise Denied(403, f"This needs a sign-in of the last {minutes} minutes. Sign out, sign in again, and repeat this.")


def _is_recent(db: Db, person: PersonPrincipal) -> bool:
    return clock.now(db) - db.get_one(SignIn, person.sign_in_id).created_at < RECENT


def _can_move(db: Db, person: PersonPrincipal) -> bool:
    """True if the person signed in by an issuer or the proxy, which all workspaces trust."""
    method = SignIn.method_of(db, person.sign_in_id)
    return method == "proxy" or method.startswith("oidc:")


def _other_workspaces(person: PersonPrincipal) -> dict[str, str]:
    """Return the names of the person's other workspaces by their ids."""
    names = {}
    for workspace_id in workspaces_of(person.person_id):
        if workspace_id != person.workspace_id:
            with transaction(workspace_id) as db:
                names[workspace_id] = db.get_one(Workspace, workspace_id).name
    return names
