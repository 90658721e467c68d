"""Whether a grant is live is decided in one place, once in SQL and once in Python."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows.stage import Stage

from models.database import clock as database_clock
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transaction
from models.session.approval.grant import Grant, live_sql, stands_sql
from models.session.thread.row import Thread, own_id

MINUTES = st.none() | st.integers(-2, 2)
SHAPES = st.fixed_dictionaries(
    {"expires": MINUTES, "revoked": st.booleans(), "max_uses": st.none() | st.integers(0, 3), "uses": st.integers(0, 3)}
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes=st.lists(SHAPES, min_size=1, max_size=10))
def test_sql_and_python_agree_on_every_grant(clean_database: None, shapes: list[dict[str, Any]]) -> None:
    stage = Stage()
    session = stage.read(stage.session())
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
        rows = [_grant(db, session.id, session.agent_id, now, **shape) for shape in shapes]
        assert _ids(db, live_sql("%(now)s"), now) == {row.id for row in rows if row.is_live(now)}
        assert _ids(db, stands_sql("%(now)s"), now) == {row.id for row in rows if row.stands(now)}


@pytest.mark.parametrize(
    ("ended", "stands"),
    [({"revoked": True}, False), ({"expires": 0}, False), ({"max_uses": 2, "uses": 2}, True)],
    ids=["revoked", "expired", "used up"],
)
def test_a_grant_that_ended_is_not_live(stage: Stage, ended: dict[str, Any], stands: bool) -> None:
    session = stage.read(stage.session())
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
        shape = {"expires": None, "revoked": False, "max_uses": None, "uses": 0}
        grant, other = (_grant(db, session.id, session.agent_id, now, **shape | changes) for changes in (ended, {}))
        assert (grant.is_live(now), grant.stands(now)) == (False, stands)
        assert other.is_live(now)
        assert [row.id for row in Grant.live(db, db.get_one(Thread, session.id, own_id(session.id)), ["bash"])] == [other.id]


def _grant(
    db: Db, session_id: str, agent_id: str, now: Any, *, expires: int | None, revoked: bool, max_uses: int | None, uses: int
) -> Grant:
    """Insert a grant that expires `expires` minutes from now."""
    row = Grant(
        id=ids.new("grnt"),
        workspace_id=db.workspace_id,
        scope="session",
        agent_id=agent_id,
        agent_version=1,
        session_id=session_id,
        thread_id=own_id(session_id),
        approval_id="appr_of_nobody",
        tool="bash",
        identity="bash",
        match="bash",
        covers="every bash command",
        given_by="user:somebody",
        created_at=now,
        expires_at=None if expires is None else now + timedelta(minutes=expires),
        max_uses=max_uses,
        uses=uses,
        revoked_at=now if revoked else None,
    )
    db.insert(row)
    return row


def _ids(db: Db, condition: str, now: Any) -> set[str]:
    return {grant_id for (grant_id,) in db.rows(f"SELECT id FROM approval_grant WHERE {condition}", now=now)}
