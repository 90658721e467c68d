"""A person's own page: their sign-ins, passkeys and password, and their other workspaces."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from flask import Response, request

from api.desk.shell import viewing
from api.door import browser, pages
from api.door.errors import Denied
from api.door.pages import SIGN_IN, page
from api.signing_in.adding import ACCOUNT, can_add, check_can_add
from api.signing_in.blueprint import let_in, signing_in, start
from api.signing_in.passwords import check_allowed
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid, NotFound
from models.people import password
from models.people.confirming import confirm, makers_of
from models.people.delegation import Delegation
from models.people.group import Group
from models.people.issuer import PROXY, issuers, source_name, source_of
from models.people.member import Member
from models.people.names import Names
from models.people.passkey import Passkey
from models.people.person import Identity, Person
from models.people.principal import PersonPrincipal
from models.people.roles import Role
from models.people.sign_in import SignIn
from models.people.slack_user import SlackUser
from models.settings import settings
from models.workspace.row import Workspace


@signing_in.get(ACCOUNT)
@page("read or own")
def show_account(person: PersonPrincipal) -> Response:
    """Show a person's own sign-ins and ways to sign in."""
    with transaction(person.workspace_id) as db:
        makers = makers_of(db, [person.person_id]).get(person.person_id, [])
        delegations = Delegation.live(db, [person.person_id], clock.now(db))
        parties = {id_ for row in delegations for id_ in (row.from_person_id, row.to_person_id)}
        names = Names.of(db, [f"user:{id_}" for id_ in {*makers, *parties}])
        groups = {row.id: row.name for row in db.find(Group, "WHERE id = ANY(%(ids)s)", ids=[row.group_id for row in delegations])}
        values: dict[str, Any] = {
            "row": db.get_one(Person, person.person_id),
            "workspace": db.get_one(Workspace, person.workspace_id).name,
            "sign_ins": SignIn.of_member(db, person.person_id),
            "source_name": source_name,
            "passkeys": Passkey.of_member(db, person.person_id),
            "slack_users": SlackUser.of_person(db, person.person_id),
            "has_password": Member.find(db, person.person_id).password_hash is not None,
            "can_add": can_add(db, person),
            "needs_way_back": SignIn.needs_way_back(db, person.sign_in_id),
            "delegations": [_delegation(row, person, names, groups) for row in delegations],
            "makers": [names[f"user:{maker}"] for maker in makers],
            "section": "account",
            **viewing.frame(db, person),
        }
        values["connectable"] = _connectable(db, person) if values["can_add"] and not person.makers else []
    others = {id_: name for id_, (name, _person, _limit) in _other_workspaces(person).items()}
    values |= {"passwords": settings().passwords, "shortest": password.SHORTEST, "others": others}
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
    check_can_add(person)
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
    others = _other_workspaces(person)
    if workspace_id not in others:
        raise Denied(403, "Sign in to that workspace by itself: a link, a passkey or a password opens one workspace.")
    with transaction(person.workspace_id) as db:
        method = SignIn.method_of(db, person.sign_in_id)
    _name, person_id, limit = others[workspace_id]
    with transaction(workspace_id) as db:
        there = Member.find(db, person_id).principal(db)
        secret = start(db, replace(there, address=person.address), method, limit)
    return let_in(secret, None)


def _delegation(row: Delegation, person: PersonPrincipal, names: Names, groups: dict[str, str]) -> dict[str, Any]:
    """Return a delegation from or to the person, as the page shows it."""
    gives = row.from_person_id == person.person_id
    other = names[f"user:{row.to_person_id if gives else row.from_person_id}"]
    group = groups.get(row.group_id, "a group that is gone") if row.group_id else ""
    return {"row": row, "gives": gives, "other": other, "group": group, "waits": row.accepted_at is None}


def _other_workspaces(person: PersonPrincipal) -> dict[str, tuple[str, str, Role]]:
    """Return the workspaces to which this sign-in can go: the other workspaces of the person's account at the sign-in's source.

    By id, each with its name, the person's id there, and the strongest role that the source lets the person use there.
    """
    with transaction(person.workspace_id) as db:
        source = source_of(SignIn.method_of(db, person.sign_in_id))
        if source is None:
            return {}
        people = Identity.elsewhere(db, person.person_id, source.issuer)
    others: dict[str, tuple[str, str, Role]] = {}
    for workspace_id, person_id in people.items():
        with suppress(NotFound), transaction(workspace_id) as db:  # deactivated there
            member = Member.find(db, person_id)
            limit = source.limit(cast("Role", member.role) if member.source == source.name else None)
            if limit is not None:
                others[workspace_id] = db.get_one(Workspace, workspace_id).name, person_id, limit
    return others


def _connectable(db: Db, person: PersonPrincipal) -> list[tuple[str, str]]:
    """Return the name of each issuer at which the person has no account here, and of the proxy, with the path that begins there."""
    connected = {row.issuer for row in db.find(Identity, "WHERE person_id = %(person)s", person=person.person_id)}
    places = [(name, f"/sign-in/oidc/{name}") for name, each in sorted(issuers().items()) if each.issuer_url not in connected]
    return [*places, (PROXY, SIGN_IN)] if browser.proxy_email() and PROXY not in connected else places
