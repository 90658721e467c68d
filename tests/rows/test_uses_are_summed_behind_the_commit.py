"""The usage of a day and the uses of a standing grant are counted at once, and summed later by a sweep, each exactly once."""

from functools import partial
from typing import Any

import psycopg
from own_database import DatabaseUrls
from psycopg import sql
from races.races_together import together
from races.test_nothing_deadlocks import WAITING
from rows.crowd import Admin
from rows.spending import PRICED
from rows.stage import Stage, call, say

from models.audit.acts import Audit
from models.database.daily_usage import DAYS, DailyUsage
from models.database.transactions import transaction
from models.operate import late_sums
from models.session.approval import grant_use
from models.session.approval.grant import Grant
from models.session.approval.grant_use import NEVER_USED, Uses, uses_of
from models.session.turn.usage import TurnUsage
from workers.sweeps.watching import add_up_uses

_AS_BEFORE = """
    INSERT INTO daily_usage
    SELECT workspace_id, (at AT TIME ZONE 'UTC')::date, agent_id, '', provider, model, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0
    FROM turn_usage LIMIT 1
    ON CONFLICT (workspace_id, day, agent_id, person_id, provider, model)
    DO UPDATE SET requests = daily_usage.requests + excluded.requests
"""

_OF_OTHERS = "INSERT INTO grant_use SELECT 'guse_' || n, %s, %s, now() FROM generate_series(1, 20000) n"


def standing(stage: Stage, **decision: Any) -> Grant:
    """A standing grant for bash."""
    session = stage.session()
    stage.confirm(session, stage.propose(session).id, scope="always", **decision)
    with transaction(stage.workspace_id) as db:
        return db.find(Grant)[0]


def use(stage: Stage, grant: Grant) -> None:
    """Have a new session use the grant."""
    session = stage.session(of_agent=grant.agent_id)
    stage.message(session)
    stage.reply(session, call(), charge=PRICED)


def uses(stage: Stage, grant: Grant) -> Uses:
    with transaction(stage.workspace_id) as db:
        return uses_of(db, [grant.id])[grant.id]


def is_unused(stage: Stage) -> bool:
    with transaction(stage.workspace_id) as db:
        return bool(db.find(Grant, f"WHERE {NEVER_USED}"))


def requests(stage: Stage, source: str = DAYS) -> int:
    with transaction(stage.workspace_id) as db:
        return int(db.value(f"SELECT coalesce(sum(requests), 0) FROM {source}"))


def test_a_use_counts_at_once_and_the_sweep_changes_no_sum(stage: Stage, clock: Any) -> None:
    grant = standing(stage)
    assert (uses(stage, grant), is_unused(stage)) == (Uses(0, None), True)
    for _ in range(3):
        clock.advance(60)
        use(stage, grant)
    counted = uses(stage, grant)
    assert (counted.calls, stage.get(Grant, grant.id).uses, is_unused(stage)) == (3, 0, False)
    add_up_uses()
    row = stage.get(Grant, grant.id)
    assert (row.uses, row.last_used_at) == counted == uses(stage, grant)
    assert not is_unused(stage)
    stage.revoke_grants()
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE action = 'grant.revoked'")
    assert act.details["uses"] == 3


def test_sweeps_at_once_sum_each_use_and_each_attempt_once(stage: Stage) -> None:
    grant = standing(stage)
    before = requests(stage)

    def count() -> None:
        use(stage, grant)
        late_sums.add_up(stage.workspace_id)

    assert together(*[count] * 8) == [None] * 8
    add_up_uses()
    assert (uses(stage, grant).calls, stage.get(Grant, grant.id).uses) == (8, 8)
    assert requests(stage) == requests(stage, "daily_usage") == before + 8


def test_a_sweep_and_a_commit_of_the_release_before_never_wait_in_a_circle(stage: Stage, database_urls: DatabaseUrls) -> None:
    """Such a commit changes the grant's row, and then the sums of the day."""
    grant = standing(stage)
    use(stage, grant)
    add_up_uses()
    use(stage, grant)
    admin = partial(psycopg.connect, database_urls.admin)
    with admin() as before, admin(autocommit=True) as watch:
        before.execute("UPDATE approval_grant SET uses = uses + 1")

        def commit() -> None:
            while watch.execute(WAITING).fetchone() != (1,):
                pass
            before.execute("UPDATE daily_usage SET requests = requests + 1")
            before.commit()

        assert together(partial(late_sums.add_up, stage.workspace_id), commit) == [False, None]
    assert uses(stage, grant).calls == 3


def test_a_grant_that_is_deleted_while_grants_are_read_has_no_uses(stage: Stage) -> None:
    grant = standing(stage)
    with transaction(stage.workspace_id) as db:
        assert uses_of(db, [grant.id, "grnt_gone"]) == {grant.id: Uses(0, None), "grnt_gone": Uses(0, None)}


def test_a_sweep_reads_no_more_pages_among_more_uses_of_others(stage: Stage, database_urls: DatabaseUrls) -> None:
    grant, of_others = standing(stage), standing(Stage())
    use(stage, grant)
    alone = pages_of_a_sum(stage)
    with psycopg.connect(database_urls.admin, autocommit=True) as admin:
        admin.execute(_OF_OTHERS, (of_others.workspace_id, of_others.id))
        admin.execute("ANALYZE grant_use")
    assert alone <= pages_of_a_sum(stage) <= alone + 10


def pages_of_a_sum(stage: Stage) -> int:
    """Return how many pages one sum of uses reads, and take it back."""
    with transaction(stage.workspace_id) as db:
        [([explained],)] = db.rows(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {grant_use._ADD_UP}", limit=grant_use.BATCH)
        db.roll_back()
    return int(explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"])


def test_a_sweep_that_fails_at_one_workspace_sums_the_others(stage: Stage, database_urls: DatabaseUrls) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, say("Hi."), charge=PRICED)
    other = Stage()
    theirs = other.session()
    other.message(theirs)
    other.reply(theirs, say("Hi."), charge=PRICED)
    with psycopg.connect(database_urls.admin, autocommit=True) as admin:
        refuse(admin, stage.workspace_id)
        try:
            add_up_uses()
        finally:
            admin.execute("DROP TRIGGER refuse ON daily_usage")
    assert (requests(stage, "daily_usage"), requests(stage)) == (0, 1)
    assert requests(other, "daily_usage") == 1
    add_up_uses()
    assert requests(stage, "daily_usage") == 1


def refuse(admin: Admin, workspace_id: str) -> None:
    """Have the database refuse the sums of a workspace."""
    admin.execute("""
        CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$
    """)
    when = "FOR EACH ROW WHEN (NEW.workspace_id = {}) EXECUTE FUNCTION refuse()"
    trigger = f"CREATE TRIGGER refuse BEFORE INSERT ON daily_usage {when}"
    admin.execute(sql.SQL(trigger).format(workspace_id))


def test_what_a_process_of_the_release_before_counts_is_not_summed_again(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, say("Hi."), charge=PRICED)
    add_up_uses()
    with transaction(stage.workspace_id) as db:
        db.write(_AS_BEFORE)
        columns = [column.key for column in TurnUsage.__table__.columns]
        names = ", ".join(name for name in columns if name not in {"summed", "attempt"})
        db.write(f"INSERT INTO turn_usage ({names}, attempt) SELECT {names}, attempt + 1 FROM turn_usage")
    assert requests(stage) == 2
    add_up_uses()
    assert requests(stage) == 2
    with transaction(stage.workspace_id) as db:
        assert len(db.find(DailyUsage)) == 1
