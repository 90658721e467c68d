"""Who asks, and whether they may."""

from dataclasses import replace

from flask import request

from api import browser, client, limits, parsing
from api.errors import Denied
from models.audit.principal import Principal
from models.database.transactions import transaction
from models.errors import NotFound
from models.people.principal import PersonPrincipal
from models.pure.key_secret import well_formed
from models.session.session import Session
from models.workspace import key_lookup

_ASK = "Send an API key as `x-api-key` or as `authorization: Bearer`; `assent keys create` makes one."
_WORKER = frozenset(
    {
        *("work.poll", "work.ack", "work.heartbeat", "work.stop"),
        *("sessions.show", "events.index", "events.stream", "events.send"),
    }
)
"""The routes that the SDK's `EnvironmentWorker` asks: all that a key opens that is bound to an environment."""


def authenticate() -> Principal:
    """Return the principal behind the request's API key or, without a key, behind the cookie of a sign-in.

    Raises Denied (401 without either, 403 for another workspace or environment and for another site's page), NotFound (another
    environment's session), TooMany.
    """
    found = secret()
    if not found:
        return _person()
    address = client.address()
    try:
        principal = _known(found, address)
    except key_lookup.AddressRefused:
        raise Denied(403, f"This API key may not be used from {address}: its `allowed_cidrs` do not name that address.") from None
    if principal is None:
        raise Denied(401, f"This API key is not known here: mistyped, revoked, expired, switched off, or another server's. {_ASK}")
    limits.take(principal)
    wanted = request.headers.get("anthropic-workspace-id")
    if wanted and wanted != principal.workspace_id:
        raise Denied(403, f"anthropic-workspace-id: this key belongs to workspace {principal.workspace_id}; leave it out.")
    if isinstance(principal, key_lookup.Bound):
        _keep_inside(principal, **(request.view_args or {}))
    return replace(principal, address=address)


def _person() -> PersonPrincipal:
    """Return the signed-in person. A change needs the proof that a page of ours sent it."""
    person = browser.current_person()
    if person is None:
        raise Denied(401, _ASK)
    limits.take(person)
    if request.method not in browser.SAFE:
        browser.check_change()
    return person


def require_person(principal: Principal) -> PersonPrincipal:
    """Return the principal as a person. Raises Denied (403) for an API key."""
    if not isinstance(principal, PersonPrincipal):
        raise Denied(403, "An API key is no person: only a person who is signed in may do this. See docs/people.md.")
    return principal


def _known(given: str, address: str | None) -> Principal | None:
    """The holder of this key. Raises TooMany, without a look-up, if too many unknown keys came from the client's address."""
    if key_lookup.seen(given) or not well_formed(given):
        return key_lookup.authenticate(given, address)
    limits.take_guess(address)
    principal = key_lookup.authenticate(given, address)
    if principal is not None:
        limits.give_guess_back(address)
    return principal


def _keep_inside(principal: key_lookup.Bound, environment_id: str = "", session_id: str = "", **_others: str) -> None:
    """Let a bound key through to its own environment: its work, and its sessions."""
    if request.endpoint not in _WORKER or environment_id not in {"", principal.environment_id}:
        raise Denied(403, f"This API key is bound to environment {principal.environment_id}, whose worker has no need of this.")
    if not session_id:
        return
    parsing.check_ids({"session_id": session_id})
    with transaction(principal.workspace_id) as db:
        session = db.get(Session, session_id)
        if session is None or session.environment_id != principal.environment_id:
            raise NotFound("session", session_id)


def require(principal: Principal, *scopes: str) -> None:
    """Raise Denied (403) unless the principal has all of `scopes`; one that reads `a or b` is had with either."""
    missing = [scope for scope in scopes if principal.scopes.isdisjoint(scope.split(" or "))]
    if missing and isinstance(principal, PersonPrincipal):
        raise Denied(403, f"Your role, {principal.role}, does not allow this: it lacks the scope {missing[0]!r}. Ask an admin.")
    if missing:
        raise Denied(403, f"This API key lacks the scope {missing[0]!r}; `assent keys create --scopes` makes one that has it.")


def secret() -> str:
    """The API key that the request carries; empty if it has none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return request.headers.get("x-api-key", "").strip()
