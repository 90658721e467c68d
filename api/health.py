"""For operators and balancers: is the process alive, and can it do its work? Neither asks for a key, neither tells secrets."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import redis
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from flask import Blueprint, Response, json
from sqlalchemy.exc import SQLAlchemyError

import models
from api import auth
from api.answers.health import Alive, Ready
from api.door import Door, opens
from models import due
from models.db import transaction
from models.settings import settings

health = Blueprint("health", __name__)


@health.get("/healthz")
@opens(Door(Alive, key=False))
def alive() -> Response:
    """The process answers."""
    return _answer(200, {"status": "ok"})


@health.get("/readyz")
@opens(Door(Ready, key=False, statuses=(200, 503)))
def ready() -> Response:
    """503 unless the database is there with this release's schema. Redis is reported: nothing here needs it to be right."""
    database, hints = _database(), _redis()
    good = database == "ok"
    said = {
        "status": "ok" if good else "not ready",
        "database": database,
        "redis": hints,
        "held_back": _held_back() if good else [],
    }
    return _answer(200 if good else 503, said)


def _database() -> str:
    try:
        with transaction() as db:
            found = set(db.scalars(sa.text("SELECT version_num FROM alembic_version")))
    except SQLAlchemyError:
        return "unreachable, or without a schema: run `assent migrate`"
    known, heads = _revisions()
    # A schema ahead of this release is right: during a deploy the previous release runs beside the new one.
    return "ok" if found and (found == heads or not found <= known) else "schema too old: run `assent migrate`"


@cache
def _revisions() -> tuple[frozenset[str], frozenset[str]]:
    scripts = ScriptDirectory(str(Path(models.__file__).with_name("migrations")))
    return frozenset(s.revision for s in scripts.walk_revisions()), frozenset(scripts.get_heads())


def _held_back() -> list[str]:
    """Why workers leave queued tool calls of the workspace whose key with the scope `admin` asks; without one, nothing."""
    try:
        principal = auth.administrator()
        return due.held_back(principal.workspace_id) + due.without_a_worker(principal.workspace_id) if principal else []
    except SQLAlchemyError:
        return ["unknown: the database did not say in time"]


def _redis() -> str:
    limit = settings().publish_seconds
    try:
        with redis.Redis.from_url(settings().redis_url, socket_timeout=limit, socket_connect_timeout=limit) as client:
            client.ping()
    except (redis.RedisError, OSError):
        return "away: work goes on by sweeps, later"
    return "ok"


def _answer(status: int, said: Mapping[str, object]) -> Response:
    headers = {"cache-control": "no-store"} | ({"retry-after": "1"} if status == 503 else {})
    return Response(json.dumps(said), status, mimetype="application/json", headers=headers)
