"""The MCP servers: those of the operator's file `ASSENT_MCP_CONFIG`, and URLs that clients name.

The file has the format that most MCP clients read:

    {"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"], "env": {"DEBUG": "1"}},
        "tickets": {"type": "http", "url": "https://tickets.example/mcp", "headers": {"Authorization": "Bearer ${TICKETS_TOKEN}"},
                    "trust_annotations": true}}}

`${NAME}` and `${NAME:-default}` stand for environment variables. With `trust_annotations`, Assent relies on the server's statements
about the effects of its tools (`readOnlyHint`, `idempotentHint`). A server with `"disabled": true` is left out.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import httpx2
from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, ValidationError, model_validator

from models.pure.naming import OURS
from models.settings import settings

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ServersMisconfigured(Exception):
    """The operator's file cannot be used. The message names file, server, field and remedy."""


@dataclass(frozen=True)
class Server:
    """One MCP server: either `url` and `headers`, or `command` with its details."""

    name: str
    """The operator's name; for a server that a client named, the URL."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    trusted: bool = False
    """True if Assent relies on the server's statements about its tools' effects."""
    ours: bool = False
    """True if the operator configured the server: then its address may be private."""

    @property
    def address(self) -> str:
        """The address in `models.workspace.toolset`."""
        return self.name if self.name == self.url else OURS + self.name

    @cached_property
    def key(self) -> str:
        """Equal for servers that are reached in the same way. It holds secrets."""
        parts = (self.url, sorted(self.headers.items()), self.command, self.args, sorted(self.env.items()), self.cwd, self.ours)
        return json.dumps([self.name, *parts])

    @property
    def label(self) -> str:
        """The name in messages to people: a URL without its query, which may hold a secret."""
        if self.url is None or self.name != self.url:
            return self.name
        try:
            return str(httpx2.URL(self.url).copy_with(userinfo=b"", query=None, fragment=None))
        except (httpx2.InvalidURL, UnicodeError):
            return "a server without a proper URL"


def configured() -> dict[str, Server]:
    """Return the operator's servers by name; none without a file. Raises ServersMisconfigured."""
    path = settings().mcp_config
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise ServersMisconfigured(f"{path}: cannot be read ({error.strerror}); correct ASSENT_MCP_CONFIG.") from None
    except ValueError as error:
        raise ServersMisconfigured(f"{path}: is not JSON ({error}).") from None
    entries = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise ServersMisconfigured(f'{path}: must be an object with the field "mcpServers", an object with a field per server.')
    disabled = {name for name, entry in entries.items() if isinstance(entry, dict) and entry.get("disabled") is True}
    return {name: _server(path, name, entry) for name, entry in entries.items() if name not in disabled}


def for_url(url: str) -> Server:
    """Return the server at a client's URL. The operator's headers and trust for the same URL apply. Raises ServersMisconfigured."""
    for server in configured().values():
        if server.url is not None and _same(server.url, url):
            return Server(url, url, server.headers, trusted=server.trusted, ours=True)
    return Server(url, url)


def _same(url: str, other: str) -> bool:
    try:
        return url == other or httpx2.URL(url) == httpx2.URL(other)
    except (httpx2.InvalidURL, UnicodeError):
        return False


def _server(path: Path, name: str, content: Any) -> Server:
    if not _NAME.fullmatch(name):
        raise ServersMisconfigured(f"{path}: server {name!r}: unusable name; use 1 to 64 letters, digits, _ and -.")
    try:
        entry = _Entry.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])[1:]
        problem = first["msg"].removeprefix("Value error, ")
        raise ServersMisconfigured(f"{path}: server {name!r}{f', field {where}' if where else ''}: {problem}.") from None
    if entry.model_extra:
        log.warning("%s: server %s: unknown fields are ignored: %s", path, name, ", ".join(sorted(entry.model_extra)))
    return Server(
        name,
        url=entry.url,
        headers=entry.headers or {},
        command=entry.command,
        args=tuple(entry.args),
        env=entry.env or {},
        cwd=_folder(path, entry.cwd),
        trusted=entry.trust_annotations,
        ours=True,
    )


def _folder(path: Path, cwd: str | None) -> str | None:
    """Return the current folder of a server's command; None: the worker's."""
    configured = path.parent / Path(cwd).expanduser() if cwd else settings().toolset_folder
    return str(configured.absolute()) if configured else None


def _text(text: str) -> str:
    """Return the text with the values of environment variables."""
    if not text.isprintable():
        raise ValueError("must be a string of one line")
    return _VARIABLE.sub(_value, text)


def _value(match: re.Match[str]) -> str:
    value = os.environ.get(match[1]) or match[2]
    if value is None:
        raise ValueError(f"names the environment variable {match[1]}, which is not set; set it or write ${{{match[1]}:-}}")
    return value


def _url(url: str) -> str:
    try:
        address = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError):
        address = httpx2.URL("")
    if address.scheme not in {"http", "https"} or not address.host:
        raise ValueError("must begin with https:// or http:// and name a host")
    if address.userinfo:
        raise ValueError('must not hold a password; put it into "headers"')
    return url


_Text = Annotated[str, AfterValidator(_text)]


class _Entry(BaseModel):
    """One server of the file."""

    model_config = ConfigDict(extra="allow")

    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "streamable_http"] | None = None
    command: _Text | None = None
    args: list[_Text] = []
    env: dict[str, _Text] | None = None
    cwd: _Text | None = None
    url: Annotated[_Text, AfterValidator(_url)] | None = None
    headers: dict[str, _Text] | None = None
    trust_annotations: StrictBool = False
    disabled: bool = False

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError('must have either "command" or "url"')
        if self.type is not None and (self.type == "stdio") != (self.url is None):
            raise ValueError('"type" must be "stdio" with "command", and "http" with "url"')
        return self
