"""The API as `assent approvals` sees it: over HTTP, like any other client."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import httpx

Approval = dict[str, Any]
ENDS = {"session.status_idle", "session.status_terminated", "session.deleted"}


class Inbox:
    """The API, as far as approvals need it. Raises click.ClickException with one line when the API is not there or refuses."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def pending(self) -> list[Approval]:
        """What waits for a decision, the oldest first."""
        found: list[Approval] = []
        page: str | None = None
        while True:
            answer = self._call("GET", "/v1/approvals", params={"status": "pending", **({"page": page} if page else {})})
            found += answer["data"]
            page = answer.get("next_page")
            if not page:
                return sorted(found, key=lambda a: (str(a["created_at"]), str(a["id"])))

    def decide(self, approval: Approval, decision: dict[str, Any]) -> dict[str, Any]:
        """Decide exactly what was shown. Raises Refused when somebody was quicker, or the input is another by now."""
        body = {**decision, "expected_input_sha256": approval["input_sha256"]}
        return self._call("POST", f"/v1/approvals/{approval['id']}/decision", json=body)

    def follow(self, session_id: str) -> "Stream":
        """The session's events from now on. Open it before deciding, so that none is missed."""
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
