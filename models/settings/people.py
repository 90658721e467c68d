"""Settings of people: how they sign in."""

from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class PeopleSettings(BaseSettings):
    """A part of `Settings`."""

    public_url: str = "http://localhost:8000"
    """The address under which browsers reach Assent: of one-time links, passkeys and redirects. HTTPS, but on localhost."""
    invitation_seconds: float = Field(3 * 86_400, ge=60)
    """How long a one-time link is good."""
    sign_in_idle_seconds: float = Field(12 * 3600, ge=60)
    """A sign-in ends when no request uses it for this long."""
    sign_in_seconds: float = Field(7 * 86_400, ge=60)
    """A sign-in ends after this long in any case."""
    sign_in_attempts_per_second: float = Field(0.1, ge=0)
    """Failed attempts to sign in, wrong codes and unknown links, per client address and e-mail address; 0 means no limit."""
    sign_in_attempts_burst: int = Field(10, ge=1)
    """How many of them may come at once after a rest."""
    flood_approvals: int = Field(50, ge=0, le=10_000)
    """Approvals that wait for one person from which an alarm is raised, and new ones are spread; 0 for no alarm."""
    passwords: bool = False
    """Lets people sign in by e-mail address and password, beside passkeys."""
    sign_in_workspace: str = Field("", pattern=r"^(wrkspc_\w+)?$")
    """The workspace of people whom an issuer or the authenticating proxy brings, where no other is named."""
    issuers: list[dict[str, Any]] = []
    """Issuers of OpenID Connect, as JSON: see docs/people.md."""
    issuers_file: Path | None = None
    """The same, in a file."""
    issuer_secrets: dict[str, SecretStr] = {}
    """Client secrets by the issuers' names, as JSON; an issuer without a secret is asked as a public client."""
    proxy_email_header: str = ""
    """The header in which an authenticating proxy, one of ASSENT_TRUSTED_PROXIES, names the person by e-mail address."""
    proxy_groups_header: str = ""
    """The header in which it lists the person's groups, with commas between."""
    proxy_email_domains: str = ""
    """The domains of the e-mail addresses that the proxy may name, with commas between; `*` for all. Needed with the header."""
    proxy_direct_roles_up_to: str = ""
    """The strongest role given by an admin that a sign-in by the proxy can use. Empty: only what the proxy's groups give."""
    proxy_roles: list[dict[str, Any]] = []
    """The roles of those groups, as JSON: `[{"group": "ops", "role": "approver"}]`."""
