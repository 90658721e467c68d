"""Assent can be installed, and its worker shows a push message. A tap opens the card."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import people
import pytest
from crashes.processes import wait_for
from doors.served import served
from inbox.visitor import Visitor
from inbox.waiting import asked
from inbox.windows import Windows
from outbox.notified import channels
from rows.stage import Stage

from models.database.transactions import transaction
from models.notices.push_keys import new_keys
from models.people.sign_in import SignIn

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
SUBSCRIBE = """
    const keys = {
        p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        auth: "BTBZMqHH6r4Tts7J_aSIgg",
    };
    Object.defineProperty(Notification, "permission", { get: () => "granted" }); // without a screen Chromium says "denied"
    const subscription = { options: {}, toJSON: () => ({ endpoint: "https://push.example.com/1", keys }) };
    PushManager.prototype.subscribe = async (options) => {
        localStorage.setItem("subscribed", options.applicationServerKey);
        return subscription;
    };
    PushManager.prototype.getSubscription = async () => localStorage.getItem("subscribed") ? subscription : null;
"""
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


def test_a_browser_reads_the_manifest_of_a_page(admin: Visitor) -> None:
    admin.open("/inbox")
    devtools = admin.page.context.new_cdp_session(admin.page)
    manifest = devtools.send("Page.getAppManifest")
    assert manifest["url"].endswith("/inbox/manifest.webmanifest")
    assert manifest["errors"] == []
    assert json.loads(manifest["data"])["name"] == "Assent"


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
    assert "actions" not in options, "no button of a notification decides"
    worker.evaluate(TAP, options["data"])
    assert wait_for("a window", lambda: worker.evaluate("self.opened")) == f"{api}/inbox/approvals/{approval.id}"
    worker.evaluate("self.opened = null")
    worker.evaluate(TAP, {"path": "https://example.com/inbox"})
    worker.evaluate(TAP, {"path": "/v1/sessions"})
    assert worker.evaluate("self.opened") is None


@pytest.fixture(scope="module")
def pushing(api: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server whose installation sends push messages."""
    with served(tmp_path_factory.mktemp("pushing") / "log", ASSENT_PUSH_PUBLIC_KEY=new_keys()[1]) as url:
        yield url


def test_a_button_turns_notifications_on_and_the_next_sign_in_keeps_them(windows: Windows, stage: Stage, pushing: str) -> None:
    """The browser's own subscription is imitated: Chromium in tests has no push service."""
    anna, window = people.member(stage), windows.open()
    window.is_used_up = True
    page = window.page
    page.context.grant_permissions(["notifications"], origin=pushing)
    page.add_init_script(SUBSCRIBE)
    anna.enter(page.context, pushing)
    page.goto(f"{pushing}/inbox/channels")
    page.get_by_role("button", name="Notify me in this browser").click()
    page.get_by_text("Chrome on ").first.wait_for()
    [channel] = channels(stage)
    assert (channel.kind, channel.person_id, channel.sign_in_id) == ("push", anna.person_id, anna.principal.sign_in_id)
    with transaction(stage.workspace_id) as db:
        again, secret = SignIn.start(db, replace(anna.principal, address="127.0.0.1"), "passkey")
    replace(anna, secret=secret).enter(page.context, pushing)
    page.evaluate("sessionStorage.clear()")
    page.goto(f"{pushing}/inbox/account")
    wait_for("the new sign-in", lambda: channels(stage)[0].sign_in_id == again.id)


@pytest.mark.parametrize("text", ["[" * 4000, '{"endpoint": "https://a.example"}', "1"])
def test_what_is_no_subscription_is_refused(stage: Stage, pushing: str, text: str) -> None:
    with people.member(stage).client(pushing) as client:
        response = client.post("/inbox/channels/push", data={"subscription": text})
    assert response.status_code == 400
    assert "PushSubscription" in response.text
    assert channels(stage) == []


def test_without_a_key_of_the_installation_there_is_no_button(admin: Visitor) -> None:
    admin.open("/inbox/channels")
    assert not admin.button("Notify me in this browser").is_visible()
