"""Settings from the environment, read once. Every setting of Assent is a field here, with its unit in its name."""

from functools import cache, cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from models.pure.key_text import key_text
from models.pure.mail_server import MailServer, sender
from models.pure.networks import PrivateHosts


class Settings(BaseSettings):
    """Each setting's environment variable is `ASSENT_` and the field's name, except for a few well-known variables."""

    model_config = SettingsConfigDict(env_prefix="ASSENT_", frozen=True, extra="ignore", hide_input_in_errors=True)

    # Where things are
    database_url: str = Field("postgresql://assent_app@localhost/assent", validation_alias="DATABASE_URL")
    """Role `assent_app`: requests and tasks, one workspace per transaction."""
    database_system_url: str = Field("", validation_alias="DATABASE_SYSTEM_URL")
    """Role `assent_system`: finds ids across workspaces and stamps hints, nothing else. For sweeps and the command line."""
    database_owner_url: str = Field("", validation_alias="DATABASE_OWNER_URL")
    """Role `assent_owner`: migrations only."""
    redis_url: str = Field("redis://localhost:6379/0", validation_alias="REDIS_URL")
    anthropic_base_url: str | None = Field(None, validation_alias="ANTHROPIC_BASE_URL")
    providers: Path | None = None
    """The registry of model providers, a JSON file: see docs/providers.md. Without it, Anthropic serves every model."""
    environment: Literal["production", "development"] = "production"

    # Database connections
    database_pool_size: int = 10
    """Connections per process. Transactions are short, so hundreds of turns share a few."""
    database_pool_timeout_seconds: float = 5

    # Time
    lease_seconds: float = 45
    heartbeat_seconds: float = 10
    work_lease_seconds: float = 60
    """How long a worker of a self-hosted environment holds its work without a heartbeat, unless it requests another time."""
    watch_seconds: float = 1
    """How often a process checks whether it still holds its leases, and whether a call must be cancelled."""
    sweep_seconds: float = 5
    rehint_seconds: float = 5
    """A queued row is hinted again after the longer of this and half its age."""
    max_lag_seconds: float = 1
    """A process whose clock ticks later than this claims nothing new."""

    # Turns
    max_turns: int = Field(5, ge=1, le=1000)
    """Turns per user message, unless agent or session says otherwise."""
    max_tokens: int = 16_384
    """Output tokens of one reply."""
    context_window_tokens: int = Field(128_000, ge=1000)
    """Tokens of input and reply together of a model whose window neither `ASSENT_PROVIDERS` nor the list of prices knows."""
    turns_in_flight: int = 300
    """Model calls in flight per turns process."""
    model_attempts: int = 6
    """Attempts at one turn while the model answers with transient errors."""
    backoff_seconds: float = 1
    """First wait after a transient error of the model; doubles, with jitter, up to `backoff_max_seconds`."""
    backoff_max_seconds: float = 60
    model_timeout_seconds: float = 600
    """Time limit of one response of the model."""
    model_response_bytes: int = Field(64_000_000, ge=1000)
    """The longest response of a model's API that is read, in bytes."""
    breaker_failures: int = Field(3, ge=1)
    """After this many failures in a row, a turns process tries a model's alternatives first, for `breaker_seconds`."""
    breaker_seconds: float = Field(30, gt=0)
    crash_attempts: int = 3
    """Attempts at a turn or an idempotent tool call whose worker keeps dying."""
    delta_seconds: float = 0.08
    """Time between two pieces of text to the readers of a stream, instead of one per token."""

    # Tools
    workdir_root: Path = Path(".assent/workdirs")
    shell: Literal["bubblewrap", "bare"] = "bubblewrap"
    """`bubblewrap` refuses to run a shell where bubblewrap is missing; `bare`, in development only, has no sandbox."""
    announce_seconds: float = Field(60, gt=0, le=120)
    """How often a tools worker announces its toolsets, and lists the tools of the operator's MCP servers."""
    tool_seconds: float = 120
    """Time limit of one tool call, unless the tool sets its own."""
    client_tool_seconds: float = Field(86_400, gt=0)
    """How long a client may take for a call that it runs, unless the tool sets its own limit; then the run continues without it."""
    tool_output_bytes: int = 100_000
    """Size of one result that the model sees at most."""
    tool_result_bytes: int = Field(10_000_000, ge=10_000, le=100_000_000)
    """Size of one result that is stored at most, to be read in parts."""
    workdir_bytes: int = Field(1 << 30, ge=1_000_000)
    """Disk space of a session's files. A shell command can exceed it by the amount that it writes within half a second."""
    workdir_files: int = Field(100_000, ge=100)
    """Files and directories of a session."""
    workdir_free_bytes: int = Field(500_000_000, ge=0)
    """Space that must stay free on the disk of the workdirs. Below it, shell commands are ended and files are not written."""
    shell_network: bool = False
    """Gives shell commands the whole network, including the services on this machine's loopback."""
    shell_memory_bytes: int = Field(4 << 30, ge=64 << 20)
    """Memory of one shell command, all its processes together."""
    shell_processes: int = Field(256, ge=16)
    """Processes and threads of one shell command at a time."""
    shell_temporary_bytes: int = Field(256 << 20, ge=1 << 20)
    """Size of a shell command's own `/tmp`, which is memory; `/dev/shm` may take the same again."""
    shell_grace_seconds: float = Field(2, ge=0, le=60)
    """Time between SIGTERM and SIGKILL for a shell command that is cancelled or out of time."""
    mcp_config: Path | None = None
    """The operator's MCP servers: a file in the format `{"mcpServers": {...}}`."""
    mcp_listing_seconds: float = 60
    """How long a listing of an MCP server's tools is used before the next."""
    mcp_connect_seconds: float = Field(30, gt=0)
    """How long an MCP server may take to start or be reached, and again to list its tools."""
    mcp_idle_seconds: float = 60
    """After this time without a call, an MCP server is disconnected; one that Assent started is ended."""
    mcp_response_bytes: int = Field(20_000_000, ge=1)
    """The longest answer of an MCP server that is used, in bytes. Over HTTP no more is read."""
    toolsets: str = ""
    """Toolsets beside those of installed packages (entry points `assent.toolsets`): `module:attribute`, with spaces between."""
    toolset_path: str = "."
    """Folders of a team's code, which only the processes of toolsets have on their module path, with `:` between."""
    toolset_workspaces: dict[str, list[Annotated[str, Field(pattern=r"^wrkspc_\w+$")]]] = {}
    """The only workspaces that may use an `assent:NAME`, by its name, as JSON: `{"billing": ["wrkspc_..."]}`. To others, a limited
    toolset or MCP server does not exist. One that is not named here is for all."""

    # Decisions
    default_permission: Literal["ask", "deny", "allow"] = "ask"
    """The decision for built-in tools without any policy."""
    approval_seconds: float = Field(86_400, gt=0)
    """Deadline of an approval, unless the tool, the agent or the workspace sets its own."""
    remind_after_seconds: float = Field(300, gt=0)
    """Time until people are reminded of a pending approval, unless the tool, the agent or the workspace sets its own."""
    grant_seconds: float = Field(30 * 86_400, gt=0)
    """Lifetime of a standing grant (scope `always`), unless the decision sets its own."""

    # Webhooks
    webhook_seconds: float = Field(15, gt=0, le=60)
    """Time limit of one attempt at a delivery."""
    allowed_private_hosts: str = ""
    """Hosts and networks that URLs of clients may lead to though they are private, and by http://: names and CIDRs, by spaces."""
    delivery_seconds: float = Field(30 * 86_400, ge=4 * 86_400)
    """How long a delivery that has ended is kept, to be looked at or sent again."""

    # Notifications
    smtp_url: SecretStr | None = None
    """The mail server: `smtp://user:password@host:587` (STARTTLS), `smtps://...:465`, or with `?starttls=no` and no password."""
    mail_from: str = ""
    """The sender of mail, such as `Assent <assent@example.com>`. Without it there is no mail."""
    mail_seconds: float = Field(30, gt=0, le=60)
    """Time limit of sending one mail."""
    notification_urls: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")], SecretStr] = {}
    """URLs of the package apprise that channels may name, by their names, as JSON: `{"ops": "ntfys://ntfy.internal/assent"}`."""

    # Slack
    slack_signing_secret: SecretStr | None = None
    """The signing secret of the Slack app, by which `web` verifies the clicks that Slack posts. Unset: nobody decides in Slack."""
    slack_bot_token: SecretStr | None = None
    """The token of the Slack app, `xoxb-...`, with which `deliver` sends messages. Unset: nothing is sent to Slack."""
    slack_api_url: str = "https://slack.com/api/"
    """The address of Slack's Web API. GovSlack has another one."""

    # Secrets in rows. `assent secrets keys` makes pairs of keys.
    deliver_public_key: str = ""
    """Encrypts secrets of webhooks and channels: 32 bytes in base64. Without it none can be stored."""
    deliver_private_keys: SecretStr | None = None
    """The private keys that decrypt them, by spaces: the present one, and former ones until `assent secrets rotate` is done."""
    turns_public_key: str = ""
    """Encrypts the keys of model providers that a workspace brings."""
    turns_private_keys: SecretStr | None = None
    """The private keys that decrypt those."""

    # The audit
    seal_seconds: float = 5
    """How often the audit is sealed. Acts after the last seal can be changed unnoticed by an intruder in the database."""
    audit_key: SecretStr | None = None
    """The Ed25519 private key that signs the seals: 32 bytes in base64, or PEM. Without a key they are unsigned."""
    audit_key_file: Path | None = None
    """The file of that key; `assent audit key FILE` creates one."""
    audit_heads_file: Path | None = None
    """The sealer's file of the heads that it signed last, outside the database. Unset: beside `audit_key_file`."""
    audit_public_keys: str = ""
    """Public keys of former signers, in base64, separated by spaces. Their seals stay valid."""

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
    """Failed attempts to sign in, wrong codes and unknown links, per client address and e-mail address; 0 is no limit."""
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

    # Limits of the API. Limits per API key count in each web process by itself, so that none depends on Redis or another process.
    trusted_proxies: str = ""
    """Addresses of the proxies in front of Assent, as CIDRs, by spaces or commas. Their X-Forwarded-* headers are trusted."""
    unknown_keys_per_second: float = Field(1, ge=0)
    """Requests with unknown API keys per second and client address (IPv6: per /64), on average; 0 stands for no limit."""
    unknown_keys_burst: int = Field(50, ge=1)
    """Burst size of such requests per address."""
    max_body_bytes: int = Field(4_000_000, ge=1)
    body_seconds: float = Field(60, gt=0)
    """How long a body may take to arrive. Headers have gunicorn's limit of 2 s."""
    max_request_line_bytes: int = Field(8190, ge=256, le=8190)
    """Size of method, path and query together. 8190 is gunicorn's own limit."""
    max_header_bytes: int = Field(8190, ge=256, le=1_000_000)
    """Size of one header."""
    max_headers: int = Field(100, ge=32, le=32_768)
    max_page_rows: int = Field(100, ge=20, le=1000)
    """Highest `limit` of a list. The default of a list is 20."""
    max_page_events: int = Field(1000, ge=1000, le=10_000)
    """Highest `limit` of a list of events. The SDKs' runners request 1000."""
    max_events_per_post: int = Field(50, ge=1, le=1000)
    requests_per_second: float = Field(200, ge=0)
    """Requests per second and API key, on average; 0 stands for no limit."""
    requests_burst: int = Field(2000, ge=1)
    """Burst size per API key."""
    streams_per_key: int = Field(1000, ge=0)
    """Open streams per API key; 0 stands for no limit. WEB_CONNECTIONS limits the streams of all keys together."""
    stream_poll_seconds: float = 2
    """How often a stream reads events from the database, in case a hint was lost."""
    stream_comment_seconds: float = 15
    """Time between two comments that keep an idle stream open."""
    stream_write_seconds: float = 30
    """After this time without reading, a stream's client is disconnected. It resumes after the last event that it read."""
    chat_seconds: float = Field(540, gt=0, le=3600)
    """How long a request in OpenAI's format waits for a run. The SDKs give up after 600 s."""
    publish_seconds: float = 0.25
    """Time limit of one publish to Redis."""
    publish_pause_seconds: float = 5
    """Pause of all publishing after a failure."""

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        for text in value.replace(",", " ").split():
            try:
                ip_network(text)
            except ValueError as error:
                raise ValueError(f"ASSENT_TRUSTED_PROXIES: {error}. Name networks such as 10.0.0.0/8 or 2001:db8::/32.") from None
        return value

    @field_validator("allowed_private_hosts")
    @classmethod
    def _hosts(cls, value: str) -> str:
        try:
            PrivateHosts.of(value)
        except ValueError as error:
            raise ValueError(f"ASSENT_ALLOWED_PRIVATE_HOSTS: {error}") from None
        return value

    @field_validator("deliver_public_key", "turns_public_key")
    @classmethod
    def _public_key(cls, value: str) -> str:
        return key_text(value) if value else value

    @field_validator("deliver_private_keys", "turns_private_keys")
    @classmethod
    def _private_keys(cls, value: SecretStr | None) -> SecretStr | None:
        return value and SecretStr(" ".join(key_text(one) for one in value.get_secret_value().split()))

    @field_validator("smtp_url")
    @classmethod
    def _mail_server(cls, value: SecretStr | None) -> SecretStr | None:
        try:
            if value is not None:
                MailServer.of(value.get_secret_value())
        except ValueError as error:
            raise ValueError(f"ASSENT_SMTP_URL: {error}") from None
        return value

    @field_validator("mail_from")
    @classmethod
    def _sender(cls, value: str) -> str:
        try:
            if value:
                sender(value)
        except ValueError as error:
            raise ValueError(f"ASSENT_MAIL_FROM: {error}") from None
        return value

    @cached_property
    def private_hosts(self) -> PrivateHosts:
        """Parsed `allowed_private_hosts`."""
        return PrivateHosts.of(self.allowed_private_hosts)

    @cached_property
    def proxy_networks(self) -> list[IPv4Network | IPv6Network]:
        """`trusted_proxies` as networks."""
        return [ip_network(text) for text in self.trusted_proxies.replace(",", " ").split()]


@cache
def settings() -> Settings:
    """Return the process's settings. Tests call `settings.cache_clear()` after changing the environment."""
    return Settings()
