"""The environment, read once. Every knob of Assent is a field here, with its unit in its name."""

from functools import cache, cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings by environment variable: `ASSENT_` and the field's name, but for the few names that everybody knows."""

    model_config = SettingsConfigDict(env_prefix="ASSENT_", frozen=True, extra="ignore")

    # Where things are
    database_url: str = Field("postgresql://assent_app@localhost/assent", validation_alias="DATABASE_URL")
    """Role `assent_app`: requests and tasks, one workspace per transaction."""
    database_system_url: str = Field("", validation_alias="DATABASE_SYSTEM_URL")
    """Role `assent_system`: finds ids across workspaces and stamps hints, nothing else. For sweeps and the command line."""
    database_owner_url: str = Field("", validation_alias="DATABASE_OWNER_URL")
    """Role `assent_owner`: migrations only."""
    redis_url: str = Field("redis://localhost:6379/0", validation_alias="REDIS_URL")
    anthropic_api_key: SecretStr | None = Field(None, validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(None, validation_alias="ANTHROPIC_BASE_URL")
    environment: Literal["production", "development"] = "production"

    # Database connections
    database_pool_size: int = 10
    """Connections per process. Transactions are short, so hundreds of turns share a few."""
    database_pool_timeout_seconds: float = 5

    # Time
    lease_seconds: float = 45
    heartbeat_seconds: float = 10
    work_lease_seconds: float = 60
    """How long a worker of a self-hosted environment holds its work without a heartbeat, unless it asks for another time."""
    watch_seconds: float = 1
    """How often a process asks whether its leases are still its own, and whether a cancel was asked for."""
    sweep_seconds: float = 5
    rehint_seconds: float = 5
    """A queued row is hinted again after the longer of this and half its age."""
    max_lag_seconds: float = 1
    """A process whose clock ticks later than this claims nothing new."""

    # Turns
    max_turns: int = Field(5, ge=1, le=1000)
    """Turns per user message, unless agent or session says otherwise."""
    max_tokens: int = 16_384
    """Of one reply."""
    turns_in_flight: int = 300
    """Model calls in flight per turns process."""
    model_attempts: int = 6
    """Tries at one turn while the model answers with passing errors."""
    backoff_seconds: float = 1
    """First wait after a passing model error; doubles, with jitter, up to `backoff_max_seconds`."""
    backoff_max_seconds: float = 60
    model_timeout_seconds: float = 600
    crash_attempts: int = 3
    """Tries at a turn or an idempotent tool call whose worker keeps dying."""
    delta_seconds: float = 0.08
    """Text is pushed to stream readers at this pace, not per token."""

    # Tools
    workdir_root: Path = Path(".assent/workdirs")
    shell: Literal["bubblewrap", "bare"] = "bubblewrap"
    """`bubblewrap` refuses to run a shell where bubblewrap is missing; `bare`, in development only, has no sandbox."""
    announce_seconds: float = Field(60, gt=0, le=120)
    """How often a tools worker says which toolsets it has; what MCP servers have is asked as often."""
    tool_seconds: float = 120
    """Time limit of one tool call, unless the tool says otherwise."""
    client_tool_seconds: float = Field(86_400, gt=0)
    """How long a client may take for a call that it runs, unless the tool says otherwise; then the run goes on without it."""
    tool_output_bytes: int = 100_000
    """What the model sees of one result at most."""
    tool_result_bytes: int = Field(10_000_000, ge=10_000, le=100_000_000)
    """What is kept of one result at most, to be read in parts."""
    workdir_bytes: int = Field(1 << 30, ge=1_000_000)
    """What the files of a session may take on disk. The shell can pass it by what it writes within half a second."""
    workdir_files: int = Field(100_000, ge=100)
    """How many files and directories a session may have."""
    workdir_free_bytes: int = Field(500_000_000, ge=0)
    """What must stay free on the disk of the workdirs: a shell command is ended and a file is not written below it."""
    shell_network: bool = False
    """Lets shell commands use the network: all of it, the services on this machine's loopback included."""
    shell_memory_bytes: int = Field(4 << 30, ge=64 << 20)
    """Memory of one shell command, all its processes together."""
    shell_processes: int = Field(256, ge=16)
    """Processes and threads of one shell command at a time."""
    shell_temporary_bytes: int = Field(256 << 20, ge=1 << 20)
    """Of a shell command's own `/tmp`, which is memory; `/dev/shm` may have as much again."""
    shell_grace_seconds: float = Field(2, ge=0, le=60)
    """Between SIGTERM and SIGKILL for a shell command that is cancelled or out of time."""
    mcp_config: Path | None = None
    """The operator's MCP servers: a file in the format `{"mcpServers": {...}}`."""
    mcp_listing_seconds: float = 60
    """How long what an MCP server says of its tools is believed."""
    mcp_connect_seconds: float = Field(30, gt=0)
    """How long an MCP server may take to start or be reached, and again to list its tools."""
    mcp_idle_seconds: float = 60
    """An MCP server that was not called for so long is disconnected from; one that we started is ended."""
    mcp_http: bool = False
    """Allow http:// and private addresses in the URLs of MCP servers that clients give."""
    mcp_response_bytes: int = Field(20_000_000, ge=1)
    """The longest message that is read from an MCP server."""
    toolsets: str = ""
    """Toolsets beside those of installed packages (entry points `assent.toolsets`): `module:attribute`, with spaces between."""
    toolset_workspaces: dict[str, list[Annotated[str, Field(pattern=r"^wrkspc_\w+$")]]] = {}
    """The only workspaces that may use an `assent:NAME`, by its name, as JSON: `{"billing": ["wrkspc_..."]}`. For others a
    toolset or MCP server that is limited does not exist; one that is not named here is for all."""

    # Decisions
    default_permission: Literal["ask", "deny", "allow"] = "ask"
    """Of built-in tools for which no policy says anything."""
    approval_seconds: float = Field(86_400, gt=0)
    """Deadline of an approval, unless the tool, the agent or the workspace says otherwise."""
    remind_after_seconds: float = Field(300, gt=0)
    """When people are reminded of an approval that still waits; likewise."""
    grant_seconds: float = Field(30 * 86_400, gt=0)
    """How long a standing grant (scope `always`) lives, unless its giver says otherwise."""

    # The audit
    seal_seconds: float = 5
    """How often the audit is sealed: what came since could be changed unnoticed by who can write to the database."""
    audit_key: SecretStr | None = None
    """Signs the seals: an Ed25519 private key, 32 bytes in base64, or PEM. Without one they are unsigned."""
    audit_key_file: Path | None = None
    """The same, in a file; `assent audit key FILE` makes one."""
    audit_heads_file: Path | None = None
    """Where the sealer keeps the heads that it signed last, outside the database; unset, beside `audit_key_file`."""
    audit_public_keys: str = ""
    """Public keys that signed before, in base64, with spaces between them: their seals stay good."""

    # People
    public_url: str = "http://localhost:8000"
    """The address under which browsers reach Assent: of one-time links, passkeys and redirects. HTTPS, but on localhost."""
    invitation_seconds: float = Field(3 * 86_400, ge=60)
    """How long a one-time link is good."""
    sign_in_idle_seconds: float = Field(12 * 3600, ge=60)
    """A sign-in ends when no request uses it for this long."""
    sign_in_seconds: float = Field(7 * 86_400, ge=60)
    """A sign-in ends after this long in any case."""
    sign_in_attempts_per_second: float = Field(0.1, ge=0)
    """Attempts to sign in that failed, per client address and per e-mail address, in the long run; 0 is no limit."""
    sign_in_attempts_burst: int = Field(10, ge=1)
    """How many of them may come at once after a rest."""
    passwords: bool = False
    """Lets people sign in by e-mail address and password, beside passkeys."""
    sign_in_workspace: str = Field("", pattern=r"^(wrkspc_\w+)?$")
    """The workspace of people whom an issuer or the authenticating proxy brings, where no other is named."""
    issuers: list[dict[str, Any]] = []
    """Issuers of OpenID Connect, as JSON: see docs/people.md."""
    issuers_file: Path | None = None
    """The same, in a file."""
    issuer_secrets: dict[str, SecretStr] = {}
    """Client secrets by the issuers' names, as JSON; an issuer without one is asked as a public client."""
    proxy_email_header: str = ""
    """The header in which an authenticating proxy, one of ASSENT_TRUSTED_PROXIES, names the person by e-mail address."""
    proxy_groups_header: str = ""
    """The header in which it lists the person's groups, with commas between."""
    proxy_roles: list[dict[str, Any]] = []
    """The roles of those groups, as JSON: `[{"group": "ops", "role": "approver"}]`."""

    # Doors. What counts per API key counts in each web process by itself: no limit needs Redis, or any other process, to hold.
    trusted_proxies: str = ""
    """Addresses of the proxies in front of us, as CIDRs with spaces or commas between: their X-Forwarded-* headers are believed."""
    unknown_keys_per_second: float = Field(1, ge=0)
    """API keys that nobody knows, per client address (of IPv6: per /64), in the long run; 0 is no limit."""
    unknown_keys_burst: int = Field(50, ge=1)
    """How many of them an address may send at once after a rest."""
    max_body_bytes: int = Field(4_000_000, ge=1)
    body_seconds: float = Field(60, gt=0)
    """How long a body may take to arrive. Headers have gunicorn's 2 s."""
    max_request_line_bytes: int = Field(8190, ge=256, le=8190)
    """Of method, path and query together; gunicorn takes no more."""
    max_header_bytes: int = Field(8190, ge=256, le=1_000_000)
    """Of one header."""
    max_headers: int = Field(100, ge=32, le=32_768)
    max_page_rows: int = Field(100, ge=20, le=1000)
    """What `limit` of a list may ask for; lists give 20 unasked."""
    max_page_events: int = Field(1000, ge=1000, le=10_000)
    """Likewise, of events. The SDKs' runners ask for 1000."""
    max_events_per_post: int = Field(50, ge=1, le=1000)
    requests_per_second: float = Field(200, ge=0)
    """Per API key, in the long run; 0 is no limit."""
    requests_burst: int = Field(2000, ge=1)
    """How many an API key may send at once after a rest."""
    streams_per_key: int = Field(1000, ge=0)
    """Open streams per API key; 0 is no limit. WEB_CONNECTIONS limits those of all keys together."""
    stream_poll_seconds: float = 2
    """How often a stream looks for events that no hint announced."""
    stream_comment_seconds: float = 15
    stream_write_seconds: float = 30
    """A stream's client that takes nothing for so long is cut; it resumes behind the last event that it read."""
    publish_seconds: float = 0.25
    """Limit of one publish to Redis; after a failure none is tried for `publish_pause_seconds`."""
    publish_pause_seconds: float = 5

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        for text in value.replace(",", " ").split():
            try:
                ip_network(text)
            except ValueError as error:
                raise ValueError(f"ASSENT_TRUSTED_PROXIES: {error}. Give networks such as 10.0.0.0/8 or 2001:db8::/32.") from None
        return value

    @cached_property
    def proxy_networks(self) -> list[IPv4Network | IPv6Network]:
        """`trusted_proxies`, to look addresses up in."""
        return [ip_network(text) for text in self.trusted_proxies.replace(",", " ").split()]


@cache
def settings() -> Settings:
    """The process's settings. Tests call `settings.cache_clear()` after changing the environment."""
    return Settings()
