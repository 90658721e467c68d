"""A person's browser gets push messages that only it can read, while the person is signed in there and something still waits."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import http_ece
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from outbox.notified import channels, fan_out, notifications, notify
from outbox.receiver import Received, Receiver
from own_database import Clock
from people import Somebody, member
from rows.stage import Stage
from rows.voting import ask, vote

from models.audit.principal import system
from models.database.transactions import transaction
from models.errors import Conflict, Invalid
from models.notices import push
from models.notices.channel import MOST_OF_PERSON
from models.notices.push_keys import new_keys
from models.people.member import Member
from models.people.sign_in import SignIn
from models.settings import settings

HALF_A_MINUTE = 30.0


def text_of(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class PushService:
    """The push service of a browser, and the browser's keys."""

    receiver: Receiver
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    secret: bytes = bytes(range(16))

    @property
    def subscription(self) -> str:
        """What the browser gives to a page."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": text_of(point), "auth": text_of(self.secret)}
        return json.dumps({"endpoint": f"{self.receiver.url}/push/1", "expirationTime": None, "keys": keys})

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as the browser's worker gets them."""
        return [self.read(request) for request in self.receiver.requests]

    def read(self, request: Received) -> dict[str, Any]:
        content = request.body.encode(errors="surrogateescape")
        message: dict[str, Any] = json.loads(http_ece.decrypt(content, private_key=self.key, auth_secret=self.secret))
        return message


