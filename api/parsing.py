"""From bytes to a request that the verbs can trust: JSON that Postgres, RFC 8785 and every client read the same way.

Refused, each naming the field: what is no JSON object in UTF-8, NaN and Infinity, integers beyond 2**53 - 1, names
given twice, NUL and lone surrogates in any string, and anything nested deeper than DEPTH.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn, TypeVar, get_origin

from flask import request
from gevent import Timeout
from pydantic import BaseModel, ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from api.errors import WrongMediaType
from models.errors import Invalid, NotFound
from models.settings import settings

DEPTH = 64
EXACT = 2**53 - 1
"""The largest integer that every JSON reader reads as the same number."""
_REPORTED = 3

M = TypeVar("M", bound=BaseModel)


def body(model: type[M]) -> tuple[M, bytes]:
    """The request's body as `model`, and its bytes; an empty one is an empty object. Raises Invalid, WrongMediaType."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongMediaType("content-encoding: send the body as it is, not compressed.")
    with Timeout(settings().body_seconds, RequestTimeout()):
        raw = request.get_data(cache=False)
    if request.content_length is None and len(raw) >= (request.max_content_length or math.inf):
        raise RequestEntityTooLarge  # a chunked body is cut at the limit without a word
    if raw and request.mimetype != "application/json":
        raise WrongMediaType(f"content-type: {request.mimetype or 'none'} is not taken; send application/json.")
    return validated(model, _object(raw)), raw


def query(model: type[M]) -> M:
    """The request's query as `model`: `types[]=a&types[]=b` are lists, `created_at[gt]=` is a name. Raises Invalid."""
    return validated(model, _named(request.args, model), strict=False)


def validated(model: type[M], given: dict[str, Any], *, strict: bool | None = None) -> M:
    """`given` as `model`. Raises Invalid that names the field and what would be right."""
    try:
        return model.model_validate(given, strict=strict)
    except ValidationError as error:
        raise _explained(error, given) from None


def _object(raw: bytes) -> dict[str, Any]:
    if not raw.strip():
        return {}
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
    if not isinstance(value, dict):
        raise Invalid("body", "must be a JSON object.")
    _check(value)
    return value


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
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise Invalid("body", f"the name {twice!r} is given twice in one object.")
    return found


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_no_name_twice)


def _check(value: dict[str, Any]) -> None:
    """Raise Invalid on depth and on characters that cannot be stored; walks without recursion."""
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


def _named(args: MultiDict[str, str], model: type[BaseModel]) -> dict[str, Any]:
    lists = {f.alias or name for name, f in model.model_fields.items() if get_origin(f.annotation) is list}
    given: dict[str, Any] = {}
    for key, values in args.lists():
        name = key.removesuffix("[]")
        if name == "beta":  # the SDKs add ?beta=true to everything
            continue
        for value in values:
            _check_text((name,), value)
        if name in lists:
            given.setdefault(name, []).extend(values)
        elif len(values) > 1:
            raise Invalid(name, "must be given once.")
        else:
            given[name] = values[0]
    return given


def _explained(error: ValidationError, given: dict[str, Any]) -> Invalid:
    problems = error.errors(include_url=False, include_context=True, include_input=False)
    said = [(_dotted(_path(p["loc"], given)), _remedy(p["type"], p["msg"])) for p in problems[:_REPORTED]]
    field, message = said[0]
    more = "".join(f" {f}: {m}" for f, m in said[1:])
    if len(problems) > _REPORTED:
        more += f" (and {len(problems) - _REPORTED} more)"
    return Invalid(field, message + more)


def _path(loc: tuple[int | str, ...], given: Any) -> tuple[int | str, ...]:
    """Where in what was given: pydantic's own path without the tags of unions, which the caller never wrote."""
    path: list[int | str] = []
    here = given
    for i, part in enumerate(loc):
        if isinstance(here, dict) and part in here:
            here = here[str(part)]
        elif isinstance(here, list) and isinstance(part, int):
            here = here[part]
        elif i < len(loc) - 1:
            continue
        path.append(part)
    return tuple(path)


def _remedy(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is not known here; leave it out."
    if kind == "missing":
        return "is required."
    message = message.removeprefix("Value error, ")
    return message if message.endswith(".") else message + "."


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part).encode("ascii", "backslashreplace").decode()[:64] for part in path) or "body"


ID = re.compile(r"[a-z]{1,16}_[0-9A-Za-z]{1,64}")


def check_ids(path_ids: dict[str, Any]) -> None:
    """Raise NotFound for what cannot be an id of ours, before it reaches the database."""
    for name, value in path_ids.items():
        if not ID.fullmatch(value):
            raise NotFound(name.removesuffix("_id"), value[:80])
