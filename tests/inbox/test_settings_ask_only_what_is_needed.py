"""Each list of the settings has one "New", each form asks what its kind needs, and what a person chooses is said in words."""

import re
from collections.abc import Iterator
from html import unescape

import httpx2
import people
import pytest
from people import Visitor
from rows.stage import Stage

from api.desk.settings.keys import SENTENCES
from api.desk.settings.webhooks import PRESETS
from models.database.transactions import transaction
from models.outbox.endpoint import Endpoint
from models.workspace.api_key import SCOPES

LISTS = {
    "channels": "New channel",
    "workspace/channels": "New channel",
    "people": "Invite a person",
    "groups": "New group",
    "keys": "New key",
    "provider-keys": "New key",
    "usage": "New limit",
    "webhooks": "New webhook",
}
OF_EACH_CHANNEL = {
    "csrf_token",
    "kind",
    "name",
    "about",
    "timing",
    "tells_outcomes",
    "delay_seconds",
    "quiet_from",
    "quiet_until",
    "time_zone",
}
OF_KIND = {"slack": {"address"}, "operator": {"address"}, "apprise": {"url"}}
"""Of an installation without a mail server, such as that of the tests."""
_FIELD = re.compile(r'<(?:input|select|textarea)\b[^>]*\bname="(\w+)"')


@pytest.fixture
def anna(stage: Stage) -> people.Somebody:
    return people.member(stage, "admin")


@pytest.fixture
def admin(anna: people.Somebody, api: str) -> Iterator[httpx2.Client]:
    with anna.client(api) as client:
        yield client


def fields(page: str) -> set[str]:
    """The fields of the page's main form."""
    form = re.search(r'<form[^>]*class="form".*?</form>', page, re.DOTALL)
    assert form, page
    return set(_FIELD.findall(form[0]))


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_one_new_which_opens_a_page(admin: httpx2.Client, path: str) -> None:
    page = admin.get(f"/inbox/{path}").text
    [(address, words)] = re.findall(r'<a class="button main" href="([^"]*)">([^<]*)</a>', page)
    assert (address, words) == (f"/inbox/{path}/new", LISTS[path])
    assert admin.get(address).status_code == 200


@pytest.mark.parametrize("kind", OF_KIND)
def test_the_form_of_a_channel_has_the_fields_of_its_kind(admin: httpx2.Client, kind: str) -> None:
    form_fields = fields(admin.get("/inbox/workspace/channels/new", params={"kind": kind}).text)
    of_all_kinds = {"address", "url", "for_everyone"}
    assert form_fields & of_all_kinds == OF_KIND[kind]
    assert form_fields - of_all_kinds <= OF_EACH_CHANNEL


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_of_a_webhook_names_its_events(stage: Stage, anna: people.Somebody, api: str, preset: str) -> None:
    words, types = PRESETS[preset]
    with Visitor(api, cookies=anna.cookie(api)) as browser:
        assert unescape(browser.get("/inbox/webhooks/new").text).count(words) == 1
        created = browser.submit("/inbox/webhooks/new", "/inbox/webhooks", url="https://hooks.example.com/", preset=preset)
    assert created.status_code == 200, created.text
    with transaction(stage.workspace_id) as db:
        [endpoint] = db.find(Endpoint)
    assert set(endpoint.enabled_events) == set(types)


def test_each_scope_of_a_key_is_a_sentence(admin: httpx2.Client) -> None:
    page = unescape(admin.get("/inbox/keys/new").text)
    scopes = set(re.findall(r'name="scopes" value="(\w+)"', page))
    assert scopes
    assert scopes <= set(SCOPES)
    for scope in scopes:
        assert f"<span>{SENTENCES[scope]} <code" in page
        assert len(SENTENCES[scope].split()) > 1
