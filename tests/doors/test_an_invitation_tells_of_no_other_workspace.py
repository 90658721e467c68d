"""Until the invited person says so, a workspace's admin learns nothing of what other workspaces know of an e-mail address.

The admin sees each response, may use the link, and acts in the invited person's name. So everything is compared for an address that
is a person's in another workspace and for one that is nobody's: only ids, times and secrets differ.
"""

import re

import httpx2
from doors.served import key
from people import Visitor, member
from rows.stage import Stage

from models.database.transactions import transaction
from models.people import password
from models.people.passkey import Credential, Passkey
from models.people.person import Identity

KNOWN, UNKNOWN = "anna@example.com", "nobody@example.com"
_CHANGING = re.compile(r"(?<=[a-z]_)[0-9A-Z]{26}|[0-9a-f]{64}|(?<=/sign-in/link/)[\w-]+|\d{4}-\d\d-\d\dT[\d:.]+Z|<time.*?</time>")


def plain(response: httpx2.Response, email: str) -> tuple[int, str]:
    """Return the status and the body of a response, without what differs between any two people."""
    text = response.text.replace(email, "EMAIL").replace(email.partition("@")[0], "LOCAL")
    return response.status_code, _CHANGING.sub("X", text)


def story(api: str, email: str) -> list[tuple[int, str]]:
    """Invite an address to a new workspace, use the link, and look around. Returns all responses."""
    stage = Stage()
    with httpx2.Client(base_url=api, headers={"x-api-key": key(stage)}, timeout=20) as admin, Visitor(api) as holder:
        invited = admin.post("/v1/organizations/invites", json={"email": email, "workspace_role": "approver"})
        link = httpx2.URL(invited.json()["url"]).path
        lists = ["/v1/organizations/invites", "/v1/organizations/users", f"/v1/organizations/users?email={email}", "/v1/audit"]
        responses = [invited, *map(admin.get, lists), holder.get(link), holder.submit(link, name="Mallory")]
        responses += [holder.get("/inbox/account"), holder.get(link), *map(admin.get, lists)]
        [user] = admin.get("/v1/organizations/users").json()["data"]
        assert user["name"] == "Mallory"
        responses.append(admin.post(f"/v1/organizations/users/{user['id']}/link"))
        responses.append(admin.post("/v1/organizations/invites", json={"email": email}))
        responses.append(admin.delete(f"/v1/organizations/users/{user['id']}"))
        responses.append(admin.post("/v1/organizations/invites", json={"email": email}))
    return [plain(response, email) for response in responses]


def test_everything_is_the_same_for_an_address_that_another_workspace_knows(api: str, clean_database: object) -> None:
    elsewhere = Stage()
    anna = member(elsewhere, "admin", email=KNOWN)
    with transaction(elsewhere.workspace_id) as db:
        by = anna.principal
        Passkey.add(db, by.person_id, Credential(id=b"phone", public_key=b"key", sign_count=0), name="Phone", by=by)
        password.store(db, by.person_id, password.hashed("correct horse battery"), by=by)
        Identity.add(db, "https://issuer.example", "anna-1", by.person_id)
    known, unknown = story(api, KNOWN), story(api, UNKNOWN)
    for number, (one, other) in enumerate(zip(known, unknown, strict=True)):
        assert one == other, number
    assert {status for status, _ in known} == {200, 303, 409, 400}


def test_what_happens_in_one_workspace_to_an_address_changes_nothing_in_another(api: str, stage: Stage) -> None:
    anna = member(stage, "admin", email=KNOWN)
    with anna.client(api) as client:
        before = plain(client.get("/inbox/account"), KNOWN)
        story(api, KNOWN)
        assert plain(client.get("/inbox/account"), KNOWN) == before
