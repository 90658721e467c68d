"""Turns errors of Anthropic's API into `ModelError`."""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import anthropic

from models.settings import settings
from workers.providers import ErrorKind, ModelError

MAX_MESSAGE = 500
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
    "timeout_error": "failed",
}
BY_STATUS: dict[int, ErrorKind] = {
    400: "unacceptable",
    413: "unacceptable",
    402: "billing",
    408: "failed",
    409: "failed",
    429: "rate_limited",
    529: "overloaded",
}


def status_error(error: anthropic.APIStatusError) -> ModelError:
    """The error for a response with a status of 4xx or 5xx."""
    status, message = error.status_code, error.api_message or ""
    kind: ErrorKind = BY_STATUS.get(status, "failed" if status >= 500 else "invalid")
    if error.error_code in OUT_OF_MONEY or error.type == "billing_error" or NO_CREDIT in message.lower():
        kind = "billing"
    elif error.type == "overloaded_error":
        kind = "overloaded"
    return _error(kind, f"The model's API answered {status}", error.type, message, retry_after(error.response.headers))


def error_event(event: Any) -> ModelError:
    """The error for an `error` event in mid-stream. An unknown type counts as transient."""
    error = event.get("error") if isinstance(event, dict) else None
    error = error if isinstance(error, dict) else {}
    error_type = str(error.get("type", "error"))
    kind: ErrorKind = BY_TYPE.get(error_type, "failed")
    if error_type in ("invalid_request_error", "request_too_large"):
        kind = "unacceptable"
    elif error_type in ("authentication_error", "permission_error", "not_found_error"):
        kind = "invalid"
    return _error(kind, "The model's API broke off its reply", error_type, str(error.get("message", "")), None)


def connection_error(error: Exception) -> ModelError:
    """The error for a connection that was refused, cut, or silent for too long."""
    cause = error.__cause__ or error
    return ModelError("failed", f"The connection to the model's API failed ({type(cause).__name__})")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from the header `retry-after`, a number or a date. None if the header is missing or unreadable."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _error(kind: ErrorKind, event: str, error_type: str | None, detail: str, wait: float | None) -> ModelError:
    message = f"{event} ({error_type})" if error_type else event
    if detail:
        message += f": {detail}"
    key = settings().anthropic_api_key
    if key and key.get_secret_value():
        message = message.replace(key.get_secret_value(), "***")  # a gateway may quote its request
    return ModelError(kind, message[:MAX_MESSAGE], wait)
