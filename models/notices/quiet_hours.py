"""Quiet hours: a daily span of local time in which a person is not disturbed, such as 22:00 to 07:30 in Europe/Berlin."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_zones = cache(available_timezones)


@dataclass(frozen=True)
class QuietHours:
    """From `start` to `end`, in a time zone. A span whose end is not later than its start passes midnight."""

    start: time
    end: time
    zone: ZoneInfo

    @classmethod
    def of(cls, start: str, end: str, zone: str) -> "QuietHours":
        """Parse `HH:MM`, `HH:MM` and the name of a time zone. Raises ValueError, whose message names the fault and the remedy."""
        if zone not in _zones():
            raise ValueError(f"time_zone: {zone!r} is unknown; use a name such as Europe/Berlin or UTC.")
        hours = cls(_time("quiet_from", start), _time("quiet_until", end), ZoneInfo(zone))
        if hours.start == hours.end:
            raise ValueError("quiet_until: must differ from quiet_from.")
        return hours

    def end_after(self, now: datetime) -> datetime | None:
        """Return when the quiet hours that hold at `now` end, in UTC; None if none hold. `now` is aware."""
        local = now.astimezone(self.zone)
        clock, passes_midnight = local.time().replace(tzinfo=None), self.end < self.start
        has_begun = clock >= self.start
        if not (has_begun or clock < self.end if passes_midnight else has_begun and clock < self.end):
            return None
        day = local.date() + timedelta(days=1) if passes_midnight and has_begun else local.date()
        end = datetime.combine(day, self.end, self.zone).astimezone(now.tzinfo)
        # Where clocks are put back, an hour occurs twice; the first end may have passed.
        return end if end > now else datetime.combine(day, self.end, self.zone).replace(fold=1).astimezone(now.tzinfo)


def _time(field: str, text: str) -> time:
    try:
        hours, minutes = text.split(":")
        if len(hours) != 2 or len(minutes) != 2 or not (hours + minutes).isdigit():
            raise ValueError
        return time(int(hours), int(minutes))
    except ValueError:
        raise ValueError(f"{field}: must be a time such as 22:00 or 07:30.") from None
