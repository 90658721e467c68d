"""Mail, by the standard library: text and HTML, one thread per approval and address."""

import html
import re
import smtplib
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.headerregistry import Address as MailAddress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, localtime
from typing import Any

from models.notices.notice import ALONE, Notice
from models.notices.notification import Receipt
from models.pure.text.visible import visible
from models.settings import settings
from models.settings.mail_server import MailServer, sender
from workers.notifiers import Address, Gone, Retry, texts

_MAILBOX = ("5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1")
"""Enhanced status codes (RFC 3463) of a mailbox that does not exist. Other codes may be a fault of the server's configuration."""
_REFUSED = frozenset({550, 551, 553})
"""Replies to RCPT for such a mailbox, from servers without enhanced codes."""
_HEAD = (
    '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"></head>'
)
"""Lets a phone show the mail in its own width, and a mail program in its dark colours."""
_BODY = "max-width:600px;margin:0 auto;padding:16px;font:16px/1.5 system-ui,sans-serif"
_BUTTON = (
    "display:inline-block;padding:10px 20px;border-radius:6px;background:#2a55cf;color:#fff;font-weight:600;text-decoration:none"
)
_CODE = "padding:12px;border:1px solid #8b9099;border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere"
"""In the mail's own colours, which a mail program may have made dark."""
_QUOTE = "margin:0 0 16px;padding-left:12px;border-left:3px solid #8b9099;white-space:pre-wrap;overflow-wrap:anywhere"
_WORD_CHARACTERS = 11
"""Characters of an encoded word, which may have 75 bytes."""
_UNFOLDED = SMTP.clone(max_line_length=998)
"""Folds no header: folding would encode a link that is longer than a line."""


class Mail:
    """Sends mail by the operator's server. A later stage is a reply in the thread of the first mail."""

    def send(self, address: Address, notice: Notice, earlier: Receipt | None) -> Receipt:
        """Send one mail. Returns the thread's Message-ID and subject, and the number of mails in the thread."""
        url, mail_from = settings().smtp_url, settings().mail_from
        if url is None or not mail_from:
            raise Retry("The operator has configured no mail server (ASSENT_SMTP_URL and ASSENT_MAIL_FROM).")
        receipt = _receipt(address, notice, earlier, sender(mail_from).domain)
        try:
            message = compose(address, notice, receipt, mail_from)
        except ValueError as error:
            raise Gone(f"No mail can be addressed to {visible(address.text)}: {error}") from None
        _deliver(MailServer.of(url.get_secret_value()), message, address.text)
        return receipt


def compose(address: Address, notice: Notice, receipt: Receipt, mail_from: str) -> EmailMessage:
    """Return the mail. Raises ValueError for an address that is malformed or contains line ends."""
    message = EmailMessage(policy=_UNFOLDED)
    follows = receipt["count"] != "1"
    message["From"] = sender(mail_from)
    message["To"] = MailAddress(addr_spec=address.text)
    _set_subject(message, f"Re: {receipt['subject']}" if follows else receipt["subject"])
    message["Date"] = format_datetime(localtime())
    message["Message-ID"] = _message_id(receipt, receipt["count"])
    if follows:
        message["In-Reply-To"] = message["References"] = _message_id(receipt, "1")
    message["Auto-Submitted"] = "auto-generated"
    unsubscribe = unsubscribe_url(address)
    message["List-Unsubscribe"] = f"<{unsubscribe}>"
    if unsubscribe.startswith("https://"):  # RFC 8058 demands https
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(f"{texts.body(notice)}\n\n-- \nNo more mail from this channel: {unsubscribe}\n")
    message.add_alternative(_html(notice, unsubscribe), subtype="html")
    return message


def _set_subject(message: EmailMessage, text: str) -> None:
    """Set a subject that mail programs show as it is. Raises ValueError for a text with line ends.

    The email package decodes what looks like an encoded word (RFC 2047), and writes the decoded text into the mail's head, also
    line ends. So such a text goes past its parser, as encoded words.
    """
    if len(text.splitlines()) > 1:
        raise ValueError("a subject must not contain line ends")
    if "=?" not in text:
        message["Subject"] = text
        return
    pieces = (text[start : start + _WORD_CHARACTERS] for start in range(0, len(text), _WORD_CHARACTERS))
    message.set_raw("Subject", "\r\n ".join(f"=?utf-8?b?{b64encode(piece.encode()).decode()}?=" for piece in pieces))


def unsubscribe_url(address: Address) -> str:
    """Return the URL of the page that turns the channel off. The URL ends with the channel's token."""
    return f"{settings().public_url.rstrip('/')}/unsubscribe/{address.workspace_id}/{address.channel_id}/{address.secret}"


def _receipt(address: Address, notice: Notice, earlier: Receipt | None, domain: str) -> Receipt:
    """Return the mail's receipt. The Message-ID depends on the receipt alone, so that mail programs deduplicate a repeated mail."""
    if earlier:
        return {**earlier, "count": str(int(earlier["count"]) + 1)}
    return {
        "thread": f"{notice.approval_id}.{address.channel_id}",
        "domain": domain,
        "subject": texts.subject(notice),
        "count": "1",
    }


