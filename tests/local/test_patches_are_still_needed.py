"""Each file in `workers/patches` goes when a release of its library makes it needless. These tests then fail."""

import inspect

import pytest
import warm
from celery.worker.consumer.events import Events
from crashes.processes import WORKER
from kombu import Connection


@pytest.mark.parametrize(
    ("transport", "keeps"),
    [("kombu.transport.redis:Transport", False), ("workers.patches.kombu_redis_client:Transport", True)],
)
def test_kombu_makes_a_redis_client_for_each_command_and_our_channel_keeps_one(
    clean_redis: str, transport: str, keeps: bool
) -> None:
    with Connection(clean_redis, transport=transport) as connection:
        channel = connection.default_channel
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
            assert (first is second) == keeps


def test_celery_buffers_task_events_only_in_its_own_event_loop() -> None:
    assert "buffer_group=['task'] if c.hub else None" in inspect.getsource(Events.start)


def test_a_gevent_worker_that_was_patched_too_late_does_not_start(database_urls: object, clean_redis: str) -> None:
    """Without `python -m gevent.monkey`, kombu's waits stop the whole process."""
    done = warm.run(*WORKER[1:], "-P", "gevent", "-c", "2", "-Q", "turns", REDIS_URL=clean_redis)
    assert done.returncode != 0
    assert "python -m gevent.monkey --module workers" in done.stderr
