"""Routes for operators and load balancers: the health of a web process. Only keys with the scope `admin` see why work waits."""

import logging

import redis
from flask import Blueprint, Response

from api.door import auth
from api.door.routes import Door, dumps, opens
from api.streams.hub import connect
from api.v1.health.responses import Alive, Ready
from models.audit import alarm
from models.database import revisions
from models.database.revisions import Schema
from models.database.transactions import ERRORS, transaction
from models.operate import readiness

log = logging.getLogger("assent.api")

health = Blueprint("health", __name__)


@health.get("/healthz")
@opens(Door(Alive, key=False))
def alive() -> Response:
    """Report that the process is alive."""
    return _response(200, Alive(status="ok"))


@health.get("/readyz")
@opens(Door(Ready, key=False, statuses=(200, 503), errors=(401, 403, 429)))
def ready() -> Response:
    """Report whether the server is ready: a 503 unless the database responds and its schema serves this release.

    The 503 says in `database` what is wrong and what to do. With a key that has the scope `admin`, the response also has the states
    of the database, of Redis and of the audit, and the reasons why work waits. Without Redis the server works, but more slowly.
    """
    database = _database()
    good = database == "ok"
    if not good:
        log.warning("not ready: the database is %s", database)
    state = Ready(status="ok") if good else Ready(status="not ready", database=database)
    if good and auth.secret():  # keys cannot be looked up without the database
        principal = auth.authenticate("admin")
        state = Ready(
            status="ok",
            database=database,
            redis=redis_state(),
            held_back=_held_back(principal.workspace_id),
            audit=alarm.of(principal.workspace_id) or "ok",
        )
    return _response(200 if good else 503, state)


def _database() -> str:
    try:
        with transaction() as db:
            return Schema.of((revision, comment) for revision, comment in db.rows(revisions.READ)).fault or "ok"
    except ERRORS:
        return "unreachable, or without a schema: run `assent migrate`"


def _held_back(workspace_id: str) -> list[str]:
    """Return the reasons why queued work of the workspace waits."""
    try:
        with transaction(workspace_id) as db:
            return readiness.reasons(db)
    except ERRORS:
        return ["unknown: the database did not answer in time"]


def redis_state() -> str:
    """Return `ok`, or what it means that Redis is away. Uses the network."""
    try:
        with connect() as client:
            client.ping()
    except (redis.RedisError, OSError):
        return "away: work goes on by sweeps, later"
    return "ok"


def _response(status: int, state: Alive | Ready) -> Response:
    headers = {"cache-control": "no-store"} | ({"retry-after": "1"} if status == 503 else {})
    return Response(dumps(state), status, mimetype="application/json", headers=headers)
