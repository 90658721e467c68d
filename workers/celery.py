"""The Celery app. A message is a hint and Postgres is the truth, so the queue needs no guarantees of its own: no late
acknowledgement, no ETA, no retries, no results. For each value below, a measurement or a test showed that the default is worse."""

import time
from contextlib import suppress
from typing import Any

from billiard.util import get_pdeathsig  # type: ignore[import-untyped]
from celery import Celery
from celery.signals import (
    after_setup_logger,
    after_setup_task_logger,
    beat_init,
    celeryd_after_setup,
    celeryd_init,
    worker_before_create_process,
    worker_process_shutdown,
    worker_ready,
)
from gevent.monkey import is_module_patched
from kombu.entity import Exchange, Queue
from kombu.utils import functional

from models.database.roles import check_start
from models.operate import garbage_collection
from models.operate.metrics import durations, spans
from models.settings import broker, settings
from models.settings.providers import check_keys
from models.settings.variables import refuse_needless
from workers import liveness, log_lines
from workers.patches import kombu_redis_client  # noqa: F401 - registers its transport
from workers.patches.celery_task_events import BatchedTaskEvents
from workers.schedule import BEAT

QUEUES = {"turn": "turns", "tool": "tools", "deliver": "deliver", "sweep": "sweeps"}
"""The queue of each kind of task, by the first word of the tasks' names."""

app = Celery(
    "assent",
    broker=settings().redis_url,
    include=[
        "workers.turn",
        "workers.tool",
        "workers.looking",
        "workers.deliver",
        "workers.notifying",
        "workers.notifiers.slack_replies",
        "workers.sweeps.archiving",
        "workers.sweeps.deadlines",
        "workers.sweeps.deleting",
        "workers.sweeps.dispatching",
        "workers.sweeps.rescuing",
        "workers.sweeps.resuming",
        "workers.sweeps.sealing",
        "workers.sweeps.watching",
        "workers.announcing",
    ],
)
app.conf.update(
    task_routes={f"{tasks}.*": {"queue": queue} for tasks, queue in QUEUES.items()},
    # Flower shows the declared queues. Queues of toolsets, `tools.NAME`, are created by their workers.
    task_queues=[Queue(name, Exchange(name), routing_key=name) for name in QUEUES.values()],  # type: ignore[no-untyped-call]
    task_default_queue=QUEUES["sweep"],  # else Flower shows a queue `celery`, which nobody uses
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    result_backend=None,
    result_backend_thread_safe=True,  # else every greenlet creates a backend of its own, which does nothing
    # A dead worker loses no work, because the row's lease ends. Early acknowledgement also survives the loss of Redis.
    task_acks_late=False,
    worker_disable_prefetch=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_publish_retry=False,
    broker_transport_options=broker.options(
        # A worker that stops gracefully returns the messages that it has not begun. After a kill, the dispatch sweep sends again.
        ack_emulation=False,
        socket_timeout=10,
        socket_connect_timeout=5,
        socket_keepalive=True,
        health_check_interval=10,
    ),
    # Tool processes are replaced now and then. SIGTERM to the main process lets running tasks finish, while the supervisor waits;
    # SIGTERM to the pool's processes kills their calls (systemd: KillMode=mixed). The soft shutdown belongs to SIGQUIT.
    worker_max_tasks_per_child=1000,
    worker_max_memory_per_child=400_000,
    worker_soft_shutdown_timeout=10,
    # For Flower and other monitoring.
    worker_send_task_events=True,
    task_send_sent_event=False,
    event_queue_ttl=5,
    worker_hijack_root_logger=True,
    beat_schedule=BEAT,
    beat_enable_remote_control=True,
)
app.steps["consumer"].add(BatchedTaskEvents)


def leave_out_tasks() -> None:
    """Have this process load no task. Call it where tasks are only named, as in beat and in Flower, before Celery loads them.

    The tasks and what they import are a third of a worker's start and 30 MB of its memory.
    """
    app.conf.include = ()


@celeryd_after_setup.connect
def check_worker(instance: Any, **_: Any) -> None:
    """Refuse to start with a database role that no row policy binds, with another process's secrets, or turns without a key."""
    kinds = {queue.partition(".")[0] for queue in instance.app.amqp.queues.consume_from}  # `tools.orders` belongs to `tools`
    processes = [name for name in QUEUES.values() if name in kinds]
    check_start(*processes)
    if "turns" in processes:
        check_keys()
    liveness.begin(*processes)
    durations.begin()
    spans.check()


@beat_init.connect
def check_beat(**_: Any) -> None:
    """Refuse to start beat with secrets: beat only needs Redis."""
    refuse_needless("beat")
    liveness.begin("beat")
    garbage_collection.freeze()


@celeryd_init.connect
def check_patched_early(**_: Any) -> None:
    """Refuse to start a gevent worker unless gevent patched the standard library before kombu was imported.

    Otherwise kombu's wait between two attempts to reach Redis stops the whole process, model streams and leases included.
    """
    if is_module_patched("time") and functional.sleep is not time.sleep:  # type: ignore[attr-defined]
        raise SystemExit("start a gevent worker with `python -m gevent.monkey --module workers worker --pool gevent`")


@celeryd_init.connect
def pause_garbage_collection(**_: Any) -> None:
    """Collect no garbage while the worker loads its tasks. `freeze_imports` ends the pause.

    `python -m workers` has paused already. The command `celery`, and tests, have not.
    """
    garbage_collection.pause()


after_setup_logger.connect(log_lines.use)
after_setup_task_logger.connect(log_lines.use)


@worker_process_shutdown.connect
def send_spans(**_: Any) -> None:
    """Send what a process of the pool has not sent yet."""
    spans.flush()


@worker_ready.connect
def takes_work(**_: Any) -> None:
    """Report that this worker takes work."""
    liveness.ready()


@worker_before_create_process.connect
def load_parser(**_: Any) -> None:
    """Load a parser of C before the first process of a pool is forked.

    billiard uses it in each process, so that the kernel ends the process with the worker. To load it takes 15 ms of CPU time.
    """
    with suppress(OSError):
        get_pdeathsig()


@worker_before_create_process.connect
@worker_ready.connect
def freeze_imports(**_: Any) -> None:
    """Freeze the imported objects, before the first process of a pool is forked.

    Celery collects garbage before each fork. A collection writes to every object that is not frozen, so that the main process and
    each process of the pool would have memory of their own for all of them.
    """
    garbage_collection.freeze()
