"""The pages of webhooks: endpoints, their secrets, and their deliveries, by forms without scripts."""

from collections.abc import Callable

import pytest
from inbox.plain import Plain
from inbox.waiting import endpoint_with_deliveries
from outbox.conftest import secret_of
from rows.stage import Stage

from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint

URL = "https://hooks.example.com/assent"


@pytest.fixture
def plain(plain: Plain) -> Plain:
    """An admin whose browser runs no scripts, at the page."""
    plain.open("/inbox/webhooks")
    return plain


@pytest.fixture
def endpoint_id(stage: Stage, plain: Plain) -> str:
    """An endpoint with deliveries, and the admin at its page."""
    endpoint_id = endpoint_with_deliveries(stage)
    plain.open(f"/inbox/webhooks/{endpoint_id}")
    return endpoint_id


def now(stage: Stage, endpoint_id: str) -> Endpoint | None:
    """The endpoint's row now. None if there is no row."""
    with transaction(stage.workspace_id) as db:
        return db.get(Endpoint, endpoint_id)


def test_an_endpoint_is_created_and_its_secret_shown_once(plain: Plain, stage: Stage) -> None:
    assert "No webhooks yet." in plain.page.one(".empty")
    plain.follow("New webhook")
    plain.fill("URL", URL)
    plain.fill("Name", "Ops")
    plain.check("Only these types")
    for event in ("approval.decided", "approval.expired", "approval.reminded", "approval.escalated"):
        plain.uncheck(event)
    plain.press("Create the webhook")
    secret = plain.page.one("#secret").text
    with transaction(stage.workspace_id) as db:
        [endpoint] = db.find(Endpoint)
    assert secret_of(endpoint) == secret
    assert "approval.requested" in endpoint.enabled_events
    assert "approval.decided" not in endpoint.enabled_events
    plain.open("/inbox/webhooks")
    assert URL in plain.rows[0]
    plain.follow("Ops")
    assert secret not in plain.response.text


def test_the_form_of_a_refused_endpoint_keeps_its_values(plain: Plain) -> None:
    plain.follow("New webhook")
    plain.fill("URL", "http://hooks.example.com/")
    plain.fill("Name", "Ops")
    plain.press("Create the webhook")
    assert "https" in plain.page.one("[role=alert]")
    assert plain.page.field("Name").value == "Ops"


def test_an_endpoint_is_edited(plain: Plain, stage: Stage, endpoint_id: str) -> None:
    plain.fill("Name", "")
    plain.fill("URL", "http://hooks.example.com/")
    plain.press("Save")
    assert "https" in plain.page.one("[role=alert]")
    assert plain.page.field("URL").value == "http://hooks.example.com/"
    plain.fill("URL", "https://other.example.com/")
    plain.check("Only these types")
    plain.uncheck("session.created")
    plain.press("Save")
    assert plain.page.one("h1").text == "https://other.example.com/"
    changed = now(stage, endpoint_id)
    assert changed
    assert "session.created" not in changed.enabled_events


def test_an_endpoint_is_disabled_and_enabled(plain: Plain, endpoint_id: str) -> None:
    plain.press("Disable")
    assert plain.page.one(".page-head .chip").text == "disabled"
    assert not plain.page.all("button", "Send")
    plain.press("Enable")
    assert plain.page.one(".page-head .chip").text == "enabled"


def test_a_secret_is_replaced_and_shown_once(plain: Plain, stage: Stage, endpoint_id: str) -> None:
    before = now(stage, endpoint_id)
    plain.press("Make a new secret")
    after = now(stage, endpoint_id)
    assert before
    assert after
    assert plain.page.one("#secret").text == secret_of(after) != secret_of(before)
    assert "a signature by the previous secret too, 23 hours left" in plain.page.all("[role=status]")[0]


def test_deliveries_are_shown_with_their_attempts(plain: Plain, endpoint_id: str) -> None:
    assert len(plain.rows) == 3
    failed = plain.row("session.idled")
    assert "queued" in failed
    assert "The response was 503. · 0.04 s" in failed.one("ol")
    plain.follow("Delivered")
    assert len(plain.rows) == 1
    plain.follow("Failed")
    assert "No deliveries of this kind." in plain.page.one(".empty")


def test_a_test_is_sent_and_deliveries_are_sent_again(plain: Plain, stage: Stage, endpoint_id: str) -> None:
    plain.fill("Event of the test", "approval.decided")
    plain.press("Send a test")
    assert "approval.decided" in plain.rows[0]
    plain.press("Send again", within=plain.row("session.created"))
    with transaction(stage.workspace_id) as db:
        assert {row.status for row in db.find(Delivery)} == {"queued"}
    plain.fill("Created since (UTC)", "2026-01-01T00:00")
    plain.press("Send again", within=plain.page.one("details", "Send several again"))
    assert "0 deliveries are sent again." in plain.page.one(".notice")


def test_an_endpoint_is_deleted(plain: Plain, stage: Stage, endpoint_id: str) -> None:
    plain.press("Delete for good")
    assert "No webhooks yet." in plain.page.one(".empty")
    assert now(stage, endpoint_id) is None


def test_only_admins_see_the_pages(visit_without_scripts: Callable[..., Plain], stage: Stage) -> None:
    endpoint_id = endpoint_with_deliveries(stage)
    developer = visit_without_scripts("developer")
    developer.open()
    assert not developer.page.all("a", "Webhooks")
    for path in ("/inbox/webhooks", f"/inbox/webhooks/{endpoint_id}"):
        developer.open(path)
        assert developer.response.status_code == 403
