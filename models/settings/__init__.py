"""Settings from the environment, read once. Every setting of Assent is a field with its unit in its name.

tools     of shells, workdirs, MCP servers and toolsets
people    of the ways to sign in
requests  of requests to the API: limits and proxies
here      all others, and `settings`
"""

from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import PydanticBaseSettingsSource as Source

from models.settings.archive import storage_options
from models.settings.key_text import key_text
from models.settings.mail_server import MailServer, sender
from models.settings.networks import PrivateHosts
from models.settings.people import PeopleSettings
from models.settings.requests import RequestSettings
from models.settings.tools import ToolSettings

_PARSED: dict[str, Callable[[str], Any]] = {
    "allowed_private_hosts": PrivateHosts.of,
    "archive_options": storage_options,
    "smtp_url": MailServer.of,
    "mail_from": sender,
}
"""The parser of each setting's text. A text that its parser refuses ends the process at the start."""


class Settings(ToolSettings, PeopleSettings, RequestSettings, BaseSettings):
    """Each setting's environment variable is `ASSENT_` and the field's name, except for a few well-known variables."""

    model_config = SettingsConfigDict(env_prefix="ASSENT_", frozen=True, extra="ignore", hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: Source,
        env_settings: Source,
        dotenv_settings: Source,
        file_secret_settings: Source,
    ) -> tuple[Source, ...]:
        """Read the environment alone. The other sources of pydantic-settings would double the time."""
        del settings_cls, init_settings, dotenv_settings, file_secret_settings
        return (env_settings,)

    # Where things are
    database_url: str = Field("postgresql://assent_app@localhost/assent", validation_alias="DATABASE_URL")
    """Role `assent_app`: requests and tasks, one workspace per transaction."""
    database_system_url: str = Field("", validation_alias="DATABASE_SYSTEM_URL")
    """Role `assent_system`: finds ids across workspaces and stamps hints, nothing else. For sweeps and the command line."""
    database_owner_url: str = Field("", validation_alias="DATABASE_OWNER_URL")
    """Role `assent_owner`: migrations only."""
    redis_url: str = Field("redis://localhost:6379/0", validation_alias="REDIS_URL")
    redis_master: str = "mymaster"
    """The master's name at the Sentinels, if `redis_url` names Sentinels: see docs/deployment.md."""
    redis_sentinel_auth: bool = False
    """True if the Sentinels ask for the login of `redis_url`, too."""
    anthropic_base_url: str | None = Field(None, validation_alias="ANTHROPIC_BASE_URL")
    providers: Path | None = None
    """The registry of model providers, a JSON file: see docs/providers.md. Without it, Anthropic serves every model."""
    environment: Literal["production", "development"] = "production"
    log_format: Literal["json", "text"] | None = None
    """The lines of the log. Unset: JSON in production, text in development."""
    probe_folder: Path | None = None
    """The folder in which workers, beat and Flower renew a file each while they are alive, for `assent-health`."""

    # Metrics
    metrics_address: str = ""
    """Host and port at which each process serves its durations, such as `0.0.0.0:9464`. Empty: nothing is measured."""
    metrics_seconds: float = Field(5, ge=0)
    """How long a web process repeats the metrics that it read."""
    metrics_workspaces: int = Field(100, ge=1, le=1000)
    """The workspaces, in the order of their creation, that have samples of their own in the metrics. All others are summed up."""

    # Traces
    otlp_endpoint: str = Field("", validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """The collector to which spans are sent, by OTLP over HTTP: see docs/tracing.md. Empty: nothing is traced."""

    trace_content: bool = False
    """True if spans also have prompts, replies, inputs and results, with their secrets masked."""

    # Database connections
    database_pool_size: int = 10
    """Connections per process. Transactions are short, so hundreds of turns share a few."""
    database_pool_timeout_seconds: float = 5
    database_pooler: bool = False
    """True if a pooler in transaction mode, such as PgBouncer, is in front of the database: see docs/deployment.md."""

    # Time
    lease_seconds: float = 45
    heartbeat_seconds: float = 10
    work_lease_seconds: float = 60
    """How long a worker of a self-hosted environment holds its work without a heartbeat, unless it requests another time."""
    watch_seconds: float = 1
    """How often a process checks whether it still holds its leases, and whether a call must be cancelled."""
    sweep_seconds: float = 5
    rehint_seconds: float = 5
    """A queued row is hinted again after this time, or after half its age if that is longer and its queue is not empty."""
    max_lag_seconds: float = 1
    """A process whose clock ticks later than this claims nothing new."""

    # Turns
    max_turns: int = Field(5, ge=1, le=1000)
    """Turns per user message, unless agent or session says otherwise."""
    max_threads: int = Field(25, ge=1, le=1000)
    """Threads of sub-agents in one session that are not archived."""
    max_agent_messages: int = Field(100, ge=1, le=10_000)
    """Messages that agents may send to their sub-agents for one message of the user."""
    max_tokens: int = 16_384
    """Output tokens of one reply."""
    context_window_tokens: int = Field(128_000, ge=1000)
    """Tokens of input and reply together of a model whose window neither `ASSENT_PROVIDERS` nor the list of prices knows."""
    turns_in_flight: int = 300
    """Model calls in flight per turns process."""
    model_attempts: int = 6
    """Attempts at one turn while the model responds with transient errors."""
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
    preview_seconds: float = Field(1.0, gt=0)
    """Time between two notes with the whole text so far, for readers who join while the model writes."""

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
    push_public_key: str = ""
    """The public key by which browsers know this installation's push messages: see `assent secrets push`. Empty: no push."""
    push_private_key: SecretStr | None = None
    """The private key that signs push messages."""
    push_contact: str = ""
    """The mail address of the operator, which push services get with each message."""
    push_content: bool = True
    """Whether push messages say what waits. They are encrypted for the browser; but the phone's lock screen shows them."""
    deliver_private_keys: SecretStr | None = None
    """The private keys that decrypt them, by spaces: the present one, and former ones until `assent secrets rotate` is done."""
    turns_public_key: str = ""
    """Encrypts the keys of model providers that a workspace brings."""
    turns_private_keys: SecretStr | None = None
    """The private keys that decrypt those."""

    # The archive of old sessions: see docs/archive.md
    archive_url: str = ""
    """The folder of the archive's files, as fsspec names it, such as `s3://bucket/assent`. Empty: they are rows of the database."""
    archive_options: SecretStr | None = None
    """Options of fsspec's file system for this URL, as a JSON object: keys, endpoints."""
    archive_public_key: str = ""
    """Encrypts what goes to the archive. Without it nothing does."""
    archive_private_keys: SecretStr | None = None
    """The private keys that decrypt the archive, by spaces: the present one, and each former one as long as it has parts."""

    # The audit
    seal_seconds: float = 5
    """How often the audit is sealed. Acts after the last seal can be changed unnoticed by an intruder in the database."""
    audit_key: SecretStr | None = None
    """The Ed25519 private key that signs the seals: 32 bytes in base64, or PEM. Without a key nothing is sealed in production,
    and seals are unsigned in development."""
    audit_key_file: Path | None = None
    """The file of that key; `assent audit key FILE` creates one."""
    audit_heads_file: Path | None = None
    """The sealer's file of the heads that it signed last, outside the database. Unset: beside `audit_key_file`."""
    audit_public_keys: str = ""
    """Public keys of former signers, in base64, separated by spaces. Their seals stay valid."""

    @field_validator(*_PARSED)
    @classmethod
    def _parses(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.field_name or ""
        try:
            if value not in (None, ""):
                _PARSED[name](value.get_secret_value() if isinstance(value, SecretStr) else value)
        except ValueError as error:
            raise ValueError(f"ASSENT_{name.upper()}: {error}") from None
        return value

    @field_validator("deliver_public_key", "turns_public_key", "archive_public_key")
    @classmethod
    def _public_key(cls, value: str) -> str:
        return key_text(value) if value else value

    @field_validator("deliver_private_keys", "turns_private_keys", "archive_private_keys")
    @classmethod
    def _private_keys(cls, value: SecretStr | None) -> SecretStr | None:
        return value and SecretStr(" ".join(key_text(one) for one in value.get_secret_value().split()))

    @cached_property
    def private_hosts(self) -> PrivateHosts:
        """Parsed `allowed_private_hosts`."""
        return PrivateHosts.of(self.allowed_private_hosts)


@cache
def settings() -> Settings:
    """Return the process's settings. Tests call `settings.cache_clear()` after changing the environment."""
    return Settings()
