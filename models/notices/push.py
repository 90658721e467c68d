"""Push: notifications that a browser shows, also while no page of Assent is open (RFC 8030, 8291 and 8292).

A browser's subscription is a channel of one person in one workspace, and ends with the sign-in in which it began.
"""

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from models.database import encryption
from models.database.rows import Db
from models.errors import Conflict, Invalid
from models.notices.channel import Channel, NewChannel
from models.people.principal import PersonPrincipal
from models.people.sign_in import SignIn
from models.pure.key_secret import sha256
from models.settings import settings

MOST_CHARACTERS = 4000
"""Of a subscription as JSON."""
MOST_URL = 1000
"""Most characters of a subscription's endpoint."""
KEYS = {"p256dh": 65, "auth": 16}
"""The bytes of a subscription's keys: a point of the curve P-256, and a secret."""


def subscribe(db: Db, person: PersonPrincipal, text: str, name: str) -> None:
    """Have a browser show the person's notifications. `text`: the JSON of its `PushSubscription`. `name`: of the browser.

    A browser has one channel in a workspace: an earlier one of another person ends. So do the person's channels whose sign-in has
    ended. Raises Invalid, Conflict, Forbidden.
    """
    if not settings().push_public_key:
        raise Conflict("This installation sends no push messages: the operator sets ASSENT_PUSH_PUBLIC_KEY first.")
    person.check_unlimited()
    subscription = _read(text)
    if _go_on(db, person, subscription):
        return
    rows = db.find(
        Channel,
        "WHERE kind = 'push' AND (person_id = %(person)s OR token_sha256 = %(endpoint)s) ORDER BY id FOR UPDATE",
        person=person.person_id,
        endpoint=sha256(subscription["endpoint"]),
    )
    standing = SignIn.standings(db, {row.sign_in_id for row in rows if row.sign_in_id})
    for row in rows:
        if row.person_id != person.person_id or row.sign_in_id not in standing:
            row.delete(db, person)
    secret = json.dumps(subscription)
    new = NewChannel(kind="push", address=name, secret=secret, person_id=person.person_id, sign_in_id=person.sign_in_id)
    Channel.create(db, person, new)


def renew(db: Db, person: PersonPrincipal, text: str) -> None:
    """Have a browser's channel go on with a new sign-in of the same person. No-op without such a channel. Raises Invalid."""
    _go_on(db, person, _read(text))


def _go_on(db: Db, person: PersonPrincipal, subscription: dict[str, str]) -> bool:
    """Bind the person's channel of this subscription to the present sign-in. Returns False if there is none."""
    row = db.first(
        Channel,
        "WHERE kind = 'push' AND person_id = %(person)s AND token_sha256 = %(endpoint)s FOR UPDATE",
        person=person.person_id,
        endpoint=sha256(subscription["endpoint"]),
    )
    if row is None:
        return False
    row.sign_in_id = person.sign_in_id
    row.secret = encryption.encrypt("deliver", json.dumps(subscription), row.id)
    return True


def is_signed_out(db: Db, channel: Channel) -> bool:
    """True if the sign-in with which the channel ends has ended."""
    return channel.kind == "push" and not SignIn.standings(db, [channel.sign_in_id or ""])


def _read(text: str) -> dict[str, str]:
    """Return the `endpoint`, `p256dh` and `auth` of a subscription. Raises Invalid."""
    try:
        subscription: Any = json.loads(text) if len(text) <= MOST_CHARACTERS else None
        endpoint, keys = str(subscription["endpoint"]), {name: str(subscription["keys"][name]) for name in KEYS}
        sizes = {name: len(base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))) for name, key in keys.items()}
        url = urlsplit(endpoint)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _invalid() from None
    if sizes != KEYS or len(endpoint) > MOST_URL or url.scheme not in {"https", "http"} or not url.hostname:
        raise _invalid()
    return {"endpoint": endpoint, **keys}


def _invalid() -> Invalid:
    return Invalid(
        "subscription", "must be the JSON of a browser's PushSubscription, with an endpoint and the keys p256dh and auth."
    )
