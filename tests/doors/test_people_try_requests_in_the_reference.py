"""On the page `/docs` people search the API's operations and try requests. The page loads nothing from other servers."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from doors.browser import PATIENCE, watched
from doors.served import PARTS, Caller, good
from playwright.sync_api import Browser, Page, ViewportSize, expect

WINDOW: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def reference(browser: Browser, api: str) -> Iterator[Page]:
    """The page. At the end it must have had no fault and have sent no request to another server."""
    with browser.new_context(viewport=WINDOW, device_scale_factor=0.1) as window:
        page = window.new_page()
        page.set_default_timeout(PATIENCE)
        faults = watched(page)
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        page.goto(f"{api}/docs")
        expect(page.locator(".opblock-summary").first).to_be_visible()
        yield page
        assert faults == []
        assert [url for url in urls if not url.startswith((f"{api}/", "data:"))] == []


def test_every_operation_is_on_the_page(reference: Page, api: str) -> None:
    document = httpx2.get(f"{api}/openapi.json").json()
    count = sum(len(routes) for routes in document["paths"].values())
    reference.get_by_placeholder("Search the operations").fill("")
    # Swagger UI renders only the visible part of a long list. A browser without a GPU takes seconds to draw all of it.
    reference.set_viewport_size({**WINDOW, "height": 15_000})
    expect(reference.locator(".opblock-summary")).to_have_count(count)
    reference.set_viewport_size(WINDOW)


@pytest.mark.parametrize(
    ("phrase", "path"),
    [("revoke", "/v1/grants/{grant_id}"), ("POST rotate", "/v1/organizations/api_keys/{api_key_id}/rotate")],
)
def test_a_search_finds_operations_by_their_words(reference: Page, phrase: str, path: str) -> None:
    reference.get_by_placeholder("Search the operations").fill(phrase)
    expect(reference.locator(".opblock-summary")).to_have_count(1)
    expect(reference.locator(".opblock-summary-path")).to_have_attribute("data-path", path)


def test_a_request_is_tried_with_an_api_key(reference: Page, caller: Caller) -> None:
    reference.locator(".auth-wrapper").get_by_role("button", name="Authorize").click()
    dialog = reference.locator(".modal-ux")
    dialog.locator("input").first.fill(caller.headers["x-api-key"])
    dialog.get_by_role("button", name="Apply credentials").first.click()
    dialog.get_by_role("button", name="Close").last.click()
    reference.get_by_placeholder("Search the operations").fill("create an agent")
    expect(reference.locator(".opblock-summary")).to_have_count(1)
    operation = reference.locator("#operations-agents-agents_create")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    response = operation.locator(".live-responses-table")
    expect(response.locator(".response-col_status").last).to_contain_text("200")
    [agent] = good(caller.get("/v1/agents"))["data"]
    expect(response).to_contain_text(agent["id"])
    assert agent["name"] == "Helper"  # the example of the document


def test_its_policy_takes_scripts_and_styles_from_this_server_only(api: str) -> None:
    for path in ("/docs", *PARTS):
        answer = httpx2.get(f"{api}{path}")
        assert answer.status_code == 200
        policy: dict[str, Any] = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"
