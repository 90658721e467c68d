"""Times as text: one spelling in responses, events and messages."""

from datetime import UTC, datetime


def rfc3339(at: datetime) -> str:
    """Return a time in RFC 3339, in UTC with microseconds: `2026-03-01T12:00:00.000000Z`. `at` has a time zone."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
