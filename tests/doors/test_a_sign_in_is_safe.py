"""Sign-ins: the cookie, its end, forged requests, and what an open sign-in may after its person's role has changed."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from doors.reading import stream
from doors.served import Caller, bad, good, served
from own_database import Clock
from people import Somebody, Visitor, acts_of, group, invited, member
from rows.stage import Stage

from models.database.transactions import transaction
from models.settings import settings

MODEL = {"name": "A", "model": "claude-opus-4-5"}


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    """An admin who is signed in."""
    return member(stage, "admin", email="anna@example.com")


@pytest.fixture(scope="module")
def behind_tls(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that trusts the proxy 127.0.0.1."""
    with served(tmp_path_factory.mktemp("tls") / "log", ASSENT_TRUSTED_PROXIES="127.0.0.1/32") as url:
        yield url


def cookies_of(response: httpx2.Response) -> list[str]:
    """The cookies that a response sets."""
    return response.headers.get_list("set-cookie")


def test_the_cookie_is_for_no_script_and_for_no_other_site(api: str, stage: Stage) -> None:
    with Visitor(api) as browser:
        entered = browser.submit(invited(stage), name="Anna")
        [cookie] = cookies_of(entered)
        port = httpx2.URL(api).port
        assert cookie.startswith(f"assent-{port}=")
        assert {"HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))
        assert "Secure" not in cookie, "no browser would keep it on loopback HTTP"


def test_over_tls_the_cookie_is_bound_to_the_host(behind_tls: str, stage: Stage) -> None:
    tls = {"x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https", "host": "assent.example.com"}
    with Visitor(behind_tls, headers=tls) as browser:
        link = invited(stage)
        page = browser.get(link)
        [form] = cookies_of(page)
        assert form.startswith("__Host-assent-form=")
        token = page.text.partition('name="csrf_token" value="')[2][:64]
        kept = {"cookie": form.partition(";")[0]}
        [cookie] = cookies_of(browser.post(link, data={"csrf_token": token, "name": "Anna"}, headers=kept))
        assert cookie.startswith("__Host-assent=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))
        secret = cookie.partition(";")[0]
        assert browser.get("/inbox/account", headers={"cookie": secret}).status_code == 200
        plain = secret.replace("__Host-assent", "assent-443")
        assert browser.get("/inbox/account", headers={"cookie": plain}).status_code == 303, "only the bound name counts"


@pytest.mark.parametrize("headers", [{"host": "assent.example.com"}, {"x-forwarded-for": "203.0.113.7"}])
def test_over_plain_http_from_elsewhere_nobody_signs_in(
    behind_tls: str, stage: Stage, anna: Somebody, headers: dict[str, str]
) -> None:
    link = invited(stage, email="ben@example.com")
    with Visitor(behind_tls, headers=headers) as browser:
        for page in ("/sign-in", link):
            shown = browser.get(page)
            assert "Signing in needs HTTPS" in shown.text
            assert "csrf_token" not in shown.text
            assert cookies_of(shown) == []
        assert browser.post(link, data={"name": "Ben"}).status_code == 403
        cookie = "; ".join(f"{name}={anna.secret}" for name in ("assent-80", "__Host-assent", *anna.cookie(behind_tls)))
        assert browser.get("/inbox/account", headers={"cookie": cookie}).status_code == 303


def test_signing_in_gives_a_new_cookie_and_ends_the_browser_s_earlier_sign_in(api: str, stage: Stage, anna: Somebody) -> None:
    """A cookie that an attacker planted before is worthless afterwards."""
    [(name, planted)] = anna.cookie(api).items()
    with Visitor(api) as browser:
        browser.cookies.set(name, planted, domain="127.0.0.1")
        [cookie] = cookies_of(browser.submit(invited(stage, email="ben@example.com"), name="Ben"))
        assert planted not in cookie
        assert "ben@example.com" in browser.get("/inbox/account").text
    with Visitor(api, cookies={name: planted}) as thief:
        assert not thief.signed_in()


@pytest.mark.parametrize(
    "place", ["https://evil.example", "//evil.example", "/\\evil.example", "/a\nb", "javascript:alert(1)", "inbox"]
)
def test_nobody_is_sent_elsewhere_after_signing_in(api: str, place: str) -> None:
    with Visitor(api) as browser:
        page = browser.get("/sign-in", params={"next": place}).text
        assert 'name="next" value="/inbox"' in page
        page = browser.get("/sign-in", params={"next": "/inbox/approvals?mine=1"}).text
        assert 'name="next" value="/inbox/approvals?mine=1"' in page


def test_a_page_that_needs_a_sign_in_comes_back_after_it(api: str, stage: Stage) -> None:
    with Visitor(api) as browser:
        answer = browser.get("/inbox/account")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Finbox%2Faccount")


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": None, "origin": "https://evil.example"},
        {"sec-fetch-site": None, "origin": "null"},
        {"sec-fetch-site": None, "origin": None},
        {"x-csrf-token": "0" * 64},
        {"x-csrf-token": None},
    ],
)
def test_another_site_s_page_changes_nothing(api: str, anna: Somebody, headers: dict[str, str | None]) -> None:
    with anna.client(api) as client:
        for name, value in headers.items():
            client.headers.pop(name, None)
            if value is not None:
                client.headers[name] = value
        bad(client.post("/v1/agents", json=MODEL), 403)
        assert client.post("/inbox/sign-out").status_code == 403
        assert client.get("/v1/sessions").status_code == 200, "reading needs no token, and the sign-in is still open"


