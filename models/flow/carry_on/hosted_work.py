"""Work for the workers of self-hosted environments: offer it, stop it, and queue it again while its session needs a worker."""

from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Conflict
from models.session.locked import Locked, try_lock
from models.session.row import Session
from models.session.work import PAUSE_SECONDS, Work
from models.settings import settings
from models.workspace.halt import is_halted


def offer_work(db: Db, principal: Principal, environment_id: str, worker: str, reclaim_seconds: float) -> Work | None:
    """Offer this worker the work that waits longest in an environment. Returns None if none waits or the workspace is halted."""
    waiting = Work.waiting(db, environment_id, reclaim_seconds)
    for work_id, session_id in waiting if waiting and not is_halted(db) else ():
        locked = try_lock(db, session_id, principal)
        if locked is None:
            continue
        work = Work.lock(db, environment_id, work_id)
        if not work.is_waiting(locked.now, reclaim_seconds):
            continue
        if work.status == "stopping" or not _needed(locked.session):
            # The worker is gone and was told to stop, or the session needs no worker.
            work.stop(db, locked.now)
            _want_again(locked)
            continue
        work.offer(db, locked.now, worker, settings().work_lease_seconds)
        locked.note("work.offered", work.id, worker=worker)
        return work
    return None


def stop_work(locked: Locked, work: Work, *, force: bool) -> None:
    """Stop work: at once by `force` or if no worker has it, else by asking its worker. A session that goes on gets new work.

    Raises Conflict if the work is stopped already.
    """
    if work.status == "stopped":
        raise Conflict(f"Work {work.id} is stopped already.", {"state": work.status})
    locked.note("work.stopped", work.id, force=force)
    if force or work.status == "queued":
        work.stop(locked.db, locked.now)
        _want_again(locked)
    else:
        work.ask_to_stop(locked.db, locked.now)


def retire_work(locked: Locked, *, also_held: bool = False) -> None:
    """Stop the queued work of a session that rests. `also_held`: stop its work even if a worker has it."""
    if not locked.session.self_hosted:
        return
    work = Work.current(locked.db, locked.session.id)
    if work is not None and (also_held or work.status == "queued"):
        work.stop(locked.db, locked.now)


def _needed(session: Session) -> bool:
    return session.status not in {"idle", "terminated"}


def _want_again(locked: Locked) -> None:
    if _needed(locked.session):
        Work.want(locked, PAUSE_SECONDS)
