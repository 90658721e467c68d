"""Errors in the API's format, with `request-id`, and with a header that says whether a retry can succeed.

    {"type": "error", "error": {"type": "invalid_request_error", "message": "name: ..."}, "request_id": "req_..."}

The SDKs retry 408, 409, 429, 5xx and lost connections on their own. So a final 4xx has `x-should-retry: false`, and a transient
error (503, 429) has `retry-after`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from flask import Flask, Response, g, json, request
from gunicorn.http.errors import NoMoreData, ParseException
from werkzeug.exceptions import HTTPException

from models.database.rows import Stale
from models.database.transactions import ERRORS, is_transient
from models.errors import Busy, Conflict, Forbidden, Invalid, NotFound, Outdated, Refusal, Unreadable

log = logging.getLogger("assent.api")

RETRY_AFTER_SECONDS = "1"

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}

_MESSAGES = {
    404: "There is nothing at this address; see the routes in the API's reference.",
    405: "This address does not support this method; the `allow` header lists those that it supports.",
    415: "Send the body as JSON, with `content-type: application/json` and without `content-encoding`.",
}

_FEATURES = {
    "Files": "/v1/files",
    "Memory stores": "/v1/memory_stores",
    "Vaults": "/v1/vaults",
    "Skills": "/v1/skills",
    "Deployments": "/v1/deployment",
    "Dreams": "/v1/dreams",
    "User profiles": "/v1/user_profiles",
    "Tunnels": "/v1/tunnels",
    "Compliance reviews": "/v1/compliance",
    "Requests of the Messages API (use sessions or /v1/chat/completions)": "/v1/messages",
    "Settings of an organization other than users, invites, groups, keys, webhooks and spend limits": "/v1/organizations",
}
"""Features of the SDK that this server lacks, by name, and the beginning of their paths."""
_UNSUPPORTED = {
    "/v1/organizations/spend_limit_increase_requests": "spend_limit_increase_requests are not supported: at a limit, an approval of"
    " the kind `budget` waits for people. Decide it at /v1/approvals, or set a higher limit at /v1/spend_limits.",
    "/v1/organizations/workspaces": "Workspaces are not supported in the API, because a key and a sign-in belong to one workspace."
    " Use the commands `assent workspaces create NAME` and `assent workspaces list` where the server runs.",
    **{path: f"{feature} are not supported; docs/hosted-service.md lists what differs." for feature, path in _FEATURES.items()},
}
"""Messages for routes of the SDK that this server lacks, by the beginning of the path."""


class Denied(Refusal):
    """The caller is unknown (401), or lacks a right (403)."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        self.status = status
        self.headers = headers
        super().__init__(message)


class TooMany(Denied):
    """A rate limit is exceeded: 429. `headers` name the time of the next attempt."""

    def __init__(self, message: str, **headers: str) -> None:
        super().__init__(429, message, **headers)


class WrongMediaType(Refusal):
    """The body is something other than JSON: 415."""


class TooLarge(Refusal):
    """The body is larger than the limit: 413."""


class Late(Refusal):
    """The body did not arrive in time: 408."""


FORMATS: dict[str, Callable[[int, str, str], dict[str, Any]]] = {}
"""Other formats of errors, by the path or the endpoint of their route. Each returns a body for a status, a message and a field."""

_STATUSES: dict[type[Refusal], int] = {
    WrongMediaType: 415,
    TooLarge: 413,
    Late: 408,
    NotFound: 404,
    Unreadable: 404,
    Forbidden: 403,
    Conflict: 409,
    Outdated: 412,
    Busy: 503,
}
"""Statuses of the refusals. All others are a 400."""


def install(app: Flask) -> None:
    """Let `app` respond to every error in the API's format."""
    app.register_error_handler(Refusal, _refusal)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, lambda error: respond(*fault_of(error)))


def type_of(status: int) -> str:
    """Return the `type` of an error with this status."""
    return _TYPES.get(status, "invalid_request_error")


def respond(
    status: int,
    message: str,
    *,
    field: str = "",
    winner: Mapping[str, object] | None = None,
    details: Mapping[str, object] | None = None,
    **headers: str,
) -> Response:
    """Return an error's response. A 429 or 503 names the time of the next attempt; every other 4xx says that a retry is useless."""
    error: dict[str, Any] = {"type": type_of(status), "message": message}
    if winner:
        error["winner"] = winner
    if details:
        error["details"] = details
    body = {"type": "error", "error": error, "request_id": g.get("request_id")}
    if other := FORMATS.get(request.path) or FORMATS.get(request.endpoint or ""):
        body = other(status, message, field)
        body["error"] |= {"winner": winner} if winner else {}
    response = Response(json.dumps(body), status, mimetype="application/json", headers=headers)
    if status in {429, 503}:
        response.headers["retry-after"] = RETRY_AFTER_SECONDS
    elif status < 500:
        response.headers["x-should-retry"] = "false"
    return response


def status_of(refusal: Refusal) -> int:
    """Return the status of the response to a refusal."""
    if isinstance(refusal, Denied):
        return refusal.status
    return next((status for kind, status in _STATUSES.items() if isinstance(refusal, kind)), 400)


def fault_of(error: Exception) -> tuple[int, str]:
    """Log an error that is no refusal. Returns the status of its response and a message."""
    if isinstance(error, (ParseException, NoMoreData)):  # gunicorn detects a malformed body only when a route reads it
        return 400, f"body: is not a valid HTTP body: {str(error)[:200]}."
    if isinstance(error, Stale) or (isinstance(error, ERRORS) and is_transient(error)):
        log.warning("%s: %s", g.get("request_id"), error)
        return 503, "The server is busy or its database is away; try again in a moment."
    log.error("%s failed", g.get("request_id"), exc_info=error)
    return 500, "Something failed here that should not have. Its trace is in the server's log under this request id."


def _refusal(refusal: Refusal) -> Response:
    winner = refusal.winner if isinstance(refusal, Conflict) else None
    details = refusal.details if isinstance(refusal, Outdated) else None
    if isinstance(refusal, Invalid) and refusal.code:
        details = {"error_code": refusal.code}
    field = getattr(refusal, "field", "")
    response = respond(status_of(refusal), str(refusal), field=field, winner=winner, details=details)
    if isinstance(refusal, Denied):
        response.headers.update(refusal.headers)
    return response


def _http(error: HTTPException) -> Response:
    status = error.code or 500
    response = respond(status, _message(status, request.path) or error.description or error.name)
    if methods := getattr(error, "valid_methods", None):
        response.headers["allow"] = ", ".join(sorted(methods))
    return response


def _message(status: int, path: str) -> str | None:
    if status == 404 and (message := next((text for prefix, text in _UNSUPPORTED.items() if path.startswith(prefix)), None)):
        return message
    return _MESSAGES.get(status)
