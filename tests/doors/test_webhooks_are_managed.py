"""An administrator's key manages endpoints and their deliveries. A signing secret is shown once."""

from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from rows.stage import Stage

from models.database import clock
from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import MOST_ENDPOINTS, Endpoint, NewEndpoint
from models.outbox.webhook_events import SDK_EVENTS

URL = "https://hooks.example.com/assent"


def create(caller: Caller, **fields: Any) -> dict[str, Any]:
    return good(caller.post("/v1/webhooks", json={"url": URL} | fields))


def ended(stage: Stage, webhook_id: str, status: str) -> str:
    """Create a delivery that ended with this status. Returns its id."""
    with transaction(stage.workspace_id) as db:
        delivery = Delivery.test(db, Endpoint.find(db, webhook_id), "session.created")
        db.save()
        db.move(delivery, "running", fence=1, attempt=1)
        db.move(delivery, status, ended_at=clock.now(db))
        return delivery.id


def test_an_endpoint_is_created_listed_changed_and_deleted(caller: Caller) -> None:
    new = create(caller, name="Ops", description="What ops read.")
    assert new["signing_secret"].startswith("whsec_")
    shown = {name: value for name, value in new.items() if name != "signing_secret"}
    assert shown["enabled_events"] == sorted(SDK_EVENTS), "by default the events of the SDK, without our own"
    assert good(caller.get(f"/v1/webhooks/{new['id']}")) == shown
    assert good(caller.get("/v1/webhooks"))["data"] == [shown]
    changed = good(caller.post(f"/v1/webhooks/{new['id']}", json={"enabled_events": ["approval.requested"], "state": "disabled"}))
    assert (changed["enabled_events"], changed["state"], changed["disabled_reason"]) == (["approval.requested"], "disabled", "")
    unchanged = good(caller.post(f"/v1/webhooks/{new['id']}", json={"enabled_events": []}))
    assert unchanged == changed
    deleted = good(caller.delete(f"/v1/webhooks/{new['id']}"))
    assert deleted == {"id": new["id"], "type": "webhook_endpoint_deleted"}
    bad(caller.get(f"/v1/webhooks/{new['id']}"), 404, new["id"])
    actions = [act["action"] for act in good(caller.get("/v1/audit"))["data"] if act["action"].startswith("webhook")]
    assert sorted(actions) == ["webhook.created", "webhook.deleted", "webhook.updated"]


def test_a_secret_is_shown_once(caller: Caller) -> None:
    once = {"idempotency-key": "make-one"}
    first = good(caller.post("/v1/webhooks", json={"url": URL}, headers=once))
    assert good(caller.post("/v1/webhooks", json={"url": URL}, headers=once)) == first | {"signing_secret": None}
    new = good(caller.post(f"/v1/webhooks/{first['id']}/regenerate_signing_secret"))
    assert new["signing_secret"] != first["signing_secret"]
    assert "secret" not in str(good(caller.get("/v1/audit"))["data"]).replace("webhook.secret_regenerated", "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"url": "http://hooks.example.com/"}, "url"),
        ({"url": "https://user:pw@hooks.example.com/"}, "url"),
        ({"url": "ftp://hooks.example.com/"}, "url"),
        ({"url": URL, "enabled_events": []}, "enabled_events"),
        ({"url": URL, "enabled_events": ["session.paid"]}, "session.requires_action"),
        ({"url": URL, "name": "x" * 257}, "name"),
        ({}, "url"),
    ],
)
def test_an_invalid_endpoint_is_refused_and_not_stored(caller: Caller, body: dict[str, Any], words: str) -> None:
    bad(caller.post("/v1/webhooks", json=body), 400, words)
    assert good(caller.get("/v1/webhooks"))["data"] == []


def test_a_workspace_has_at_most_50_endpoints(caller: Caller, stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        for _ in range(MOST_ENDPOINTS):
            Endpoint.create(db, stage.principal, NewEndpoint(url=URL, enabled_events=["agent.created"]))
    bad(caller.post("/v1/webhooks", json={"url": URL}), 409, "50")


def test_only_administrators_of_the_workspace_manage_endpoints(api: str, caller: Caller, stage: Stage) -> None:
    new = create(caller)
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as other:
        bad(other.get("/v1/webhooks"), 403, "admin")
    with Caller(api, key(Stage(), "admin")) as stranger:
        bad(stranger.get(f"/v1/webhooks/{new['id']}"), 404)
        bad(stranger.post(f"/v1/webhooks/{new['id']}/test"), 404)
        assert good(stranger.get("/v1/webhooks"))["data"] == []


def test_a_test_is_a_delivery_like_any_other(caller: Caller) -> None:
    new = create(caller)
    sent = good(caller.post(f"/v1/webhooks/{new['id']}/test", json={"event_type": "approval.requested"}))
    assert (sent["status"], sent["event_type"], sent["attempts"]) == ("queued", "approval.requested", [])
    assert good(caller.get(f"/v1/webhooks/{new['id']}/deliveries"))["data"] == [sent]
    assert good(caller.get(f"/v1/webhooks/{new['id']}/deliveries?status=failed"))["data"] == []
    bad(caller.post(f"/v1/webhooks/{new['id']}/deliveries/{sent['id']}/redeliver"), 400, "delivery_id")


def test_deliveries_are_sent_again_one_by_one_or_many_at_once(caller: Caller, stage: Stage) -> None:
    new = create(caller)
    failed, cancelled, done = (ended(stage, new["id"], status) for status in ("failed", "cancelled", "done"))
    again = good(caller.post(f"/v1/webhooks/{new['id']}/deliveries/{done}/redeliver"))
    assert (again["status"], again["ended_at"]) == ("queued", None)
    report = good(caller.post(f"/v1/webhooks/{new['id']}/redeliver", json={"created_after": again["created_at"]}))
    assert report == {"type": "webhook_redelivery", "queued": 0, "has_more": False}
    assert good(caller.post(f"/v1/webhooks/{new['id']}/redeliver", json={"status": "failed"}))["queued"] == 1
    statuses = {row["id"]: row["status"] for row in good(caller.get(f"/v1/webhooks/{new['id']}/deliveries"))["data"]}
    assert statuses == {failed: "queued", cancelled: "cancelled", done: "queued"}
    other = create(caller)
    bad(caller.post(f"/v1/webhooks/{other['id']}/deliveries/{cancelled}/redeliver"), 404, cancelled)


def test_nothing_can_be_sent_to_a_disabled_endpoint(caller: Caller, stage: Stage) -> None:
    new = create(caller)
    done = ended(stage, new["id"], "done")
    good(caller.post(f"/v1/webhooks/{new['id']}", json={"state": "disabled"}))
    for path in ("test", "redeliver", f"deliveries/{done}/redeliver"):
        bad(caller.post(f"/v1/webhooks/{new['id']}/{path}", json={}), 409, new["id"], "enable it first")
