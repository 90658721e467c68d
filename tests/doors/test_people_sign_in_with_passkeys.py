"""Passkeys in a real browser with a virtual authenticator: a person uses the link once, and the passkey afterwards."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from doors.browser import watched
from doors.served import Caller, good
from people import Visitor, acts_of, invited, member
from playwright.sync_api import Browser, BrowserContext, Page, expect
from rows.stage import Stage

CTAP = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    """A new window."""
    with browser.new_context() as context:
        yield context


@pytest.fixture
def url(api: str) -> str:
    """The public URL. A passkey needs a host name, and does not work for an IP address."""
    return f"http://localhost:{urlsplit(api).port}"


def with_authenticator(window: BrowserContext, **more: bool) -> Page:
    """Open a page in a browser whose device has an authenticator."""
    page = window.new_page()
    devtools = window.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": CTAP | more})
    return page


def test_a_person_signs_in_by_link_adds_a_passkey_and_signs_in_by_it(window: BrowserContext, url: str, stage: Stage) -> None:
    page = with_authenticator(window)
    faults = watched(page)
    page.goto(url + invited(stage))
    page.get_by_label("Your name").fill("Anna")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("main").get_by_role("link", name="Add a passkey").click()
    expect(page.get_by_role("heading", name="Anna")).to_be_visible()
    page.get_by_label("Name of the passkey").fill("Laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("listitem").filter(has_text="Laptop")).to_contain_text("added just now")
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(f"{url}/inbox/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Anna")).to_be_visible()
    expect(page.get_by_text("This browser, by passkey")).to_be_visible()
    page.get_by_role("button", name="Remove Laptop").click()
    expect(page.get_by_text("You have none.")).to_be_visible()
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("This passkey is not known here")
    assert faults == []
    ways = [action for _, action in acts_of(stage)]
    assert [way for way in ways if "passkey" in way] == ["person.passkey_added", "person.passkey_removed"]


def test_a_device_that_does_not_verify_its_user_creates_no_passkey(window: BrowserContext, url: str, stage: Stage) -> None:
    """Otherwise whoever finds an unlocked phone could sign in."""
    page = with_authenticator(window, hasUserVerification=False, isUserVerified=False)
    member(stage).enter(window, url)
    page.goto(f"{url}/inbox/account")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.locator(".problem")).to_be_visible()
    page.reload()
    expect(page.get_by_text("You have none.")).to_be_visible()


def test_a_deactivated_person_s_passkey_opens_nothing(window: BrowserContext, url: str, stage: Stage, caller: Caller) -> None:
    page = with_authenticator(window)
    member(stage).enter(window, url)
    page.goto(f"{url}/inbox/account")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("listitem").filter(has_text="Passkey")).to_contain_text("added just now")
    [user] = good(caller.get("/v1/organizations/users"))["data"]
    good(caller.delete(f"/v1/organizations/users/{user['id']}"))
    page.goto(f"{url}/inbox/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("This passkey is not known here")


@pytest.mark.parametrize(
    "credential", ["", "{}", "[]", "null", '{"id": 7}', '{"id": "AAAA"}', '{"id": "AAAA"' + " " * 20_000 + "}"]
)
def test_a_malformed_credential_is_refused(api: str, stage: Stage, credential: str) -> None:
    with Visitor(api) as browser:
        assert browser.submit("/sign-in", "/sign-in/passkey", credential=credential).status_code == 403, "no ceremony was begun"
        assert browser.submit("/sign-in", "/sign-in/passkey/options").json()["rpId"] == "localhost"
        assert browser.submit("/sign-in", "/sign-in/passkey", credential=credential).status_code == 403
        again = browser.submit("/sign-in", "/sign-in/passkey", credential=credential)
        assert "Begin again" in again.text, "a challenge can be used once"
