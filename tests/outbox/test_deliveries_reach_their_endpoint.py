"""A delivery is a signed request that the SDK unwraps; it is tried again for three days, and never twice at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from anthropic import Anthropic
from anthropic.types.beta import BetaWebhookEvent
from crashes.processes import wait_for
from outbox.conftest import MakeEndpoint, deliveries, endpoint_now, secret_of, send_due
from outbox.receiver import Receiver
from own_database import Clock
from pydantic import TypeAdapter
from rows.stage import Stage, call
from rows.tasks import claim_delivery, work
from standardwebhooks import Webhook

from models.database.transactions import transaction
from models.operate import queued
from models.outbox.delivery import PAUSES, Delivery
from models.outbox.endpoint import ROTATION, Endpoint
from models.outbox.webhook_events import OWN_EVENTS, SDK_EVENTS
from models.settings import settings
from models.workspace.halt import Halt
from workers import deliver
from workers.sweeps import deleting, rescuing


def test_the_sdk_unwraps_each_of_its_events(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    endpoint = new_endpoint(receiver.url, *SDK_EVENTS)
    with transaction(stage.workspace_id) as db:
        for event_type in SDK_EVENTS:
            Delivery.test(db, endpoint, event_type)
    send_due(stage)
    client = Anthropic(api_key="none", webhook_key=secret_of(endpoint))
    for request in receiver.requests:
        event = client.beta.webhooks.unwrap(request.body, headers=request.headers)
        TypeAdapter(BetaWebhookEvent).validate_json(request.body)
        assert event.data.workspace_id == stage.workspace_id
        assert abs(event.created_at - datetime.now(UTC)) < timedelta(minutes=5)
        assert event.data.organization_id.startswith("org_")
        assert request.headers["webhook-id"] == event.id
    assert [json.loads(request.body)["data"]["type"] for request in receiver.requests] == list(SDK_EVENTS)


def test_our_own_events_name_the_approval_and_no_content(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    endpoint = new_endpoint(receiver.url, *OWN_EVENTS)
    session = stage.session()
    stage.message(session)
    stage.reply(session, call(command="echo hunter2"))
    send_due(stage)
    [request] = receiver.requests
    payload = Webhook(secret_of(endpoint)).verify(request.body, request.headers)
    assert set(payload["data"]) == {"type", "id", "session_id", "organization_id", "workspace_id"}
    assert payload["data"]["type"] == "approval.requested"
    assert payload["data"]["session_id"] == session
    [delivery] = deliveries(stage)
    assert (delivery.status, delivery.attempts[0]["status"], delivery.attempts[0]["error"]) == ("done", 200, None)


def test_a_halt_stops_no_delivery(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    new_endpoint(receiver.url, "approval.requested")
    session = stage.session()
    stage.message(session)
    stage.reply(session, call())
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    send_due(stage)
    assert len(receiver.requests) == 1
    assert [delivery.status for delivery in deliveries(stage)] == ["done"]


def test_a_failed_delivery_is_tried_again_for_three_days_with_the_same_id_and_body(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    endpoint = new_endpoint(receiver.url, "session.created")
    stage.session()
    receiver.status = 500
    for pause in PAUSES:
        send_due(stage)
        [delivery] = deliveries(stage)
        assert delivery.status == "queued"
        before = len(receiver.requests)
        clock.advance(pause.total_seconds() * 0.99)
        send_due(stage)
        assert len(receiver.requests) == before, "not before it is due"
        clock.advance(pause.total_seconds() * 0.12)
    send_due(stage)
    [delivery] = deliveries(stage)
    assert delivery.status == "failed"
    assert len(receiver.requests) == len(PAUSES) + 1 == len(delivery.attempts)
    assert {(request.headers["webhook-id"], request.body) for request in receiver.requests} == {
        (delivery.event_id, receiver.requests[0].body)
    }
    assert timedelta(days=3) < delivery.ended_at - delivery.created_at < timedelta(days=4)  # type: ignore[operator]
    now = endpoint_now(stage, endpoint)
    assert now.state == "disabled"
    assert now.disabled_reason == "No delivery succeeded for three days; the last attempt: The response was 500."


def test_an_endpoint_that_says_gone_is_disabled_and_its_other_deliveries_are_cancelled(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint
) -> None:
    endpoint = new_endpoint(receiver.url, "agent.created", "session.created")
    stage.session()
    receiver.status = 410
    send_due(stage)
    assert len(receiver.requests) == 1
    assert [delivery.status for delivery in deliveries(stage)] == ["failed", "cancelled"]
    assert endpoint_now(stage, endpoint).disabled_reason == "It responded with 410 Gone."


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://127.0.0.1:1/hook", "UrlRefused: the name does not resolve to a public address"),
        ("https://localhost:1/hook", "UrlRefused: the name does not resolve to a public address"),
        ("https://169.254.169.254/latest", "UrlRefused: the name does not resolve to a public address"),
        ("https://nowhere.invalid/hook", "UrlRefused: the name does not resolve to a public address"),
        ("http://example.com/hook", "UrlRefused: the URL must begin with https://"),
    ],
)
def test_private_addresses_and_http_are_refused_unless_the_operator_names_the_host(
    stage: Stage, new_endpoint: MakeEndpoint, url: str, error: str
) -> None:
    new_endpoint(url, "session.created")
    stage.session()
    send_due(stage)
    [delivery] = deliveries(stage)
    assert delivery.attempts[0]["error"] == error


def test_a_redirect_is_not_followed(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    receiver.status, receiver.location = 302, receiver.url
    send_due(stage)
    assert len(receiver.requests) == 1
    [delivery] = deliveries(stage)
    assert (delivery.status, delivery.attempts[0]["error"]) == ("queued", "Redirects are not followed.")


def test_an_endpoint_that_does_not_answer_costs_one_time_limit(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_WEBHOOK_SECONDS", "0.2")
    settings.cache_clear()
    receiver.may_answer.clear()
    new_endpoint(receiver.url, "session.created")
    stage.session()
    send_due(stage)
    [delivery] = deliveries(stage)
    assert delivery.attempts[0]["error"] == "No response within 0.2 s."


def test_both_secrets_sign_during_a_rotation(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock) -> None:
    endpoint = new_endpoint(receiver.url, "session.created")
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).regenerate_secret(db, stage.principal)
    new = secret_of(endpoint_now(stage, endpoint))
    stage.session()
    send_due(stage)
    for secret in (secret_of(endpoint), new):
        Webhook(secret).verify(receiver.requests[0].body, receiver.requests[0].headers)
    clock.advance(ROTATION.total_seconds() + 1)
    stage.session()
    send_due(stage)
    assert len(receiver.requests[1].headers["webhook-signature"].split()) == 1


def test_a_doubled_hint_sends_nothing_twice(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    [delivery] = deliveries(stage)
    for _ in range(3):
        work(deliver.send, delivery.id, stage.workspace_id)
    work(deliver.send, "whdl_none", stage.workspace_id)
    assert len(receiver.requests) == 1


def test_sweeps_hint_again_at_queued_deliveries_and_take_back_those_of_dead_workers(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    [delivery] = deliveries(stage)
    assert queued.hints(Delivery) == []
    clock.advance(settings().rehint_seconds + 1)
    assert [hint.args for hint in queued.hints(Delivery)] == [(delivery.id, stage.workspace_id)]
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, delivery.id)
    clock.advance(100)
    rescuing.rescue()
    [delivery] = deliveries(stage)
    assert (delivery.status, delivery.attempt) == ("queued", 1)
    assert delivery.attempts[0]["error"] == "The worker died."
    clock.advance(10)
    send_due(stage)
    assert deliveries(stage)[0].status == "done"


def test_a_worker_that_lost_its_lease_changes_nothing(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    [delivery] = deliveries(stage)
    receiver.may_answer.clear()
    with ThreadPoolExecutor(1) as aside:
        zombie = aside.submit(work, deliver.send, delivery.id, stage.workspace_id)
        wait_for("the request arrives", lambda: receiver.requests)
        clock.advance(100)
        rescuing.rescue()
        clock.advance(10)
        with transaction(stage.workspace_id) as db:
            claimed = claim_delivery(db, delivery.id)
        receiver.may_answer.set()
        zombie.result(30)
    assert claimed
    assert (deliveries(stage)[0].status, deliveries(stage)[0].fence) == ("running", 2)


def test_a_delivery_that_ended_long_ago_is_deleted(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    send_due(stage)
    clock.advance(settings().delivery_seconds - 60)
    deleting.delete_old()
    assert len(deliveries(stage)) == 1
    clock.advance(120)
    deleting.delete_old()
    assert deliveries(stage) == []
