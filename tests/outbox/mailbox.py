# ruff: noqa: N802, ARG002 - the names and arguments of aiosmtpd's handlers
"""A mail server: aiosmtpd on loopback, which keeps the mails, and replies as a test says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from deploy.folder import free_port


@dataclass
class Mailbox:
    """What the server received. `refusals` are its replies to RCPT by address; `reply` is its reply to a mail."""

    url: str = ""
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    reply: str = "250 OK"

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:
        if address in self.refusals:
            return self.refusals[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        if self.reply.startswith("250"):
            self.mails.append(cast("EmailMessage", message_from_bytes(cast("bytes", envelope.content), policy=default)))
            self.recipients.append(list(envelope.rcpt_tos))
        return self.reply

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
        self.logins.append((login.login.decode(), login.password.decode()))
        return AuthResult(success=True)


def text_of(mail: EmailMessage) -> str:
    """The mail's text part."""
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def html_of(mail: EmailMessage) -> str:
    """The mail's HTML part."""
    part = mail.get_body(("html",))
    assert part is not None
    return str(part.get_content())


@contextmanager
def serving(**options: Any) -> Iterator[Mailbox]:
    """A mail server on a free port of loopback. With a `tls_context` it needs STARTTLS and a login."""
    mailbox = Mailbox()
    if "tls_context" in options:
        options |= {"authenticator": mailbox.authenticate, "auth_required": True, "require_starttls": True}
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        mailbox.url = f"smtp://127.0.0.1:{controller.port}?starttls=no"
        yield mailbox
    finally:
        controller.stop()
