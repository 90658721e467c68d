"""An issuer's account becomes a known person's only by that person, and a sign-in gives no more than its issuer gives."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from crashes.processes import wait_for
from doors.provider import account, enter, provider_at
from doors.served import SIGN_IN_WORKSPACE, bad, good, served
from people import Somebody, Visitor, acts_of, member
from rows.stage import Stage

from models.database.transactions import transaction
from models.people import person
from models.people.arrival import Arrival, NotConnected, admit
from models.people.invitation import Invitation
from models.people.issuer import Issuer
from models.people.sign_in import SignIn

MODEL = {"name": "A", "model": "claude-opus-4-5"}
CHANNEL = {"kind": "apprise", "url": f"tgram://123456:{'a' * 30}/1234"}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The issuer's URL."""
    with provider_at(tmp_path_factory.mktemp("provider")) as url:
        yield url


@pytest.fixture(scope="module")
def house(provider: str, database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server with three entries of one provider, of which `contractors` gives viewers, and `login` no role."""
    common = {"issuer_url": provider, "audiences": ["assent"], "email_domains": ["Example.com", "contractors.example"]}
    issuers = [
        common | {"name": "contractors", "roles": [{"group": "staff", "role": "viewer"}]},
        common | {"name": "login", "direct_roles_up_to": "developer"},
        common | {"name": "partners", "roles": [{"group": "staff", "role": "viewer"}], "email_domains": ["partners.example"]},
    ]
    secrets = {entry["name"]: "the client's secret" for entry in issuers}
    env = {
        "ASSENT_ISSUERS": json.dumps(issuers),
        "ASSENT_ISSUER_SECRETS": json.dumps(secrets),
        "ASSENT_SIGN_IN_WORKSPACE": SIGN_IN_WORKSPACE,
    }
    with served(tmp_path_factory.mktemp("issuers") / "log", ASSENT_SIGN_IN_ATTEMPTS_PER_SECOND="0", **env) as url:
        yield url.replace("127.0.0.1", "localhost")


@pytest.fixture
def stage(sign_in_stage: Stage) -> Stage:
    """The workspace that the server's settings name."""
    return sign_in_stage


@pytest.fixture
def anna(stage: Stage, provider: str) -> Somebody:
    """An admin whom an admin invited, and whose address the provider gives to somebody's account."""
    account(provider, groups=["staff"])
    return member(stage, "admin", email="anna@example.com")


@contextmanager
def browser_of(who: Somebody, house: str) -> Iterator[Visitor]:
    """Open a browser in which a person is signed in."""
    with Visitor(house) as browser:
        for name, secret in who.cookie(house).items():
            browser.cookies.set(name, secret, domain="localhost.local")
        assert browser.signed_in()
        yield browser


def connect(browser: Visitor, offered: httpx2.Response) -> httpx2.Response:
    """Press the button of the page that offers an account."""
    token = offered.text.partition('name="csrf_token" value="')[2][:64]
    return browser.post("/inbox/account/accounts", data={"csrf_token": token})


def connected(browser: Visitor, issuer: str = "contractors") -> None:
    """Connect the account at the provider to the person of this browser, and sign in by the account."""
    assert connect(browser, enter(browser, issuer=issuer)).status_code == 303
    assert enter(browser, issuer=issuer).status_code == 303


def ask(browser: Visitor, method: str, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
    """Send a request of the API as a page of this browser does."""
    page = browser.get("/inbox/account").text
    token = page.partition('name="csrf_token" value="')[2][:64]
    return browser.request(method, path, json=body, headers={"x-csrf-token": token})


def test_an_account_with_a_person_s_address_is_not_the_person(house: str, anna: Somebody, stage: Stage) -> None:
    with Visitor(house) as mallory:
        refused = enter(mallory, issuer="contractors")
        assert refused.status_code == 400
        assert "anna@example.com is known here, and this account of contractors is not connected yet" in refused.text
        assert "Sign in as before" in refused.text
        assert not mallory.signed_in()
    assert [action for _, action in acts_of(stage)].count("person.signed_in") == 1, "Anna's own sign-in"


def test_a_person_connects_an_account_by_a_button_in_a_sign_in_of_another_way(house: str, anna: Somebody, stage: Stage) -> None:
    with browser_of(anna, house) as browser:
        assert "Connect contractors" in browser.get("/inbox/account").text
        offered = enter(browser, issuer="contractors")
        assert "The account <strong>anna@example.com</strong> (Anna Lang) of <strong>contractors</strong>" in offered.text
        with Visitor(house) as other:
            assert enter(other, issuer="contractors").status_code == 400, "looking at the page connects nothing"
        assert connect(browser, offered).status_code == 303
        assert connect(browser, offered).status_code == 403, "an offer is good once"
        assert "Connect contractors" not in browser.get("/inbox/account").text
    with Visitor(house) as browser:
        assert enter(browser, issuer="contractors").status_code == 303
        assert "anna@example.com, admin in" in browser.get("/inbox/account").text
    assert (f"user:{anna.person_id}", "person.account_connected") in acts_of(stage)


def test_nobody_else_is_offered_the_account_and_nothing_else_connects_one(house: str, anna: Somebody, stage: Stage) -> None:
    with browser_of(member(stage, "admin"), house) as ben:
        assert enter(ben, issuer="contractors").status_code == 400
        assert ask(ben, "POST", "/inbox/account/accounts").status_code == 403
    with browser_of(anna, house) as browser:
        enter(browser, issuer="contractors")
        forged = browser.post("/inbox/account/accounts", headers={"sec-fetch-site": "cross-site"})
        assert forged.status_code == 403


def test_a_person_who_came_by_somebody_s_link_is_confirmed_before_they_connect_an_account(
    house: str, anna: Somebody, stage: Stage
) -> None:
    maker = member(stage, "admin")
    with transaction(stage.workspace_id) as db:
        row, _secret = Invitation.renew(db, anna.person_id, by=maker.principal)
        principal = Invitation.accept(db, row.id, "", None)
        _sign_in, secret = SignIn.start(db, principal, "link")
    with browser_of(Somebody(principal, anna.email, secret), house) as browser:
        assert "Connect contractors" not in browser.get("/inbox/account").text
        refused = connect(browser, enter(browser, issuer="contractors"))
        assert refused.status_code == 403
        assert "ask to be confirmed first" in refused.text


def test_a_sign_in_gives_no_more_than_its_issuer_gives(house: str, anna: Somebody) -> None:
    with browser_of(anna, house) as browser:
        good(ask(browser, "POST", "/v1/agents", MODEL))
        connected(browser)
        page = browser.get("/inbox/account").text
        assert "The issuer of this sign-in lets you use no more than the role viewer" in page
        good(ask(browser, "GET", "/v1/sessions"))
        bad(ask(browser, "POST", "/v1/agents", MODEL), 403, "no more than the role viewer")
        bad(ask(browser, "GET", "/v1/organizations/users"), 403)
    with anna.client(house) as passkey:
        assert passkey.get("/v1/sessions").status_code == 401, "the browser's earlier sign-in has ended"


def test_a_sign_in_with_a_limit_adds_nothing_that_would_have_none(house: str, anna: Somebody) -> None:
    with browser_of(anna, house) as browser:
        connected(browser)
        bad(ask(browser, "POST", "/v1/channels", CHANNEL), 403, "Sign in another way")
        for path in ("/inbox/account/passkeys/options", "/inbox/account/accounts"):
            assert "Sign in another way" in ask(browser, "POST", path).text, path
        assert "Add a passkey" not in browser.get("/inbox/account").text


def test_an_issuer_without_groups_lets_people_use_the_roles_of_admins_as_far_as_its_entry_says(
    house: str, anna: Somebody, stage: Stage
) -> None:
    with browser_of(anna, house) as browser:
        connected(browser, "login")
        good(ask(browser, "POST", "/v1/agents", MODEL))
        bad(ask(browser, "GET", "/v1/organizations/users"), 403, "no more than the role developer")


def test_a_person_of_two_workspaces_connects_the_account_in_each_and_goes_from_one_to_the_other(
    house: str, anna: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    with browser_of(anna, house) as browser:
        connected(browser, "login")
        assert "Your other workspaces" not in browser.get("/inbox/account").text
    monkeypatch.undo()  # from here on, workspaces have ids of their own
    elsewhere = Stage()
    there = member(elsewhere, "viewer", email=anna.email)
    with browser_of(there, house) as browser:
        assert "Connect login" in browser.get("/inbox/account").text, "no workspace knows of the other's account"
        connected(browser, "login")
        assert "anna@example.com, admin in" in browser.get("/inbox/account").text
        browser.submit("/inbox/account", "/inbox/account/workspace", workspace_id=elsewhere.workspace_id)
        assert "anna@example.com, viewer in" in browser.get("/inbox/account").text
        assert acts_of(elsewhere)[-1] == (f"user:{there.person_id}", "person.signed_in")


def test_an_issuer_vouches_only_for_its_domains(house: str, provider: str, stage: Stage) -> None:
    account(provider, "ben-1", email="ben@partners.example.evil.example", groups=["staff"])
    account(provider, "cara-1", email="cara@EXAMPLE.com", groups=["staff"])
    with Visitor(house) as browser:
        refused = enter(browser, "ben-1", issuer="partners")
        assert refused.status_code == 400
        assert "partners does not vouch for the address" in refused.text
        assert not browser.signed_in()
        assert enter(browser, "cara-1", issuer="contractors").status_code == 303
        assert enter(browser, "cara-1", issuer="partners").status_code == 400, "also for an account that it knows"


def test_an_address_in_letters_that_only_look_the_same_is_another_person_s(house: str, provider: str, anna: Somebody) -> None:
    account(provider, "wide-1", email="\uff41nna@example.com", groups=["staff"])
    with Visitor(house) as browser:
        assert enter(browser, "wide-1", issuer="contractors").status_code == 303
        assert "\uff41nna@example.com, viewer in" in browser.get("/inbox/account").text


def test_of_two_accounts_that_arrive_at_once_with_one_address_one_is_the_new_person(stage: Stage) -> None:
    workspace = {"workspace_id": stage.workspace_id, "roles": [{"group": "staff", "role": "viewer"}], "email_domains": ["*"]}
    source = Issuer.model_validate({"name": "corp", "issuer_url": "https://a.example", "audiences": ["a"]} | workspace)

    def arrive(subject: str) -> str:
        try:
            return admit(Arrival(source, subject, "new@example.com", True, "", frozenset({"staff"}), None))[0].id
        except NotConnected:
            return "refused"

    def waiting() -> bool:
        with transaction() as db:
            return bool(db.value("SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))

    with ThreadPoolExecutor(2) as pool:
        with transaction(stage.workspace_id) as db:
            person.find(db, "new@example.com", lock=True)
            arrivals = [pool.submit(arrive, subject) for subject in ("one", "two")]
            wait_for("both accounts wait for the address", waiting)
        refused, admitted = sorted(arrival.result() for arrival in arrivals)
    assert (refused, admitted[:5]) == ("refused", "user_")
    with transaction(stage.workspace_id) as db:
        assert person.find(db, "new@example.com") == admitted
