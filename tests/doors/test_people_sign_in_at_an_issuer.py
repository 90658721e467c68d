"""OpenID Connect with a provider in its own process. At each sign-in, roles and groups follow the issuer's groups."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from doors.provider import account, begin, enter, provider_at, vouch
from doors.served import SIGN_IN_WORKSPACE, served
from people import Visitor, acts_of, member
from rows.stage import Stage

from models.audit.acts import Audit
from models.audit.principal import system
from models.database.transactions import transaction
from models.people import person
from models.people.member import Member

SECRETS = json.dumps({"corp": "the client's secret"})
ROLES = [
    {"group": "assent-admins", "role": "admin"},
    {"group": "eng-*", "role": "developer"},
    {"group": "finance", "role": "approver"},
]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The issuer's URL."""
    with provider_at(tmp_path_factory.mktemp("provider")) as url:
        yield url


class Misconfigured(BaseHTTPRequestHandler):
    """Three servers that are not issuers.

    `/list` has a list in place of metadata, `/bare` metadata without endpoints, and `/down` endpoints at which nothing answers.
    """

    def do_GET(self) -> None:
        issuer = self.path.removesuffix("/.well-known/openid-configuration")
        metadata: Any = {"issuer": f"http://{self.headers['host']}{issuer}"}
        if issuer == "/list":
            metadata = [1]
        if issuer == "/down":
            metadata |= dict.fromkeys(("authorization_endpoint", "token_endpoint", "jwks_uri"), "http://127.0.0.1:1")
        body = json.dumps(metadata).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.fixture(scope="module")
def misconfigured() -> Iterator[str]:
    """The URL below which `Misconfigured` serves."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Misconfigured) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def house(
    provider: str, misconfigured: str, database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of an API server that trusts the provider, and three servers that are none."""
    corp = {
        "name": "corp",
        "issuer_url": provider,
        "audiences": ["assent"],
        "email_domains": ["*"],
        "roles": ROLES,
        "groups": ["book-club"],
    }
    others = [corp | {"name": name, "issuer_url": f"{misconfigured}/{name}"} for name in ("list", "bare", "down")]
    env = {
        "ASSENT_ISSUERS": json.dumps([corp, *others]),
        "ASSENT_SIGN_IN_WORKSPACE": SIGN_IN_WORKSPACE,
        "ASSENT_ISSUER_SECRETS": SECRETS,
    }
    with served(tmp_path_factory.mktemp("issuers") / "log", ASSENT_SIGN_IN_ATTEMPTS_PER_SECOND="0", **env) as url:
        yield url.replace("127.0.0.1", "localhost")


@pytest.fixture
def stage(sign_in_stage: Stage) -> Stage:
    """The workspace that the server's settings name."""
    return sign_in_stage


def row(stage: Stage, subject_email: str = "anna@example.com") -> tuple[Any, ...]:
    """Return a person's role, the role's source, True if the membership has ended, and the names of the person's groups."""
    with transaction(stage.workspace_id) as db:
        person_id = person.find(db, subject_email)
        [(role, source, ended)] = db.rows(
            "SELECT role, source, deactivated_at IS NOT NULL FROM member WHERE person_id = %(id)s", id=person_id
        )
        groups = db.rows(
            "SELECT name FROM person_group WHERE id IN (SELECT group_id FROM membership WHERE person_id = %(id)s) ORDER BY 1",
            id=person_id,
        )
    return role, source, ended, [name for (name,) in groups]


def test_a_person_gets_the_strongest_role_of_their_groups(house: str, provider: str, stage: Stage) -> None:
    account(provider, groups=["finance", "eng-web", "book-club", "everybody"])
    with Visitor(house) as browser:
        assert "Sign in with corp" in browser.get("/sign-in").text
        entered = enter(browser)
        assert (entered.status_code, entered.headers.get("location")) == (303, "/inbox/account"), entered.text
        assert "Anna Lang" in browser.get("/inbox/account").text
    assert row(stage) == ("developer", "corp", False, ["book-club", "eng-web", "finance"])
    acts = [action for _, action in acts_of(stage, "")]
    assert {"person.added", "group.created", "group.member_added", "person.signed_in"} <= set(acts)


def test_groups_are_mapped_at_each_sign_in_and_without_a_role_nobody_signs_in(house: str, provider: str, stage: Stage) -> None:
    member(stage, "admin")
    account(provider, groups=["assent-admins"])
    with Visitor(house) as browser:
        enter(browser)
        assert row(stage) == ("admin", "corp", False, ["assent-admins"])
        account(provider, groups=["finance"])
        enter(browser)
        assert row(stage) == ("approver", "corp", False, ["finance"])
        account(provider, groups=[])
        refused = enter(browser)
        assert refused.status_code == 400
        assert "have no role" in refused.text
        assert not browser.signed_in(), "the earlier sign-ins have ended too"
        account(provider, groups=["finance"])
        assert enter(browser).status_code == 303


