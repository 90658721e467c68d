"""Sources that vouch for people: issuers of OpenID Connect, and the authenticating proxy. The operator configures both.

[{"name": "corp", "issuer_url": "https://login.example.com", "audiences": ["assent"],
  "email_domains": ["example.com"],
  "roles": [{"group": "assent-admins", "role": "admin"}, {"group": "eng-*", "role": "developer"}]}]
"""

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from models.people.person import spelling_of
from models.people.roles import ROLES, Role
from models.settings import settings

PROXY = "proxy"
"""The name of the authenticating proxy, as the source of roles and groups."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Domain = Annotated[str, StringConstraints(pattern=r"^(\*|[^\s@*]+)$", max_length=253), AfterValidator(spelling_of)]


class IssuersMisconfigured(Exception):
    """The settings for signing in are invalid. The message names the setting, the fault and the remedy."""


class GroupRole(BaseModel):
    """The role that a source's groups give."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    group: Text
    """A group's name, or a pattern such as `eng-*`."""
    role: Role
    workspace_id: str = Field("", pattern=r"^(wrkspc_\w+)?$")
    """The workspace of the role. Empty for the source's workspace."""


class Source(BaseModel):
    """An issuer or the proxy, and the roles that its groups give."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    roles: list[GroupRole] = Field(default_factory=list, max_length=200)
    groups: list[Text] = Field(default_factory=list, max_length=200)
    """Names or patterns of further groups that approvals can name, beside those in `roles`."""
    workspace_id: str = Field("", pattern=r"^(wrkspc_\w+)?$")
    """The default of the roles' workspaces. Empty for ASSENT_SIGN_IN_WORKSPACE."""
    email_domains: list[Domain] = Field(min_length=1, max_length=200)
    """The domains of the e-mail addresses that the source vouches for, each by its whole name. `*` stands for all domains."""
    direct_roles_up_to: Role | None = None
    """The strongest role given by an admin that a sign-in by this source can use. None: only what the source's groups give."""

    @property
    def issuer(self) -> str:
        """The source as `Identity.issuer` names it: the issuer's URL, or `proxy`."""
        return PROXY

    def vouches_for(self, email: str) -> bool:
        """True if the domain of this normalized e-mail address is one of the source's."""
        return not {"*", email.rpartition("@")[2]}.isdisjoint(self.email_domains)

    def limit(self, role: Role | None) -> Role | None:
        """Return the strongest role that a sign-in gives whose groups give `role`. None: nobody can sign in."""
        return min((each for each in (role, self.direct_roles_up_to) if each), key=ROLES.index, default=None)

    def roles_of(self, names: Iterable[str]) -> dict[str, Role]:
        """Return the strongest role that these groups give in each workspace, by the workspace's id."""
        names, strongest = list(names), {}
        for role in reversed(ROLES):
            for entry in self.roles:
                if entry.role == role and any(fnmatchcase(name, entry.group) for name in names):
                    strongest[entry.workspace_id or self.workspace_id or settings().sign_in_workspace] = role
        return strongest

    def groups_of(self, names: Iterable[str]) -> set[str]:
        """Return those of these groups that the configuration names."""
        patterns = [*(entry.group for entry in self.roles), *self.groups]
        return {name for name in names if len(name) <= 256 and any(fnmatchcase(name, pattern) for pattern in patterns)}


