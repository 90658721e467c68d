"""Authenticates the principal of a request, and checks its scopes."""

from dataclasses import replace

from flask import request

from api.door import browser, client, limits, parsing
from api.door.errors import Denied
from models.audit.principal import Principal
from models.database.transactions import transaction
from models.errors import NotFound
from models.people.principal import PersonPrincipal
from models.people.roles import OWN, ROLES, SCOPES_OF
from models.pure.key_secret import well_formed
from models.session.row import Session
from models.workspace import key_lookup

_ASK = "Send an API key as `x-api-key` or as `authorization: Bearer`; `assent database key` creates one."
_WORKER = frozenset(
    {
        *("work.poll", "work.ack", "work.heartbeat", "work.stop"),
        *("sessions.show", "events.index", "events.stream", "events.send"),
    }
)
"""The routes that the SDK's `EnvironmentWorker` uses. A key that is bound to an environment opens only these."""


def authenticate(*scopes: str) -> Principal:
    """Return the principal behind the request's API key or, without a key, behind the cookie of a sign-in. It has all `scopes`.

    Raises Denied (401 without either, 403 without a scope, for another workspace or environment and for another site's page),
    NotFound (another environment's session), TooMany.
    """
    principal = _principal()
    require(principal, *scopes)
    return principal


def _principal() -> Principal:
    key = secret()
    if not key:
        return _person()
    address = client.address()
    try:
        principal = _principal_of(key, address)
    except key_lookup.AddressRefused:
        raise Denied(403, f"This API key may not be used from {address}: its `allowed_cidrs` do not name that address.") from None
    if principal is None:
        raise Denied(401, f"This API key is not known here: mistyped, revoked, expired, switched off, or of another server. {_ASK}")
    limits.take(principal)
    workspace_id = request.headers.get("anthropic-workspace-id")
    if workspace_id and workspace_id != principal.workspace_id:
        raise Denied(403, f"anthropic-workspace-id: this key belongs to workspace {principal.workspace_id}; leave it out.")
    if isinstance(principal, key_lookup.Bound):
        _keep_inside(principal, **(request.view_args or {}))
    return replace(principal, address=address)


def _person() -> PersonPrincipal:
    """Return the signed-in person. A change needs a proof that a page of this server sent it."""
    person = browser.current_person()
    if person is None:
        raise Denied(401, _ASK)
    limits.take(person)
    if request.method not in browser.SAFE:
        browser.check_change()
    return person


def _principal_of(key: str, address: str | None) -> Principal | None:
    """Return the principal of this key. Raises TooMany, without a look-up, after too many unknown keys from this address."""
    if key_lookup.was_accepted(key) or not well_formed(key):
        return key_lookup.authenticate(key, address)
    limits.take_guess(address)
    principal = key_lookup.authenticate(key, address)
    if principal is not None:
        limits.give_guess_back(address)
    return principal


def _keep_inside(principal: key_lookup.Bound, environment_id: str = "", session_id: str = "", **_others: str) -> None:
    """Raise Denied or NotFound unless the request is about the bound key's own environment: its work, or its sessions."""
    if request.endpoint not in _WORKER or environment_id not in {"", principal.environment_id}:
        raise Denied(
            403, f"This API key is bound to environment {principal.environment_id}, whose worker does not need this route."
        )
    if not session_id:
        return
    parsing.check_ids({"session_id": session_id})
    with transaction(principal.workspace_id) as db:
        session = db.get(Session, session_id)
        if session is None or session.environment_id != principal.environment_id:
            raise NotFound("session", session_id)


def require(principal: Principal, *scopes: str) -> None:
    """Raise Denied (403) unless the principal has all of `scopes`. The text `a or b` stands for either scope."""
    missing = [scope for scope in scopes if principal.scopes.isdisjoint(scope.split(" or "))]
    if missing and isinstance(principal, PersonPrincipal) and principal.limit:
        raise Denied(
            403,
            f"This sign-in's issuer lets you use no more than the role {principal.limit}. {_roles_with(missing[0])} "
            "If you have that role, sign in another way.",
        )
    if missing and isinstance(principal, PersonPrincipal):
        raise Denied(403, f"Your role, {principal.role}, does not allow this. {_roles_with(missing[0])} Ask an admin.")
    if missing:
        scope = missing[0].removesuffix(f" or {OWN}")  # which no key has
        raise Denied(403, f"This API key lacks the scope {scope!r}; `assent keys create --scopes` creates one that has it.")


def _roles_with(scope: str) -> str:
    """Return a sentence on the roles of people that have a scope, or one of those in `a or b`."""
    roles = [role for role in ROLES if not SCOPES_OF[role].isdisjoint(scope.split(" or "))]
    return f"It needs the role {' or '.join(roles)}." if roles else "It needs an API key."


def secret() -> str:
    """Return the API key in the request's headers; empty without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return request.headers.get("x-api-key", "").strip()