def test_a_browser_without_fetch_metadata_is_known_by_its_origin(api: str, anna: Somebody) -> None:
    with anna.client(api) as client:
        del client.headers["sec-fetch-site"]
        good(client.post("/v1/agents", json=MODEL))


def test_another_sign_in_s_token_is_worth_nothing(api: str, stage: Stage, anna: Somebody) -> None:
    ben = member(stage, "admin")
    with anna.client(api) as client, ben.client(api) as other:
        client.headers["x-csrf-token"] = other.headers["x-csrf-token"]
        bad(client.post("/v1/agents", json=MODEL), 403, "csrf_token")


def test_signing_in_itself_takes_no_form_of_another_site(api: str, stage: Stage) -> None:
    """Otherwise an attacker could sign a victim in to the attacker's own account."""
    link = invited(stage)
    with Visitor(api) as browser:
        assert browser.post(link, data={"name": "Anna"}).status_code == 403
        browser.headers["sec-fetch-site"] = "cross-site"
        assert browser.submit(link, name="Anna").status_code == 403
        browser.headers["sec-fetch-site"] = "same-origin"
        assert browser.submit(link, name="Anna").status_code == 303, "and the link was not used up"


def test_a_sign_in_ends_when_nobody_uses_it(api: str, anna: Somebody, clock: Clock) -> None:
    idle = settings().sign_in_idle_seconds
    with anna.client(api) as client:
        for _ in range(3):
            clock.advance(idle - 60)
            assert client.get("/v1/sessions").status_code == 200, "each use counts"
        clock.advance(idle + 1)
        assert client.get("/v1/sessions").status_code == 401


