"""Routes of the work of self-hosted environments, for the SDK's `EnvironmentWorker`: poll, acknowledge, renew and stop."""

import re
import time

from flask import Blueprint, Response, request

from api.door import auth, parsing
from api.door.paging import Order, Selection, page
from api.door.requests import NoQuery, Nothing, Paged
from api.door.routes import Door, dumps, opens, reads, respond, retry_count, writes
from api.v1.environments.work import responses
from api.v1.environments.work.requests import Heartbeat, WorkPoll, WorkStop, WorkUpdate
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid, NotFound, Outdated
from models.flow.carry_on.hosted_work import offer_work, stop_work
from models.flow.lock import lock
from models.pure.times import rfc3339
from models.session.work import Work
from models.settings import settings
from models.workspace.agent import patched
from models.workspace.environment import Environment

work = Blueprint("work", __name__, url_prefix="/v1/environments/<environment_id>/work")

NEWEST: Order[Work] = Order("work", (Work.created_at, Work.id))
FIRST = "NO_HEARTBEAT"
"""`expected_last_heartbeat` before the first heartbeat."""
_LOOK_SECONDS = 0.25
"""The pause of a waiting poll between two reads of the database."""
_WORKER = re.compile(r"[\x20-\x7e]{1,200}")


@work.get("/poll")
@opens(Door(responses.Polled, query=WorkPoll, scopes=("environment",), headers=("Anthropic-Worker-ID",)))
def poll(environment_id: str) -> Response:
    """Claim the oldest queued work of an environment.

    The response is `null` if no work arrives within `block_ms`. No transaction is open in the meantime.
    """
    principal = auth.authenticate("environment")
    query = parsing.query(WorkPoll)
    parsing.check_ids({"environment_id": environment_id})
    worker = _worker(principal)
    until = time.monotonic() + (query.block_ms or 0) / 1000
    while True:
        with transaction(principal.workspace_id) as db:
            _self_hosted(db, environment_id)
            offered = offer_work(db, principal, environment_id, worker, query.reclaim_older_than_ms / 1000)
            payload = dumps(responses.Polled(responses.Work.of(offered) if offered else None))
        seconds = until - time.monotonic()
        if offered or seconds <= 0:
            return respond(payload)
        time.sleep(min(_LOOK_SECONDS, seconds))


@work.get("")
@reads(Paged, response=responses.WorkPage)
def index(db: Db, _principal: Principal, query: Paged, environment_id: str) -> responses.WorkPage:
    """List an environment's work, newest first."""
    Environment.find(db, environment_id)
    rows, after = page(db, Selection(Work).equal(environment_id=environment_id), NEWEST, query.limit, query.page)
    return responses.WorkPage(data=[responses.Work.of(row) for row in rows], next_page=after)


@work.get("/stats")
@reads(NoQuery, response=responses.WorkStats)
def stats(db: Db, _principal: Principal, _query: NoQuery, environment_id: str) -> responses.WorkStats:
    """Get how much work of an environment waits, and the age of the oldest."""
    Environment.find(db, environment_id)
    [(depth, offered, since)] = db.rows(_STATS, environment=environment_id)
    return responses.WorkStats(type="work_queue_stats", depth=depth, pending=offered, oldest_queued_at=since)


_STATS = """
    SELECT count(*) FILTER (WHERE status = 'queued'), count(*) FILTER (WHERE status = 'starting' AND acknowledged_at IS NULL),
        min(created_at) FILTER (WHERE status = 'queued' OR (status = 'starting' AND acknowledged_at IS NULL))
    FROM work WHERE environment_id = %(environment)s AND status <> 'stopped'
"""


@work.get("/<work_id>")
@reads(NoQuery, response=responses.Work)
def show(db: Db, _principal: Principal, _query: NoQuery, environment_id: str, work_id: str) -> responses.Work:
    """Get a piece of work."""
    return responses.Work.of(_find(db, environment_id, work_id))


@work.post("/<work_id>")
@writes(WorkUpdate, "environment", response=responses.Work)
def update(db: Db, _principal: Principal, body: WorkUpdate, environment_id: str, work_id: str) -> responses.Work:
    """Update the metadata of a piece of work."""
    row = Work.lock(db, environment_id, work_id)
    row.metadata_ = patched(row.metadata_, body.metadata)
    return responses.Work.of(row)


@work.post("/<work_id>/ack")
@writes(Nothing, "environment", idempotent=True, response=responses.Work)
def ack(db: Db, _principal: Principal, _body: Nothing, environment_id: str, work_id: str) -> responses.Work:
    """Acknowledge a piece of work: the worker has received it, and will send heartbeats."""
    row = Work.lock(db, environment_id, work_id)
    row.acknowledge(clock.now(db), settings().work_lease_seconds)
    return responses.Work.of(row)


@work.post("/<work_id>/heartbeat")
@writes(Nothing, "environment", idempotent=True, response=responses.Lease, query=Heartbeat, errors=(412,))
def heartbeat(db: Db, _principal: Principal, _body: Nothing, environment_id: str, work_id: str) -> responses.Lease:
    """Extend the lease of a piece of work.

    The response is a 412 if `expected_last_heartbeat` is not the last heartbeat. Another worker may then hold the work.
    """
    query = parsing.query(Heartbeat)
    row = Work.lock(db, environment_id, work_id)
    ttl = query.desired_ttl_seconds or int(settings().work_lease_seconds)
    expected = query.expected_last_heartbeat
    last = rfc3339(row.heartbeat_at) if row.heartbeat_at else None
    if last and retry_count() and expected == (rfc3339(row.heartbeat_before) if row.heartbeat_before else FIRST):
        return responses.Lease.of(row, ttl, extended=True)  # the retry of a heartbeat whose response was lost
    if row.status in {"stopping", "stopped"} or expected in {None, last or FIRST}:
        extended = row.beat(db, clock.now(db), ttl)
        return responses.Lease.of(row, ttl, extended=extended)
    lease = {"state": row.status, "last_heartbeat": last, "lease_extended": False, "ttl_seconds": ttl}
    raise Outdated(
        f"expected_last_heartbeat: is not the last heartbeat of {row.id}; another worker may hold the lease.",
        {"error_code": "heartbeat_precondition_failed", "current_state": lease},
    )


@work.post("/<work_id>/stop")
@writes(WorkStop, "environment", once=True, response=responses.Work)
def stop(db: Db, principal: Principal, body: WorkStop, environment_id: str, work_id: str) -> responses.Work:
    """Stop a piece of work.

    The worker learns of the stop at its next heartbeat. With `force` the work ends at once. The response is a 409 if the work has
    already stopped.
    """
    locked = lock(db, _find(db, environment_id, work_id).session_id, principal)
    row = Work.lock(db, environment_id, work_id)
    stop_work(locked, row, force=bool(body.force))
    return responses.Work.of(row)


def _find(db: Db, environment_id: str, work_id: str) -> Work:
    row = db.get(Work, work_id)
    if row is None or row.environment_id != environment_id:
        raise NotFound("work", work_id)
    return row


def _self_hosted(db: Db, environment_id: str) -> None:
    if not Environment.find(db, environment_id).self_hosted:
        raise Invalid("environment_id", "has no work, since Assent's own workers run its tools; name a self-hosted environment.")


def _worker(principal: Principal) -> str:
    worker_id = request.headers.get("anthropic-worker-id", "")
    if worker_id and not _WORKER.fullmatch(worker_id):
        raise Invalid("Anthropic-Worker-ID", "must be at most 200 visible ASCII characters.")
    return worker_id or str(principal)
