"""What goes wrong with Anthropic's API, as `ModelError`."""

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
"""Error codes, some under status 429: waiting does not help."""
NO_CREDIT = "credit balance is too low"
"""The API says this under `invalid_request_error` and without a code."""
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
    """From an answer with a status of 4xx or 5xx."""
    status, said = error.status_code, error.api_message or ""
    kind: ErrorKind = BY_STATUS.get(status, "failed" if status >= 500 else "invalid")
    if error.error_code in OUT_OF_MONEY or error.type == "billing_error" or NO_CREDIT in said.lower():
        kind = "billing"
    elif error.type == "overloaded_error":
        kind = "overloaded"
    return _error(kind, f"The model's API answered {status}", error.type, said, retry_after(error.response.headers))


def error_event(event: Any) -> ModelError:
    """From an `error` event in mid-stream. A type that nobody knows may pass."""
    error = event.get("error") if isinstance(event, dict) else None
    error = error if isinstance(error, dict) else {}
    of_type = str(error.get("type", "error"))
    kind: ErrorKind = BY_TYPE.get(of_type, "failed")
    if of_type in ("invalid_request_error", "request_too_large"):
        kind = "unacceptable"
    elif of_type in ("authentication_error", "permission_error", "not_found_error"):
        kind = "invalid"
    return _error(kind, "The model's API broke off its reply", of_type, str(error.get("message", "")), None)


def connection_error(error: Exception) -> ModelError:
    """From a connection that was refused, cut, or silent for too long."""
    cause = error.__cause__ or error
    return ModelError("failed", f"The connection to the model's API failed ({type(cause).__name__})")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, from `retry-after` as a number or a date; None without or if unreadable."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _error(kind: ErrorKind, what: str, of_type: str | None, said: str, wait: float | None) -> ModelError:
    message = f"{what} ({of_type})" if of_type else what
    if said:
        message += f": {said}"
    key = settings().anthropic_api_key
    if key and key.get_secret_value():
        message = message.replace(key.get_secret_value(), "***")  # a gateway may quote what it was sent
    return ModelError(kind, message[:MAX_MESSAGE], wait)
