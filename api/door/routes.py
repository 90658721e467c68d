"""The door of every route: authenticates, authorises and validates a request, with one transaction for effect and response.

    @agents.post("/v1/agents")
    @writes(AgentCreate, "agents", response=responses.Agent)
    def create(db: Db, principal: Principal, body: AgentCreate) -> responses.Agent: ...

A handler gets the transaction, the principal, the validated request and the ids of the path, and returns the response. The
status is 200. An exception becomes an error's response, and rolls back.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from flask import Response, request
from pydantic import BaseModel

from api.door import auth, parsing
from api.door.responses import Error
from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import transact
from models.errors import Invalid
from models.flow.decide.deadlines import transact_in_time
from models.workspace.idempotency import Slip

A = TypeVar("A", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)
P = ParamSpec("P")
Handler = Callable[Concatenate[Db, Principal, B, P], A]
Reading = Callable[Concatenate[Db, Principal, B, P], A | Callable[[], A]]
View = Callable[..., Response]

JSON = "application/json"
HTML = "text/html"
EVENT_STREAM = "text/event-stream"
METRICS = "text/plain"
"""The text format of Prometheus."""
CSV = "text/csv"


@dataclass(frozen=True)
class Door:
    """A route's requests and responses. `api.reference.openapi` generates the document from the doors."""

    response: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    scopes: tuple[str, ...] = ()
    """The scopes that the key needs; empty if they depend on the body."""
    key: bool = True
    """False if the route needs no key."""
    media_type: str = JSON
    statuses: tuple[int, ...] = (200,)
    """Statuses with `response` as their body."""
    errors: tuple[int, ...] = ()
    """Statuses of errors, in addition to those of every route of its kind."""
    headers: tuple[str, ...] = ()
    """Headers of the request, in addition to those of every route."""
    browsers_go_to: str = ""
    """The address to which a request that prefers HTML is redirected with a 303."""
    frame: type[BaseModel] | None = None
    """The `data` of a server-sent event, if the route responds with a stream on request."""
    error: type[BaseModel] = Error
    """The body of the errors. `api.door.errors` writes a format other than `Error` for the routes in its `FORMATS`."""


doors: dict[Callable[..., Any], Door] = {}
"""The routes' doors, by Flask's view function."""


def opens(door: Door) -> Callable[[View], View]:
    """Declare the door of a route that neither `reads` nor `writes` declares."""

    def wrap(view: View) -> View:
        doors[view] = door
        return view

    return wrap


_KEY = "idempotency-key"
_ERASABLE = ("sesn_", "user_", "invite_")
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def reads(query: type[B], scope: str = "read", *, response: type[A], writes_if: str = "") -> Callable[[Reading[B, P, A]], View]:
    """Declare a route that changes nothing. `query` is the model of its query string, `response` of its response.

    `writes_if`: a field of the query. A request that sets it is audited, so it needs a transaction that writes.

    A handler whose response has masked texts, whose length others choose, returns a function that masks them. It is called after
    the transaction, which the limit of a request's CPU time does not cut.
    """

    def wrap(handler: Reading[B, P, A]) -> View:
        @wraps(handler)
        def view(**path_ids: Any) -> Response:
            principal = auth.authenticate(scope)
            validated = parsing.query(query)
            parsing.check_ids(path_ids)
            result = transact(
                principal.workspace_id,
                lambda db: handler(db, principal, validated, **path_ids),  # type: ignore[call-arg]
                only_reads=not (writes_if and getattr(validated, writes_if)),
            )
            return respond(dumps(result() if callable(result) else result))

        return opens(Door(response, query=query, scopes=(scope,)))(view)

    return wrap


