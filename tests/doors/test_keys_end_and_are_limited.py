"""API keys expire, are switched off, are limited to networks, and are rotated with an overlap. Their last use is stored."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from doors.reading import stream
from doors.served import Caller, bad, good, key
from own_database import Clock, DatabaseUrls
from rows.stage import Stage

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.errors import Invalid
from models.settings.networks import check_networks, contains
from models.workspace import key_lookup
from models.workspace.api_key import ApiKey, NewKey

KEYS = "/v1/organizations/api_keys"
Maker = Callable[..., tuple[ApiKey, str]]


@pytest.fixture
def make(stage: Stage) -> Maker:
    """A function that creates a key in the stage's workspace. `lives`: seconds until the key expires."""

    def run(lives: float | None = None, **more: Any) -> tuple[ApiKey, str]:
        with transaction(stage.workspace_id) as db:
            expires_at = database_clock.now(db) + timedelta(seconds=lives) if lives else None
            return ApiKey.create(db, NewKey("k", expires_at=expires_at, **more))

    return run


def opens(secret: str, address: str | None = "127.0.0.1") -> bool:
    """Return True if a process without a cached key accepts this secret."""
    key_lookup.forget()
    return key_lookup.authenticate(secret, address) is not None


def test_an_expired_key_opens_nothing(make: Maker, clock: Clock) -> None:
    _, secret = make(lives=60)
    assert opens(secret)
    clock.advance(61)
    assert not opens(secret)


def test_an_expiry_in_the_past_is_refused(make: Maker) -> None:
    with pytest.raises(Invalid, match="expires_at: must be in the future"):
        make(lives=-1)


def test_a_key_that_is_switched_off_opens_nothing_until_it_is_on_again(make: Maker, stage: Stage) -> None:
    row, secret = make()
    for status, open_now in (("inactive", False), ("active", True), ("archived", False)):
        with transaction(stage.workspace_id) as db:
            ApiKey.change(db, row.id, status=status, by=stage.principal)  # type: ignore[arg-type]
        assert opens(secret) is open_now, status


