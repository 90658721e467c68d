"""Passwords, where the operator allows them: attempts are limited, and no response reveals which addresses are known."""

import time
from collections.abc import Iterator

import pytest
from doors.served import Caller, served
from own_database import Clock
from people import Somebody, Visitor, acts_of, invited, member
from rows.stage import Stage

from api.signing_in.passwords import SECONDS
from models.database.transactions import transaction
from models.people import password

PASSWORD = "correct horse battery"
ATTEMPTS = 3
"""Each attempt costs a tenth of a second of CPU time. The tests but one have fewer wrong passwords per person and per address."""


@pytest.fixture(scope="module")
def house(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server that allows passwords and `ATTEMPTS` attempts."""
    env = {"ASSENT_PASSWORDS": "true", "ASSENT_SIGN_IN_ATTEMPTS_BURST": str(ATTEMPTS), "ASSENT_SIGN_IN_ATTEMPTS_PER_SECOND": "0.01"}
    env["ASSENT_TRUSTED_PROXIES"] = "127.0.0.1/32"
    with served(tmp_path_factory.mktemp("passwords") / "log", **env) as url:
        yield url


@pytest.fixture(scope="module")
def password_hash() -> str:
    """The hash of `PASSWORD`."""
    return password.hashed(PASSWORD)


@pytest.fixture
def anna(stage: Stage, password_hash: str) -> Somebody:
    """A member with a password, and with an address that no other test uses."""
    person = member(stage, "approver")
    with transaction(stage.workspace_id) as db:
        password.store(db, person.person_id, password_hash, by=person.principal)
    return person


def visitor(house: str, address: str) -> Visitor:
    """Return a browser behind the proxy, with this address."""
    return Visitor(house, headers={"x-forwarded-for": address, "x-forwarded-proto": "https"})


def enter(browser: Visitor, email: str, attempt: str) -> int:
    """Try to sign in. Returns the response's status."""
    page = browser.get("/sign-in")
    token = page.text.partition('name="csrf_token" value="')[2][:64]
    form = {"csrf_token": token, "email": email, "password": attempt, "next": "/inbox"}
    cookies = {"cookie": page.headers["set-cookie"].partition(";")[0]}
    return browser.post("/sign-in/password", data=form, headers=cookies).status_code


def test_a_person_signs_in_by_address_and_password(house: str, stage: Stage, anna: Somebody) -> None:
    with visitor(house, "198.51.100.1") as browser:
        assert enter(browser, f" {anna.email.upper()}", PASSWORD) == 303
        assert enter(browser, anna.email, PASSWORD + "!") == 403
    assert acts_of(stage)[-1] == (f"user:{anna.person_id}", "person.signed_in")


def test_a_refused_password_leaves_the_person_signed_in_beside_the_rail(house: str, anna: Somebody) -> None:
    with anna.client(house) as client:
        refused = client.post("/inbox/account/password", data={"password": "short"})
        assert (refused.status_code, 'aria-label="Pages"' in refused.text) == (400, True)
        assert "Password: must have 12 to 256 characters." in refused.text
        assert '<a href="/inbox/account">Back to your account</a>' in refused.text
        assert 'href="/sign-in"' not in refused.text


def test_no_attempt_is_fast_enough_to_tell_how_many_passwords_were_compared(house: str, anna: Somebody) -> None:
    with visitor(house, "198.51.100.3") as browser:
        for attempt in (PASSWORD, "wrong"):
            begun = time.monotonic()
            enter(browser, anna.email, attempt)
            assert time.monotonic() - begun >= SECONDS


def test_an_unknown_address_gets_the_response_of_a_wrong_password_and_as_slowly(house: str, anna: Somebody) -> None:
    durations: dict[str, list[float]] = {anna.email: [], "nobody@example.com": []}
    for round_ in range(2):
        for email, seconds in durations.items():
            with visitor(house, f"198.51.100.{10 + round_}") as browser:
                begun = time.monotonic()
                assert enter(browser, email, "wrong") == 403
                seconds.append(time.monotonic() - begun)
    known, unknown = map(min, durations.values())
    assert unknown > known / 2, "an unknown address costs the comparison of a password too"


@pytest.mark.parametrize(("path", "refused", "address"), [("/sign-in/link", 409, "198.51.100.52"), ("/link", 404, "198.51.100.53")])
def test_wrong_links_keep_nobody_from_signing_in(
    house: str, stage: Stage, anna: Somebody, path: str, refused: int, address: str
) -> None:
    """A scanner that opens old links shares its address with everybody behind it."""
    link = invited(stage, email="ben@example.com")
    with visitor(house, address) as browser:
        statuses = [browser.get(f"{path}/{n}").status_code for n in range(ATTEMPTS + 2)]
        assert (statuses[0], statuses[-1]) == (refused, 429)
        assert browser.get(link).status_code == 200, "a good invitation works"
        assert enter(browser, anna.email, PASSWORD) == 303


def test_attempts_are_limited_by_address_and_by_account(house: str, anna: Somebody) -> None:
    with visitor(house, "198.51.100.50") as browser:
        statuses = [enter(browser, f"somebody-{n}@example.com", "wrong") for n in range(ATTEMPTS + 2)]
        assert statuses[0] == 403
        assert statuses[-1] == 429, "one client tries many accounts"
    statuses = []
    for n in range(ATTEMPTS + 2):
        with visitor(house, f"203.0.113.{n}") as browser:
            spelled = "ben@example.com" if n % 2 else " BEN@Example.com"
            statuses.append(enter(browser, spelled, "wrong"))
    assert statuses[0] == 403
    assert statuses[-1] == 429, "many clients try one account, however they spell it"
    with visitor(house, "198.51.100.51") as browser:
        assert enter(browser, anna.email, PASSWORD) == 303, "nobody else is locked out"


def test_a_new_password_ends_all_other_sign_ins_and_needs_a_recent_sign_in(
    house: str, stage: Stage, anna: Somebody, clock: Clock
) -> None:
    phone = member(stage, "approver", email=anna.email)
    with anna.client(house) as laptop, phone.client(house) as other:
        assert laptop.post("/inbox/account/password", data={"password": "short"}).status_code == 400
        assert laptop.post("/inbox/account/password", data={"password": PASSWORD * 2}).status_code == 303
        assert other.get("/inbox/account").status_code == 303
        clock.advance(3600)
        assert laptop.post("/inbox/account/password", data={"password": ""}).status_code == 403
        assert laptop.post("/inbox/account/passkeys/options").status_code == 403
    with visitor(house, "198.51.100.2") as browser:
        assert enter(browser, anna.email, PASSWORD) == 403
        assert enter(browser, anna.email, PASSWORD * 2) == 303


def test_a_password_is_stored_as_argon2id_and_nowhere_else(house: str, stage: Stage) -> None:
    anna = member(stage)
    with anna.client(house) as client:
        assert client.post("/inbox/account/password", data={"password": PASSWORD}).status_code == 303
    with transaction(stage.workspace_id) as db:
        [(stored,)] = db.rows("SELECT password_hash FROM member WHERE person_id = %(id)s", id=anna.person_id)
        everything = str(db.rows("SELECT details FROM audit")) + str(db.rows("SELECT text FROM audit_text"))
    assert stored.startswith("$argon2id$")
    assert PASSWORD not in everything
    assert stored not in everything


def test_without_the_setting_no_password_can_be_set_or_used(api: str, stage: Stage, caller: Caller) -> None:
    anna = member(stage)
    with Visitor(api) as browser, anna.client(api) as client:
        assert "password" not in browser.get("/sign-in").text.lower()
        assert browser.submit("/sign-in", "/sign-in/password", email=anna.email, password="x").status_code == 403
        assert client.post("/inbox/account/password", data={"password": PASSWORD}).status_code == 403
