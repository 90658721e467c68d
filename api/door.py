"""The door of every route: who asks, may they, what for; one transaction for the effect and its remembered answer.

    @agents.post("/v1/agents")
    @writes(AgentCreate, "agents", answer=answers.Agent)
    def create(db: Db, principal: Principal, body: AgentCreate) -> Json: ...

A handler gets the transaction, the principal, the validated request and the ids of the path, and returns the answer's
body. It answers 200; whatever it raises becomes an error's answer and leaves nothing behind.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from flask import Response, request
from pydantic import BaseModel

from api import arrival, auth, parsing
from models import flow
from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Busy, Invalid
from models.session.approval import DeadlinePassed
from models.workspace.idempotency import OnItsWay, Slip

Json = dict[str, Any]
A = TypeVar("A")
B = TypeVar("B", bound=BaseModel)
P = ParamSpec("P")
Handler = Callable[Concatenate[Db, Principal, B, P], Json]
View = Callable[..., Response]

JSON = "application/json"
HTML = "text/html"
EVENT_STREAM = "text/event-stream"
METRICS = "text/plain"
"""The text format of Prometheus."""


@dataclass(frozen=True)
class Door:
    """What a route takes and answers: `api.openapi` makes the document from this."""

    answer: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    scopes: tuple[str, ...] = ()
    """What the key needs; none of them all, if that depends on the body."""
    key: bool = True
    """Whether a key is needed."""
    person: bool = False
    """Whether only a signed-in person may ask: API keys are refused."""
    media_type: str = JSON
    statuses: tuple[int, ...] = (200,)
    """Those that carry `answer`."""
    errors: tuple[int, ...] = ()
    """Beside those of every route of its kind."""
    headers: tuple[str, ...] = ()
    """Of the request, beside those of every route."""
    browsers_go_to: str = ""
    """Where a request that prefers HTML is redirected with a 303."""


doors: dict[Callable[..., Any], Door] = {}
"""The routes' doors, by the view that Flask knows."""


def opens(door: Door) -> Callable[[View], View]:
    """A route that is neither `reads` nor `writes`, for the document."""

    def wrap(view: View) -> View:
        doors[view] = door
        return view

    return wrap


IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
LOOK_AGAIN_SECONDS = 0.1
"""While an answer to the same request is on its way to somebody."""


def reads(
    query: type[B], scope: str = "read", *, person: bool = False, answer: type[BaseModel] | None = None
) -> Callable[[Handler[B, P]], View]:
    """A route that changes nothing; `query` is what its query string may hold, `answer` what it says.

    With `person`, only for signed-in people: the handler's principal is a PersonPrincipal. An admin person has the scope `admin`.
    """

    def wrap(handler: Handler[B, P]) -> View:
        @wraps(handler)
        def view(**path_ids: Any) -> Response:
            principal = auth.authenticate()
            if person:
                auth.require_person(principal)
            auth.require(principal, scope)
            asked = parsing.query(query)
            parsing.check_ids(path_ids)
            with transaction(principal.workspace_id) as db:
                said = dumps(handler(db, principal, asked, **path_ids))  # type: ignore[call-arg]
            return respond(said)

        return opens(Door(answer, query=query, scopes=(scope,), person=person))(view)

    return wrap


def writes(
    body: type[B],
    *scopes: str,
    also: Callable[[B], Iterable[str]] | None = None,
    once: bool = False,
    person: bool = False,
    answer: type[BaseModel] | None = None,
    shown_once: str = "",
) -> Callable[[Handler[B, P]], View]:
    """A route that changes something. Needs all of `scopes`, and those that `also` says this very body needs.

    `person`: as in `reads`. `once`: who asks for the same twice means it once. `shown_once`: a field of the answer that is a
    secret. It is not kept for retries, whose answer has null there.
    """

    def wrap(handler: Handler[B, P]) -> View:
        @wraps(handler)
        def view(**path_ids: Any) -> Response:
            principal = auth.authenticate()
            if person:
                auth.require_person(principal)
            auth.require(principal, *scopes)
            asked, raw = parsing.body(body)
            if also:
                auth.require(principal, *also(asked))
            parsing.check_ids(path_ids)
            slip = _slip(principal, raw, once=once)
            return _once(principal, slip, lambda db: handler(db, principal, asked, **path_ids), shown_once)  # type: ignore[call-arg]

        return opens(Door(answer, body=body, scopes=scopes, person=person))(view)

    return wrap


def dumps(body: Json) -> str:
    """The answer's text."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def respond(said: str, **headers: str) -> Response:
    """A 200 with this text."""
    return Response(said, 200, mimetype="application/json", headers=headers)


def _once(principal: Principal, slip: Slip | None, act: Callable[[Db], Json], shown_once: str = "") -> Response:
    """The effect and its answer in one transaction, or the answer that was given before."""
    if slip is None:
        return respond(_act(principal, lambda db: dumps(act(db))))
    asked_at: datetime | None = None

    def found_or_kept(db: Db) -> tuple[str, str, bool]:
        if given := slip.find(db, asked_at):
            return given.id, given.text, True
        answer = act(db)
        said = dumps(answer)
        kept = dumps(answer | {shown_once: None}) if shown_once else said
        return slip.keep(db, principal, 200, kept), said, False

    while True:
        try:
            answer_id, said, replayed = _act(principal, found_or_kept)
            break
        except OnItsWay as other:
            asked_at = other.asked_at
            time.sleep(LOOK_AGAIN_SECONDS)
            if arrival.hung_up():
                raise Busy("Its client has hung up: the next try gets the answer.") from None
    response = respond(said, **{"idempotent-replayed": "true"} if replayed else {})
    if slip.anew:
        arrival.watch(response, answer_id)
    return response


def _act(principal: Principal, act: Callable[[Db], A]) -> A:
    try:
        with transaction(principal.workspace_id) as db:
            return act(db)
    except DeadlinePassed as late:
        raise flow.too_late(late) from None


def _slip(principal: Principal, raw: bytes, *, once: bool) -> Slip | None:
    """How this request would be known again. None for one that has no key and comes from no SDK: it cannot be."""
    key = request.headers.get("idempotency-key")
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        raise Invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters.")
    count = request.headers.get("x-stainless-retry-count", "")
    if key is None and not count.isdecimal():
        return None
    retry = int(count[:6]) if count.isdecimal() else 0
    asked = request.full_path if request.args.keys() - {"beta"} else request.path
    return Slip.of(principal, request.method, asked, raw, key=key, retry=retry, once=once)
