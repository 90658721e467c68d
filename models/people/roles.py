"""The roles of people in a workspace, and the scopes that follow from each.

| role | may |
|---|---|
| `admin` | manage people, keys, policy and audit; everything below |
| `developer` | see all sessions, run agents, send messages; not decide |
| `approver` | see and decide what is theirs |
| `viewer` | see everything, change nothing |
"""

from typing import Literal

Role = Literal["admin", "developer", "approver", "viewer"]
ROLES: tuple[Role, ...] = ("admin", "developer", "approver", "viewer")
"""From the strongest to the weakest."""

OWN = "own"
"""A scope that no API key has: read the approvals that the person may decide, and the sessions of these approvals."""

SCOPES_OF: dict[str, frozenset[str]] = {
    "admin": frozenset({"read", OWN, "agents", "sessions", "approvals", "reveal", "admin"}),
    "developer": frozenset({"read", OWN, "agents", "sessions"}),
    "approver": frozenset({OWN, "approvals"}),
    "viewer": frozenset({"read", OWN}),
}


def scopes_of(role: Role, limit: Role | None) -> frozenset[str]:
    """Return the scopes of a role in a sign-in that gives no more than `limit`. None: the sign-in has no limit."""
    return SCOPES_OF[role] & SCOPES_OF[limit or "admin"]


WireRole = Literal["admin", "developer", "user"]
"""A user's role in the SDK's `beta.organization`."""


def wire_role(role: str) -> WireRole:
    """Return a role's name on the wire: approvers and viewers are users."""
    return role if role in {"admin", "developer"} else "user"  # type: ignore[return-value]
