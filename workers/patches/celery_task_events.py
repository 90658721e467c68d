"""Celery: sends task events in batches, twice a second.

Sent one by one, the three events of a task take as much CPU as the task. Celery 5.7 buffers events only with its own event loop,
and not with the gevent and prefork pools of the Procfile. `tests/local/test_patches_are_still_needed.py` fails when Celery buffers
events itself: then delete this file.
"""

from typing import Any

from celery import bootsteps

SECONDS = 0.5


class BatchedTaskEvents(bootsteps.StartStopStep):
    """A step of a worker's start, after the step that creates the event dispatcher. Both run again after a lost connection."""

    requires = ("celery.worker.consumer.events:Events",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        self._timer: Any = None
        super().__init__(consumer, **kwargs)

    def start(self, consumer: Any) -> None:
        """Buffer the dispatcher's task events, and flush them by a timer."""
        consumer.event_dispatcher.buffer_group = {"task"}
        consumer.event_dispatcher.on_send_buffered = None
        self._timer = self._timer or consumer.timer.call_repeatedly(SECONDS, self._flush, (consumer,))

    def stop(self, consumer: Any) -> None:
        """Do nothing: the timer continues for the next dispatcher."""

    def shutdown(self, consumer: Any) -> None:
        """Flush the last events before the dispatcher ends."""
        self._flush(consumer)

    @staticmethod
    def _flush(consumer: Any) -> None:
        if consumer.event_dispatcher:
            consumer.event_dispatcher.flush()
