"""The header of an authenticating proxy: believed from the proxies that the operator names, and from nobody else."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from doors.served import HOUSE, served
from people import Visitor, acts_of, member
from rows.stage import Stage
from werkzeug.exceptions import NotFound
from werkzeug.middleware.http_proxy import ProxyMiddleware
from werkzeug.serving import make_server

from models.database import ids

WORKSPACE = "wrkspc_01K9ZQ3T5VJ8W2X4Y6A7B8C9D1"
HEADER, GROUPS = "X-Auth-Request-Email", "X-Auth-Request-Groups"
SETTINGS = {
    "ASSENT_PROXY_EMAIL_HEADER": HEADER,
    "ASSENT_PROXY_GROUPS_HEADER": GROUPS,
    "ASSENT_PROXY_ROLES": json.dumps([{"group": "ops", "role": "approver"}]),
    "ASSENT_SIGN_IN_WORKSPACE": WORKSPACE,
}


@pytest.fixture(scope="module")
def house(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that believes the proxy 127.0.0.1."""
    with served(tmp_path_factory.mktemp("house") / "log", ASSENT_TRUSTED_PROXIES="127.0.0.1/32", **SETTINGS) as url:
        yield url


@pytest.fixture
def stage(clean_database: object, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The workspace that the server's settings name."""
    usual: Any = ids.new
    monkeypatch.setattr(ids, "new", lambda prefix: WORKSPACE if prefix == "wrkspc" else usual(prefix))
    return Stage()


@contextmanager
def proxy(house: str, email: str, groups: str = "ops") -> Iterator[str]:
    """A proxy in front of the server, at which everybody is this person."""
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
    """Somebody who reaches the server past the proxy, from an address of their own."""
    return Visitor(house, headers=headers, transport=httpx.HTTPTransport(local_address="127.0.0.2"))


def test_whom_the_proxy_names_is_signed_in_with_the_role_of_the_groups(house: str, stage: Stage) -> None:
    with proxy(house, "Anna@example.com", "staff, ops") as url, Visitor(url) as browser:
        entered = browser.get("/sign-in", params={"next": "/inbox/account"})
        assert (entered.status_code, entered.headers["location"]) == (303, "/inbox/account"), entered.text
        page = browser.get("/inbox/account").text
        assert "anna@example.com, approver in Stage" in page
        assert "by proxy" in page
    assert "person.signed_in" in [action for _, action in acts_of(stage)]


def test_nobody_else_s_header_is_believed(house: str, stage: Stage) -> None:
    member(stage, "admin", email="anna@example.com")
    with direct(house, **{HEADER: "anna@example.com", "x-forwarded-for": "127.0.0.1"}) as mallory:
        assert mallory.get("/sign-in").status_code == 200
        assert not mallory.signed_in()


def test_a_header_that_a_client_sends_beside_the_proxy_s_names_nobody(house: str, stage: Stage) -> None:
    """This proxy adds its header to those of the client, as careless ones do."""
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


@pytest.mark.parametrize("email", ["", "anna", "anna@example.com, ben@example.com"])
def test_what_names_nobody_signs_nobody_in(house: str, stage: Stage, email: str) -> None:
    with proxy(house, email) as url, Visitor(url) as browser:
        assert browser.get("/sign-in").status_code == 200
        assert not browser.signed_in()


def test_who_has_no_role_stays_outside(house: str, stage: Stage) -> None:
    with proxy(house, "anna@example.com", "staff") as url, Visitor(url) as browser:
        refused = browser.get("/sign-in")
        assert refused.status_code == 400
        assert "have no role" in refused.text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "ASSENT_PROXY_EMAIL_HEADER is set, but ASSENT_TRUSTED_PROXIES is not"),
        ({"ASSENT_TRUSTED_PROXIES": "0.0.0.0/0"}, "names every address"),
        ({"ASSENT_TRUSTED_PROXIES": "10.0.0.0/8", "ASSENT_SIGN_IN_WORKSPACE": ""}, "set ASSENT_SIGN_IN_WORKSPACE"),
        (
            {"ASSENT_TRUSTED_PROXIES": "10.0.0.0/8", "ASSENT_PROXY_ROLES": '[{"group": "a", "role": "owner"}]'},
            "ASSENT_PROXY_ROLES: roles",
        ),
        (
            {
                "ASSENT_TRUSTED_PROXIES": "10.0.0.0/8",
                "ASSENT_ISSUERS": '[{"name": "a", "issuer_url": "http://x", "audiences": ["a"]}]',
            },
            "ASSENT_ISSUERS: issuer_url: must begin with https://",
        ),
    ],
)
def test_the_process_does_not_start_with_settings_that_let_anybody_in(settings: dict[str, str], words: str, tmp_path: Path) -> None:
    """Of gunicorn, before it forks."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSENT", "DATABASE"))} | SETTINGS | settings
    command = [sys.executable, "-m", "gunicorn", "api:create_app()", "--config", "python:api.serving", "--bind", "127.0.0.1:0"]
    found = subprocess.run(
        [*command, "--no-control-socket"], cwd=HOUSE, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert found.returncode != 0
    assert words in found.stderr
    assert "Traceback" not in found.stderr
