"""The header of an authenticating proxy signs people in. It counts only from the proxies that the operator trusts."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import warm
from doors.served import SIGN_IN_WORKSPACE, served
from people import Visitor, acts_of, member
from rows.stage import Stage
from werkzeug.exceptions import NotFound
from werkzeug.middleware.http_proxy import ProxyMiddleware
from werkzeug.serving import make_server

HEADER, GROUPS = "X-Auth-Request-Email", "X-Auth-Request-Groups"
SETTINGS = {
    "ASSENT_PROXY_EMAIL_HEADER": HEADER,
    "ASSENT_PROXY_GROUPS_HEADER": GROUPS,
    "ASSENT_PROXY_EMAIL_DOMAINS": "example.com, example.org",
    "ASSENT_PROXY_ROLES": json.dumps([{"group": "ops", "role": "approver"}]),
    "ASSENT_SIGN_IN_WORKSPACE": SIGN_IN_WORKSPACE,
}


@pytest.fixture(scope="module")
def house(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server that trusts the proxy 127.0.0.1."""
    with served(tmp_path_factory.mktemp("house") / "log", ASSENT_TRUSTED_PROXIES="127.0.0.1/32", **SETTINGS) as url:
        yield url


@pytest.fixture
def stage(sign_in_stage: Stage) -> Stage:
    """The workspace that the server's settings name."""
    return sign_in_stage


