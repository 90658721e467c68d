"""The API as `assent approvals` sees it: over HTTP, like any other client."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import httpx
from click.core import ParameterSource

from api.cli.main import data_dir

Approval = dict[str, Any]
PAGE = 20
"""Rows that are asked for at once: what every server gives."""
ENDS = {"session.status_idle", "session.status_terminated", "session.deleted"}


class Inbox:
    """The API, as far as approvals need it. Raises click.ClickException with one line when the API is not there or refuses."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def pending(self) -> list[Approval]:
        """What waits for a decision, the oldest first."""
        found = self.listed("/v1/approvals", status="pending")
        return sorted(found, key=lambda a: (str(a["created_at"]), str(a["id"])))

    def listed(self, path: str, *, most: int | None = None, **query: Any) -> list[dict[str, Any]]:
        """The rows of a list, all of its pages, or `most` of them."""
        found: list[dict[str, Any]] = []
        given = {name: value for name, value in query.items() if value is not None}
        while True:
            limit = min(PAGE, most - len(found)) if most is not None else PAGE
            answer = self._call("GET", path, params={"limit": limit, **given})
            found += answer["data"]
            if not answer.get("next_page") or (most is not None and len(found) >= most):
                return found
            given["page"] = answer["next_page"]

    def approval(self, approval_id: str, *, reveal: bool = False) -> Approval:
        """One approval; with its secrets, if the key may see them."""
        return self._call("GET", f"/v1/approvals/{quote(approval_id)}", params={"reveal": True} if reveal else {})

    def decide(self, approval_id: str, decision: dict[str, Any]) -> Approval:
        """Decide. Raises Refused when somebody was quicker, or the input is another by now."""
        return self._call("POST", f"/v1/approvals/{quote(approval_id)}/decision", json=decision)

    def preview(self, approval_id: str, scope: str, match: str) -> dict[str, Any]:
        """What a grant would cover. Raises Refused when `match` is none."""
        return self._call("POST", f"/v1/approvals/{quote(approval_id)}/preview", json={"scope": scope, "match": match})

    def revoke(self, grant_id: str) -> dict[str, Any]:
        """Have a grant allow nothing any more."""
        return self._call("DELETE", f"/v1/grants/{quote(grant_id)}")

    def follow(self, session_id: str) -> "Stream":
        """The session's events behind the last one that this key sent: after a decision, all that comes of it."""
        request = self.http.build_request("GET", f"/v1/sessions/{session_id}/events/stream")
        try:
            response = self.http.send(request, stream=True)
        except httpx.HTTPError as error:
            raise _absent(self.http, error) from error
        if not response.is_success:
            response.read()
            raise Refused(_reason(response))
        return Stream(response)

    def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        try:
            answer = self.http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise _absent(self.http, error) from error
        if not answer.is_success:
            raise Refused(_reason(answer))
        found: dict[str, Any] = answer.json()
        return found


class Refused(click.ClickException):
    """The API's own words for why not."""


class Stream:
    """Server-sent events of a session."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def until_idle(self) -> Iterator[dict[str, Any]]:
        """Each event, up to the one after which the session does nothing by itself."""
        with closing(self._response):
            try:
                for line in self._response.iter_lines():
                    if line.startswith("data:"):
                        event = json.loads(line.removeprefix("data:"))
                        yield event
                        if event["type"] in ENDS:
                            return
            except httpx.HTTPError as error:
                raise click.ClickException(f"the stream broke off ({error}); the session goes on without it") from error

    def close(self) -> None:
        """Stop listening."""
        self._response.close()


def with_inbox(command: Callable[..., None]) -> Callable[..., None]:
    """A command that talks to the API, as its `inbox`. Where the API is may be said before or behind a subcommand's name."""

    @data_dir
    @click.option("--url", envvar="ASSENT_URL", help="Of the API; default: that of `assent up`. Its key: ASSENT_API_KEY.")
    @wraps(command)
    def run(data_dir: Path, url: str | None, **more: Any) -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            with closing(connect(_said(context, "data_dir", data_dir), _said(context, "url", url)).http) as http:
                command(inbox=Inbox(http), **more)

    return run


def _said(context: click.Context, name: str, here: Any) -> Any:
    """An option's value; the group's, where only that was told."""
    group = context.parent
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE or group is None:
        return here
    return group.params[name] if group.get_parameter_source(name) is ParameterSource.COMMANDLINE else here


def connect(folder: Path, url: str | None = None) -> Inbox:
    """The API of ASSENT_URL and ASSENT_API_KEY, else of the `assent up` that runs in `folder`."""
    running: dict[str, Any] = {}
    try:
        running = json.loads((folder / "up.json").read_text("utf-8"))
    except (OSError, ValueError):
        if not url:
            raise click.ClickException(
                f"Assent is not running in {folder}: start it with `assent up`, or set ASSENT_URL and ASSENT_API_KEY"
            ) from None
    key = os.environ.get("ASSENT_API_KEY") or (running.get("api_key") if url in {None, running.get("url")} else None)
    if not key:
        raise click.ClickException("ASSENT_API_KEY is not set: give a key with the scopes read and approvals")
    limits = httpx.Timeout(10, read=60)  # a quiet stream says something every 15 s
    return Inbox(httpx.Client(base_url=url or running["url"], headers={"x-api-key": key}, timeout=limits, trust_env=False))


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the API answered {answer.status_code}"


def _absent(http: httpx.Client, error: httpx.HTTPError) -> click.ClickException:
    url = str(http.base_url).rstrip("/")
    return click.ClickException(f"the API does not answer at {url} ({error or type(error).__name__}): is `assent up` running?")
