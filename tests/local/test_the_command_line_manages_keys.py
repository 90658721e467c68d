"""`assent keys` creates, lists, rotates and revokes API keys, by the API."""

import json

from local.conftest import Assent


def test_a_key_is_created_rotated_and_revoked(assent: Assent) -> None:
    limits = ("--expires-in-days", "90", "--allow", "203.0.113.0/24", "--allow", "192.0.2.7")
    note, secret = assent("keys", "create", "ci", "--scopes", "read, approvals", *limits).splitlines()
    assert secret.startswith("sk-assent-")
    limited = newest(assent)
    assert note.startswith(f"{limited['id']}: read, approvals, from 203.0.113.0/24, 192.0.2.7/32, until ")
    assert (limited["name"], limited["status"], limited["scopes"]) == ("ci", "active", ["read", "approvals"])

    assent("keys", "rotate", limited["id"], "--overlap-hours", "1")
    new, old = json.loads(assent("keys", "list", "--json"))[:2]
    assert (new["name"], new["allowed_cidrs"]) == (old["name"], ["203.0.113.0/24", "192.0.2.7/32"])
    assert old["expires_at"] < limited["expires_at"]

    row = json.loads(assent("keys", "rotate", new["id"], "--json"))
    assert row["key"].startswith("sk-assent-")
    assert row["id"] == newest(assent)["id"]
    new = newest(assent)

    assent("keys", "revoke", str(new["id"]))
    assert newest(assent)["status"] == "archived"


def test_a_faulty_key_is_refused_in_one_line(assent: Assent) -> None:
    assert "scopes: must be one or more of" in assent("keys", "create", "x", "--scopes", "all", code=1)
    assert "is not a network" in assent("keys", "create", "x", "--allow", "here", code=1)
    assert "key_nobody" in assent("keys", "revoke", "key_nobody", code=1)


def newest(assent: Assent) -> dict[str, object]:
    """Return the newest key."""
    row: dict[str, object] = json.loads(assent("keys", "list", "--json"))[0]
    return row
