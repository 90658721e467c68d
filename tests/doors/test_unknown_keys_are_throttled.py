"""Unknown API keys are throttled by the client's address, before the database is queried. Known keys are not."""

from collections.abc import Iterator

import httpx2
import pytest
from doors.served import Caller, bad, good, key, served
from rows.stage import Stage

from api.door.limits import _SIZE, Buckets
from models.workspace.api_key import new_secret

BURST = 3


@pytest.fixture(scope="module")
def strict_api(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server behind a proxy that accepts three unknown keys per address. A bucket takes hours to fill."""
    env = {
        "ASSENT_UNKNOWN_KEYS_PER_SECOND": "0.001",
        "ASSENT_UNKNOWN_KEYS_BURST": str(BURST),
        "ASSENT_TRUSTED_PROXIES": "127.0.0.1",
    }
    with served(tmp_path_factory.mktemp("strict") / "log", **env) as url:
        yield url


def ask(api: str, secret: str, address: str) -> httpx2.Response:
    """Send a request with this key from this address."""
    with Caller(api, secret, **{"x-forwarded-for": address}) as caller:
        return caller.get("/v1/agents")


def test_an_address_that_guesses_keys_gets_a_429_that_says_when_to_retry(strict_api: str, stage: Stage) -> None:
    known = key(stage)
    good(ask(strict_api, known, "203.0.113.7"))
    answers = [ask(strict_api, new_secret(), "203.0.113.7") for _ in range(BURST + 1)]
    assert [answer.status_code for answer in answers] == [401] * BURST + [429]
    bad(answers[-1], 429, "203.0.113.7", "ASSENT_UNKNOWN_KEYS_PER_SECOND")
    assert 900 < int(answers[-1].headers["retry-after"]) <= 1000
    good(ask(strict_api, known, "203.0.113.7"))  # this process has seen it before
    bad(ask(strict_api, new_secret(), "203.0.113.8"), 401)


def test_known_keys_do_not_count(strict_api: str, stage: Stage) -> None:
    for _ in range(2 * BURST):
        good(ask(strict_api, key(stage), "203.0.113.9"))


def test_a_mistyped_key_does_not_count(strict_api: str) -> None:
    for _ in range(2 * BURST):
        bad(ask(strict_api, new_secret()[:-1] + "!", "203.0.113.10"), 401)


def test_one_client_s_many_ipv6_addresses_count_as_one(strict_api: str) -> None:
    answers = [ask(strict_api, new_secret(), f"2001:db8::{number}") for number in range(BURST + 1)]
    assert [answer.status_code for answer in answers] == [401] * BURST + [429]
    bad(ask(strict_api, new_secret(), "2001:db8:0:1::1"), 401)


def test_a_throttled_key_costs_no_query(database_urls: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without a database each query is a 503, and a throttled request is not."""
    env = {"ASSENT_UNKNOWN_KEYS_PER_SECOND": "0.001", "ASSENT_UNKNOWN_KEYS_BURST": str(BURST)}
    env |= {"DATABASE_URL": "postgresql://assent_app@127.0.0.1:1/none", "DATABASE_SYSTEM_URL": "postgresql://s@127.0.0.1:1/none"}
    with served(tmp_path_factory.mktemp("lost") / "log", **env) as url:
        answers = [ask(url, new_secret(), "unused").status_code for _ in range(BURST + 1)]
    assert answers == [503] * BURST + [429]


def test_memory_is_bounded_for_any_number_of_addresses() -> None:
    """All buckets are in use, and none has time to fill."""
    buckets = Buckets(rate=0.001, burst=2)
    assert buckets.take("worst", 0).good
    assert buckets.take("worst", 0).good
    for number in range(2 * _SIZE):
        buckets.take(str(number), 0)
    assert len(buckets._full_at) <= _SIZE
    assert not buckets.take("worst", 0).good  # the emptiest are remembered longest
