"""What Flower is told of tasks leaves together, twice a second: one by one, three messages a task cost as much as the task."""

from typing import Any

from celery import bootsteps

SECONDS = 0.5


class Together(bootsteps.StartStopStep):
    """A step of a worker's start, behind the one that makes its dispatcher of events; both come again after a lost connection."""

    requires = ("celery.worker.consumer.events:Events",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        self._timer: Any = None
        super().__init__(consumer, **kwargs)

    def start(self, consumer: Any) -> None:
        """Celery buffers by itself only where it has an event loop of its own, and for one turn of that."""
        consumer.event_dispatcher.buffer_group = {"task"}
        consumer.event_dispatcher.on_send_buffered = None
        self._timer = self._timer or consumer.timer.call_repeatedly(SECONDS, self._say, (consumer,))

    def stop(self, consumer: Any) -> None:
        """Nothing: the timer goes on with the next dispatcher."""

    def shutdown(self, consumer: Any) -> None:
        """The last of it, before the dispatcher ends."""
        self._say(consumer)

    @staticmethod
    def _say(consumer: Any) -> None:
        if consumer.event_dispatcher:
            consumer.event_dispatcher.flush()
