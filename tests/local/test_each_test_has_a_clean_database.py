"""Each test has a database of its own with the schema, empty, and a clock that it may move."""

import time
from datetime import datetime, timedelta

import psycopg
import redis
from own_database import Cleaner, Clock, DatabaseUrls

from models.database import clock as database_clock
from models.database import ids
from models.database.transactions import transaction
from models.settings import settings
from models.workspace.row import Workspace


def count(urls: DatabaseUrls) -> int:
    with psycopg.connect(urls.admin) as db:
        row = db.execute("SELECT count(*) FROM workspace").fetchone()
    assert row
    return int(row[0])


def test_rows_of_one_test_are_gone_in_the_next(clean_database: DatabaseUrls, cleaner: Cleaner) -> None:
    with transaction(ids.new("wrkspc")) as db:
        Workspace.create(db, "left behind")
    assert count(clean_database) == 1
    cleaner.clean()
    assert count(clean_database) == 0


def test_the_settings_name_the_test_s_own_servers(clean_database: DatabaseUrls, clean_redis: str) -> None:
    assert settings().database_url == clean_database.app
    assert settings().database_system_url == clean_database.system
    assert settings().redis_url == clean_redis
    with redis.Redis.from_url(clean_redis) as client:
        assert client.dbsize() == 0


def now() -> datetime:
    with transaction() as db:
        return database_clock.now(db)


def test_a_moved_clock_goes_on_ticking_and_can_be_reset(clean_database: DatabaseUrls, clock: Clock) -> None:
    before = [now() for _ in range(10)][-1]  # often enough for a prepared statement
    clock.advance(3600)
    moved = now()
    clock.advance(60)
    again = now()
    assert now() > again
    assert timedelta(hours=1) <= moved - before < timedelta(hours=1, seconds=30)
    assert timedelta(minutes=1) <= again - moved < timedelta(seconds=90)
    clock.reset()
    assert abs(now().timestamp() - time.time()) < 5
