"""The reasons for which a verb refuses. The API turns each into one status code.

Refusal
├── NotFound      no such row in this workspace                     404
├── Unreadable    a part of the archive is missing or altered       404
├── Invalid       a field's value is wrong; names a valid one       400
├── Forbidden     another principal must do this; names who may    403
├── Conflict      something else happened first; names it           409
├── Costly        the request takes too much CPU time               400
├── Outdated      the caller does not know the row's latest state   412
└── Busy          transient: no lock or no connection in time       503
"""

from collections.abc import Mapping


class Refusal(Exception):
    """A verb changed nothing. The message tells the caller why."""


class NotFound(Refusal):
    """No such row in this workspace."""

    def __init__(self, kind: str, row_id: str) -> None:
        super().__init__(f"{kind} {row_id!r} was not found in this workspace.")


class Unreadable(Refusal):
    """A part of the archive is missing or was altered. The message names the part."""


class Invalid(Refusal):
    """A field's value is wrong. `field` is its path in the request, such as `events.0.tool_use_id`."""

    def __init__(self, field: str, message: str, *, code: str | None = None) -> None:
        self.field = field
        self.code = code
        """A stable code of the fault, if programs must distinguish it from others."""
        super().__init__(f"{field}: {message}" if field else message)

    def renamed(self, field: str) -> "Invalid":
        """Return the refusal with another path of the field."""
        return Invalid(field, str(self).removeprefix(f"{self.field}: "), code=self.code)


class Forbidden(Refusal):
    """The principal may not do this, whatever its scopes are. The message says who may."""


class Conflict(Refusal):
    """Something else happened first. `winner` describes that other act for the caller, such as a decision or a version."""

    def __init__(self, message: str, winner: Mapping[str, object] | None = None) -> None:
        self.winner = winner
        super().__init__(message)


class Outdated(Refusal):
    """The caller expects a state that the row no longer has. Another caller may hold it now. `details` is the present state."""

    def __init__(self, message: str, details: Mapping[str, object]) -> None:
        self.details = details
        super().__init__(message)


class Costly(Refusal):
    """The request takes more CPU time than one request may. It was ended."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"This request was ended after {seconds:g} s of the server's CPU time. Send less, or ask for less, at once. The "
            "server's setting is ASSENT_REQUEST_CPU_SECONDS."
        )


class Busy(Refusal):
    """No lock or no connection was free in time. Nothing was changed; try again."""
