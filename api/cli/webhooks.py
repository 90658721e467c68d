"""`assent webhooks`: endpoints that are told of events, their deliveries, and a receiver for development."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import click

from api.cli.client import Inbox, RefusedByApi, with_inbox
from api.cli.main import as_json, show_secret
from api.cli.nouns import IdOf
from api.cli.showing import since, until
from api.cli.tables import Column, Row, id_column, show_row, show_table
from models.outbox.webhook_events import EVENTS
from models.pure.text.visible import visible

SECRET = "ASSENT_WEBHOOK_KEY"  # noqa: S105 - a variable's name
LISTENER = "assent webhooks listen"
"""The name of an endpoint that `listen` registers."""

event_types = click.option(
    "--event", "event_types", multiple=True, metavar="TYPE", help="Such as session.idled. Repeat it for several types."
)


@click.group()
def webhooks() -> None:
    """Tell other systems of events. Needs a key with the scope admin."""


@webhooks.command("create")
@click.argument("endpoint_url", metavar="URL")
@event_types
@click.option("--name", default="", help="Up to 256 characters.")
@click.option("--description", default="")
@as_json
@with_inbox
def webhooks_create(inbox: Inbox, endpoint_url: str, event_types: tuple[str, ...], as_json: bool, **texts: str) -> None:
    """Create an endpoint. Prints its signing secret, which is shown once.  [default events: all that the SDK knows]"""
    row = _create(inbox, endpoint_url, event_types, **texts)
    show_secret(row, "signing_secret", f"{row['id']}: {visible(row['url'])}. This is its signing secret, shown once:", as_json)


@webhooks.command("list")
@as_json
@with_inbox
def webhooks_list(inbox: Inbox, as_json: bool) -> None:
    """List the endpoints, newest first."""
    show_table(inbox.listed("/v1/webhooks"), as_json, _COLUMNS)


@webhooks.command("deliveries")
@click.argument("webhook_id", type=IdOf("webhook"))
@click.option("--status", type=click.Choice(["queued", "running", "done", "failed", "cancelled"]))
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many, newest first.")
@as_json
@with_inbox
def webhooks_deliveries(inbox: Inbox, webhook_id: str, status: str | None, limit: int, as_json: bool) -> None:
    """List an endpoint's deliveries with their last attempts, newest first."""
    show_table(inbox.listed(f"{_path(webhook_id)}/deliveries", most=limit, status=status), as_json, _DELIVERIES)


@webhooks.command("test")
@click.argument("webhook_id", type=IdOf("webhook"))
@click.option("--event", "event_type", metavar="TYPE", help="Default: the first of the endpoint's events.")
@as_json
@with_inbox
def webhooks_test(inbox: Inbox, webhook_id: str, event_type: str | None, as_json: bool) -> None:
    """Send an endpoint a test event, which names a session that does not exist."""
    row = inbox.call("POST", f"{_path(webhook_id)}/test", json={"event_type": event_type} if event_type else {})
    show_row(row, as_json, _DELIVERIES)


@webhooks.command("redeliver")
@click.argument("webhook_id", type=IdOf("webhook"))
@click.argument("delivery_id", required=False, type=IdOf("delivery"))
@click.option("--status", type=click.Choice(["failed", "cancelled", "done"]), help="Which deliveries.  [default: failed]")
@click.option("--after", "created_after", metavar="TIME", help="Created at this time or later, such as 2026-02-07T08:00:00Z.")
@click.option("--before", "created_before", metavar="TIME", help="Created before this time.")
@as_json
@with_inbox
def webhooks_redeliver(inbox: Inbox, webhook_id: str, delivery_id: str | None, as_json: bool, **selection: str | None) -> None:
    """Send one delivery again, or all of a status and time, the oldest first."""
    body = {name: value for name, value in selection.items() if value is not None}
    if delivery_id:
        if body:
            raise click.UsageError("name either one delivery, or a status and a time.")
        row = inbox.call("POST", f"{_path(webhook_id)}/deliveries/{delivery_id}/redeliver", json={})
        show_row(row, as_json, _DELIVERIES)
        return
    count, has_more = 0, True
    while has_more:
        report = inbox.call("POST", f"{_path(webhook_id)}/redeliver", json=body)
        count, has_more = count + report["queued"], report["has_more"]
    text = f"{count} {'delivery is' if count == 1 else 'deliveries are'} sent again."
    click.echo(json.dumps({"queued": count}) if as_json else text)


