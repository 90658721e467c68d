"""An endpoint that is slow, endless, gone, wrong in TLS or broken for a day costs attempts, each of which ends in time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from outbox.certificates import Authority
from outbox.conftest import MakeEndpoint, deliveries, endpoint_now, send_due
from outbox.receiver import Receiver, dripping, endless_body, endless_headers, receiving
from own_database import Clock
from rows.stage import Stage

from deploy.folder import free_port
from models.database import encryption
from models.outbox.delivery import PAUSES
from models.settings import settings

DAY = 86_400


def attempt(stage: Stage) -> dict[str, object]:
    """Send the only delivery. Returns its last attempt."""
    send_due(stage)
    [delivery] = deliveries(stage)
    return delivery.attempts[-1]


@pytest.mark.parametrize("stream", [dripping, endless_headers])
def test_a_response_that_never_begins_ends_with_the_time_limit_or_before(
    stage: Stage,
    receiver: Receiver,
    new_endpoint: MakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    stream: Callable[[], Iterator[bytes]],
) -> None:
    monkeypatch.setenv("ASSENT_WEBHOOK_SECONDS", "1")
    settings.cache_clear()
    receiver.stream = stream
    new_endpoint(receiver.url, "session.created")
    stage.session()
    last = attempt(stage)
    assert last["status"] is None
    assert last["error"]
    assert receiver.hung_up.wait(10), "the connection is closed"
    assert deliveries(stage)[0].status == "queued"


def test_an_endless_body_is_not_read(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    receiver.stream = endless_body
    new_endpoint(receiver.url, "session.created")
    stage.session()
    assert (attempt(stage)["status"], deliveries(stage)[0].status) == (200, "done")
    assert receiver.hung_up.wait(10), "the connection is closed"


def test_a_body_is_never_kept(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    receiver.status = 500
    new_endpoint(receiver.url, "session.created")
    stage.session()
    last = attempt(stage)
    assert last.keys() == {"at", "status", "error", "seconds"}
    assert "secret" not in str(last), "the receiver's body is the word secret"


def test_a_secret_that_cannot_be_read_is_a_failed_attempt(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a change of keys without `assent secrets rotate`."""
    new_endpoint(receiver.url, "session.created")
    stage.session()
    monkeypatch.setenv("ASSENT_DELIVER_PRIVATE_KEYS", encryption.new_keys()[0])
    settings.cache_clear()
    assert "ASSENT_DELIVER_PRIVATE_KEYS holds no private key" in str(attempt(stage)["error"])
    assert (deliveries(stage)[0].status, receiver.requests) == ("queued", [])


def test_an_endpoint_where_nobody_listens_is_a_failed_attempt(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    new_endpoint(f"http://127.0.0.1:{free_port()}/hook", "session.created")
    stage.session()
    assert "ConnectError" in str(attempt(stage)["error"])


@pytest.mark.parametrize(
    ("certificate", "error"),
    [
        ({}, None),
        ({"is_self_signed": True}, "self-signed certificate"),
        ({"of": "127.0.0.2"}, "certificate is not valid for '127.0.0.1'"),
        ({"days": -1}, "certificate has expired"),
    ],
    ids=["good", "self-signed", "of another name", "expired"],
)
def test_a_certificate_must_be_valid(
    stage: Stage,
    receiver: Receiver,
    new_endpoint: MakeEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    certificate: dict[str, object],
    error: str | None,
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    with receiving(authority.context(**certificate)) as over_tls:  # type: ignore[arg-type]
        new_endpoint(over_tls.url, "session.created")
        stage.session()
        last = attempt(stage)
        assert len(over_tls.requests) == (0 if error else 1), "nothing is sent to a server without a valid certificate"
    assert (last["status"], deliveries(stage)[0].status) == ((None, "queued") if error else (200, "done"))
    assert error is None or error in str(last["error"])


def test_an_endpoint_that_answers_500_for_a_day_gets_its_events_then(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    endpoint = new_endpoint(receiver.url, "session.created")
    stage.session()
    receiver.status, passed = 500, 0.0
    for pause in PAUSES:
        send_due(stage)
        assert endpoint_now(stage, endpoint).failing_since
        clock.advance(pause.total_seconds() * 1.11)
        passed += pause.total_seconds()
        if passed > DAY:
            break
    receiver.status = 200
    send_due(stage)
    [delivery] = deliveries(stage)
    assert (delivery.status, delivery.attempt) == ("done", 8)
    assert [each["status"] for each in delivery.attempts] == [500] * 7 + [200]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    now = endpoint_now(stage, endpoint)
    assert (now.state, now.failing_since) == ("enabled", None)


def test_an_endpoint_that_fails_for_three_days_is_disabled_though_no_delivery_is_that_old(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    endpoint = new_endpoint(receiver.url, "session.created")
    receiver.status = 503
    stage.session()
    send_due(stage)
    clock.advance(3 * DAY - 60)
    stage.session()
    send_due(stage)
    assert endpoint_now(stage, endpoint).state == "enabled"
    clock.advance(400)
    send_due(stage)
    now = endpoint_now(stage, endpoint)
    assert (now.state, now.disabled_reason) == (
        "disabled",
        "No delivery succeeded for three days; the last attempt: The response was 503.",
    )
