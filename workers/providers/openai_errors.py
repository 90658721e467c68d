"""Turns errors of OpenAI's API, and of servers that speak it, into `ModelError`."""

from typing import Any

import openai

from workers.providers import ErrorKind, ModelError
from workers.providers.errors import BY_STATUS, code_of, error_message, hint, is_too_long, kind_of_status, retry_after

OUT_OF_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated"})
"""Codes and types for which waiting does not help, some under status 429."""
GONE = frozenset({"model_not_found", "deploymentnotfound", "model_not_supported", "model_deprecated"})
BY_TYPE: dict[str, ErrorKind] = {
    "rate_limit_exceeded": "rate_limited",
    "rate_limit_error": "rate_limited",
    "tokens": "rate_limited",
    "requests": "rate_limited",
    "overloaded_error": "overloaded",
    "service_unavailable": "overloaded",
    "server_overloaded": "overloaded",
    "timeout": "timed_out",
    "invalid_request_error": "unacceptable",
    "badrequesterror": "unacceptable",
    "authentication_error": "invalid",
    "invalid_api_key": "invalid",
    "permission_error": "invalid",
}
"""By `code` or `type` in the middle of a stream, in lower case."""

_UNKNOWN = ("unsupported", "not support", "unrecognized", "unknown", "unexpected", "extra ", "not permitted", "not allowed")
"""Words of an error about a parameter that the server does not know, unlike one whose value is wrong."""


def status_error(error: openai.APIStatusError, model: str, key: str | None) -> ModelError:
    """Return the error for a response with a status of 3xx, 4xx or 5xx."""
    status, (names, message) = error.status_code, _read(error.body)
    kind = kind_of_status(status)
    if names & OUT_OF_MONEY:
        kind = "billing"
    elif names & GONE or (status == 404 and model and model in message):
        kind = "gone"
    elif kind == "unacceptable" and is_too_long(f"{' '.join(names)} {message}"):
        kind = "too_long"
    text = error_message(f"The model's API responded with {status}", _error_type(names), message or hint(status), key)
    return ModelError(kind, text, retry_after(error.response.headers), code=code_of(status, _error_type(names)))


def error_event(body: object, key: str | None) -> ModelError:
    """Return the error for an `error` in mid-stream. A code may be a status. An unknown error counts as transient."""
    names, message = _read(body)
    kinds = [BY_TYPE[name] for name in sorted(names) if name in BY_TYPE]
    kinds += [BY_STATUS[int(name)] for name in names if name.isdecimal() and int(name) in BY_STATUS]
    kind: ErrorKind = "billing" if names & OUT_OF_MONEY else "gone" if names & GONE else kinds[0] if kinds else "failed"
    if kind in ("unacceptable", "failed") and is_too_long(f"{' '.join(names)} {message}"):
        kind = "too_long"
    text = error_message("The model's API broke off its reply", _error_type(names), message, key)
    return ModelError(kind, text, code=code_of(None, _error_type(names)))


def refused_parameter(error: openai.APIStatusError, parameters: tuple[str, ...]) -> str | None:
    """Return the first of these parameters that a response of 400 or 422 refuses, or None."""
    if error.status_code not in (400, 422):
        return None
    text = f"{error.param} {_read(error.body)[1]}"
    if not any(word in text.lower() for word in _UNKNOWN):
        return None
    return next((name for name in parameters if name in text), None)


def _read(body: Any) -> tuple[frozenset[str], str]:
    """Return the error's code and type in lower case, and its message."""
    if isinstance(body, list) and body:  # Gemini's endpoint answers a list of one error
        body = body[0]
    if not isinstance(body, dict):
        return frozenset(), ""
    error = body.get("error", body)
    if not isinstance(error, dict):
        return frozenset(), str(error)
    names = frozenset(str(error[name]).lower() for name in ("code", "type", "status") if error.get(name) is not None)
    return names, str(error.get("message") or error.get("detail") or "")


def _error_type(names: frozenset[str]) -> str | None:
    return next((name for name in sorted(names) if not name.isdecimal()), None)
