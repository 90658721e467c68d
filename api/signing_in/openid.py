"""Talks to an issuer of OpenID Connect: its metadata, the authorization code flow, and ID tokens.

Its libraries take a quarter of a second to import, so the routes import this file when somebody signs in at an issuer.
"""

import time
from typing import Any

import httpx2
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from api.door.errors import Denied
from models.people.issuer import Issuer
from models.settings import settings

SECONDS = 10
"""How long each request to the issuer may take."""
LEEWAY_SECONDS = 60
"""The most that the issuer's clock may differ."""
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]

Json = dict[str, Any]


def authorization_url(issuer: Issuer, ceremony: Json) -> str:
    """Return the issuer's page to which the browser is sent. `ceremony` holds its state, nonce and verifier."""
    metadata = _metadata(issuer)
    with _client(issuer) as oauth:
        url: str = oauth.create_authorization_url(
            metadata["authorization_endpoint"],
            state=ceremony["state"],
            nonce=ceremony["nonce"],
            code_verifier=ceremony["verifier"],
        )[0]
    return url


def claims_of(issuer: Issuer, code: str, ceremony: Json) -> Json:
    """Return the issuer's claims about the person, from a verified ID token. Raises Denied (403)."""
    metadata = _metadata(issuer)
    try:
        with _client(issuer) as oauth:
            token = oauth.fetch_token(metadata["token_endpoint"], code=code, code_verifier=ceremony["verifier"])
            claims = _verified(issuer, token["id_token"], _get(metadata["jwks_uri"], issuer), ceremony["nonce"])
            if "userinfo_endpoint" in metadata and not {"email", issuer.groups_claim} <= claims.keys():
                more = _object(oauth.get(metadata["userinfo_endpoint"]))
                claims = more | claims if more.get("sub") == claims["sub"] else claims
    except (OAuthError, httpx2.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
        raise Denied(403, f"The issuer {issuer.name} does not vouch for you ({type(error).__name__}). Begin again.") from error
    return claims


def redirect_uri(issuer: Issuer) -> str:
    """Return the address to register at the issuer."""
    return f"{settings().public_url.rstrip('/')}/sign-in/oidc/{issuer.name}/callback"


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
    if missing := {"authorization_endpoint", "token_endpoint", "jwks_uri"} - metadata.keys():
        raise Denied(403, f"{issuer.name}: its metadata have no {min(missing)}. Set issuer_url to an issuer of OpenID Connect.")
    return metadata


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


def _get(url: str, issuer: Issuer) -> Json:
    try:
        return _object(httpx2.get(url, timeout=SECONDS))
    except (httpx2.HTTPError, ValueError) as error:
        raise Denied(503, f"The issuer {issuer.name} does not respond ({type(error).__name__}). Try again in a moment.") from error


def _object(response: httpx2.Response) -> Json:
    """Return the JSON object of a response. Raises httpx2.HTTPError, or ValueError for anything else."""
    document = response.raise_for_status().json()
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    return document
