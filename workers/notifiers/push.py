"""Push messages to browsers. A library encrypts and signs them; they are sent by the rules for URLs that clients choose.

The browser's own push service carries the message, and cannot read it. A later message about an approval replaces the earlier one.
"""

import json
from datetime import UTC, datetime
from functools import cache
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from webpush import WebPush, WebPushSubscription
from webpush.types import WebPushKeys

from models.notices.notice import ALONE, Notice
from models.notices.notification import Receipt
from models.settings import settings
from models.settings.key_text import raw_key
from workers import guarded_http
from workers.guarded_http import NoResponse
from workers.notifiers import Address, Gone, Retry
from workers.notifiers.texts import deadline

SECONDS = 10
LONGEST_LIFE = 86_400
"""Seconds for which a push service keeps a message for a browser that is off."""
_MOST_LINE = 120
_MOST_BODY = 600
"""Characters. A message has room for 3,993 bytes (RFC 8291), and a notification for less."""
_NOT_THERE = (404, 410)
"""The subscription has ended: the person took the permission back, or the browser is gone."""


class Push:
    """Sends to a person's browser."""

    def send(self, address: Address, notice: Notice, earlier: Receipt | None) -> Receipt:
        """Send a message. One that follows an earlier one replaces it without a sound, unless it asks again."""
        is_silent = earlier is not None and notice.stage == "decided"
        keys = json.loads(address.secret)
        endpoint = str(keys["endpoint"])
        subscription = WebPushSubscription(
            endpoint=endpoint,
            keys=WebPushKeys(auth=keys["auth"], p256dh=keys["p256dh"]),
        )
        life = _life(notice)
        message = _signer().get(payload(notice, is_silent=is_silent), subscription, ttl=life)
        topic = notice.approval_id.rpartition("_")[2][-32:]
        headers = {**message.headers, "ttl": str(life), "topic": topic, "urgency": "low" if is_silent else "high"}
        try:
            status = guarded_http.post(endpoint, message.encrypted, headers, SECONDS).status_code
        except NoResponse as error:
            raise Retry(f"The browser's push service cannot be reached. {error}") from None
        if status in _NOT_THERE:
            raise Gone("This browser takes no more notifications: turn them on again in that browser.")
        if not 200 <= status < 300:
            raise Retry(f"The browser's push service responded with {status}.")
        return {"topic": topic}


def payload(notice: Notice, *, is_silent: bool) -> dict[str, str | bool]:
    """Return what the browser's worker gets: a title, a text, the page behind them, and the notification that they replace."""
    title, body = (
        _words(notice) if settings().push_content else ("Assent", "An approval has news." if is_silent else "Something waits.")
    )
    return {"title": title, "body": body, "path": _path(notice), "tag": notice.approval_id, "silent": is_silent}


def _words(notice: Notice) -> tuple[str, str]:
    """Return the title and the text: the agent and the specific thing first."""
    if notice.stage in ALONE:
        return notice.title, f"{notice.sentence}."
    lines = notice.evidence.splitlines()
    line = lines[0] if len(lines) == 1 and len(lines[0]) <= _MOST_LINE else notice.title
    subject = f"{notice.agent}: {line}" if notice.agent else line
    if notice.stage == "decided":
        return notice.ending, subject
    return subject, f"{notice.sentence}.\n{deadline(notice)}"[:_MOST_BODY]


def _path(notice: Notice) -> str:
    """Return the page on which a person who is signed in decides. No link with a token is sent: the browser is signed in."""
    if notice.stage in ALONE:
        url = urlsplit(notice.url)
        return url.path + (f"?{url.query}" if url.query else "") + (f"#{url.fragment}" if url.fragment else "")
    return f"/inbox/approvals/{notice.approval_id}"


def _life(notice: Notice) -> int:
    """Return for how many seconds the message is worth delivering."""
    seconds = (notice.deadline - datetime.now(UTC)).total_seconds() if notice.deadline else LONGEST_LIFE
    return max(60, min(int(seconds), LONGEST_LIFE))


def _signer() -> WebPush:
    """Return what encrypts and signs. Raises Retry if the operator has not set up push."""
    key, contact = settings().push_private_key, settings().push_contact
    if key is None or not contact:
        raise Retry("Push is not set up: ASSENT_PUSH_PRIVATE_KEY and ASSENT_PUSH_CONTACT must be set.")
    private, public = _pem(key.get_secret_value())
    return WebPush(private_key=private, public_key=public, subscriber=contact)


@cache
def _pem(text: str) -> tuple[bytes, bytes]:
    """Return the private and the public key, as the library takes them."""
    key = ec.derive_private_key(int.from_bytes(raw_key(text)), ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