@contextmanager
def proxy(house: str, email: str, groups: str = "ops") -> Iterator[str]:
    """Start a proxy in front of the server that names this person in each request."""
    target = {"target": house, "headers": {HEADER: email, GROUPS: groups}, "host": None}
    middleware = ProxyMiddleware(NotFound(), {"all": target})

    def everything(environ: Any, start_response: Any) -> Any:
        return middleware.proxy_to(target, environ["PATH_INFO"], "/")(environ, start_response)

    server = make_server("127.0.0.1", 0, everything, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join(10)


def direct(house: str, **headers: str) -> Visitor:
    """Return a browser that reaches the server directly, from another address."""
    return Visitor(house, headers=headers, transport=httpx2.HTTPTransport(local_address="127.0.0.2"))


def test_the_person_whom_the_proxy_names_is_signed_in_with_the_role_of_the_groups(house: str, stage: Stage) -> None:
    with proxy(house, "Anna@example.com", "staff, ops") as url, Visitor(url) as browser:
        entered = browser.get("/sign-in", params={"next": "/inbox/account"})
        assert (entered.status_code, entered.headers["location"]) == (303, "/inbox/account"), entered.text
        page = browser.get("/inbox/account").text
        assert "anna@example.com, approver in Stage" in page
        assert "by proxy" in page
    assert "person.signed_in" in [action for _, action in acts_of(stage)]


def test_the_header_of_an_untrusted_address_is_ignored(house: str, stage: Stage) -> None:
    member(stage, "admin", email="anna@example.com")
    with direct(house, **{HEADER: "anna@example.com", "x-forwarded-for": "127.0.0.1"}) as mallory:
        assert mallory.get("/sign-in").status_code == 200
        assert not mallory.signed_in()


def test_two_headers_one_of_the_client_and_one_of_the_proxy_sign_nobody_in(house: str, stage: Stage) -> None:
    """A careless proxy adds its header to the client's headers instead of replacing them."""
    member(stage, "admin", email="boss@example.com")
    with proxy(house, "anna@example.com") as url, Visitor(url, headers={HEADER: "boss@example.com"}) as browser:
        assert browser.get("/sign-in").status_code == 200
        assert not browser.signed_in()


def test_the_sign_in_ends_when_the_header_is_gone_or_names_another(house: str, stage: Stage) -> None:
    with proxy(house, "anna@example.com") as url, Visitor(url) as browser:
        browser.get("/sign-in")
        assert browser.signed_in()
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    with proxy(house, "ben@example.com") as url, Visitor(url, headers={"cookie": cookie}) as browser:
        assert not browser.signed_in()
    with direct(house, cookie=cookie) as stolen:
        assert not stolen.signed_in()


def test_a_person_who_was_here_before_the_proxy_connects_its_header(house: str, stage: Stage) -> None:
    anna = member(stage, "admin", email="anna@example.com")
    with proxy(house, "anna@example.com") as url, Visitor(url) as browser:
        refused = browser.get("/sign-in")
        assert refused.status_code == 403
        assert "this account of proxy is not connected yet" in refused.text
        assert "Sign in with a passkey" in refused.text
        for name, secret in anna.cookie(url).items():
            browser.cookies.set(name, secret, domain="127.0.0.1")
        assert "Connect proxy" in browser.get("/inbox/account").text
        assert browser.submit("/sign-in", "/inbox/account/accounts").status_code == 303
        assert browser.get("/sign-in").status_code == 303
        assert "no more than the role approver" in browser.get("/inbox/account").text


def test_the_proxy_vouches_only_for_its_domains(house: str, stage: Stage) -> None:
    with proxy(house, "anna@elsewhere.example") as url, Visitor(url) as browser:
        assert "proxy does not vouch for the address" in browser.get("/sign-in").text
        assert not browser.signed_in()


@pytest.mark.parametrize("email", ["", "anna", "anna@example.com, ben@example.com"])
def test_a_header_without_exactly_one_address_signs_nobody_in(house: str, stage: Stage, email: str) -> None:
    with proxy(house, email) as url, Visitor(url) as browser:
        assert browser.get("/sign-in").status_code == 200
        assert not browser.signed_in()


def test_a_person_without_a_role_is_refused(house: str, stage: Stage) -> None:
    with proxy(house, "anna@example.com", "staff") as url, Visitor(url) as browser:
        refused = browser.get("/sign-in")
        assert refused.status_code == 400
        assert "have no role" in refused.text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "ASSENT_PROXY_EMAIL_HEADER is set, but ASSENT_TRUSTED_PROXIES is not"),
        ({"ASSENT_TRUSTED_PROXIES": "0.0.0.0/0"}, "names every address"),
        ({"ASSENT_TRUSTED_PROXIES": "10.0.0.0/8", "ASSENT_PROXY_EMAIL_DOMAINS": ""}, "ASSENT_PROXY_EMAIL_DOMAINS is not set"),
        ({"ASSENT_TRUSTED_PROXIES": "10.0.0.0/8", "ASSENT_SIGN_IN_WORKSPACE": ""}, "set ASSENT_SIGN_IN_WORKSPACE"),
        (
            {"ASSENT_TRUSTED_PROXIES": "10.0.0.0/8", "ASSENT_PROXY_ROLES": '[{"group": "a", "role": "owner"}]'},
            "ASSENT_PROXY_*: roles",
        ),
        (
            {
                "ASSENT_TRUSTED_PROXIES": "10.0.0.0/8",
                "ASSENT_ISSUERS": '[{"name": "a", "issuer_url": "http://x", "audiences": ["a"], "email_domains": ["*"]}]',
            },
            "ASSENT_ISSUERS: issuer_url: must begin with https://",
        ),
        (
            {
                "ASSENT_TRUSTED_PROXIES": "10.0.0.0/8",
                "ASSENT_ISSUERS": '[{"name": "a", "issuer_url": "https://x", "audiences": ["a"]}]',
            },
            "ASSENT_ISSUERS: email_domains: Field required",
        ),
    ],
)
def test_the_process_does_not_start_with_settings_that_let_anybody_in(settings: dict[str, str], words: str, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSENT", "DATABASE"))} | SETTINGS | settings
    command = [sys.executable, "-m", "gunicorn", "api:create_app()", "--config", "python:api.serving", "--bind", "127.0.0.1:0"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = warm.start([*command, "--no-control-socket"], env, output)
    assert process.wait(100) != 0
    assert words in log.read_text()
    assert "Traceback" not in log.read_text()
