"""People manage their own channels, and admins the workspace's. No response shows a secret. A link in each mail unsubscribes."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from doors.served import good, key, served
from people import Visitor, member
from rows.stage import Stage

from models.database import encryption
from models.database.transactions import transaction
from models.notices.channel import MOST_OF_PERSON, Channel, NewChannel
from models.people.slack_user import SlackUser

TELEGRAM = "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz/12345"


@pytest.fixture(scope="module")
def mailing(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server that sends mail."""
    with served(tmp_path_factory.mktemp("api") / "log", ASSENT_MAIL_FROM="Assent <assent@example.org>") as url:
        yield url


@pytest.fixture
def admin(stage: Stage, mailing: str) -> Iterator[httpx2.Client]:
    """A client with a key that manages the workspace."""
    with httpx2.Client(base_url=mailing, headers={"x-api-key": key(stage)}, timeout=20) as client:
        yield client


def refused(response: httpx2.Response, status: int = 400) -> str:
    assert response.status_code == status, response.text
    return str(response.json()["error"]["message"])


def test_a_person_manages_their_own_channels_and_nobody_else_s(stage: Stage, mailing: str) -> None:
    anna, bert = member(stage), member(stage)
    with anna.client(mailing) as hers, bert.client(mailing) as his:
        own = good(hers.post("/v1/channels", json={"kind": "mail", "quiet_from": "22:00", "quiet_until": "07:00"}))
        assert (own["address"], own["person"], own["about"]) == (anna.email, f"user:{anna.person_id}", "all")
        assert good(hers.get("/v1/channels"))["data"] == [own]
        assert good(his.get("/v1/channels"))["data"] == []
        for request in (his.get, his.delete):
            assert request(f"/v1/channels/{own['id']}").status_code == 404
        assert his.post(f"/v1/channels/{own['id']}", json={"state": "disabled"}).status_code == 404
        changed = good(hers.post(f"/v1/channels/{own['id']}", json={"about": "mine", "quiet_from": None, "quiet_until": None}))
        assert (changed["about"], changed["quiet_from"]) == ("mine", None)
        assert "admin" in refused(hers.get("/v1/channels?owner=workspace"), 403)
        assert good(hers.delete(f"/v1/channels/{own['id']}"))["type"] == "channel_deleted"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "mail", "address": "eve@example.com"}, "address: mail goes to the person's own address"),
        ({"kind": "operator", "address": "ops"}, "kind: the operator's URLs are for channels of the workspace"),
        ({"kind": "slack"}, "kind: no Slack user is linked to this person"),
        ({"kind": "apprise", "url": "json://10.0.0.1/x"}, "url: must be the URL of a known service"),
        ({"kind": "apprise", "url": "mailto://a:b@evil.example"}, "url: must be the URL of a known service"),
        ({"kind": "apprise", "url": TELEGRAM + "?verify=no"}, "url: must have the form tgram://BOT_TOKEN/CHAT_ID"),
        ({"kind": "apprise", "url": TELEGRAM, "address": "x"}, "address: url says where"),
        ({"kind": "mail", "url": TELEGRAM}, "url: is for the kind apprise"),
        ({"kind": "mail", "quiet_from": "22:00"}, "quiet_until: quiet hours need both"),
        ({"kind": "mail", "quiet_from": "25:00", "quiet_until": "07:00"}, "quiet_from: must be a time such as 22:00"),
        ({"kind": "mail", "time_zone": "Mars/Olympus"}, "time_zone: 'Mars/Olympus' is unknown"),
        ({"kind": "mail", "for_everyone": True}, "for_everyone: is for a channel of the workspace"),
    ],
)
def test_an_invalid_channel_is_refused_by_its_field(stage: Stage, mailing: str, body: dict[str, Any], message: str) -> None:
    with member(stage).client(mailing) as client:
        answer = refused(client.post("/v1/channels", json=body))
        assert answer.startswith(message)
        assert "AAabc" not in answer
        assert good(client.get("/v1/channels"))["data"] == []


