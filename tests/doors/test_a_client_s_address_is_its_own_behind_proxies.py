"""`ASSENT_TRUSTED_PROXIES`: X-Forwarded-* headers count only from trusted proxies. Without the setting they are ignored."""

from collections.abc import Iterator

import pytest
from doors.served import Caller, good, key, served
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rows.stage import Stage

from api.door import client
from models.settings import Settings, settings

NOTHING = Flask("nothing")
"""An app without routes."""
PROXIES = "127.0.0.1 10.0.0.0/8, 2001:db8::/32"


@pytest.fixture(scope="module")
def proxied_api(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An API server that trusts these proxies."""
    with served(tmp_path_factory.mktemp("proxied") / "log", ASSENT_TRUSTED_PROXIES=PROXIES) as url:
        yield url


@pytest.fixture(scope="module")
def trusting() -> Iterator[None]:
    """This process trusts the same proxies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSENT_TRUSTED_PROXIES", PROXIES)
        settings.cache_clear()
        yield
    settings.cache_clear()


def seen(api: str, stage: Stage, **headers: str) -> str:
    """Send a request with these headers. Returns the client's address in the audit."""
    with Caller(api, key(stage), **headers) as caller:
        [act] = good(caller.get("/v1/audit", params={"subject_id": caller.agent()["id"]}))["data"]
        return str(act["address"])


def test_the_audit_has_the_client_s_address(proxied_api: str, stage: Stage) -> None:
    """The client's own entries stand left of the proxies' entries."""
    assert seen(proxied_api, stage, **{"x-forwarded-for": "192.0.2.1, 203.0.113.7, 10.1.2.3"}) == "203.0.113.7"
    assert seen(proxied_api, stage) == "127.0.0.1"


def test_without_trusted_proxies_the_header_is_ignored(api: str, stage: Stage) -> None:
    forged = {
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-proto": "https",
        "forwarded": "for=203.0.113.7",
        "x-real-ip": "203.0.113.7",
    }
    assert seen(api, stage, **forged) == "127.0.0.1"
    with Caller(api, key(stage), **forged, script_name="/elsewhere") as caller:
        assert "strict-transport-security" not in caller.get("/v1/agents").headers


def test_after_tls_at_the_proxy_the_client_is_told_to_use_tls_always(proxied_api: str, stage: Stage) -> None:
    with Caller(proxied_api, key(stage)) as caller:
        for headers, strict in (
            ({"x-forwarded-proto": "https"}, True),
            ({"x-forwarded-proto": "http"}, False),
            ({}, False),
            ({"x-forwarded-proto": "https, http"}, False),  # the client's own word, then the proxy's
            ({"x-forwarded-proto": "https, http", "x-forwarded-for": "203.0.113.7, 10.0.0.1"}, True),  # two proxies' words
        ):
            answer = caller.get("/v1/agents", headers=headers)
            assert ("strict-transport-security" in answer.headers) == strict, headers
            assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("peer", "header", "expected"),
    [
        ("203.0.113.7", "192.0.2.1", "203.0.113.7"),  # an untrusted peer: its header is ignored
        ("10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "192.0.2.9, 192.0.2.1, 10.9.9.9", "192.0.2.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", " , ,", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.1, unknown", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "192.0.2.1:4711", "192.0.2.1"),
        ("10.0.0.1", "[2001:db9::1]:443", "2001:db9::1"),
        ("2001:db8::5", "2001:db9::1", "2001:db9::1"),
        ("::ffff:10.0.0.1", "::ffff:192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "1.2.3.4.5", "10.0.0.1"),
        ("10.0.0.1", "010.0.0.1", "10.0.0.1"),
    ],
)
def test_hops_are_read_from_the_right(trusting: None, peer: str, header: str, expected: str) -> None:
    with NOTHING.test_request_context(headers={"x-forwarded-for": header}, environ_base={"REMOTE_ADDR": peer}):
        assert client.address() == expected


@given(st.lists(st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=20), max_size=5))
def test_what_a_client_writes_never_moves_its_address(trusting: None, forged: list[str]) -> None:
    header = ", ".join([*forged, "203.0.113.7"])
    with NOTHING.test_request_context(headers={"x-forwarded-for": header}, environ_base={"REMOTE_ADDR": "10.0.0.1"}):
        assert client.address() == "203.0.113.7"


def test_several_headers_are_one_list(trusting: None) -> None:
    headers = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "203.0.113.7")]
    with NOTHING.test_request_context(headers=headers, environ_base={"REMOTE_ADDR": "10.0.0.1"}):
        assert client.address() == "203.0.113.7"


@pytest.mark.parametrize("wrong", ["localhost", "10.0.0.1/8", "10.0.0.0/40", "*"])
def test_a_setting_that_is_no_network_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("ASSENT_TRUSTED_PROXIES", wrong)
    with pytest.raises(ValidationError, match="ASSENT_TRUSTED_PROXIES"):
        Settings()
