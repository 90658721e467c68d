"""The door of every route: who asks, may they, what for; one transaction for the effect and its remembered answer.

    @agents.post("/v1/agents")
    @writes(AgentCreate, "agents")
    def create(db: Db, principal: Principal, body: AgentCreate) -> Json: ...

A handler gets the transaction, the principal, the validated request and the ids of the path, and returns the answer's
body. It answers 200; whatever it raises becomes an error's answer and leaves nothing behind.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from flask import Response, request
from pydantic import BaseModel

from api import auth, parsing
from models import flow
from models.approval import DeadlinePassed
from models.db import Db, transaction
from models.errors import Invalid, NotFound
from models.idempotency import Slip
from models.principal import Principal

Json = dict[str, Any]
B = TypeVar("B", bound=BaseModel)
P = ParamSpec("P")
Handler = Callable[Concatenate[Db, Principal, B, P], Json]
View = Callable[..., Response]

_ID = re.compile(r"[a-z]{1,16}_[0-9A-Za-z]{1,64}")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def reads(query: type[B], scope: str = "read") -> Callable[[Handler[B, P]], View]:
    """A route that changes nothing; `query` is what its query string may hold."""

    def wrap(handler: Handler[B, P]) -> View:
        @wraps(handler)
        def view(**path_ids: Any) -> Response:
            principal = auth.authenticate()
            auth.require(principal, scope)
            asked = parsing.query(query)
            check_ids(path_ids)
            with transaction(principal.workspace_id) as db:
                said = dumps(handler(db, principal, asked, **path_ids))  # type: ignore[call-arg]
            return respond(said)

        return view

    return wrap


def writes(body: type[B], *scopes: str, also: Callable[[B], Iterable[str]] | None = None) -> Callable[[Handler[B, P]], View]:
    """A route that changes something. Needs all of `scopes`, and those that `also` says this very body needs."""

    def wrap(handler: Handler[B, P]) -> View:
        @wraps(handler)
        def view(**path_ids: Any) -> Response:
            principal = auth.authenticate()
            auth.require(principal, *scopes)
            asked, raw = parsing.body(body)
            if also:
                auth.require(principal, *also(asked))
            check_ids(path_ids)
            slip = _slip(principal, raw)
            return _once(principal, slip, lambda db: handler(db, principal, asked, **path_ids))  # type: ignore[call-arg]

        return view

    return wrap


def check_ids(path_ids: dict[str, Any]) -> None:
    """Raise NotFound for what cannot be an id of ours, before it reaches the database."""
    for name, value in path_ids.items():
        if not _ID.fullmatch(value):
            raise NotFound(name.removesuffix("_id"), value[:80])


def dumps(body: Json) -> str:
    """The answer's text."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def respond(said: str, **headers: str) -> Response:
    """A 200 with this text."""
    return Response(said, 200, mimetype="application/json", headers=headers)


def _once(principal: Principal, slip: Slip | None, act: Callable[[Db], Json]) -> Response:
    """The effect and its answer in one transaction, or the answer that was given before."""
    try:
        with transaction(principal.workspace_id) as db:
            if slip and (given := slip.find(db)):
                return respond(given.text, **{"idempotent-replayed": "true"})
            said = dumps(act(db))
            db.flush()
            if slip:
                slip.keep(db, principal, 200, said)
    except DeadlinePassed as late:
        # The expiry is written there and then, whether or not a sweep has been by.
        flow.expire_due(late.workspace_id, late.session_id)
        raise
    return respond(said)


def _slip(principal: Principal, raw: bytes) -> Slip | None:
    """How this request would be known again. None for one that has no key and comes from no SDK: it cannot be."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters.")
    count = request.headers.get("x-stainless-retry-count", "")
    if key is None and not count.isdecimal():
        return None
    retry = int(count[:6]) if count.isdecimal() else 0
    return Slip.of(principal, request.method, request.path, raw, key=key, retry=retry)
