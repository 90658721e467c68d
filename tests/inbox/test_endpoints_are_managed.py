"""The pages of webhooks: endpoints, their secrets, and their deliveries, by forms without scripts."""

from collections.abc import Callable

import pytest
from inbox.visitor import Visitor
from inbox.waiting import endpoint_with_deliveries
from outbox.conftest import secret_of
from playwright.sync_api import expect
from rows.stage import Stage

from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint

URL = "https://hooks.example.com/assent"


@pytest.fixture
def plain(plain: Visitor) -> Visitor:
    """An admin whose browser runs no scripts, at the page."""
    plain.open("/inbox/webhooks")
    return plain


@pytest.fixture
def endpoint_id(stage: Stage, plain: Visitor) -> str:
    """An endpoint with deliveries, and the admin at its page."""
    endpoint_id = endpoint_with_deliveries(stage)
    plain.open(f"/inbox/webhooks/{endpoint_id}")
    return endpoint_id


def now(stage: Stage, endpoint_id: str) -> Endpoint | None:
    """The endpoint's row now. None if there is no row."""
    with transaction(stage.workspace_id) as db:
        return db.get(Endpoint, endpoint_id)


def test_an_endpoint_is_created_and_its_secret_shown_once(plain: Visitor, stage: Stage) -> None:
    expect(plain.page.locator(".empty")).to_contain_text("No webhooks yet.")
    plain.page.get_by_role("link", name="New webhook").click()
    plain.page.get_by_label("URL").fill(URL)
    plain.page.get_by_label("Name").fill("Ops")
    plain.page.get_by_label("Only these types").check()
    for event in ("approval.decided", "approval.expired", "approval.reminded", "approval.escalated"):
        plain.page.get_by_label(event).uncheck()
    plain.button("Create the webhook").click()
    secret = plain.page.locator("#secret").inner_text()
    with transaction(stage.workspace_id) as db:
        [endpoint] = db.find(Endpoint)
    assert secret_of(endpoint) == secret
    assert "approval.requested" in endpoint.enabled_events
    assert "approval.decided" not in endpoint.enabled_events
    plain.open("/inbox/webhooks")
    expect(plain.rows).to_contain_text(URL)
    plain.page.get_by_role("link", name="Ops").click()
    assert secret not in plain.page.content()


def test_the_form_of_a_refused_endpoint_keeps_its_values(plain: Visitor) -> None:
    plain.page.get_by_role("link", name="New webhook").click()
    plain.page.get_by_label("URL").fill("http://hooks.example.com/")
    plain.page.get_by_label("Name").fill("Ops")
    plain.button("Create the webhook").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("https")
    expect(plain.page.get_by_label("Name")).to_have_value("Ops")


def test_an_endpoint_is_edited(plain: Visitor, stage: Stage, endpoint_id: str) -> None:
    plain.unfold("Edit…")
    plain.page.get_by_label("Name").fill("")
    plain.page.get_by_label("URL").fill("http://hooks.example.com/")
    plain.button("Save").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("https")
    expect(plain.page.get_by_label("URL")).to_have_value("http://hooks.example.com/")
    plain.page.get_by_label("URL").fill("https://other.example.com/")
    plain.page.get_by_label("Only these types").check()
    plain.page.get_by_label("session.created").uncheck()
    plain.button("Save").click()
    expect(plain.page.locator("h1")).to_have_text("https://other.example.com/")
    changed = now(stage, endpoint_id)
    assert changed
    assert "session.created" not in changed.enabled_events


def test_an_endpoint_is_disabled_and_enabled(plain: Visitor, endpoint_id: str) -> None:
    plain.button("Disable").click()
    expect(plain.page.locator(".page-head .chip")).to_have_text("disabled")
    expect(plain.button("Send")).to_have_count(0)
    plain.button("Enable").click()
    expect(plain.page.locator(".page-head .chip")).to_have_text("enabled")


def test_a_secret_is_replaced_and_shown_once(plain: Visitor, stage: Stage, endpoint_id: str) -> None:
    before = now(stage, endpoint_id)
    plain.unfold("Replace the signing secret…")
    plain.button("Make a new secret").click()
    after = now(stage, endpoint_id)
    assert before
    assert after
    assert plain.page.locator("#secret").inner_text() == secret_of(after) != secret_of(before)
    expect(plain.page.get_by_role("status").first).to_contain_text("a signature by the previous secret too, 23 hours left")


def test_deliveries_are_shown_with_their_attempts(plain: Visitor, endpoint_id: str) -> None:
    expect(plain.rows).to_have_count(3)
    failed = plain.rows.filter(has_text="session.idled")
    expect(failed).to_contain_text("queued")
    failed.locator("summary").click()
    expect(failed.locator("ol")).to_contain_text("The response was 503. · 0.04 s")
    plain.page.get_by_role("link", name="Delivered").click()
    expect(plain.rows).to_have_count(1)
    plain.page.get_by_role("link", name="Failed").click()
    expect(plain.page.locator(".empty")).to_contain_text("No deliveries of this kind.")


def test_a_test_is_sent_and_deliveries_are_sent_again(plain: Visitor, stage: Stage, endpoint_id: str) -> None:
    plain.page.get_by_label("Event of the test").select_option("approval.decided")
    plain.button("Send a test").click()
    expect(plain.rows.first).to_contain_text("approval.decided")
    plain.rows.filter(has_text="session.created").get_by_role("button", name="Send again").click()
    with transaction(stage.workspace_id) as db:
        assert {row.status for row in db.find(Delivery)} == {"queued"}
    plain.unfold("Send several again…")
    plain.page.get_by_label("Created since (UTC)").fill("2026-01-01T00:00")
    plain.page.locator("form.filters button").click()
    expect(plain.page.locator(".notice")).to_contain_text("0 deliveries are sent again.")


def test_an_endpoint_is_deleted(plain: Visitor, stage: Stage, endpoint_id: str) -> None:
    plain.unfold("Delete…")
    plain.button("Delete for good").click()
    expect(plain.page.locator(".empty")).to_contain_text("No webhooks yet.")
    assert now(stage, endpoint_id) is None


def test_only_admins_see_the_pages(visit: Callable[..., Visitor], stage: Stage) -> None:
    endpoint_id = endpoint_with_deliveries(stage)
    developer = visit("developer")
    developer.open()
    expect(developer.page.get_by_role("link", name="Webhooks")).to_have_count(0)
    for path in ("/inbox/webhooks", f"/inbox/webhooks/{endpoint_id}"):
        assert developer.page.goto(developer.url + path).status == 403  # type: ignore[union-attr]
