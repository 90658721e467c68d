"""Which MCP servers there are: the operator's file `ASSENT_MCP_CONFIG`, and URLs that clients give.

The file has the format that most MCP clients read:

    {"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"], "env": {"DEBUG": "1"}},
        "tickets": {"type": "http", "url": "https://tickets.example/mcp", "headers": {"Authorization": "Bearer ${TICKETS_TOKEN}"},
                    "trust_annotations": true}}}

`${NAME}` and `${NAME:-otherwise}` stand for environment variables. `trust_annotations` says that the server's word on what its
tools do (`readOnlyHint`, `idempotentHint`) is believed. A server with `"disabled": true` is left out.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2

from models.pure.naming import OURS
from models.settings import settings

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = {"http", "streamable-http", "streamableHttp", "streamable_http"}
_FIELDS = {"type", "command", "args", "env", "cwd", "url", "headers", "trust_annotations", "disabled"}


class Misconfigured(Exception):
    """The operator's file cannot be used; the message names file, server, field and remedy."""


@dataclass(frozen=True)
class Server:
    """One MCP server: either `url` and `headers`, or `command` with what belongs to it."""

    name: str
    """The operator's name for it; of a server that a client named, its URL."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    trusted: bool = False
    """Whether what it says of its tools' effects is believed."""
    ours: bool = False
    """Whether the operator configured it: then it may be private."""

    @property
    def address(self) -> str:
        """As `models.workspace.toolset` has it."""
        return self.name if self.name == self.url else OURS + self.name

    @cached_property
    def key(self) -> str:
        """The same for servers that are reached in the same way. It holds secrets."""
        parts = (self.url, sorted(self.headers.items()), self.command, self.args, sorted(self.env.items()), self.cwd, self.ours)
        return json.dumps([self.name, *parts])

    @property
    def label(self) -> str:
        """What people are told that it is: never its query, which may hold a secret."""
        if self.url is None or self.name != self.url:
            return self.name
        try:
            return str(httpx2.URL(self.url).copy_with(userinfo=b"", query=None, fragment=None))
        except (httpx2.InvalidURL, UnicodeError):
            return "a server without a proper URL"


def configured() -> dict[str, Server]:
    """The operator's servers by name, none without a file. Errors: Misconfigured."""
    path = settings().mcp_config
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise Misconfigured(f"{path}: cannot be read ({error.strerror}); correct ASSENT_MCP_CONFIG.") from None
    except ValueError as error:
        raise Misconfigured(f"{path}: is not JSON ({error}).") from None
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise Misconfigured(f'{path}: must be an object with the field "mcpServers", an object with a field per server.')
    entries = {name: _Entry(path, name, said) for name, said in servers.items()}
    return {name: entry.server() for name, entry in entries.items() if not entry.disabled}


def for_url(url: str) -> Server:
    """A client's server. If the operator's file has one with this URL, its headers and trust hold for it. Errors: Misconfigured."""
    for server in configured().values():
        if server.url is not None and _same(server.url, url):
            return Server(url, url, server.headers, trusted=server.trusted, ours=True)
    return Server(url, url)


def _same(one: str, other: str) -> bool:
    try:
        return one == other or httpx2.URL(one) == httpx2.URL(other)
    except (httpx2.InvalidURL, UnicodeError):
        return False


class _Entry:
    """One server of the file, read field by field."""

    def __init__(self, path: Path, name: str, said: Any) -> None:
        self._path = path
        self._name = name
        if not _NAME.fullmatch(name):
            raise self._wrong(None, "is no name; use 1 to 64 letters, digits, _ and -")
        if not isinstance(said, dict):
            raise self._wrong(None, 'must be an object with "command" or "url"')
        self._said = said
        self.disabled = said.get("disabled") is True

    def server(self) -> Server:
        self._warn()
        kind = self._said.get("type")
        trusted = self._said.get("trust_annotations", False)
        if not isinstance(trusted, bool):
            raise self._wrong("trust_annotations", "must be true or false")
        if ("command" in self._said) == ("url" in self._said):
            raise self._wrong(None, 'must have either "command" or "url"')
        if "command" in self._said:
            if kind not in {None, "stdio"}:
                raise self._wrong("type", f'is {kind!r}, which a server with "command" is not; use "stdio" or leave it out')
            command = self._text("command", self._said["command"])
            return Server(
                self._name, command=command, args=self._args(), env=self._texts("env"), cwd=self._cwd(), trusted=trusted, ours=True
            )
        if kind is not None and kind not in _HTTP:
            raise self._wrong("type", f'is {kind!r}, which is not spoken here; use "http" (streamable HTTP) or leave it out')
        return Server(self._name, self._url(), self._texts("headers"), trusted=trusted, ours=True)

    def _warn(self) -> None:
        if unknown := sorted(self._said.keys() - _FIELDS):
            log.warning("%s: server %s: not known here, and left out: %s", self._path, self._name, ", ".join(unknown))

    def _url(self) -> str:
        url = self._text("url", self._said["url"])
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, UnicodeError):
            parsed = httpx2.URL("")
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise self._wrong("url", "must begin with https:// or http:// and name a host")
        if parsed.userinfo:
            raise self._wrong("url", 'must not hold a password; say it in "headers"')
        return url

    def _args(self) -> tuple[str, ...]:
        args = self._said.get("args", [])
        if not isinstance(args, list):
            raise self._wrong("args", "must be a list of strings")
        return tuple(self._text(f"args[{i}]", arg) for i, arg in enumerate(args))

    def _texts(self, name: str) -> dict[str, str]:
        texts = self._said.get(name) or {}
        if not isinstance(texts, dict):
            raise self._wrong(name, "must be an object of strings")
        return {key: self._text(f"{name}.{key}", text) for key, text in texts.items()}

    def _cwd(self) -> str | None:
        if self._said.get("cwd") is None:
            return None
        return str(self._path.parent.absolute() / Path(self._text("cwd", self._said["cwd"])).expanduser())

    def _text(self, name: str, text: Any) -> str:
        if not isinstance(text, str) or not text.isprintable():
            raise self._wrong(name, "must be a string of one line")
        return _VARIABLE.sub(lambda found: self._variable(name, found), text)

    def _variable(self, name: str, found: re.Match[str]) -> str:
        value = os.environ.get(found[1]) or found[2]
        if value is None:
            raise self._wrong(
                name, f"names the environment variable {found[1]}, which is not set; set it or write ${{{found[1]}:-}}"
            )
        return value

    def _wrong(self, name: str | None, what: str) -> Misconfigured:
        where = f"server {self._name!r}" + (f", field {name}" if name else "")
        return Misconfigured(f"{self._path}: {where}: {what}.")
