"""Assent can be installed, and its worker shows a push message. A tap opens the card."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
from crashes.processes import wait_for
from inbox.visitor import Visitor
from inbox.waiting import asked
from rows.stage import Stage

MESSAGE = {"title": "Release captain: git push --force", "body": "It waits.", "tag": "appr_1", "silent": False}
NOTE = """() => {
    self.registration.showNotification = (...shown) => { self.shown = shown; };
    self.clients.openWindow = (url) => { self.opened = String(url); };
}"""
TAP = """async (data) => {
    const ends = [];
    const notification = { data, close() {} };
    self.dispatchEvent(Object.assign(new Event("notificationclick"), { notification, waitUntil: (end) => ends.push(end) }));
    await Promise.all(ends);
}"""
REGISTER = """async () => {
    const policy = trustedTypes.createPolicy("assent-worker", { createScriptURL: () => "/inbox/worker.js" });
    await navigator.serviceWorker.register(policy.createScriptURL(""), { scope: "/inbox/" });
    await navigator.serviceWorker.ready;
}"""


def test_the_manifest_names_icons_that_are_there(api: str) -> None:
    response = httpx2.get(f"{api}/inbox/manifest.webmanifest")
    manifest = response.json()
    assert response.headers["content-type"] == "application/manifest+json"
    assert manifest["start_url"].startswith(manifest["scope"])
    for icon in manifest["icons"]:
        picture = httpx2.get(f"{api}{icon['src']}")
        assert picture.headers["content-type"] == "image/png"
        width = int.from_bytes(picture.content[16:20])
        assert f"{width}x{width}" == icon["sizes"]


def test_the_worker_fetches_and_stores_nothing(api: str) -> None:
    response = httpx2.get(f"{api}/inbox/worker.js")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    for word in ("fetch", "caches", "indexedDB", "importScripts"):
        assert word not in response.text.replace("It fetches and stores nothing.", "")


def test_a_page_may_start_the_worker_and_no_other_script(admin: Visitor) -> None:
    admin.open("/inbox/channels")
    refused = """async () => {
        try { await navigator.serviceWorker.register("/inbox/worker.js"); return "taken"; } catch (error) { return error.name; }
    }"""
    assert admin.page.evaluate(refused) == "TypeError", "a text is no address that Trusted Types made"
    admin.window.faults.clear()
    taken = """() => {
        try { trustedTypes.createPolicy("other", {}); return "taken"; } catch (error) { return error.name; }
    }"""
    assert admin.page.evaluate(taken) == "TypeError"
    admin.window.faults.clear()


def test_a_push_message_is_shown_and_a_tap_opens_the_card(visit: Callable[..., Visitor], stage: Stage, api: str) -> None:
    """The browser delivers the message. What the worker then asks of the browser is noted: the shell of Chromium shows nothing."""
    anna = visit("approver")
    [approval] = asked(stage)
    anna.open("/inbox/account")
    devtools = anna.page.context.new_cdp_session(anna.page)
    registrations: list[dict[str, Any]] = []
    devtools.on("ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"]))
    devtools.send("ServiceWorker.enable")
    anna.page.evaluate(REGISTER)
    wait_for("the registration", lambda: registrations)
    worker = wait_for("the worker", lambda: next(iter(anna.page.context.service_workers), None))
    worker.evaluate(NOTE)
    message = MESSAGE | {"path": f"/inbox/approvals/{approval.id}"}
    delivery = {"origin": api, "registrationId": registrations[-1]["registrationId"], "data": json.dumps(message)}
    devtools.send("ServiceWorker.deliverPushMessage", delivery)
    title, options = wait_for("the notification", lambda: worker.evaluate("self.shown"))
    assert title == message["title"]
    assert {name: options[name] for name in ("body", "tag", "silent")} == {
        name: message[name] for name in ("body", "tag", "silent")
    }
    worker.evaluate(TAP, options["data"])
    assert wait_for("a window", lambda: worker.evaluate("self.opened")) == f"{api}/inbox/approvals/{approval.id}"
    worker.evaluate("self.opened = null")
    worker.evaluate(TAP, {"path": "https://example.com/inbox"})
    worker.evaluate(TAP, {"path": "/v1/sessions"})
    assert worker.evaluate("self.opened") is None


def test_without_a_key_of_the_installation_there_is_no_button(admin: Visitor) -> None:
    admin.open("/inbox/channels")
    assert not admin.button("Notify me in this browser").is_visible()
