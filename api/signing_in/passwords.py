"""Signing in by e-mail address and password, if the setting `passwords` allows it."""

import time
from dataclasses import replace

import gevent
from flask import Response, request

from api.door import client, limits, pages
from api.door.errors import Denied
from api.signing_in.blueprint import enter, signing_in
from api.signing_in.routes import sign_in_page
from models.people import password
from models.people.person import MAX_EMAIL, spelling_of
from models.people.principal import PersonPrincipal
from models.settings import settings

SECONDS = 0.3
"""Least duration of an attempt. Without it, an attempt would take longer the more workspaces have a password for the address."""
_FAILED = "This e-mail address and password do not belong together."


@signing_in.post("/sign-in/password")
def sign_in_by_password() -> Response:
    """Sign in by e-mail address and password.

    The response does not tell whether the address is known.
    """
    check_allowed()
    pages.check_form()
    email = spelling_of(request.form.get("email", "")[:MAX_EMAIL])
    place = pages.local(request.form.get("next"))
    limits.take_attempt(email)
    start_time = time.monotonic()
    person = gevent.get_hub().threadpool.apply(_find, (email, request.form.get("password", "")))
    gevent.sleep(max(0.0, start_time + SECONDS - time.monotonic()))
    if person is None:
        return sign_in_page(place, failure=_FAILED, email=email, status=403)
    limits.give_attempt_back(email)
    return enter(replace(person, address=client.address()), "password", place)


def check_allowed() -> None:
    """Raise Denied (403) unless the setting allows passwords."""
    if not settings().passwords:
        raise Denied(403, "Passwords are switched off here; the server's setting is ASSENT_PASSWORDS.")


def _find(email: str, attempt: str) -> PersonPrincipal | None:
    """Return the person with this address and password, or None. Call it on a thread: a comparison keeps the CPU for long."""
    people = [person for person, password_hash in password.candidates(email) if password.fits(password_hash, attempt)]
    return people[0] if people else None
