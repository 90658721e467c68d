"""Signing in at an issuer of OpenID Connect: the authorization code flow with PKCE, state and nonce.

What the issuer says is read anew at each sign-in: its metadata, its keys, and the person's groups.
"""

import hmac
import secrets
import time
from typing import Any

import httpx
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from flask import Response, request
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from api import browser, client, limits, pages
from api.errors import Denied
from api.pages import readable
from api.signing_in import ceremonies
from api.signing_in.blueprint import enter, signing_in
from models.errors import NotFound
from models.people.arrival import Arrival, admit
from models.people.issuer import Issuer, issuers
from models.people.person import MAX_NAME, normalized
from models.settings import settings

SECONDS = 10
"""How long each request to the issuer may take."""
LEEWAY_SECONDS = 60
"""How far the issuer's clock may be off."""
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
MOST_GROUPS = 1000

Json = dict[str, Any]


@signing_in.get("/sign-in/oidc/<name>")
@readable
def begin(name: str) -> Response:
    """Send the browser to the issuer."""
    issuer = _issuer(name)
    if why := browser.why_refused():
        raise Denied(403, why)
    limits.take_attempt()
    metadata = _metadata(issuer)
    begun = {"kind": f"oidc:{name}", "next": pages.local(request.args.get("next"))}
    begun |= {part: secrets.token_urlsafe(48) for part in ("state", "nonce", "verifier")}
    with _client(issuer) as asking:
        url, _ = asking.create_authorization_url(
            metadata["authorization_endpoint"],
            state=begun["state"],
            nonce=begun["nonce"],
            code_verifier=begun["verifier"],
        )
    response = Response(status=303, headers=pages.HEADERS | {"location": url})
    ceremonies.begin(response, begun)
    return response


@signing_in.get("/sign-in/oidc/<name>/callback")
@readable
def callback(name: str) -> Response:
    """Sign in the person for whom the issuer vouches."""
    issuer = _issuer(name)
    begun = ceremonies.end(f"oidc:{name}")
    if not hmac.compare_digest(request.args.get("state", "").encode(), begun["state"].encode()):
        raise Denied(403, "This is not the sign-in that this browser began. Begin again.")
    if request.args.get("iss", issuer.issuer_url) != issuer.issuer_url:
        raise Denied(403, "Another issuer answers than the one that was asked. Begin again.")
    if error := request.args.get("error"):
        raise Denied(403, f"{name} refuses the sign-in: {request.args.get('error_description') or error}"[:500])
    claims = _claims(issuer, request.args.get("code", ""), begun)
    person = admit(_arrival(issuer, claims))
    limits.give_attempt_back()
    return enter(person, f"oidc:{name}", begun["next"])


def redirect_uri(issuer: Issuer) -> str:
    """Return the address to register at the issuer."""
    return f"{settings().public_url.rstrip('/')}/sign-in/oidc/{issuer.name}/callback"


def _issuer(name: str) -> Issuer:
    issuer = issuers().get(name)
    if issuer is None:
        raise NotFound("issuer", name[:40])
    return issuer


def _client(issuer: Issuer) -> OAuth2Client:
    secret = settings().issuer_secrets.get(issuer.name)
    return OAuth2Client(
        client_id=issuer.client,
        client_secret=secret.get_secret_value() if secret else None,
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
        scope=issuer.scopes,
        redirect_uri=redirect_uri(issuer),
        code_challenge_method="S256",
        timeout=SECONDS,
    )


def _metadata(issuer: Issuer) -> Json:
    metadata = _get(f"{issuer.issuer_url.rstrip('/')}/.well-known/openid-configuration", issuer)
    if metadata.get("issuer") != issuer.issuer_url:
        raise Denied(403, f"{issuer.name}: its metadata name another issuer. Set issuer_url to the issuer's exact name.")
    return metadata


def _claims(issuer: Issuer, code: str, begun: Json) -> Json:
    """Return what the issuer says of the person, by a verified ID token. Raises Denied (403)."""
    metadata = _metadata(issuer)
    try:
        with _client(issuer) as asking:
            token = asking.fetch_token(metadata["token_endpoint"], code=code, code_verifier=begun["verifier"])
            claims = _verified(issuer, token["id_token"], _get(metadata["jwks_uri"], issuer), begun["nonce"])
            if "userinfo_endpoint" in metadata and not {"email", issuer.groups_claim} <= claims.keys():
                more = asking.get(metadata["userinfo_endpoint"]).raise_for_status().json()
                claims = more | claims if more.get("sub") == claims["sub"] else claims
    except (OAuthError, httpx.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
        raise Denied(403, f"{issuer.name} does not vouch for you ({type(error).__name__}). Begin again.") from error
    return claims


def _verified(issuer: Issuer, id_token: str, keys: Json, nonce: str) -> Json:
    claims = jwt.decode(id_token, KeySet.import_key_set(keys), algorithms=ALGORITHMS).claims  # type: ignore[arg-type]
    registry = jwt.JWTClaimsRegistry(
        now=int(time.time()),
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": issuer.issuer_url},
        aud={"essential": True, "values": issuer.audiences},
        exp={"essential": True},
        sub={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    registry.validate(claims)
    if claims.get("azp", issuer.client) != issuer.client:
        raise ValueError("azp")
    return claims


def _arrival(issuer: Issuer, claims: Json) -> Arrival:
    email = claims.get("email")
    if not isinstance(email, str):
        raise Denied(403, f"{issuer.name} does not tell your e-mail address: have it send the claim `email`.")
    groups = claims.get(issuer.groups_claim)
    return Arrival(
        source=issuer,
        issuer=issuer.issuer_url,
        subject=str(claims["sub"])[:255],
        email=normalized(email),
        is_verified=claims.get("email_verified") is True or issuer.trusts_emails,
        name=str(claims.get("name") or "")[:MAX_NAME],
        groups=frozenset(group for group in groups[:MOST_GROUPS] if isinstance(group, str))
        if isinstance(groups, list)
        else frozenset(),
        address=client.address(),
    )


def _get(url: str, issuer: Issuer) -> Json:
    try:
        document: Json = httpx.get(url, timeout=SECONDS).raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise Denied(503, f"{issuer.name} does not answer ({type(error).__name__}). Try again in a moment.") from error
    return document
