"""Turns errors of Anthropic's API into `ModelError`."""

from typing import Any

import anthropic

from workers.providers import ErrorKind, ModelError
from workers.providers.errors import code_of, error_message, hint, is_too_long, kind_of_status, retry_after

OUT_OF_MONEY = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "linked_organization_spend_limit_reached",
    }
)
"""Error codes for which waiting does not help, some under status 429."""
NO_CREDIT = "credit balance is too low"
"""A message of the API, with the type `invalid_request_error` and without a code."""
BY_TYPE: dict[str, ErrorKind] = {
    "billing_error": "billing",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
    "api_error": "failed",
    "timeout_error": "timed_out",
    "invalid_request_error": "unacceptable",
    "request_too_large": "too_long",
    "authentication_error": "invalid",
    "permission_error": "invalid",
    "not_found_error": "gone",
}


def status_error(error: anthropic.APIStatusError, model: str, key: str | None) -> ModelError:
    """Return the error for a response with a status of 3xx, 4xx or 5xx."""
    status, message = error.status_code, error.api_message or ""
    kind = kind_of_status(status)
    if error.error_code in OUT_OF_MONEY or error.type == "billing_error" or NO_CREDIT in message.lower():
        kind = "billing"
    elif error.type == "overloaded_error":
        kind = "overloaded"
    elif error.type == "not_found_error" and model in message:
        kind = "gone"
    elif kind == "unacceptable" and is_too_long(f"{error.type} {message}"):
        kind = "too_long"
    text = error_message(f"The model's API responded with {status}", error.type, message or hint(status), key)
    return ModelError(kind, text, retry_after(error.response.headers), code=code_of(status, error.type))


def error_event(event: Any, key: str | None) -> ModelError:
    """Return the error for an `error` event in mid-stream. An unknown type counts as transient."""
    error = event.get("error") if isinstance(event, dict) else None
    error = error if isinstance(error, dict) else {}
    error_type = str(error.get("type", "error"))
    message = str(error.get("message", ""))
    kind = BY_TYPE.get(error_type, "failed")
    if kind == "unacceptable" and is_too_long(message):
        kind = "too_long"
    text = error_message("The model's API broke off its reply", error_type, message, key)
    return ModelError(kind, text, code=code_of(None, error_type))