def writes(
    body: type[B],
    *scopes: str,
    response: type[A],
    also: Callable[[B], Iterable[str]] | None = None,
    once: bool = False,
    idempotent: bool = False,
    shown_once: str = "",
    query: type[BaseModel] | None = None,
    errors: tuple[int, ...] = (),
    error: type[BaseModel] = Error,
) -> Callable[[Handler[B, P, A]], View]:
    """Declare a route that changes something. The key needs all of `scopes`, and the scopes that `also` returns for the body.

    `once`: a repetition of the request is always a retry. `idempotent`: the handler itself responds to a retry as to the first
    request, so that no response is stored without an idempotency key. `shown_once`: a field of the response that is a secret. The
    secret is not stored, so the response to a retry has null instead. `query`, `errors`, `error`: as in
    `Door`.
    """

    def wrap(handler: Handler[B, P, A]) -> View:
        @wraps(handler)
        def view(**path_ids: Any) -> Response:
            principal = auth.authenticate(*scopes)
            validated, raw = parsing.body(body)
            if also:
                auth.require(principal, *also(validated))
            parsing.check_ids(path_ids)
            slip = None if idempotent and _KEY not in request.headers else slip_of(principal, raw, once=once)
            effect = take_effect(
                principal,
                slip,
                lambda db: handler(db, principal, validated, **path_ids),  # type: ignore[call-arg]
                shown_once,
                path_ids,
            )
            return respond(effect.payload, **effect.headers)

        return opens(Door(response, query, body, scopes, errors=errors, error=error))(view)

    return wrap


def dumps(response: BaseModel) -> str:
    """Return the response's text. A field that is not set is left out."""
    return response.model_dump_json(by_alias=True, exclude_unset=True)


def respond(payload: str, **headers: str) -> Response:
    """Return a 200 with this text as its body."""
    return Response(payload, 200, mimetype=JSON, headers=headers)


@dataclass(frozen=True)
class Effect:
    """A committed effect: of this request, or of an earlier one that this request repeats."""

    payload: str
    """The response's text."""
    replayed: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers by which a client tells a stored response from a new one."""
        return {"idempotent-replayed": "true"} if self.replayed else {}


def take_effect(
    principal: Principal,
    slip: Slip | None,
    act: Callable[[Db], BaseModel],
    shown_once: str = "",
    path_ids: Mapping[str, str] = MappingProxyType({}),
) -> Effect:
    """Make the effect and store its response in one transaction, or return the stored response to an equal request."""
    if slip is None:
        return Effect(transact_in_time(principal.workspace_id, lambda db: dumps(act(db))))

    def replay_or_act(db: Db) -> Effect:
        if earlier := slip.find(db):
            return Effect(earlier.text, replayed=True)
        response = act(db)
        payload = dumps(response)
        text = dumps(response.model_copy(update={shown_once: None})) if shown_once else payload
        slip.store(db, principal, text, _about({**vars(response), **path_ids}))
        return Effect(payload)

    return transact_in_time(principal.workspace_id, replay_or_act)


def _about(values: Mapping[str, Any]) -> str | None:
    """Return the id of the session, person or invitation that a response is about: erasing that one erases the stored response.

    `values`: the response's fields, and the ids of the path, which outrank them.
    """
    ids = (str(values.get(name) or "").removeprefix("user:") for name in ("session_id", "user_id", "person", "id"))
    return next((id_ for id_ in ids if id_.startswith(_ERASABLE)), None)


def slip_of(principal: Principal, raw: bytes, *, once: bool = False) -> Slip | None:
    """Return the slip of this request. None without an idempotency key and without an SDK's retry count."""
    key, retry = request.headers.get(_KEY), retry_count()
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        raise Invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters.")
    if key is None and retry is None:
        return None
    path = request.full_path if request.args.keys() - {"beta"} else request.path
    return Slip.of(principal, request.method, path, raw, key=key, retry=retry or 0, once=once)


def retry_count() -> int | None:
    """Return how often an SDK has sent this request before. None if no SDK sends it."""
    count = request.headers.get("x-stainless-retry-count", "")
    return int(count[:6]) if count.isdecimal() else None
