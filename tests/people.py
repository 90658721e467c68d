"""People in tests: members of the stage's workspace, and HTTP clients and browsers that are signed in.

anna = member(stage, "approver", groups=["finance"])      anna.principal, anna.person_id
with anna.client(api) as client:                          an httpx2 client with the cookie and the CSRF token
    client.post("/v1/approvals/.../decision", json=...)
anna.enter(context, api)                                  a Playwright context with the cookie
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
from rows.stage import Stage

from api.door.browser import TOKEN_HEADER, token_of
from models.audit.principal import system
from models.database import clock, ids
from models.database.transactions import transaction
from models.people.group import Group, Membership
from models.people.invitation import Invitation, Invitee
from models.people.member import Member
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.people.roles import Role
from models.people.sign_in import SignIn


@dataclass(frozen=True)
class Somebody:
    """A signed-in member."""

    principal: PersonPrincipal
    email: str
    secret: str
    """The value of the sign-in cookie."""

    @property
    def person_id(self) -> str:
        """`user_...`"""
        return self.principal.person_id

    def cookie(self, url: str) -> dict[str, str]:
        """Return the cookie's name and value for a server on loopback."""
        return {f"assent-{urlsplit(url).port}": self.secret}

    def client(self, url: str, **more: Any) -> httpx2.Client:
        """Return an HTTP client of this person that sends the headers of a request from one of our pages."""
        headers = {"origin": url, "sec-fetch-site": "same-origin", TOKEN_HEADER: token_of(self.secret)}
        return httpx2.Client(base_url=url, headers=headers, cookies=self.cookie(url), timeout=20, **more)

    def enter(self, context: Any, url: str) -> None:
        """Sign in a Playwright context."""
        [(name, value)] = self.cookie(url).items()
        context.add_cookies([{"name": name, "value": value, "url": url, "httpOnly": True, "sameSite": "Lax"}])


class Visitor(httpx2.Client):
    """A browser without JavaScript: it keeps cookies, and sends a form with the CSRF token of the form's page."""

    def __init__(self, url: str, **more: Any) -> None:
        headers = {"origin": url, "sec-fetch-site": "same-origin"} | more.pop("headers", {})
        super().__init__(base_url=url, headers=headers, timeout=20, **more)

    def submit(self, page: str, to: str = "", **fields: str) -> httpx2.Response:
        """Load a page, and send its form to `to`; by default to the page's own path."""
        response = self.get(page)
        assert response.status_code == 200, response.text
        token = re.search(r'name="csrf_token" value="([0-9a-f]{64})"', response.text)
        assert token, response.text
        return self.post(to or page, data={"csrf_token": token[1]} | fields)

    def signed_in(self) -> bool:
        """Return True if the cookie opens the account page."""
        return self.get("/inbox/account").status_code == 200


def invited(stage: Stage, role: Role = "approver", email: str = "anna@example.com", **more: Any) -> str:
    """Invite somebody. Returns the path of the one-time link."""
    with transaction(stage.workspace_id) as db:
        secret = Invitation.create(db, Invitee(email, role, **more), by=system("test", stage.workspace_id))[1]
    return f"/sign-in/link/{secret}"


def acts_of(stage: Stage, prefix: str = "person.") -> list[tuple[str, str]]:
    """Return (principal, action) of each audit act whose action begins with `prefix`, in order."""
    with transaction(stage.workspace_id) as db:
        rows = db.rows("SELECT principal, action FROM audit WHERE action LIKE %(like)s ORDER BY seq", like=f"{prefix}%")
        return [(principal, action) for principal, action in rows]


def member(stage: Stage, role: Role = "approver", *, email: str = "", groups: Iterable[str] = ()) -> Somebody:
    """Create a signed-in member of the stage's workspace. `groups`: ids of the groups to join."""
    by = system("test", stage.workspace_id)
    email = email or f"{ids.new('p').lower()}@example.com"
    with transaction(stage.workspace_id) as db:
        person_id = Person.of_email(db, email)
        row = Member.give_role(db, person_id, role, by=by)
        for group_id in groups:
            now = clock.now(db)
            db.insert(Membership(group_id=group_id, person_id=person_id, workspace_id=stage.workspace_id, created_at=now))
        principal = row.principal(db)
        sign_in, secret = SignIn.start(db, replace(principal, address="127.0.0.1"), "link")
    return Somebody(replace(principal, sign_in_id=sign_in.id), email, secret)


def group(stage: Stage, name: str = "finance") -> str:
    """Create a group in the stage's workspace. Returns its id."""
    with transaction(stage.workspace_id) as db:
        now = clock.now(db)
        row = Group(id=ids.new("grp"), workspace_id=stage.workspace_id, name=name, created_at=now, updated_at=now)
        db.insert(row)
        return row.id
