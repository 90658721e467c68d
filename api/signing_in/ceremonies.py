"""Ceremonies in a browser: values stored from the begin to the end of a sign-in or a registration, behind a cookie of their own."""

from typing import Any

from flask import Response, request

from api.door import browser
from api.door.errors import Denied
from models.people.ceremony import SECONDS, Ceremony

COOKIE = "__Host-assent-ceremony"


def begin(response: Response, data: dict[str, Any]) -> None:
    """Store `data` for the end, and give the browser the cookie for it. `data` has a `kind`."""
    browser.set_cookie(response, Ceremony.begin(data), SECONDS, COOKIE)


def end(kind: str) -> dict[str, Any]:
    """Return the stored data, once. Raises Denied (403)."""
    secret = request.cookies.get(browser.cookie_name(COOKIE), "")
    data = Ceremony.end(secret, kind) if secret else None
    if data is None:
        raise Denied(403, "This took too long, or was done already. Begin again on the page for signing in.")
    return data
