"""The beat's scheduler."""

from typing import Any

from celery import beat

from workers import enqueue, liveness

MOST_SWEEPS = 200
"""With so many messages in the queue of sweeps, the beat sends no more."""


class Scheduler(beat.Scheduler):
    """The beat's scheduler, which waits for workers that are away: they find the latest sweeps and not those of a night.

    It counts the messages, since an `expires` would compare the clocks of two machines.
    """

    def tick(self, *args: Any, **options: Any) -> Any:
        """Send the next sweep, and show that this loop runs."""
        liveness.alive()
        pause = super().tick(*args, **options)
        liveness.ready()
        return pause

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send a sweep that is due, unless many wait."""
        if (enqueue.backlog("sweeps") or 0) < MOST_SWEEPS:
            super().apply_entry(entry, producer=producer)
