"""Why a verb refuses, drawn once. A door turns each into one answer.

Refusal
├── NotFound      no such row in this workspace                     404
├── Invalid       a field cannot be what it is; says what would be  400
├── Forbidden     another principal must do this; says who          403
├── Conflict      something else happened first; says what          409
├── Outdated      the caller does not know the row's latest state   412
└── Busy          passing: a lock or a connection was not to be had 503
"""

from collections.abc import Mapping


class Refusal(Exception):
    """A verb did nothing, and says why in words for the caller."""


class NotFound(Refusal):
    """No such row in this workspace."""

    def __init__(self, kind: str, row_id: str) -> None:
        super().__init__(f"{kind} {row_id!r} was not found in this workspace.")


class Invalid(Refusal):
    """A field cannot be what it is. `field` is its path in the request, such as `events.0.tool_use_id`."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{field}: {message}" if field else message)


class Forbidden(Refusal):
    """The principal may not do this, whatever its scopes are. The message says who may."""


class Conflict(Refusal):
    """Something else happened first. `winner` is what did (a decision, a version), for the caller to see."""

    def __init__(self, message: str, winner: Mapping[str, object] | None = None) -> None:
        self.winner = winner
        super().__init__(message)


class Outdated(Refusal):
    """The caller expects a state that the row no longer has: somebody else may hold it now. `details` is what the row has."""

    def __init__(self, message: str, details: Mapping[str, object]) -> None:
        self.details = details
        super().__init__(message)


class Busy(Refusal):
    """A lock or a connection was not to be had in time: nothing was done, try again."""
