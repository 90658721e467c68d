"""Who asks, and whether they may."""

from dataclasses import replace

from flask import request

from api import limits
from api.errors import Denied
from models import key_lookup
from models.db import transaction
from models.errors import NotFound
from models.principal import Principal
from models.session import Session

_ASK = "Send an API key as `x-api-key` or as `authorization: Bearer`; `assent keys create` makes one."
_WORKER = frozenset(
    {
        *("work.poll", "work.ack", "work.heartbeat", "work.stop"),
        *("sessions.show", "events.index", "events.stream", "events.send"),
    }
)
"""The routes that the SDK's `EnvironmentWorker` asks: all that a key opens that is bound to an environment."""


def authenticate() -> Principal:
    """The principal behind the request's key.

    Raises Denied (401 without a good key, 403 for another workspace or environment), NotFound (another environment's session),
    TooMany.
    """
    secret = _secret()
    if not secret:
        raise Denied(401, _ASK)
    address = client_address()
    try:
        principal = key_lookup.authenticate(secret, address)
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


def client_address() -> str | None:
    """The address that the request came from."""
    return request.remote_addr


def administrator() -> Principal | None:
    """The principal behind the request's key if it has the scope `admin`; for routes that need no key."""
    principal = authenticate() if _secret() else None
    return principal if principal and "admin" in principal.scopes else None


def _keep_inside(principal: key_lookup.Bound, environment_id: str = "", session_id: str = "", **_others: str) -> None:
    """Let a bound key through to its own environment: its work, and its sessions."""
    from api.door import check_ids  # the doors know of us

    if request.endpoint not in _WORKER or environment_id not in {"", principal.environment_id}:
        raise Denied(403, f"This API key is bound to environment {principal.environment_id}, whose worker has no need of this.")
    if not session_id:
        return
    check_ids({"session_id": session_id})
    with transaction(principal.workspace_id) as db:
        session = db.get(Session, session_id)
        if session is None or session.environment_id != principal.environment_id:
            raise NotFound("session", session_id)


def require(principal: Principal, *scopes: str) -> None:
    """Raise Denied (403) unless the principal has all of `scopes`; one that reads `a or b` is had with either."""
    missing = [scope for scope in scopes if principal.scopes.isdisjoint(scope.split(" or "))]
    if missing:
        raise Denied(403, f"This API key lacks the scope {missing[0]!r}; `assent keys create --scopes` makes one that has it.")


def _secret() -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return request.headers.get("x-api-key", "").strip()
