"""The HTTP client of the commands that talk to the API."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import httpx2
from click.core import ParameterSource

from api.cli.main import data_dir, running_up
from api.cli.nouns import NOUNS, IdOf
from api.cli.tables import SHORT_ID
from models.pure.text.visible import visible

Approval = dict[str, Any]
PAGE = 20
"""Rows per request. Every server allows this many."""
SEARCHED = 1000
"""The rows among which a name, or the end of an id, is searched: as many as lists show."""
CANDIDATES = 5
"""Most ids that an error about an ambiguous name has."""
ENDS = {"session.status_idle", "session.status_terminated", "session.deleted"}


class Inbox:
    """The API. Raises click.ClickException, with one line, if the API does not respond or refuses."""

    def __init__(self, http: httpx2.Client) -> None:
        self.http = http

    def listed(self, path: str, *, most: int | None = None, **query: Any) -> list[dict[str, Any]]:
        """Return the rows of a list, all its pages, or at most `most` rows."""
        rows: list[dict[str, Any]] = []
        params = {name: value for name, value in query.items() if value is not None}
        while True:
            limit = min(PAGE, most - len(rows)) if most is not None else PAGE
            page = self.call("GET", path, params={"limit": limit, **params})
            rows += page["data"]
            if most is not None and len(rows) >= most:
                return rows
            if page.get("next_page"):
                params["page"] = page["next_page"]
            elif page.get("has_more"):  # the pages of the SDK's `beta.organization` begin after an id
                params["after_id"] = page["last_id"]
            else:
                return rows

    def find(self, noun: str, text: str, **values: Any) -> str:
        """Return the id of a row, by its id, the end of its id, or its name. Raises NotNamed and click.ClickException.

        `values`: of the command, for the path of the list.
        """
        kind = NOUNS[noun]
        text = text.removeprefix(kind.kind)
        if text.startswith(kind.prefix):
            return quote(text, safe="")
        address = {"email": text} if kind.name == "email" and "@" in text else {}
        ids: list[str] = []
        for query in kind.queries:
            rows = self.listed(kind.path.format(**values), most=SEARCHED, **query, **address)
            ids = [row["id"] for row in rows if address or (kind.name and row[kind.name] == text)] or [
                row["id"] for row in rows if len(text) >= SHORT_ID and row["id"].endswith(text.upper())
            ]
            if len(ids) == 1:
                return ids[0]
            if ids:
                break
        remedy = (
            f"give {'the address, ' if kind.name == 'email' else ''}the id, {kind.prefix}..., or its last {SHORT_ID} characters"
        )
        if not ids:
            raise NotNamed(f"no {noun} is named {visible(repr(text))}: {remedy}")
        candidates = ", ".join(ids[:CANDIDATES]) + ", ..." * (len(ids) > CANDIDATES)
        raise click.ClickException(f"several {noun}s are named {visible(repr(text))} ({candidates}): {remedy}")

    def approval(self, approval_id: str, *, reveal: bool = False) -> Approval:
        """Return one approval; with `reveal`, including its secrets, if the key may see them."""
        return self.call("GET", f"/v1/approvals/{quote(approval_id)}", params={"reveal": True} if reveal else {})

    def briefing(self, approval_id: str) -> dict[str, Any]:
        """Return what people are told beside an approval; nothing from a server of an earlier release."""
        try:
            return self.call("GET", f"/v1/approvals/{quote(approval_id)}/briefing")
        except RefusedByApi:
            return {}

    def decide(self, approval_id: str, decision: dict[str, Any]) -> Approval:
        """Decide. Raises RefusedByApi if another decision came first, or the input has changed."""
        return self.call("POST", f"/v1/approvals/{quote(approval_id)}/decision", json=decision)

    def preview(self, approval_id: str, grant: dict[str, Any]) -> dict[str, Any]:
        """Return the calls that a grant would cover. `grant`: its fields. Raises RefusedByApi for a faulty `match`."""
        return self.call("POST", f"/v1/approvals/{quote(approval_id)}/preview", json=grant)

    def follow(self, session_id: str, *, previews: bool = False) -> "EventStream":
        """Return the stream of the session's events after the last event of this key. After a decision, these are its effects.

        The stream's position is fixed when this returns. `previews`: with the agent's text while the model writes it.
        """
        params = {"event_deltas[]": "agent.message"} if previews else {}
        request = self.http.build_request("GET", f"/v1/sessions/{quote(session_id)}/events/stream", params=params)
        try:
            response = self.http.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise _absent(self.http, error) from error
        if not response.is_success:
            response.read()
            raise RefusedByApi(_reason(response))
        return EventStream(response)

    def call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """Send a request. Returns the payload. Raises RefusedByApi."""
        try:
            response = self.http.request(method, path, **more)
        except ValueError as error:  # a number that JSON does not have, or half of a character
            raise click.ClickException(f"the request cannot be sent: {error}") from error
        except httpx2.HTTPError as error:
            raise _absent(self.http, error) from error
        if not response.is_success:
            raise RefusedByApi(_reason(response))
        payload: dict[str, Any] = response.json()
        return payload

    def text(self, path: str) -> Iterator[str]:
        """Yield the pieces of a long response. Raises RefusedByApi, and Absent if the response breaks off."""
        try:
            with self.http.stream("GET", path) as response:
                if not response.is_success:
                    response.read()
                    raise RefusedByApi(_reason(response))
                yield from response.iter_text()
        except httpx2.HTTPError as error:
            raise _absent(self.http, error) from error


class RefusedByApi(click.ClickException):
    """The API refuses, with its own message."""


class NotNamed(click.ClickException):
    """No row has this name or id."""


class Absent(click.ClickException):
    """The API does not respond, or a stream broke off."""


class EventStream:
    """Server-sent events of a session."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    def close(self) -> None:
        """Close the connection."""
        self._response.close()

    def until_idle(self) -> Iterator[dict[str, Any]]:
        """Yield each event, up to the one after which the session is idle."""
        for event in self.events():
            yield event
            if event["type"] in ENDS:
                return

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield each event, until the API ends the stream. Raises Absent if the stream breaks off."""
        with closing(self._response):
            try:
                for line in self._response.iter_lines():
                    if line.startswith("data:"):
                        yield json.loads(line.removeprefix("data:"))
            except httpx2.HTTPError as error:
                raise Absent(f"the stream broke off ({error}); the session continues without it") from error


def with_inbox(command: Callable[..., None]) -> Callable[..., None]:
    """Pass the API to a command as `inbox`, and ids in the place of what names a row (`IdOf`).

    The options for the API's address may stand before or after a subcommand's name.
    """

    @data_dir
    @click.option("--url", envvar="ASSENT_URL", help="URL of the API; default: that of `assent up`. Its key: ASSENT_API_KEY.")
    @wraps(command)
    def run(data_dir: Path, url: str | None, **more: Any) -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            with closing(connect(_option(context, "data_dir", data_dir), _option(context, "url", url)).http) as http:
                inbox = Inbox(http)
                for parameter in context.command.params:
                    if isinstance(parameter.type, IdOf) and (value := more[str(parameter.name)]) is not None:
                        more[str(parameter.name)] = _ids(inbox, parameter.type.noun, value, more)
                command(inbox=inbox, **more)

    return run


def _ids(inbox: Inbox, noun: str, value: str | tuple[str, ...], values: dict[str, Any]) -> str | tuple[str, ...]:
    """Return the id in the place of a text, or those in the place of several."""
    return inbox.find(noun, value, **values) if isinstance(value, str) else tuple(inbox.find(noun, one, **values) for one in value)


def _option(context: click.Context, name: str, value: Any) -> Any:
    """Return an option's value: the subcommand's, or the group's if only the group's was set."""
    group = context.parent
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE or group is None:
        return value
    return group.params[name] if group.get_parameter_source(name) is ParameterSource.COMMANDLINE else value


def connect(folder: Path, url: str | None = None) -> Inbox:
    """Return the API of ASSENT_URL and ASSENT_API_KEY, else of the `assent up` that runs in `folder`."""
    running = running_up(folder)
    if not running and not url:
        up = "assent up" if folder == Path(".assent") else f"assent up --data-dir {folder}"
        raise click.ClickException(f"Assent is not running in {folder}: start it with `{up}`, or set ASSENT_URL and ASSENT_API_KEY")
    key = os.environ.get("ASSENT_API_KEY") or (running.get("api_key") if url in {None, running.get("url")} else None)
    if not key:
        raise click.ClickException("ASSENT_API_KEY is not set: set a key with the scopes read and approvals")
    if not key.isascii():
        raise click.ClickException("ASSENT_API_KEY has a character that no key has: copy the key again")
    try:
        address = httpx2.URL(url or running["url"])
    except httpx2.InvalidURL as error:
        raise click.ClickException(_NO_URL.format(url)) from error
    if address.scheme not in {"http", "https"} or not address.host:
        raise click.ClickException(_NO_URL.format(url))
    timeout = httpx2.Timeout(10, read=60)  # an idle stream sends a comment every 15 s
    verify = address.scheme != "http"  # without TLS there is no certificate: the public ones would take 30 ms to load
    return Inbox(httpx2.Client(base_url=address, headers={"x-api-key": key}, timeout=timeout, trust_env=False, verify=verify))


_NO_URL = "ASSENT_URL or --url is {!r}, which is no address of a server: write it as https://assent.example.com"


def _reason(response: httpx2.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the API answered {response.status_code}"


def _absent(http: httpx2.Client, error: httpx2.HTTPError) -> Absent:
    url = str(http.base_url).rstrip("/")
    return Absent(f"the API does not respond at {url} ({error or type(error).__name__}): is `assent up` running?")
