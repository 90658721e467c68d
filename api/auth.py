"""Who asks, and whether they may."""

from dataclasses import replace

from flask import request

from api import limits
from api.errors import Denied
from models.api_key import ApiKey
from models.principal import Principal

_ASK = "Send an API key as `x-api-key` or as `authorization: Bearer`; `assent keys create` makes one."


def authenticate() -> Principal:
    """The principal behind the request's key. Raises Denied (401 without a good key, 403 for another workspace), TooMany."""
    secret = _secret()
    if not secret:
        raise Denied(401, _ASK)
    principal = ApiKey.authenticate(secret)
    if principal is None:
        raise Denied(401, f"This API key is not known here: mistyped, revoked, or another server's. {_ASK}")
    limits.take(principal)
    wanted = request.headers.get("anthropic-workspace-id")
    if wanted and wanted != principal.workspace_id:
        raise Denied(403, f"anthropic-workspace-id: this key belongs to workspace {principal.workspace_id}; leave it out.")
    return replace(principal, address=request.remote_addr)


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