def test_a_key_is_good_only_from_its_networks(make: Maker) -> None:
    _, secret = make(allowed_cidrs=["10.1.0.0/16", "2001:db8::/32", "192.0.2.7"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1", "192.0.2.7"):
        assert opens(secret, address), address
    for address in ("10.2.0.1", "2001:db9::1", "192.0.2.8", "", None, "unix:"):
        with pytest.raises(key_lookup.AddressRefused):
            opens(secret, address)


def test_a_refused_address_is_a_403_that_names_it(api: str, make: Maker) -> None:
    _, near = make(allowed_cidrs=["127.0.0.0/8"])
    _, far = make(allowed_cidrs=["203.0.113.0/24"])
    with Caller(api, near) as caller:
        good(caller.get("/v1/agents"))
    with Caller(api, far) as caller:
        assert bad(caller.get("/v1/agents"), 403, "127.0.0.1", "allowed_cidrs")["type"] == "permission_error"


@pytest.mark.parametrize("cidr", ["10.0.0.1/8", "10.0.0.0/33", "all", "", "2001:db8::1/32"])
def test_an_invalid_network_is_refused_by_its_index(cidr: str) -> None:
    with pytest.raises(ValueError, match=r"allowed_cidrs\.1: .* is not a network"):
        check_networks(["127.0.0.1", cidr])


def test_an_empty_list_of_networks_is_refused() -> None:
    with pytest.raises(ValueError, match="leave it out"):
        check_networks([])
    assert not contains([], "127.0.0.1")


def test_the_last_use_is_stored_at_most_once_a_minute(make: Maker, stage: Stage, clock: Clock) -> None:
    row, secret = make()
    assert row.last_used_at is None
    assert opens(secret)
    first = stage.get(ApiKey, row.id).last_used_at
    assert first
    assert opens(secret), "in another process, which has stored no use yet"
    assert stage.get(ApiKey, row.id).last_used_at == first
    clock.advance(61)
    assert opens(secret)
    later = stage.get(ApiKey, row.id).last_used_at
    assert later
    assert later - first >= timedelta(seconds=60)


def test_a_refused_use_is_not_stored(make: Maker, stage: Stage) -> None:
    row, secret = make(allowed_cidrs=["203.0.113.0/24"])
    with pytest.raises(key_lookup.AddressRefused):
        opens(secret)
    assert stage.get(ApiKey, row.id).last_used_at is None


def test_no_request_waits_to_store_its_use(make: Maker, stage: Stage, database_urls: DatabaseUrls) -> None:
    row, secret = make()
    with psycopg.connect(database_urls.admin) as db:
        db.execute("SELECT FROM api_key WHERE id = %s FOR UPDATE", [row.id])
        assert opens(secret)
    assert stage.get(ApiKey, row.id).last_used_at is None


def test_after_a_rotation_both_secrets_are_valid_until_the_overlap_ends(caller: Caller, make: Maker, clock: Clock) -> None:
    old, secret = make(lives=7 * 86_400, allowed_cidrs=["127.0.0.0/8"])
    new = good(caller.post(f"{KEYS}/{old.id}/rotate", json={"overlap_seconds": 3600}))
    assert (new["name"], new["scopes"], new["allowed_cidrs"]) == (old.name, old.scopes, old.allowed_cidrs)
    assert new["id"] != old.id
    assert opens(secret)
    assert opens(new["key"])
    clock.advance(3601)
    assert not opens(secret)
    assert opens(new["key"])
    assert good(caller.get(f"{KEYS}/{old.id}"))["status"] == "expired"
    bad(caller.post(f"{KEYS}/{old.id}/rotate", json={}), 400, "expired")
    clock.advance(7 * 86_400)
    assert not opens(new["key"]), "the new key expires when the old one would have"


def test_a_secret_is_in_the_first_response_alone(caller: Caller, stage: Stage, database_urls: DatabaseUrls) -> None:
    headers = {"idempotency-key": "k"}
    first, again = (good(caller.post(KEYS, json={"name": "once"}, headers=headers)) for _ in range(2))
    assert opens(first["key"])
    assert again == first | {"key": None}
    with psycopg.connect(database_urls.admin) as db:
        [stored] = db.execute(
            "SELECT string_agg(a::text, '') || (SELECT string_agg(u::text, '') FROM audit u) FROM stored_response a"
        ).fetchone() or [""]
    assert first["id"] in stored
    assert first["key"] not in stored


def test_nobody_creates_a_key_with_more_scopes_than_their_own(api: str, caller: Caller, stage: Stage) -> None:
    strong = good(caller.post(KEYS, json={"name": "approver", "scopes": ["approvals", "reveal"]}))
    with Caller(api, key(stage, "admin", "read")) as admin:
        bad(admin.post(KEYS, json={"name": "x", "scopes": ["approvals"]}), 403, "'approvals'")
        bad(admin.post(KEYS, json={"name": "x"}), 403, "scope")
        bad(admin.post(f"{KEYS}/{strong['id']}/rotate", json={}), 403, "scope")
        good(admin.post(f"{KEYS}/{strong['id']}", json={"status": "inactive"}))
        bad(admin.post(f"{KEYS}/{strong['id']}", json={"status": "active"}), 403, "scope")
        assert good(admin.post(KEYS, json={"name": "x", "scopes": ["read"]}))["scopes"] == ["read"]
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as other:
        for answer in (other.get(KEYS), other.post(KEYS, json={"name": "x"}), other.get(f"{KEYS}/{strong['id']}")):
            bad(answer, 403, "'admin'")


def test_invalid_requests_name_the_field(caller: Caller) -> None:
    for body, field in (
        ({"name": "x", "scopes": ["everything"]}, "scopes"),
        ({"name": "x", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "x", "allowed_cidrs": ["here"]}, "allowed_cidrs.0"),
        ({"name": "x", "environment_id": "env_none"}, "environment"),
        ({}, "name"),
    ):
        bad(caller.post(KEYS, json=body), 400, field)
    bad(caller.get(KEYS, params={"after_id": "key_1", "before_id": "key_2"}), 400, "before_id")


def test_a_stream_ends_when_its_key_expires(api: str, caller: Caller, make: Maker, clock: Clock) -> None:
    session = caller.session()
    _, secret = make(lives=600)
    with Caller(api, secret) as watcher, stream(watcher, session["id"]) as opened:
        clock.advance(601)
        assert opened.rest() == []
