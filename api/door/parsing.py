"""Parses requests into values that Postgres, RFC 8785 and every client read in the same way.

`raw_body` reads every body, of the API and of forms, within a limit of size and of time. `json_value` reads the JSON of
bodies and of fields in forms. Both refuse, with an error that names the field: bodies other than a JSON object in UTF-8, NaN and
Infinity, integers beyond 2**53 - 1, duplicate names, NUL and lone surrogates in any string, values nested deeper than DEPTH, and
more values than the setting `max_body_values`.
"""

import json
import math
import re
from collections import Counter
from functools import cached_property
from itertools import islice
from typing import Any, NoReturn, TypeVar, get_origin
from urllib.parse import parse_qsl, urlsplit

import flask
from flask import request
from gevent import Timeout
from pydantic import BaseModel, ValidationError
from werkzeug.datastructures import ImmutableMultiDict, MultiDict

from api.door.errors import Late, TooLarge, WrongMediaType
from models.errors import Invalid, NotFound
from models.settings import settings

DEPTH = 64
EXACT = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""
_REPORTED = 3
_FORM_FIELDS = 10_000
"""Most fields of a form."""

M = TypeVar("M", bound=BaseModel)


class Request(flask.Request):
    """Flask's request. Its form is read by `raw_body`, as every other body, and its `host_url` is always a URL."""

    is_signed_in = False
    """True once a page knows the person. The form may then be as large as any other body."""

    @cached_property
    def host_url(self) -> str:
        """This server's URL as the client calls it; one without a host for a header `Host` that no URL can have."""
        try:
            url = super().host_url
            _ = urlsplit(url).port
        except ValueError:
            return f"{self.scheme}:///"
        return url

    @cached_property
    def form(self) -> ImmutableMultiDict[str, str]:
        """The fields of an HTML form; empty for a body of another media type, such as one with files. Raises Invalid."""
        if self.mimetype != "application/x-www-form-urlencoded":
            return ImmutableMultiDict()
        text = raw_body(None if self.is_signed_in else settings().max_form_bytes).decode("utf-8", "replace")
        try:
            fields = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=_FORM_FIELDS)
        except ValueError:
            raise Invalid("body", f"must have at most {_FORM_FIELDS} fields.") from None
        for name, value in fields:
            _check_text((), name)
            _check_text((name,), value)
        return ImmutableMultiDict(fields)


def body(model: type[M]) -> tuple[M, bytes]:
    """Return the request's body as `model`, and its bytes. An empty body is an empty object. Raises Invalid, WrongMediaType."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongMediaType("content-encoding: send the body as it is, not compressed.")
    raw = raw_body()
    if raw and request.mimetype != "application/json":
        raise WrongMediaType(f"content-type: {request.mimetype or 'none'} is not supported; send application/json.")
    return validated(model, json_object(raw)), raw


def raw_body(max_bytes: int | None = None) -> bytes:
    """Return the bytes of the request's body, of at most `max_bytes` or else `max_body_bytes`. Raises Late, TooLarge."""
    limit = settings().max_body_bytes if max_bytes is None else max_bytes
    too_large = TooLarge(f"body: must have at most {limit} bytes; send less at once.")
    if (request.content_length or 0) > limit:
        raise too_large
    request.max_content_length = limit
    seconds = settings().body_seconds
    with Timeout(seconds, Late(f"body: must arrive within {seconds:g} s, the longest that this server waits; send it faster.")):
        raw = request.get_data(cache=False)
    if request.content_length is None and len(raw) >= limit:
        raise too_large  # Werkzeug cuts a chunked body at the limit without an error
    return raw


def query(model: type[M]) -> M:
    """Return the request's query as `model`. `types[]=a&types[]=b` is a list, `created_at[gt]=` a name. Raises Invalid."""
    return validated(model, _by_name(request.args, model), strict=False)


def validated(model: type[M], values: dict[str, Any], *, strict: bool | None = None) -> M:
    """Return the values as `model`. Raises Invalid, which names the field, the fault and the remedy."""
    try:
        return model.model_validate(values, strict=strict)
    except ValidationError as error:
        raise _explained(error, values) from None


def json_object(raw: bytes) -> dict[str, Any]:
    """Return the object that a body holds; an empty one for no body. Raises Invalid."""
    value = json_value(raw) if raw.strip() else {}
    if not isinstance(value, dict):
        raise Invalid("body", "must be a JSON object.")
    return value