@pytest.mark.parametrize(("groups", "status", "given"), [(["finance"], 303, "approver"), ([], 400, "none")])
def test_the_last_admin_stays_one_against_the_issuer_s_groups_until_somebody_else_is(
    house: str, provider: str, stage: Stage, groups: list[str], status: int, given: str
) -> None:
    account(provider, groups=["assent-admins"])
    with Visitor(house) as browser, Visitor(house) as later:
        enter(browser)
        account(provider, groups=groups)
        for _ in range(2):
            assert enter(later).status_code == status
            assert row(stage)[:3] == ("admin", "corp", False)
        assert browser.get("/inbox/system").status_code == 200, "the earlier sign-in goes on"
        assert later.signed_in() == (status == 303), "without a role of the groups, the issuer signs nobody in"
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE action = 'person.admin_kept'")
        assert act.details["given"] == given
    member(stage, "admin")
    with Visitor(house) as browser:
        enter(browser)
    role, _, ended, _ = row(stage)
    assert (role, ended) == (("approver", False) if groups else ("admin", True))


def test_a_person_whom_an_admin_deactivated_stays_deactivated(house: str, provider: str, stage: Stage) -> None:
    account(provider, groups=["finance"])
    with Visitor(house) as browser:
        enter(browser)
        with transaction(stage.workspace_id) as db:
            Member.deactivate(db, str(person.find(db, "anna@example.com")), by=system("test", stage.workspace_id))
        assert not browser.signed_in()
        assert "have no role" in enter(browser).text


def test_an_address_that_the_issuer_has_not_verified_signs_nobody_in(house: str, provider: str, stage: Stage) -> None:
    """Anybody could enter another person's address into their own account."""
    member(stage, "admin", email="anna@example.com")
    account(provider, "mallory-1", email_verified=False, groups=["finance"])
    with Visitor(house) as browser:
        assert "not verified" in enter(browser, "mallory-1").text
        assert not browser.signed_in()


def test_an_account_is_identified_by_its_subject_and_not_by_its_address(house: str, provider: str, stage: Stage) -> None:
    account(provider, groups=["finance"])
    with Visitor(house) as browser:
        enter(browser)
        account(provider, email="new-name@example.com", groups=["finance"])
        enter(browser)
        assert "anna@example.com" in browser.get("/inbox/account").text


def test_only_the_browser_that_began_a_sign_in_completes_it_and_only_once(house: str, provider: str, stage: Stage) -> None:
    account(provider, groups=["finance"])
    with Visitor(house) as browser, Visitor(house) as mallory:
        back = vouch(begin(browser))
        begin(mallory)
        assert mallory.get(back).status_code == 403, "the state belongs to another browser"
        state = parse_qs(urlsplit(back).query)["state"][0]
        assert browser.get(back.replace(state, "x" * len(state))).status_code == 403
        assert browser.get(back).status_code == 403, "the false state ended the sign-in"
        back = vouch(begin(browser))
        assert browser.get(back).status_code == 303
        assert browser.get(back).status_code == 403
        assert not mallory.signed_in()


def test_the_request_has_pkce_state_and_nonce(house: str, stage: Stage) -> None:
    with Visitor(house) as browser:
        query = parse_qs(urlsplit(begin(browser)).query)
    assert query["code_challenge_method"] == ["S256"]
    assert {"code_challenge", "state", "nonce"} <= query.keys()
    assert query["client_id"] == ["assent"]
    assert query["redirect_uri"][0].endswith("/sign-in/oidc/corp/callback")


def test_a_refusal_of_the_issuer_is_shown(house: str, stage: Stage) -> None:
    with Visitor(house) as browser:
        at = urlsplit(begin(browser))
        state = parse_qs(at.query)["state"][0]
        answer = browser.get("/sign-in/oidc/corp/callback", params={"error": "access_denied", "state": state})
        assert answer.status_code == 403
        assert "access_denied" in answer.text


@pytest.mark.parametrize(
    ("name", "code", "says"), [("list", 503, "list does not respond"), ("bare", 403, "have no authorization_endpoint")]
)
def test_a_server_that_is_no_issuer_is_named(house: str, stage: Stage, name: str, code: int, says: str) -> None:
    with Visitor(house) as browser:
        refused = browser.get(f"/sign-in/oidc/{name}")
    assert refused.status_code == code
    assert says in refused.text


def test_an_issuer_whose_token_endpoint_is_down_is_named(house: str, stage: Stage) -> None:
    with Visitor(house) as browser:
        state = parse_qs(urlsplit(begin(browser, "down")).query)["state"][0]
        refused = browser.get("/sign-in/oidc/down/callback", params={"code": "c", "state": state})
        assert refused.status_code == 403
        assert "down does not vouch for you (ConnectError)" in refused.text


def test_an_unknown_issuer_is_not_found(house: str, stage: Stage) -> None:
    with Visitor(house) as browser:
        assert browser.get("/sign-in/oidc/other").status_code == 404


def test_a_token_for_another_audience_is_refused(
    provider: str, stage: Stage, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The client id is ours, and the configured audience is another."""
    corp = {"name": "corp", "issuer_url": provider, "audiences": ["another"], "client_id": "assent", "roles": ROLES}
    corp["email_domains"] = ["example.com"]
    env = {
        "ASSENT_ISSUERS": json.dumps([corp]),
        "ASSENT_SIGN_IN_WORKSPACE": SIGN_IN_WORKSPACE,
        "ASSENT_ISSUER_SECRETS": SECRETS,
    }
    account(provider, groups=["finance"])
    with (
        served(tmp_path_factory.mktemp("audience") / "log", **env) as url,
        Visitor(url.replace("127.0.0.1", "localhost")) as browser,
    ):
        refused = enter(browser)
        assert refused.status_code == 403
        assert "does not vouch" in refused.text
        assert not browser.signed_in()
