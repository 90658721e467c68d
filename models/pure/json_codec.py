"""JSON on the hot path, by a codec in C: a task writes and reads some thirty values, which the standard library makes a tenth of
its CPU. What it does not take (lone surrogates; numbers beyond a float, to be read) goes the standard library's way."""

import json
from datetime import datetime
from typing import Any

import msgspec


def _plainly(value: Any) -> Any:
    """A subclass's value as what it is a subclass of."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encoder, _decoder = msgspec.json.Encoder(enc_hook=_plainly), msgspec.json.Decoder()


def encode(value: Any) -> str:
    """A value as JSON, times as RFC 3339. NaN and the infinities, which JSON does not have, are null.

    Errors: TypeError for what has no place in JSON; lone surrogates, as their escapes, are Postgres's to refuse.
    """
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, default=datetime.isoformat)


def decode(text: str | bytes) -> Any:
    """The value. Errors: ValueError if it is no JSON."""
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)
