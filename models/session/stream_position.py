"""Where a principal's next stream of a session begins: the column `Session.stream_positions`."""

from models.database.rows import Db


def streamed(db: Db, session_id: str, principal_id: str, seq: int, *, ended: bool) -> None:
    """Record that the principal is streamed the `session.status_idle` or `session.status_terminated` event `seq`.

    `ended`: the run is over, so the principal's next stream begins at the newest event; else the next stream begins behind `seq`.
    No-op if the principal sent nothing in this run, or sent something after `seq`.
    """
    db.write(_RUN_ENDED if ended else _RUN_WAITS, id=session_id, principal=principal_id, seq=seq)


_SENT_BEFORE = "WHERE id = %(id)s AND (stream_positions ->> %(principal)s)::bigint < %(seq)s"
_RUN_ENDED = f"UPDATE session SET stream_positions = stream_positions - %(principal)s::text {_SENT_BEFORE}"  # noqa: S608 - our own names
_RUN_WAITS = f"""
    UPDATE session SET stream_positions = stream_positions || jsonb_build_object(%(principal)s::text, %(seq)s::bigint)
    {_SENT_BEFORE}
"""  # noqa: S608 - our own names
