"""The sweeps of the archive: old content moves there, erased parts are removed, parts are checked."""

import time

from models.operate import archiving
from models.operate.failing import isolated
from workers.celery import app
from workers.outcome import MOST_SECONDS, Sweep, did


@app.task(name="sweep.archive", base=Sweep)
def archive() -> str:
    """Move old content of sessions at rest to the archive, part by part, until none is left or the time is over."""
    until, parts = time.monotonic() + MOST_SECONDS, 0
    sessions_before: set[archiving.DueSession] = set()
    while time.monotonic() < until and (sessions := set(archiving.due_sessions()) - sessions_before):
        sessions_before |= sessions
        for session in sessions:
            with isolated(archiving.TASK, session.id, session.workspace_id):
                while time.monotonic() < until and archiving.archive_next(session):
                    parts += 1
    return did("archived parts:", parts)


@app.task(name="sweep.remove_parts", base=Sweep)
def remove_parts() -> str:
    """Remove the contents of erased parts, and what a crash left."""
    count = 0
    for part_id, session_id, workspace_id in archiving.due_parts():
        with isolated("remove_parts", part_id, workspace_id):
            archiving.remove_part(part_id, session_id, workspace_id)
            count += 1
    return did("removed parts:", count)


@app.task(name="sweep.check_parts", base=Sweep)
def check_parts() -> str:
    """Check the parts that were not checked for longest, each once a day at most. Returns no words: it finds or it does not."""
    for part_id, workspace_id in archiving.parts_to_check():
        with isolated("check_parts", part_id, workspace_id):
            archiving.check_part(part_id, workspace_id)
    return ""
