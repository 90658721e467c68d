"""Webhooks: the endpoints, one endpoint with its deliveries, and an admin's changes to both."""

from collections.abc import Iterable
from typing import Any

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.door.parsing import validated
from api.v1.webhooks.requests import Redelivery, WebhookCreate, WebhookTest, WebhookUpdate
from api.v1.webhooks.routes import NEWEST_DELIVERY, send_range_again
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.outbox.webhook_events import EVENTS, OWN_EVENTS, SDK_EVENTS
from models.people.principal import PersonPrincipal
from models.pure.state_words import DELIVERY as DELIVERY_WORDS
from models.pure.state_words import SERVICE
from models.pure.states import DELIVERY

_PAGE = 20
_TEXTS = ("url", "name", "description")
_SESSIONS = tuple(event for event in SDK_EVENTS if event.startswith("session."))
PRESETS = {
    "approvals": ("Approvals: asked, decided, expired, reminded, escalated", OWN_EVENTS),
    "sessions": ("Sessions: created, running, idle, waiting, at their budget, archived, and their threads", _SESSIONS),
    "all": ("All: approvals, sessions, agents and environments", EVENTS),
}
"""By the value of the form's field `preset`: its words, and the types of events."""
_GROUPS = (
    ("Approvals", OWN_EVENTS),
    ("Sessions", _SESSIONS),
    ("Agents and environments", tuple(event for event in SDK_EVENTS if event not in _SESSIONS)),
)


@page("/inbox/webhooks", "webhooks", "admin")
def webhooks(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the endpoints of the workspace, newest first."""
    rows = db.find(Endpoint, "ORDER BY id DESC")
    return FramedPage("settings/webhooks.html", rows=rows, refusal=str(refusal or ""), words=SERVICE)


@page("/inbox/webhooks/new", "webhooks", "admin")
def new_webhook(_db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of an endpoint."""
    event_types = _chosen_events() if request.form else OWN_EVENTS
    return FramedPage("settings/new_webhook.html", refusal=str(refusal or ""), form=request.form, **_events(event_types))


@page("/inbox/webhooks/<webhook_id>", "webhooks", "admin")
def webhook(
    db: Db,
    person: PersonPrincipal,  # noqa: ARG001 - the door passes it
    refusal: Refusal | None = None,
    *,
    webhook_id: str,
    secret: str = "",
    notice: str = "",
    **_path_ids: str,
) -> FramedPage:
    """Show one endpoint with its deliveries, newest first. `secret` is a new signing secret, which is shown once."""
    endpoint = Endpoint.find(db, webhook_id)
    status = query_value("status") if query_value("status") in DELIVERY else None
    selection = Selection(Delivery).equal(endpoint_id=webhook_id, status=status)
    rows, after = page_of(db, selection, NEWEST_DELIVERY, _PAGE, query_value("page"))
    edited = request.form if refusal and request.form.get("do") == "save" else None
    return FramedPage(
        "settings/webhook.html",
        endpoint=endpoint,
        values={name: edited.get(name, "") if edited else getattr(endpoint, name) for name in _TEXTS},
        editing=edited is not None,
        secret=secret,
        notice=notice,
        refusal=str(refusal or ""),
        rows=rows,
        after=after,
        status=status,
        words=SERVICE,
        deliveries=DELIVERY_WORDS,
        **_events(_chosen_events() if edited else endpoint.enabled_events),
    )


def _events(event_types: Iterable[str]) -> dict[str, Any]:
    """Return the values of the part of a form that chooses events: a preset, or each type by itself."""
    chosen_types = frozenset(event_types)
    preset = next((name for name, (_words, types) in PRESETS.items() if chosen_types == frozenset(types)), "each")
    return {"presets": PRESETS, "preset": preset, "groups": _GROUPS, "chosen": chosen_types}


def _chosen_events() -> list[str]:
    """Return the events that the form chooses."""
    preset = PRESETS.get(request.form.get("preset", ""))
    return list(preset[1]) if preset else request.form.getlist("enabled_events")


@action("/inbox/webhooks", "admin", section="webhooks", again=new_webhook)
def create_webhook(db: Db, person: PersonPrincipal) -> FramedPage:
    """Create an endpoint. Its signing secret is on this page only."""
    body = validated(WebhookCreate, _fields())
    new = NewEndpoint(url=body.url, enabled_events=body.enabled_events, name=body.name, description=body.description)
    row, secret = Endpoint.create(db, person, new)
    return webhook(db, person, webhook_id=row.id, secret=secret)


@action("/inbox/webhooks/<webhook_id>", "admin", section="webhooks", again=webhook)
def change_webhook(db: Db, person: PersonPrincipal, webhook_id: str) -> FramedPage | str:
    """Save, enable, disable or delete an endpoint, or replace its secret."""
    endpoint = Endpoint.find(db, webhook_id, lock=True)
    match request.form.get("do"):
        case "save":
            endpoint.change(db, person, validated(WebhookCreate, _fields()).model_dump())
        case "enable" | "disable" as verb:
            endpoint.change(db, person, validated(WebhookUpdate, {"state": f"{verb}d"}).changes())
        case "regenerate":
            return webhook(db, person, webhook_id=webhook_id, secret=endpoint.regenerate_secret(db, person))
        case "delete":
            endpoint.delete(db, person)
            return "/inbox/webhooks"
        case _:
            raise Invalid("do", "must be save, enable, disable, regenerate or delete.")
    return _address(webhook_id)


@action("/inbox/webhooks/<webhook_id>/test", "admin", section="webhooks", again=webhook)
def send_test(db: Db, _person: PersonPrincipal, webhook_id: str) -> str:
    """Send a test event."""
    body = validated(WebhookTest, {"event_type": request.form.get("event_type")})
    endpoint = Endpoint.find(db, webhook_id)
    Delivery.test(db, endpoint, body.event_type or endpoint.enabled_events[0])
    return _address(webhook_id)


@action("/inbox/webhooks/<webhook_id>/redeliver", "admin", section="webhooks", again=webhook)
def redeliver_webhooks(db: Db, person: PersonPrincipal, webhook_id: str) -> FramedPage:
    """Send deliveries of a status and time again."""
    times = {name: f"{request.form[name]}Z" for name in ("created_after", "created_before") if request.form.get(name)}
    body = validated(Redelivery, {"status": request.form.get("status", ""), **times}, strict=False)
    count, has_more = send_range_again(db, webhook_id, body)
    more = " More are left: send again for the rest." if has_more else ""
    notice = f"{count} {'delivery is' if count == 1 else 'deliveries are'} sent again.{more}"
    return webhook(db, person, webhook_id=webhook_id, notice=notice)


@action("/inbox/webhooks/<webhook_id>/deliveries/<delivery_id>", "admin", section="webhooks", again=webhook)
def redeliver_webhook(db: Db, _person: PersonPrincipal, webhook_id: str, delivery_id: str) -> str:
    """Send one delivery again."""
    delivery = Delivery.of(db, webhook_id, delivery_id, lock=True)
    Endpoint.find(db, webhook_id).get_ready()
    delivery.send_again(db)
    return f"{_address(webhook_id)}#{delivery_id}"


def _fields() -> dict[str, Any]:
    """Return the values of an endpoint's form."""
    return {name: request.form.get(name, "") for name in _TEXTS} | {"enabled_events": _chosen_events()}


def _address(webhook_id: str) -> str:
    return f"/inbox/webhooks/{webhook_id}"