@webhooks.command("listen")
@event_types
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the receiver, on 127.0.0.1.  [default: any free one]")
@click.option("--public-url", metavar="URL", help="Of a tunnel that leads to the receiver, if the server is on another machine.")
@as_json
@with_inbox
def webhooks_listen(inbox: Inbox, event_types: tuple[str, ...], port: int, public_url: str | None, as_json: bool) -> None:
    """Receive deliveries on this machine, verify them and print them, until Ctrl-C. For development.

    Registers an endpoint, and deletes it at the end. If ASSENT_WEBHOOK_KEY is set, registers none: the deliveries then come from an
    endpoint with this signing secret. The server delivers to this machine only if its ASSENT_ALLOWED_PRIVATE_HOSTS has 127.0.0.1.
    """
    receiver = import_module("deploy.receiver")  # by name, since the API must not import the SDK
    with receiver.ReceivingServer(port, partial(_show, as_json)) as server, _endings():
        url = public_url or server.url
        if secret := os.environ.get(SECRET):
            click.echo(f"Listening at {server.url} for an endpoint with the secret in {SECRET}. Ctrl-C ends.", err=True)
            server.serve(secret)
        else:
            with _registered(inbox, url, event_types) as row:
                click.echo(f"Listening at {server.url} as {row['id']}. Ctrl-C ends, and deletes the endpoint.", err=True)
                server.serve(row["signing_secret"])


def _show(as_json: bool, event: Any, text: str) -> None:
    """Print a delivery; where `event` is None, the reason why a request is refused."""
    if event is None:
        click.echo(f"refused: {visible(text)}", err=True)
    elif as_json:
        click.echo(json.dumps(json.loads(text)))
    else:
        session_id = getattr(event.data, "session_id", None)
        about = f" of {session_id}" if session_id else ""
        click.echo(visible(f"{event.created_at:%H:%M:%S} {event.data.type} {event.data.id}{about}, {event.id}"))


@contextmanager
def _registered(inbox: Inbox, url: str, event_types: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Register an endpoint, yield it, and delete it after the block."""
    try:
        row = _create(inbox, url, event_types or EVENTS, name=LISTENER)
    except RefusedByApi as refused:
        if url.startswith("http://"):
            hint = "The server needs ASSENT_ALLOWED_PRIVATE_HOSTS=127.0.0.1, or name a tunnel by --public-url."
            raise click.ClickException(f"{refused.message} {hint}") from refused
        raise
    try:
        yield row
    finally:
        inbox.call("DELETE", _path(row["id"]))
        click.echo(f"{row['id']} is deleted.", err=True)


@contextmanager
def _endings() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the block without an error."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _create(inbox: Inbox, url: str, event_types: tuple[str, ...], **texts: str) -> dict[str, Any]:
    body: dict[str, Any] = {"url": url, **texts}
    if event_types:
        body["enabled_events"] = list(event_types)
    return inbox.call("POST", "/v1/webhooks", json=body)


def _path(webhook_id: str) -> str:
    return f"/v1/webhooks/{webhook_id}"


def _last_attempt(delivery: Row) -> str | None:
    """Return the status or the error of the last attempt, and their number."""
    attempts = delivery["attempts"]
    if not attempts:
        return None
    return f"{attempts[-1]['error'] or attempts[-1]['status']} ({len(attempts)})"


_COLUMNS = [
    id_column(),
    Column("URL", lambda row: row["url"], gives_way=True),
    Column("NAME", lambda row: row["name"], gives_way=True, is_spare=True),
    Column("STATE", lambda row: row["state"], coloured=True),
    Column("EVENTS", lambda row: len(row["enabled_events"]), to_the_right=True, is_spare=True),
    Column("NOTE", lambda row: row["disabled_reason"], gives_way=True, is_spare=True),
]
_DELIVERIES = [
    id_column(),
    Column("STATUS", lambda row: row["status"], coloured=True),
    Column("EVENT", lambda row: row["event_type"]),
    Column("ABOUT", lambda row: row["subject_id"], gives_way=True, is_spare=True),
    Column("CREATED", lambda row: since(row["created_at"]), is_spare=True),
    Column("LAST ATTEMPT (OF)", _last_attempt, gives_way=True, is_spare=True),
    Column("NEXT", lambda row: until(row["due_at"]) if row["attempts"] and row["due_at"] else None, is_spare=True),
]
