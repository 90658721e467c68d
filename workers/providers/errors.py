"""Errors of all providers: their kinds, waits from headers, messages without keys, lost connections."""

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httpx2  # the transport of both SDKs, whose errors in mid-stream they do not wrap

from models.pure.pricing.usage import NOTHING
from workers.providers import ErrorKind, ModelError

MAX_MESSAGE = 500
UNREACHABLE = (httpx2.TimeoutException, httpx2.ConnectError)
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Failures before a request reached the API, which cost nothing."""
BY_STATUS: dict[int, ErrorKind] = {
    400: "unacceptable",
    402: "billing",
    408: "timed_out",
    409: "failed",
    410: "gone",
    413: "too_long",
    422: "unacceptable",
    429: "rate_limited",
    502: "overloaded",
    503: "overloaded",
    504: "timed_out",
    529: "overloaded",
}

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,80}", re.ASCII)
_TOO_LONG = (
    "prompt is too long",
    "request_too_large",
    "request exceeds the maximum size",
    "exceed context limit",
    "context_length_exceeded",
    "exceed_context_size",
    "context length",
    "context window",
    "context size",
    "maximum model length",
    "input token count",
    "too large for model",
)
"""Words of errors and codes: Anthropic, OpenAI and Azure, vLLM, llama.cpp, OpenRouter and DeepSeek, Gemini, Mistral."""


def connection_error(error: Exception, name: str) -> ModelError:
    """Return the error for a connection that was refused, cut, or silent for too long. `name` is the provider's."""
    cause: BaseException = error
    while cause.__cause__ is not None and not isinstance(cause, UNREACHABLE):
        cause = cause.__cause__
    kind: ErrorKind = "timed_out" if isinstance(cause, UNREACHABLE) else "failed"
    usage = None if isinstance(cause, NEVER_SENT) else NOTHING
    return ModelError(kind, f"The connection to the API of provider {name} failed ({type(cause).__name__})", usage=usage)


def kind_of_status(status: int) -> ErrorKind:
    """Return the kind of error for a status of 3xx, 4xx or 5xx."""
    return BY_STATUS.get(status, "failed" if status >= 500 else "invalid")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds from the headers `retry-after-ms` and `retry-after`, a number or a date. None if neither can be read."""
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def is_too_long(message: str) -> bool:
    """True if a provider's message says that a request is longer than the model reads."""
    return any(words in message.lower() for words in _TOO_LONG)


def error_message(event: str, error_type: str | None, detail: str, key: str | None) -> str:
    """Return an error's message: the event, the provider's type and text. A gateway may quote its request, so the key is masked."""
    message = f"{event} ({error_type})" if error_type else event
    if detail:
        message += f": {' '.join(detail.split())}"
    return (message.replace(key, "***") if key else message)[:MAX_MESSAGE]


def code_of(status: int | None, error_type: str | None) -> str:
    """Return the status and the provider's type as one short text. A type that is not a word is left out."""
    return " ".join(text for text in (str(status or ""), error_type or "") if _WORD.fullmatch(text))


def hint(status: int) -> str:
    """Return the likely remedy for a response without a message; empty if there is none."""
    return "check the provider's base_url" if status == 404 or 300 <= status < 400 else ""


def check_stream(headers: Mapping[str, str], name: str) -> None:
    """Raise ModelError unless the response is a stream of events. `name` is the provider's."""
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "text/event-stream":
        type_in_words = content_type[:100] or "no content type"
        raise ModelError(
            "failed", f"The API of provider {name} sent {type_in_words} instead of text/event-stream: check its base_url"
        )
