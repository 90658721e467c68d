"""Notifiers: one class per kind of channel, with one method. `notifier_for` returns the notifier of a kind."""

from dataclasses import dataclass, field
from typing import Protocol

from models.notices.notice import Notice
from models.notices.notification import Receipt


@dataclass(frozen=True)
class Address:
    """The destination of a channel."""

    channel_id: str
    workspace_id: str
    person_id: str | None
    """None for a channel of the workspace."""
    text: str
    """`Channel.address`."""
    secret: str = field(default="", repr=False)
    """`Channel.secret`, decrypted."""


class Retry(Exception):
    """A later attempt may succeed. The message has no secrets. `after`: the wait in seconds, if the service named one."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Gone(Exception):
    """The address does not exist, or refuses messages for good. The message tells the channel's owner why, without secrets."""


class Notifier(Protocol):
    """Sends to one kind of channel."""

    def send(self, address: Address, notice: Notice, earlier: Receipt | None) -> Receipt:
        """Send the notice, or edit or follow up the message of the earlier receipt. Returns the receipt for the next call.

        A call takes at most 60 s. After a crash the call is repeated: a service that can deduplicate gets nothing twice.
        Raises Retry, Gone. Any other error counts as Retry.
        """
        ...


def notifier_for(kind: str) -> Notifier:
    """Return the notifier of a kind in `models.notices.services.CHANNEL_KINDS`. The first call for a kind loads its package."""
    match kind:
        case "mail":
            from workers.notifiers.mail import Mail

            return Mail()
        case "slack":
            from workers.notifiers.slack import SlackNotifier

            return SlackNotifier()
        case "apprise" | "operator":
            from workers.notifiers.apprise import AppriseService, OperatorUrl

            return AppriseService() if kind == "apprise" else OperatorUrl()
        case "push":
            from workers.notifiers.push import Push

            return Push()
    raise Gone(f"Assent has no notifier for channels of the kind {kind}.")
