"""The Celery app. A message is a hint and Postgres is the truth, so everything that makes a queue clever is off: no late
acknowledgement, no ETA, no retries, no results. Each value below was measured against the way in which its default fails."""

import time
from typing import Any

from celery import Celery
from celery.signals import beat_init, celeryd_after_setup, celeryd_init, worker_process_init, worker_ready
from gevent.monkey import is_module_patched
from kombu.utils import functional

from models import garbage_collection
from models.database.roles import check_start
from models.settings import settings
from models.variables import refuse_needless
from workers.guarded_http import refuse_unguarded
from workers.patches import kombu_redis_client  # noqa: F401 - registers its transport
from workers.patches.celery_task_events import BatchedTaskEvents
from workers.schedule import BEAT

app = Celery(
    "assent",
    broker=settings().redis_url,
    include=["workers.turn", "workers.tool", "workers.looking", "workers.sweeps", "workers.announcing"],
)
app.conf.update(
    task_routes={"turn.*": {"queue": "turns"}, "tool.*": {"queue": "tools"}, "sweep.*": {"queue": "sweeps"}},
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    result_backend=None,
    result_backend_thread_safe=True,  # or every greenlet makes itself another one that does nothing
    # A worker that dies has lost nothing: the row's lease lapses. Early acknowledgement also survives a Redis that goes away.
    task_acks_late=False,
    worker_disable_prefetch=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_publish_retry=False,
    broker_transport_options={
        # What a worker took and did not begin goes back if it stops in peace. If it is killed, the dispatch sweep sends it again.
        "ack_emulation": False,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    # Tool processes are renewed now and then. SIGTERM to the main process lets what runs finish, while the supervisor waits;
    # sent to the pool's processes it kills their calls (systemd: KillMode=mixed). The soft shutdown is SIGQUIT's.
    worker_max_tasks_per_child=1000,
    worker_max_memory_per_child=400_000,
    worker_soft_shutdown_timeout=10,
    # What ops see.
    worker_send_task_events=True,
    task_send_sent_event=False,
    event_queue_ttl=5,
    worker_hijack_root_logger=True,
    beat_schedule=BEAT,
    beat_enable_remote_control=True,
)
app.steps["consumer"].add(BatchedTaskEvents)


@celeryd_after_setup.connect
def check_worker(instance: Any, **_: Any) -> None:
    """A worker does not start on a database role that no policy binds, nor with another process's secrets. Its queues name it."""
    kinds = {queue.partition(".")[0] for queue in instance.app.amqp.queues.consume_from}  # `tools.orders` is of the tools
    check_start(*(name for name in ("turns", "tools", "sweeps") if name in kinds))


@beat_init.connect
def check_beat(**_: Any) -> None:
    """Beat needs Redis alone."""
    refuse_needless("beat")


@celeryd_init.connect
def check_guard(**_: Any) -> None:
    """A worker does not start where a URL of a client could lead to a private address."""
    refuse_unguarded()


@celeryd_init.connect
def check_patched_early(**_: Any) -> None:
    """A gevent worker does not start unless gevent patched before kombu was imported.

    kombu's wait between two tries to reach Redis would otherwise stop the whole process, model streams and leases included.
    """
    if is_module_patched("time") and functional.sleep is not time.sleep:  # type: ignore[attr-defined]
        raise SystemExit("start a gevent worker by `python -m gevent.monkey --module celery -A workers worker --pool gevent`")


@worker_ready.connect
@worker_process_init.connect
def started(**_: Any) -> None:
    """All is imported: the main process's, and each pool process's."""
    garbage_collection.freeze()