def json_value(raw: bytes) -> Any:
    """Return the value of a JSON text. Raises Invalid, whose `field` is the path of the faulty value, or `body` for the whole."""
    _check_number_of_values(raw)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid("body", f"must be UTF-8; byte {error.start} is not.") from None
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Invalid("body", f"must be JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise Invalid("body", f"must not be nested deeper than {DEPTH} levels.") from None
    _check(value)
    return value


_VALUES = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|,|[\[{](?!\s*[\]}])', re.DOTALL)
"""A string, whose content is skipped, or a sign before a further value: a comma, or the bracket of a container with content."""


def _check_number_of_values(raw: bytes) -> None:
    """Raise Invalid for more values than the setting allows. Counts without building them, in time linear in the limit."""
    limit = settings().max_body_values
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") < limit:
        return
    matches = (match[0][:1] != b'"' for match in _VALUES.finditer(raw))
    # Each value has at most two strings (its name and itself) and one other sign.
    if 1 + sum(islice(matches, 3 * limit)) > limit:
        raise Invalid("body", f"must have at most {limit} values (numbers, texts, lists, objects ...); send less at once.")


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > EXACT:
        raise Invalid("body", f"the integer {digits[:24]} is beyond {EXACT}; send it as a string.")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Invalid("body", f"the number {digits[:24]} is too large for JSON readers; send it as a string.")
    return value


def _constant(name: str) -> NoReturn:
    raise Invalid("body", f"must be JSON, which has no {name}.")


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise Invalid("body", f"the name {twice!r} appears twice in one object.")
    return members


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_no_name_twice)


def _check(value: Any) -> None:
    """Raise Invalid for values nested too deeply, and for characters that cannot be stored. Does not recurse."""
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while todo:
        path, item = todo.pop()
        if isinstance(item, str):
            _check_text(path, item)
        elif isinstance(item, dict | list):
            if len(path) >= DEPTH:
                raise Invalid(_dotted(path[:4]) + "...", f"must not be nested deeper than {DEPTH} levels.")
            if isinstance(item, dict):
                for name in item:
                    _check_text(path, name)
            children = item.items() if isinstance(item, dict) else enumerate(item)
            todo.extend(((*path, name), child) for name, child in children)


def _check_text(path: tuple[str | int, ...], text: str) -> None:
    if "\0" in text:
        raise Invalid(_dotted(path), "must not contain the character NUL (\\u0000).")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise Invalid(_dotted(path), "must not contain half a surrogate pair (\\ud800 to \\udfff alone).")


def _by_name(args: MultiDict[str, str], model: type[BaseModel]) -> dict[str, Any]:
    lists = {f.alias or name for name, f in model.model_fields.items() if get_origin(f.annotation) is list}
    params: dict[str, Any] = {}
    for key, values in args.lists():
        name = key.removesuffix("[]")
        if name == "beta":  # the SDKs add ?beta=true to everything
            continue
        for value in values:
            _check_text((name,), value)
        if name in lists:
            params.setdefault(name, []).extend(values)
        elif len(values) > 1 or name in params:
            raise Invalid(name, "must be sent only once.")
        else:
            params[name] = values[0]
    return params


def _explained(error: ValidationError, values: dict[str, Any]) -> Invalid:
    problems = error.errors(include_url=False, include_context=True, include_input=False)
    faults = [(_dotted(_path(p["loc"], values)), _remedy(p["type"], p["msg"])) for p in problems[:_REPORTED]]
    field, message = faults[0]
    more = "".join(f" {f}: {m}" for f, m in faults[1:])
    if len(problems) > _REPORTED:
        more += f" (and {len(problems) - _REPORTED} more)"
    return Invalid(field, message + more)


def _path(loc: tuple[int | str, ...], values: Any) -> tuple[int | str, ...]:
    """Return pydantic's path of a field without the tags of unions, which are not part of the request."""
    path: list[int | str] = []
    here = values
    for i, part in enumerate(loc):
        if isinstance(here, dict) and part in here:
            here = here[str(part)]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        elif i < len(loc) - 1:
            continue
        path.append(part)
    return tuple(path)


def _remedy(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is unknown; leave it out."
    if kind == "missing":
        return "is required."
    message = message.removeprefix("Value error, ")
    return message if message.endswith(".") else message + "."


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part).encode("ascii", "backslashreplace").decode()[:64] for part in path) or "body"


ID = re.compile(r"[a-z]{1,16}_[0-9A-Za-z]{1,64}")


def check_ids(path_ids: dict[str, Any]) -> None:
    """Raise NotFound for a malformed id, before it reaches the database."""
    for name, value in path_ids.items():
        if not ID.fullmatch(value):
            raise NotFound(name.removesuffix("_id"), value[:80])