def _message_id(receipt: Receipt, count: str) -> str:
    return f"<{receipt['thread']}.{count}@{receipt['domain']}>"


def _html(notice: Notice, unsubscribe: str) -> str:
    """Return the mail's text as HTML. All texts of others are escaped."""
    link, button = f'<a href="{html.escape(notice.url)}">', f'<a href="{html.escape(notice.url)}" style="{_BUTTON}">'
    paragraphs = [f"<p><b>{html.escape(notice.sentence)}</b></p>"]
    if notice.stage == "decided":
        came_of = f" {html.escape(notice.came_of)}." if notice.came_of else ""
        paragraphs += [
            f"<p>{html.escape(notice.ending)}.{came_of}</p>",
            f"<p>{button}{'See what came of it' if notice.came_of else 'Open it'}</a></p>",
        ]
    elif notice.stage in ALONE:
        paragraphs.append(f"<p>{link}Open Assent</a></p>")
    else:
        if notice.evidence:
            paragraphs.append(f'<pre style="{_CODE}">{html.escape(notice.evidence)}</pre>')
        if notice.last_words:
            words = html.escape(notice.last_words)
            paragraphs.append(f'<p style="margin-bottom:4px">The agent says:</p><blockquote style="{_QUOTE}">{words}</blockquote>')
        paragraphs.append(f"<p>{html.escape(texts.about(notice)).replace(chr(10), '<br>')}</p>")
        paragraphs.append(f"<p>{button}Decide</a></p>")
        if notice.code:
            paragraphs.append(
                f"<p>The code for that page: <b style='font-size:20px;letter-spacing:2px'>{html.escape(notice.code)}</b></p>"
            )
    paragraphs.append(f'<p><small><a href="{html.escape(unsubscribe)}">No more mail from this channel</a></small></p>')
    return f'<!doctype html><html lang="en">{_HEAD}<body style="{_BODY}">{"".join(paragraphs)}</body></html>'


def _deliver(server: MailServer, message: EmailMessage, recipient: str) -> None:
    """Hand the mail over within `mail_seconds`. Raises Retry, or Gone if the server says that the mailbox does not exist."""
    try:
        with _connected(server) as smtp:
            smtp.send_message(message, to_addrs=[recipient])
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = error.recipients[recipient]
        text = _reply(code, reply)
        if _no_mailbox(code, reply):
            raise Gone(f"The mail server refused the address: {text}") from None
        raise Retry(f"The mail server refused the recipient: {text}") from None
    except smtplib.SMTPNotSupportedError as error:
        raise Retry(f"The mail server lacks a feature that is needed: {error}") from None
    except smtplib.SMTPResponseException as error:
        raise Retry(f"The mail server responded with {_reply(error.smtp_code, error.smtp_error)}") from None
    except (OSError, smtplib.SMTPException) as error:  # a connection, TLS, or the time limit
        raise Retry(f"The mail server could not be reached in time or broke off ({type(error).__name__}).") from None


@contextmanager
def _connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """Open a connection, encrypted and signed in as configured."""
    seconds = settings().mail_seconds
    if server.security == "tls":
        smtp: smtplib.SMTP = _LimitedTls(server.host, server.port, timeout=seconds, context=ssl.create_default_context())
    else:
        smtp = _Limited(server.host, server.port, timeout=seconds)
    try:
        if server.security == "starttls":
            smtp.starttls(context=ssl.create_default_context())
        if server.user:
            smtp.login(server.user, server.password)
        yield smtp
        with suppress(OSError, smtplib.SMTPException):
            smtp.quit()  # the server has the mail already
    finally:
        smtp.close()


class _Limited(smtplib.SMTP):
    """Cuts the connection after `timeout` seconds. smtplib's own time-out limits one read, and a server may send without end."""

    timer: threading.Timer | None = None

    def connect(self, host: str = "localhost", port: int = 0, source_address: Any = None) -> tuple[int, bytes]:
        self.timer = threading.Timer(self.timeout, self.cut)
        self.timer.daemon = True
        self.timer.start()
        try:
            return super().connect(host, port, source_address)
        except BaseException:
            self.timer.cancel()
            raise

    def cut(self) -> None:
        """End every read and write."""
        with suppress(OSError, AttributeError):  # the connection was closed meanwhile
            self.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]

    def close(self) -> None:
        if self.timer:
            self.timer.cancel()
        super().close()


class _LimitedTls(_Limited, smtplib.SMTP_SSL):
    """A limited connection with TLS from the start."""


def _no_mailbox(code: int, reply: bytes) -> bool:
    first = reply.decode(errors="replace").split(maxsplit=1)[:1]
    has_enhanced = bool(first) and re.fullmatch(r"\d\.\d{1,3}\.\d{1,3}", first[0]) is not None
    return first[0] in _MAILBOX if has_enhanced else code in _REFUSED


def _reply(code: int, reply: bytes | str) -> str:
    """Return a server's reply for people, in one line."""
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else str(reply)
    return visible(f"{code} {' '.join(text.split())}"[:200])