def test_a_service_s_tokens_are_stored_encrypted_and_never_shown(stage: Stage, mailing: str) -> None:
    with member(stage).client(mailing) as client:
        row = good(client.post("/v1/channels", json={"kind": "apprise", "url": TELEGRAM}))
        assert row["address"] == "Telegram"
        assert "AAabc" not in client.get("/v1/channels").text
    with transaction(stage.workspace_id) as db:
        stored = Channel.find(db, row["id"])
        assert "AAabc" not in str(vars(stored))
        assert "AAabc" not in str(db.rows("SELECT details FROM audit WHERE action = 'channel.created'"))


def test_slack_goes_to_a_slack_user_that_is_linked(stage: Stage, mailing: str) -> None:
    anna = member(stage)
    with transaction(stage.workspace_id) as db:
        row = SlackUser.of(db, "T0001", "U0001", "anna")
        row.person_id, row.linked_at = anna.person_id, row.created_at
    with anna.client(mailing) as client:
        assert good(client.post("/v1/channels", json={"kind": "slack"}))["address"] == "U0001"
        assert "address: is not a Slack user" in refused(client.post("/v1/channels", json={"kind": "slack", "address": "U0002"}))


def test_an_admin_manages_the_workspace_s_channels_and_the_default(stage: Stage, admin: httpx2.Client) -> None:
    rows = [
        good(admin.post("/v1/channels", json=body))
        for body in (
            {"kind": "mail", "address": "ops@example.com"},
            {"kind": "slack", "address": "C012AB3CD"},
            {"kind": "operator", "address": "ops"},
            {"kind": "mail", "for_everyone": True, "timing": "reminders"},
        )
    ]
    assert [row["id"] for row in good(admin.get("/v1/channels"))["data"]] == [row["id"] for row in reversed(rows)]
    assert "default for everyone" in refused(admin.post("/v1/channels", json={"kind": "mail", "for_everyone": True}), 409)
    assert "about: " in refused(admin.post("/v1/channels", json={"kind": "slack", "address": "C012AB3CD", "about": "mine"}))
    assert "address: " in refused(admin.post("/v1/channels", json={"kind": "slack", "address": "#general"}))
    assert "owner: an API key is not a person" in refused(admin.get("/v1/channels?owner=me"))


def test_channels_are_limited(stage: Stage, mailing: str) -> None:
    with member(stage).client(mailing) as client:
        for _ in range(MOST_OF_PERSON):
            good(client.post("/v1/channels", json={"kind": "mail"}))
        assert "10 channels, the most" in refused(client.post("/v1/channels", json={"kind": "mail"}), 409)


def test_without_a_sender_there_is_no_mail(stage: Stage, api: str) -> None:
    with member(stage).client(api) as client:
        assert "ASSENT_MAIL_FROM" in refused(client.post("/v1/channels", json={"kind": "mail"}), 409)


