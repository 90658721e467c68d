"""What Flower is told of tasks leaves together, twice a second: one by one, three messages a task cost as much as the task."""

from typing import Any

from celery import bootsteps

SECONDS = 0.5


class Together(bootsteps.StartStopStep):
    """A step of the worker's start, behind the one that makes its dispatcher of events; again after each lost connection."""

    requires = ("celery.worker.consumer.events:Events",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        self.timer: Any = None
        super().__init__(parent, **kwargs)

    def start(self, consumer: Any) -> None:
        """Celery buffers by itself only with an event loop of its own, and for one turn of that."""
        dispatcher = consumer.event_dispatcher
        dispatcher.buffer_group = {"task"}
        dispatcher.on_send_buffered = None
        self.timer = consumer.timer.call_repeatedly(SECONDS, dispatcher.flush)

    def stop(self, consumer: Any) -> None:
        """Say the last of it."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            consumer.event_dispatcher.flush()
