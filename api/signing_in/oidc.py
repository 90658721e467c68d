"""Signing in at an issuer of OpenID Connect: the authorization code flow with PKCE, state and nonce.

Each sign-in reads the issuer's metadata, its keys and the person's groups anew.
"""

import hmac
import secrets
from typing import Any

from flask import Response, request

from api.door import browser, client, limits, pages
from api.door.errors import Denied
from api.signing_in import ceremonies
from api.signing_in.blueprint import enter, signing_in
from api.signing_in.connecting import offer
from models.errors import NotFound
from models.people.arrival import Arrival, admit
from models.people.issuer import Issuer, issuers
from models.people.person import MAX_NAME, normalized

MOST_GROUPS = 1000

Json = dict[str, Any]


@signing_in.get("/sign-in/oidc/<name>")
def begin(name: str) -> Response:
    """Send the browser to the issuer."""
    issuer = _issuer(name)
    if why := browser.why_refused():
        raise Denied(403, why)
    limits.take_attempt()
    ceremony = {"kind": f"oidc:{name}", "next": pages.local(request.args.get("next"))}
    ceremony |= {part: secrets.token_urlsafe(48) for part in ("state", "nonce", "verifier")}
    from api.signing_in import openid  # here, as its imports are slow

    url = openid.authorization_url(issuer, ceremony)
    response = Response(status=303, headers={"location": url})
    ceremonies.begin(response, ceremony)
    return response


@signing_in.get("/sign-in/oidc/<name>/callback")
def callback(name: str) -> Response:
    """Sign in the person for whom the issuer vouches."""
    issuer = _issuer(name)
    ceremony = ceremonies.end(f"oidc:{name}")
    if not hmac.compare_digest(request.args.get("state", "").encode(), ceremony["state"].encode()):
        raise Denied(403, "This is not the sign-in that this browser began. Begin again.")
    if request.args.get("iss", issuer.issuer_url) != issuer.issuer_url:
        raise Denied(403, "Another issuer answers than the one that was asked. Begin again.")
    if error := request.args.get("error"):
        raise Denied(403, f"{name} refuses the sign-in: {request.args.get('error_description') or error}"[:500])
    from api.signing_in import openid

    claims = openid.claims_of(issuer, request.args.get("code", ""), ceremony)
    arrival = _arrival(issuer, claims)
    response = offer(arrival)
    if response is None:
        person, limit = admit(arrival)
        response = enter(person, f"oidc:{name}", ceremony["next"], limit)
    limits.give_attempt_back()
    return response


def _issuer(name: str) -> Issuer:
    issuer = issuers().get(name)
    if issuer is None:
        raise NotFound("issuer", name[:40])
    return issuer


def _arrival(issuer: Issuer, claims: Json) -> Arrival:
    email = claims.get("email")
    if not isinstance(email, str):
        raise Denied(403, f"{issuer.name} does not tell your e-mail address: have it send the claim `email`.")
    groups = claims.get(issuer.groups_claim)
    return Arrival(
        source=issuer,
        subject=str(claims["sub"])[:255],
        email=normalized(email),
        is_verified=claims.get("email_verified") is True or issuer.trusts_emails,
        name=str(claims.get("name") or "")[:MAX_NAME],
        groups=frozenset(group for group in groups[:MOST_GROUPS] if isinstance(group, str))
        if isinstance(groups, list)
        else frozenset(),
        address=client.address(),
    )