class Issuer(Source):
    """An issuer of OpenID Connect."""

    issuer_url: str
    audiences: list[Text] = Field(min_length=1, max_length=20)
    """Accepted values of the ID token's `aud`."""
    client_id: str = ""
    """Empty for the first audience."""
    groups_claim: Text = "groups"
    trusts_emails: bool = False
    """True for an issuer that sends no `email_verified` and lets nobody choose their own e-mail address."""
    scopes: Text = "openid email profile"

    @field_validator("name")
    @classmethod
    def _own_name(cls, value: str) -> str:
        if value in {"direct", PROXY}:
            raise ValueError(f"{value!r} is reserved by Assent: choose another name")
        return value

    @field_validator("issuer_url")
    @classmethod
    def _secure(cls, value: str) -> str:
        parts = urlsplit(value)
        is_local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
            raise ValueError("must begin with https://")
        return value

    @property
    def issuer(self) -> str:
        """The issuer's URL."""
        return self.issuer_url

    @property
    def client(self) -> str:
        """The client's id at the issuer."""
        return self.client_id or self.audiences[0]


def issuers() -> dict[str, Issuer]:
    """Return the configured issuers by name. Raises IssuersMisconfigured."""
    entries: list[dict[str, Any]] = settings().issuers
    if settings().issuers_file:
        try:
            content = json.loads(settings().issuers_file.read_text("utf-8"))  # type: ignore[union-attr]
        except (OSError, ValueError) as error:
            raise IssuersMisconfigured(f"ASSENT_ISSUERS_FILE: cannot be read as JSON: {error}") from None
        entries = [*entries, *(content.get("issuers", []) if isinstance(content, dict) else content)]
    configured = [_valid(Issuer, entry, "ASSENT_ISSUERS") for entry in entries]
    if len({issuer.name for issuer in configured}) < len(configured):
        raise IssuersMisconfigured("ASSENT_ISSUERS: two issuers have the same name: rename one")
    return {issuer.name: issuer for issuer in configured}


def proxy() -> Source | None:
    """Return the authenticating proxy, or None if none is configured. Raises IssuersMisconfigured."""
    if not settings().proxy_email_header:
        return None
    domains = [domain.strip() for domain in settings().proxy_email_domains.split(",") if domain.strip()]
    if not domains:
        raise IssuersMisconfigured(
            "ASSENT_PROXY_EMAIL_DOMAINS is not set: name the domains of the people whom the proxy signs in, or *"
        )
    entry = {
        "name": PROXY,
        "roles": settings().proxy_roles,
        "email_domains": domains,
        "direct_roles_up_to": settings().proxy_direct_roles_up_to or None,
    }
    source: Source = _valid(Source, entry, "ASSENT_PROXY_*")
    return source


def source_of(method: str) -> Source | None:
    """Return the source of a sign-in by its method, `oidc:NAME` or `proxy`. None for another method or a former source."""
    return proxy() if method == PROXY else issuers().get(source_name(method))


def source_name(method: str) -> str:
    """Return the name of the source of a sign-in, as `Member.source` has it, by the method. Other methods stay as they are."""
    return method.removeprefix("oidc:")


def check() -> None:
    """Raise IssuersMisconfigured if the settings for signing in are invalid, or let everybody send the proxy's header."""
    sources: list[Source] = list(issuers().values())
    if (proxy_source := proxy()) is not None:
        sources.append(proxy_source)
        networks = settings().proxy_networks
        if not networks:
            raise IssuersMisconfigured(
                "ASSENT_PROXY_EMAIL_HEADER is set, but ASSENT_TRUSTED_PROXIES is not: name the proxy's network"
            )
        if any(network.prefixlen == 0 for network in networks):
            raise IssuersMisconfigured(
                "ASSENT_TRUSTED_PROXIES names every address, but ASSENT_PROXY_EMAIL_HEADER trusts them: name the proxy's network"
            )
    if settings().sign_in_workspace:
        return
    for source in sources:
        if not source.workspace_id and any(not entry.workspace_id for entry in source.roles):
            raise IssuersMisconfigured(
                f"{source.name}: its roles name no workspace: set ASSENT_SIGN_IN_WORKSPACE to an id, wrkspc_..."
            )


def _valid(kind: type[Any], entry: Any, setting: str) -> Any:
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IssuersMisconfigured(f"{setting}: {where}: {first['msg'].removeprefix('Value error, ')}") from None
