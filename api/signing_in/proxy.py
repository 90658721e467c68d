"""Signs people in by the header of an authenticating proxy. The header counts only from a proxy of ASSENT_TRUSTED_PROXIES."""

from flask import Response, request

from api.door import browser, client
from api.signing_in.blueprint import enter as enter_person
from api.signing_in.connecting import offer
from models.people.arrival import Arrival, admit
from models.people.issuer import PROXY, proxy
from models.settings import settings

MOST_GROUPS = 200


def enter(place: str) -> Response | None:
    """Sign in the person whom the proxy's header names. Returns None without the header. Raises NotAdmitted, NotConnected."""
    source, email = proxy(), browser.proxy_email()
    if source is None or email is None:
        return None
    arrival = Arrival(
        source=source,
        subject=email,
        email=email,
        is_verified=True,
        name="",
        groups=frozenset(_groups()),
        address=client.address(),
    )
    if (response := offer(arrival)) is not None:
        return response
    person, limit = admit(arrival)
    return enter_person(person, PROXY, place, limit)


def _groups() -> list[str]:
    header = settings().proxy_groups_header
    value = request.headers.get(header, "") if header else ""
    return [name.strip() for name in value.split(",") if name.strip()][:MOST_GROUPS]