@pytest.fixture
def browser(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> PushService:
    """A browser, for an installation that sends push messages."""
    private, public = new_keys()
    monkeypatch.setenv("ASSENT_PUSH_PUBLIC_KEY", public)
    monkeypatch.setenv("ASSENT_PUSH_PRIVATE_KEY", private)
    monkeypatch.setenv("ASSENT_PUSH_CONTACT", "ops@example.com")
    settings.cache_clear()
    return PushService(receiver)


def signed_in(stage: Stage, who: Somebody) -> Somebody:
    """The person in a new sign-in."""
    with transaction(stage.workspace_id) as db:
        row, _ = SignIn.start(db, who.principal, "passkey")
    return replace(who, principal=replace(who.principal, sign_in_id=row.id))


@pytest.fixture
def anna(stage: Stage, browser: PushService) -> Somebody:
    """A person who is notified in the browser."""
    anna = signed_in(stage, member(stage))
    subscribe(stage, anna, browser)
    return anna


def subscribe(stage: Stage, who: Somebody, browser: PushService, verb: Callable[..., None] = push.subscribe) -> None:
    names = ("Chrome on Android",) if verb is push.subscribe else ()
    with transaction(stage.workspace_id) as db:
        verb(db, who.principal, browser.subscription, *names)


def later(stage: Stage, clock: Clock) -> None:
    """Tell what has waited for half a minute."""
    fan_out(stage)
    clock.advance(HALF_A_MINUTE)
    notify(stage)


def test_the_browser_gets_the_agent_and_the_command_encrypted(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock
) -> None:
    approval = ask(stage, stage.session(), command="git push --force")
    later(stage, clock)
    [message] = browser.messages
    assert message["title"] == "Agent: git push --force"
    assert message["body"].startswith("Agent wants to run a shell command.\n")
    assert message["path"] == f"/inbox/approvals/{approval.id}"
    assert message["tag"] == approval.id
    assert message["silent"] is False
    [request] = browser.receiver.requests
    assert "git push" not in request.body
    assert (request.headers["urgency"], request.headers["content-encoding"]) == ("high", "aes128gcm")
    assert 0 < int(request.headers["ttl"]) <= 86_400
    assert request.headers["topic"] == approval.id.removeprefix("appr_")


def test_the_push_service_knows_the_sender_by_the_key_that_browsers_have(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock
) -> None:
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    scheme, token, key = browser.receiver.requests[0].headers["authorization"].replace(",", "").split()
    assert (scheme, key) == ("vapid", f"k={settings().push_public_key}")
    point = base64.urlsafe_b64decode(settings().push_public_key + "=")
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    claims = jwt.decode(token.removeprefix("t="), public, ["ES256"], audience="http://127.0.0.1")
    assert claims["sub"] == "mailto:ops@example.com"


def test_what_is_decided_within_half_a_minute_is_not_told(stage: Stage, anna: Somebody, browser: PushService, clock: Clock) -> None:
    approval = ask(stage, stage.session(), command="ls")
    fan_out(stage)
    vote(stage, anna, approval)
    later(stage, clock)
    assert browser.messages == []


def test_a_decision_replaces_the_question_without_a_sound(stage: Stage, anna: Somebody, browser: PushService, clock: Clock) -> None:
    approval = ask(stage, stage.session(), command="ls")
    later(stage, clock)
    vote(stage, member(stage), approval)
    notify(stage)
    question, outcome = browser.messages
    assert outcome["tag"] == question["tag"]
    assert outcome["silent"] is True
    assert outcome["title"].startswith("✓ Allowed by ")


@pytest.mark.parametrize("end", ["sign-in", "role", "membership"])
def test_nothing_is_sent_after_the_end_of_the_sign_in_the_role_or_the_membership(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock, end: str
) -> None:
    by = system("test", stage.workspace_id)
    ask(stage, stage.session(), command="ls")
    with transaction(stage.workspace_id) as db:
        if end == "sign-in":
            SignIn.end_all(db, anna.person_id, by=by)
        elif end == "role":
            Member.change_role(db, anna.person_id, "viewer", by=by)
        else:
            Member.deactivate(db, anna.person_id, by=by)
    later(stage, clock)
    assert browser.messages == []
    assert {row.status for row in notifications(stage)} <= {"cancelled"}


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_is_gone_is_told_nothing_more(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock, status: int
) -> None:
    browser.receiver.status = status
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    [channel] = channels(stage)
    assert channel.state == "disabled"
    assert "turn them on again" in channel.disabled_reason


def test_a_push_service_that_fails_is_tried_again(stage: Stage, anna: Somebody, browser: PushService, clock: Clock) -> None:
    browser.receiver.status = 503
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    browser.receiver.status = 201
    clock.advance(3600)
    notify(stage)
    assert [row.status for row in notifications(stage)] == ["done"]


def test_an_address_inside_the_operator_s_network_gets_nothing(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSENT_ALLOWED_PRIVATE_HOSTS")
    settings.cache_clear()
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    assert browser.receiver.requests == []
    assert channels(stage)[0].error.startswith("The browser's push service cannot be reached. UrlRefused: ")


def test_an_operator_may_send_no_content(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_PUSH_CONTENT", "false")
    settings.cache_clear()
    approval = ask(stage, stage.session(), command="git push --force")
    later(stage, clock)
    [message] = browser.messages
    assert (message["title"], message["body"]) == ("Assent", "Something waits.")
    assert message["path"] == f"/inbox/approvals/{approval.id}"


def test_a_secret_is_masked(stage: Stage, anna: Somebody, browser: PushService, clock: Clock) -> None:
    ask(stage, stage.session(), command="curl -H 'Authorization: Bearer sk-ant-api03-0123456789abcdef0123456789abcdef'")
    later(stage, clock)
    [message] = browser.messages
    assert message["title"].startswith("Agent: curl -H 'Authorization: Bearer ")
    assert "0123456789abcdef" not in json.dumps(message)


def test_a_redirect_is_not_followed(stage: Stage, anna: Somebody, browser: PushService, clock: Clock) -> None:
    browser.receiver.status, browser.receiver.location = 307, f"{browser.receiver.url}/elsewhere"
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    assert [request.path for request in browser.receiver.requests] == ["/hook/push/1"]
    assert channels(stage)[0].error == "The browser's push service responded with 307."


def test_no_proxy_of_the_environment_carries_it(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    assert len(browser.messages) == 1


def test_a_person_has_a_limited_number_of_browsers(stage: Stage, anna: Somebody, browser: PushService) -> None:
    def another(number: int) -> str:
        return json.dumps(json.loads(browser.subscription) | {"endpoint": f"https://push.example.com/{number}"})

    with transaction(stage.workspace_id) as db:
        for number in range(MOST_OF_PERSON - 1):
            push.subscribe(db, anna.principal, another(number), "Firefox")
        with pytest.raises(Conflict, match=f"{MOST_OF_PERSON} channels, the most"):
            push.subscribe(db, anna.principal, another(MOST_OF_PERSON), "Firefox")


def test_a_browser_belongs_to_the_person_who_was_the_last_to_turn_it_on(stage: Stage, anna: Somebody, browser: PushService) -> None:
    ben = signed_in(stage, member(stage))
    subscribe(stage, ben, browser)
    assert [channel.person_id for channel in channels(stage)] == [ben.person_id]


def test_a_new_sign_in_of_the_same_person_goes_on_with_the_channel(
    stage: Stage, anna: Somebody, browser: PushService, clock: Clock
) -> None:
    with transaction(stage.workspace_id) as db:
        SignIn.end_all(db, anna.person_id, by=system("test", stage.workspace_id))
    again = signed_in(stage, anna)
    subscribe(stage, signed_in(stage, member(stage)), browser, push.renew)
    subscribe(stage, again, browser, push.renew)
    [channel] = channels(stage)
    assert (channel.person_id, channel.sign_in_id) == (anna.person_id, again.principal.sign_in_id)
    ask(stage, stage.session(), command="ls")
    later(stage, clock)
    assert len(browser.messages) == 1


def test_a_subscription_that_no_browser_makes_is_refused(stage: Stage, anna: Somebody, browser: PushService) -> None:
    whole = json.loads(browser.subscription)
    for text in (
        "",
        "[]",
        json.dumps(whole | {"keys": {"p256dh": "AA", "auth": "AA"}}),
        json.dumps(whole | {"endpoint": "file:///etc/passwd"}),
        json.dumps(whole | {"endpoint": "https://example.com/" + "a" * 5000}),
    ):
        with transaction(stage.workspace_id) as db, pytest.raises(Invalid, match="PushSubscription"):
            push.subscribe(db, anna.principal, text, "A browser")


def test_without_keys_nobody_turns_push_on(stage: Stage, receiver: Receiver) -> None:
    somebody = signed_in(stage, member(stage))
    with transaction(stage.workspace_id) as db, pytest.raises(Conflict, match="ASSENT_PUSH_PUBLIC_KEY"):
        push.subscribe(db, somebody.principal, PushService(receiver).subscription, "A browser")