def test_the_link_in_a_mail_disables_one_channel_and_opening_it_changes_nothing(stage: Stage, mailing: str) -> None:
    anna = member(stage)
    with transaction(stage.workspace_id) as db:
        make = {"kind": "mail", "address": anna.email, "person_id": anna.person_id}
        row, other = (Channel.create(db, anna.principal, NewChannel(**make)) for _ in range(2))
        token = encryption.decrypt("deliver", str(row.secret), row.id)
    link = f"/unsubscribe/{stage.workspace_id}/{row.id}/{token}"
    with Visitor(mailing, headers={"origin": "null"}) as browser:
        for wrong in (link[:-1], link.replace(row.id, other.id), f"/unsubscribe/x/{row.id}/{token}", "/unsubscribe/%00/a/b"):
            assert browser.post(wrong, data={"List-Unsubscribe": "One-Click"}).status_code == 404
        assert browser.head(link).status_code == 200
        assert anna.email in browser.get(link).text
        assert stage.get(Channel, row.id).state == "enabled"
        for _ in range(2):
            assert browser.post(link, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert stage.get(Channel, row.id).disabled_reason == "Unsubscribed by a link in a mail."
    assert stage.get(Channel, other.id).state == "enabled"


def test_a_person_s_page_adds_changes_and_removes_a_channel(stage: Stage, mailing: str) -> None:
    anna = member(stage)
    with anna.client(mailing) as cookies, Visitor(mailing, cookies=dict(cookies.cookies)) as browser:
        added = browser.submit("/inbox/channels", kind="mail", name="Work", about="groups", timing="at_once", time_zone="UTC")
        assert added.status_code == 303, added.text
        page = browser.get("/inbox/channels").text
        assert "Work" in page
        assert anna.email in page
        with transaction(stage.workspace_id) as db:
            [row] = db.find(Channel)
        assert (row.name, row.about, row.quiet_from) == ("Work", "groups", None)
        assert browser.submit("/inbox/channels", f"/inbox/channels/{row.id}", state="disabled").status_code == 303
        assert stage.get(Channel, row.id).state == "disabled"
        fault = browser.submit("/inbox/channels", kind="apprise", url="json://10.0.0.1/")
        assert fault.status_code == 400
        assert "must be the URL of a known service" in fault.text
        assert browser.get("/inbox/workspace/channels").status_code == 403
        assert browser.submit("/inbox/channels", f"/inbox/channels/{row.id}", remove="yes").status_code == 303
    with transaction(stage.workspace_id) as db:
        assert db.find(Channel) == []


def test_a_channel_is_edited_in_the_form_of_a_new_one(stage: Stage, mailing: str) -> None:
    anna, ben = member(stage), member(stage)
    filled = {
        "name": "Work",
        "about": "groups",
        "timing": "reminders",
        "delay_seconds": "0",
        "tells_outcomes": "true",
        "quiet_from": "22:00",
        "quiet_until": "07:00",
    }
    with anna.client(mailing) as cookies, Visitor(mailing, cookies=dict(cookies.cookies)) as browser:
        added = browser.submit("/inbox/channels", kind="mail", time_zone="Europe/Berlin", **filled)
        assert added.status_code == 303, added.text[added.text.index("alert") :][:300]
        with transaction(stage.workspace_id) as db:
            [row] = db.find(Channel)
        address = f"/inbox/channels/{row.id}"
        assert f'href="{address}"' in browser.get("/inbox/channels").text
        form = browser.get(address).text
        for text in (
            'value="Work"',
            '"groups" selected',
            '"reminders" selected',
            '"true" selected',
            'value="0"',
            'value="22:00"',
            "selected>Europe/Berlin",
        ):
            assert text in form, text
        refused = browser.submit(address, address, **filled | {"name": "Home", "quiet_until": ""}, time_zone="UTC")
        assert (refused.status_code, 'value="Home"' in refused.text, 'role="alert"' in refused.text) == (400, True, True)
        saved = browser.submit(address, address, **filled | {"name": "Home", "delay_seconds": ""}, time_zone="UTC")
        assert (saved.status_code, saved.headers["location"]) == (303, "/inbox/channels")
    row = stage.get(Channel, row.id)
    assert (row.name, row.delay_seconds, row.tells_outcomes, row.quiet_until, row.time_zone) == ("Home", None, True, "07:00", "UTC")
    with ben.client(mailing) as stranger:
        assert stranger.get(address).status_code == 404


def test_an_admin_s_page_manages_the_workspace_s_channels(stage: Stage, mailing: str) -> None:
    boss = member(stage, "admin")
    page = "/inbox/workspace/channels"
    with boss.client(mailing) as cookies, Visitor(mailing, cookies=dict(cookies.cookies)) as browser:
        assert browser.submit(page, kind="slack", address="C012AB3CD", name="#approvals", timing="at_once").status_code == 303
        assert browser.submit(page, kind="mail", for_everyone="on").status_code == 303
        text = browser.get(page).text
        assert "#approvals" in text
        assert "default for everyone" in text
        with transaction(stage.workspace_id) as db:
            [slack] = db.find(Channel, "WHERE kind = 'slack'")
        assert 'value="#approvals"' in browser.get(f"{page}/new?kind=slack&like={slack.id}").text
        assert 'value="#approvals"' not in browser.get(f"{page}/new?kind=slack").text