def test_a_sign_in_ends_in_any_case(api: str, anna: Somebody, clock: Clock) -> None:
    with anna.client(api) as client:
        for _ in range(int(settings().sign_in_seconds // (settings().sign_in_idle_seconds - 60)) + 1):
            clock.advance(settings().sign_in_idle_seconds - 60)
            client.get("/v1/sessions")
        assert client.get("/v1/sessions").status_code == 401


def test_people_see_and_end_their_own_sign_ins_and_nobody_else_s(api: str, stage: Stage, anna: Somebody) -> None:
    phone = member(stage, "admin", email=anna.email)
    ben = member(stage, "admin")
    with anna.client(api) as laptop, phone.client(api) as other, ben.client(api) as stranger:
        page = laptop.get("/inbox/account").text
        assert phone.principal.sign_in_id in page
        assert ben.principal.sign_in_id not in page
        assert anna.secret not in page
        there = f"/inbox/account/sign-ins/{phone.principal.sign_in_id}/end"
        assert stranger.post(there).status_code == 404
        assert other.get("/v1/sessions").status_code == 200
        assert laptop.post(there).status_code == 303
        assert other.get("/v1/sessions").status_code == 401
        assert laptop.get("/v1/sessions").status_code == 200
    assert acts_of(stage)[-1] == (f"user:{anna.person_id}", "person.signed_out")


def test_the_account_names_browsers_and_ways_to_sign_in_as_people_do(api: str, stage: Stage, anna: Somebody) -> None:
    phone = member(stage, "admin", email=anna.email)
    user_agent = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36"
    values = {"id": phone.principal.sign_in_id, "user_agent": user_agent}
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE sign_in SET method = 'oidc:corp', user_agent = %(user_agent)s WHERE id = %(id)s", **values)
    with anna.client(api) as client:
        page = client.get("/inbox/account").text
    assert "<strong>Chrome on Android</strong>, by corp" in page
    assert 'aria-label="Sign out: Chrome on Android"' in page
    assert "Mozilla" not in page


def test_signing_out_ends_the_sign_in_and_not_only_the_cookie(api: str, anna: Somebody) -> None:
    with anna.client(api) as client, anna.client(api) as copy:
        assert client.post("/inbox/sign-out").headers["location"] == "/sign-in"
        assert copy.get("/v1/sessions").status_code == 401


def test_a_change_of_role_counts_at_the_next_request(api: str, stage: Stage, caller: Caller, anna: Somebody) -> None:
    member(stage, "admin")  # a workspace keeps an admin
    with anna.client(api) as client:
        good(client.post("/v1/agents", json=MODEL))
        good(caller.post(f"/v1/organizations/users/{anna.person_id}", json={"workspace_role": "viewer"}))
        bad(client.post("/v1/agents", json=MODEL), 403, "viewer")
        good(client.get("/v1/sessions"))
        good(caller.delete(f"/v1/organizations/users/{anna.person_id}"))
        bad(client.get("/v1/sessions"), 401)
    assert [action for _, action in acts_of(stage)][-3:] == ["person.role_changed", "person.signed_out", "person.deactivated"]


def test_a_stream_ends_with_the_role_that_opened_it(api: str, stage: Stage, caller: Caller, anna: Somebody) -> None:
    member(stage, "admin")  # a workspace keeps an admin
    session_id = caller.session()["id"]
    with anna.client(api) as client, stream(client, session_id) as opened:
        good(caller.post(f"/v1/organizations/users/{anna.person_id}", json={"workspace_role": "viewer"}))
        assert opened.rest() == []


def test_a_stream_ends_with_the_group_that_opened_it(api: str, stage: Stage, caller: Caller) -> None:
    finance = group(stage)
    ben = member(stage, "viewer", groups=[finance])
    session_id = caller.session()["id"]
    with ben.client(api) as client, stream(client, session_id) as opened:
        good(caller.delete(f"/v1/organizations/rbac_groups/{finance}/members/{ben.person_id}"))
        assert opened.rest() == []


def test_admins_change_neither_their_own_role_nor_membership(api: str, stage: Stage, anna: Somebody) -> None:
    with anna.client(api) as client:
        at = f"/v1/organizations/users/{anna.person_id}"
        bad(client.post(at, json={"workspace_role": "viewer"}), 400, "another admin")
        bad(client.delete(at), 400, "another admin")


def test_a_key_wins_over_a_cookie_and_needs_no_token(api: str, caller: Caller, anna: Somebody) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in anna.cookie(api).items())
    agent = good(caller.post("/v1/agents", json=MODEL, headers={"cookie": cookie}))
    assert agent["name"] == "A"


def test_every_page_loads_only_from_its_own_server(api: str, stage: Stage, anna: Somebody) -> None:
    link = invited(stage, email="ben@example.com")
    with anna.client(api) as client:
        for path in ("/sign-in", link, "/sign-in/link/x", "/inbox/account", "/sign-in/oidc/none", "/inbox/static/0/passkey.js"):
            headers = client.get(path).headers
            policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
            assert policy["default-src"] == "'none'", path
            assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'", path
            assert policy["frame-ancestors"] == policy["base-uri"] == "'none'", path
            assert policy["require-trusted-types-for"] == "'script'", path
            assert policy["trusted-types"] == "assent-worker", path
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"


def test_a_response_that_is_no_page_loads_nothing_and_is_framed_nowhere(api: str, anna: Somebody) -> None:
    """JSON responses, and errors outside of any route."""
    with anna.client(api) as client:
        for method, path in (
            ("GET", "/sign-in/nothing"),
            ("GET", "/nothing/<script>"),
            ("PUT", "/inbox"),
            ("GET", "/v1/sessions"),
            ("GET", "/v1/sessions/none"),
            ("GET", "/healthz"),
        ):
            policy = client.request(method, path).headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "frame-ancestors 'none'" in policy, path


def test_pages_are_kept_in_no_cache(api: str, anna: Somebody) -> None:
    with anna.client(api) as client:
        assert client.get("/inbox/account").headers["cache-control"] == "no-store"
        assert client.get("/sign-in").headers["cache-control"] == "no-store"


def test_no_secret_is_in_the_server_s_log(tmp_path: Path, stage: Stage, database_urls: object, redis_url: str) -> None:
    log = tmp_path / "log"
    with served(log) as url, Visitor(url) as browser:
        link = invited(stage)
        browser.submit(link, name="Anna")
        assert browser.signed_in()
        secrets = [link.rpartition("/")[2], *browser.cookies.values()]
    text = log.read_text()
    assert text, "the server has written its log"
    assert not [secret for secret in secrets if secret in text]
