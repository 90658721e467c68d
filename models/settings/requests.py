"""Settings of requests to the API: proxies and limits.

Limits per API key count in each web process by itself, so that none depends on Redis or another process.
"""

from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings


class RequestSettings(BaseSettings):
    """A part of `Settings`."""

    trusted_proxies: str = ""
    """Addresses of the proxies in front of Assent, as CIDRs, by spaces or commas. Their X-Forwarded-* headers are trusted."""
    unknown_keys_per_second: float = Field(1, ge=0)
    """Requests with unknown API keys per second and client address (IPv6: per /64), on average; 0 stands for no limit."""
    unknown_keys_burst: int = Field(50, ge=1)
    """Burst size of such requests per address."""
    connections_per_address: int = Field(100, ge=0)
    """Open connections per client address (IPv6: per /64) that have shown no valid credential; 0 stands for no limit."""
    max_body_bytes: int = Field(4_000_000, ge=1)
    max_body_values: int = Field(50_000, ge=1000)
    """Values in one JSON body: numbers, texts, lists, objects and so on. Their number decides the CPU time that a body takes."""
    max_form_bytes: int = Field(64_000, ge=1000)
    """Size of a form from somebody who is not signed in. A signed-in person's form may have `max_body_bytes`."""
    body_seconds: float = Field(60, gt=0)
    """How long a body, of the API or of a form, may take to arrive. The headers of a connection's first request have 2 s."""
    keepalive_seconds: int = Field(75, ge=1, le=3600)
    """How long a connection is kept for its next request. A proxy in front must not keep it longer."""
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
    request_cpu_seconds: float = Field(1, ge=0.1)
    """CPU time that one request may take from the process that serves all others. A request beyond it is ended, and logged."""
    refusals_logged_per_second: float = Field(1, ge=0)
    """Refused requests per second and principal or client address that the log names, on average; 0 stands for no limit. A process
    names at most ten times as many."""
    refusals_logged_burst: int = Field(50, ge=1)
    """Burst size of such lines."""
    streams_per_key: int = Field(500, ge=0)
    """Open streams per API key or person; 0 stands for no limit. WEB_CONNECTIONS limits the streams of all together."""
    stream_poll_seconds: float = 2
    """How often a stream reads events from the database, in case a hint was lost."""
    stream_comment_seconds: float = 15
    """Time between two comments that keep an idle stream open."""
    stream_write_seconds: float = 30
    """A client that reads nothing of its response for this time is disconnected. That of a stream resumes after the last event that
    it read."""
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

    @cached_property
    def proxy_networks(self) -> list[IPv4Network | IPv6Network]:
        """`trusted_proxies` as networks."""
        return [ip_network(text) for text in self.trusted_proxies.replace(",", " ").split()]
