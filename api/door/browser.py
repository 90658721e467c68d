"""Requests of browsers: the cookie of a sign-in, the person behind the cookie, and the proof that a page of ours sent a form.

    person = browser.current_person()     the signed-in person, or None
    browser.check_same_origin()           before anything that a form or script changes: Sec-Fetch-Site or Origin
    browser.check_token(text)             likewise: the token that our own pages have, `browser.token()`

The cookie is `__Host-assent` over TLS. On loopback HTTP the cookie is `assent-PORT`, since browsers share cookies between ports.
Over any other plain HTTP no cookie is read or set.
"""

import hmac
import secrets
from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Response, g, request

from api.door import client
from api.door.errors import Denied
from models.database.transactions import transaction
from models.errors import Invalid
from models.people import sign_in
from models.people.issuer import PROXY
from models.people.person import Identity, normalized
from models.people.principal import PersonPrincipal
from models.settings import settings

COOKIE = "__Host-assent"
FORM_COOKIE = "__Host-assent-form"
FORM_SECONDS = 86_400
TOKEN_FIELD = "csrf_token"  # noqa: S105 - a field's name
TOKEN_HEADER = "x-csrf-token"  # noqa: S105 - a header's name
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def current_person() -> PersonPrincipal | None:
    """Return the person who is signed in by the request's cookie, with the present role and groups, or None.

    The look-up is done once per request.
    """
    if "person" not in g:
        session = sign_in.find(secret) if (secret := sign_in_secret()) else None
        g.person = replace(session.person, address=client.address()) if session and _proxy_agrees(session) else None
    person: PersonPrincipal | None = g.person
    return person


def proxy_email() -> str | None:
    """Return the e-mail address that the authenticating proxy names, or None. The header counts only from a trusted proxy."""
    header = settings().proxy_email_header
    if not header or not client.by_trusted_proxy():
        return None
    try:
        return normalized(request.headers.get(header, ""))
    except Invalid:
        return None


def _proxy_agrees(session: sign_in.OpenSignIn) -> bool:
    """True unless the sign-in came by the proxy's header, and the header does not name the same person now."""
    if session.method != PROXY:
        return True
    email = proxy_email()
    if email is None:
        return False
    with transaction(session.person.workspace_id) as db:
        return Identity.find(db, PROXY, email) == session.person.person_id


def sign_in_secret() -> str:
    """Return the secret in the cookie of the sign-in; empty without a cookie, and over plain HTTP that is not loopback."""
    return request.cookies.get(cookie_name(), "") if why_refused() is None else ""


def cookie_name(base: str = COOKIE) -> str:
    """Return the name that a cookie of ours has over this connection."""
    if client.spoke_tls():
        return base
    return f"{base.removeprefix('__Host-')}-{urlsplit(request.host_url).port or 80}"


def set_cookie(response: Response, value: str, seconds: float, base: str = COOKIE) -> None:
    """Set a cookie that no script reads and no other site's form sends."""
    response.set_cookie(
        cookie_name(base), value, max_age=int(seconds), secure=client.spoke_tls(), httponly=True, samesite="Lax", path="/"
    )


def delete_cookie(response: Response, base: str = COOKIE) -> None:
    """Have the browser forget a cookie."""
    response.delete_cookie(cookie_name(base), secure=client.spoke_tls(), httponly=True, samesite="Lax", path="/")


def why_refused() -> str | None:
    """Return why nobody can sign in over this connection; None over TLS, and over HTTP that does not leave this machine."""
    if client.spoke_tls() or (_is_loopback(client.address() or "") and _is_loopback(urlsplit(request.host_url).hostname or "")):
        return None
    return (
        f"Signing in needs HTTPS: this page came over plain HTTP, as {request.host_url}, so others could read the cookie. "
        "Put a proxy with TLS in front, name its network in ASSENT_TRUSTED_PROXIES, and have it send X-Forwarded-Proto: https."
    )


def token() -> str:
    """Return the token that forms of the signed-in person carry as `csrf_token`, and scripts as the header `x-csrf-token`."""
    return token_of(sign_in_secret())


def token_of(secret: str) -> str:
    """Return the token that belongs to a cookie's secret."""
    return hmac.new(secret.encode(), b"csrf", "sha256").hexdigest()


def check_token(text: str | None) -> None:
    """Raise Denied (403) unless this is the token of the request's own sign-in."""
    if not hmac.compare_digest((text or "").encode(), token().encode()):
        raise Denied(403, f"{TOKEN_FIELD}: this form belongs to another sign-in. Load the page again, and send the form anew.")


def check_same_origin(*, hides_origin: bool = False) -> None:
    """Raise Denied (403) unless a page of ours sent the request: by Sec-Fetch-Site or, in browsers without this header, by Origin.

    `hides_origin`: the page's policy is `no-referrer`, so that browsers without Sec-Fetch-Site send the origin `null`.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        is_ours = site in {"same-origin", "none"}
    else:
        is_ours = origin in {request.host_url.rstrip("/"), settings().public_url.rstrip("/")} or (hides_origin and origin == "null")
    if not is_ours:
        raise Denied(403, "This request came from another site's page. Open Assent's own page, and repeat it there.")


def check_change() -> None:
    """Raise Denied (403) unless a page of ours, with the token of the request's own sign-in, sent the request."""
    check_same_origin()
    header = request.headers.get(TOKEN_HEADER)
    check_token(header if header is not None else request.form.get(TOKEN_FIELD))


def form_token(response: Response) -> str:
    """Return the token of a form for somebody who is not signed in. It belongs to a cookie, which the response sets."""
    value = request.cookies.get(cookie_name(FORM_COOKIE)) or secrets.token_urlsafe(32)
    set_cookie(response, value, FORM_SECONDS, FORM_COOKIE)
    return token_of(value)


def check_form_token() -> None:
    """Raise Denied (403) unless the form has the token of the form's cookie. Reads the form."""
    own_token = token_of(request.cookies.get(cookie_name(FORM_COOKIE), secrets.token_urlsafe(32)))
    if not hmac.compare_digest(request.form.get(TOKEN_FIELD, "").encode(), own_token.encode()):
        raise Denied(403, f"{TOKEN_FIELD}: this form is too old, or the browser keeps no cookies. Load the page again.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
