"""A client that exceeds a limit learns the limit from the message and the headers. Limits do not need Redis."""

import json
import socket
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from anthropic import Anthropic, RateLimitError
from doors.reading import stream
from doors.served import MODEL, Caller, bad, good, key, message, served
from flask import Flask, g
from people import member
from rows.stage import Stage

from api.door import limits
from api.door.errors import TooMany
from api.door.limits import Buckets
from models.audit.principal import Principal
from models.settings import settings

BURST, STREAMS, ROWS, EVENTS = 40, 2, 25, 3
VALUES, FORM, ATTEMPTS = 1000, 1000, 6
SOMEBODY = Principal("api_key", "key_1", "wrkspc_1")
LIMIT, REMAINING, RESET = (f"anthropic-ratelimit-requests-{word}" for word in ("limit", "remaining", "reset"))


@pytest.fixture(scope="module")
def strict_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of the server at `strict_api`."""
    return tmp_path_factory.mktemp("strict") / "log"


@pytest.fixture(scope="module")
def strict_api(database_urls: object, strict_log: Path) -> Iterator[str]:
    """The URL of a server with small limits and no Redis. A bucket takes hours to fill, so no test depends on its own speed."""
    env = {
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "ASSENT_REQUESTS_PER_SECOND": "0.001",
        "ASSENT_REQUESTS_BURST": str(BURST),
        "ASSENT_STREAMS_PER_KEY": str(STREAMS),
        "ASSENT_MAX_PAGE_ROWS": str(ROWS),
        "ASSENT_MAX_EVENTS_PER_POST": str(EVENTS),
        "ASSENT_MAX_BODY_BYTES": "8000",
        "ASSENT_MAX_BODY_VALUES": str(VALUES),
        "ASSENT_MAX_FORM_BYTES": str(FORM),
        "ASSENT_PASSWORDS": "true",
        "ASSENT_SIGN_IN_ATTEMPTS_PER_SECOND": "0.001",
        "ASSENT_SIGN_IN_ATTEMPTS_BURST": str(ATTEMPTS),
        "ASSENT_BODY_SECONDS": "0.3",
        "ASSENT_STREAM_POLL_SECONDS": "0.05",
        "ASSENT_MAX_REQUEST_LINE_BYTES": "1000",
        "ASSENT_MAX_HEADER_BYTES": "1500",
        "ASSENT_MAX_HEADERS": "40",
        "ASSENT_REFUSALS_LOGGED_PER_SECOND": "0",
    }
    with served(strict_log, **env) as url:
        yield url


@pytest.fixture
def strict(strict_api: str, stage: Stage) -> Iterator[Caller]:
    """A client of that API with a new key, so with a full bucket."""
    with Caller(strict_api, key(stage)) as client:
        yield client


def connect(url: str) -> socket.socket:
    """Open a connection to a server."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)


def exchange(connection: socket.socket, request: bytes) -> httpx2.Response:
    """Send these bytes. Returns the response."""
    connection.sendall(request)
    response = HTTPResponse(connection)
    response.begin()
    return httpx2.Response(response.status, headers=response.getheaders(), content=response.read())


def test_every_response_to_a_key_says_how_many_requests_are_left(strict: Caller) -> None:
    responses = [strict.get("/v1/agents").headers for _ in range(3)]
    assert [headers[LIMIT] for headers in responses] == [str(BURST)] * 3
    assert [int(headers[REMAINING]) for headers in responses] == [BURST - 1, BURST - 2, BURST - 3]
    assert all(datetime.fromisoformat(headers[RESET]).tzinfo for headers in responses)
    assert REMAINING in strict.get("/v1/agents/agent_none").headers
    assert REMAINING not in strict.get("/v1/nothing/there").headers, "an unknown path reads no key"


def test_a_key_with_too_many_requests_gets_a_429_that_says_when_to_retry(strict: Caller) -> None:
    answers = [strict.get("/v1/agents?limit=1") for _ in range(BURST + 1)]
    assert [answer.status_code for answer in answers] == [200] * BURST + [429]
    refused = answers[-1]
    assert bad(refused, 429, "ASSENT_REQUESTS_PER_SECOND")["type"] == "rate_limit_error"
    assert "x-should-retry" not in refused.headers
    assert 900 < int(refused.headers["retry-after"]) <= 1000
    assert int(refused.headers["retry-after"]) * 1000 >= int(refused.headers["retry-after-ms"]) > 900_000
    assert refused.headers[REMAINING] == "0"
    bad(strict.post("/v1/agents", json={"name": "A", "model": MODEL}), 429)


def test_a_person_with_too_many_requests_is_told_so_and_not_of_a_key(strict_api: str, stage: Stage) -> None:
    with member(stage).client(strict_api) as client:
        pages = [client.get("/inbox/words") for _ in range(BURST + 1)]
    assert [page.status_code for page in pages] == [200] * BURST + [429]
    assert "You sent too many requests within a short time. Try again in" in pages[-1].text
    assert "API key" not in pages[-1].text


def test_each_key_has_its_own_limit(strict: Caller, strict_api: str, stage: Stage) -> None:
    while strict.get("/v1/agents?limit=1").status_code == 200:
        pass
    with Caller(strict_api, key(stage)) as other:
        good(other.get("/v1/agents"))


def test_routes_without_a_key_have_no_limit(strict_api: str) -> None:
    with httpx2.Client(base_url=strict_api, timeout=30) as watcher:  # a server makes the document at its first request
        for path in ("/healthz", "/openapi.json"):
            assert {watcher.get(path).status_code for _ in range(BURST + 1)} == {200}


def test_a_bucket_fills_while_its_key_sends_nothing() -> None:
    bucket = Buckets(rate=10, burst=5)
    assert [bucket.take("a", 100.0).remaining for _ in range(5)] == [4, 3, 2, 1, 0]
    refused = bucket.take("a", 100.0)
    assert (refused.good, round(refused.wait, 6), round(refused.full, 6)) == (False, 0.1, 0.5)
    assert not bucket.take("a", 100.09).good
    assert bucket.take("a", 100.1).good
    assert not bucket.take("a", 100.1).good
    assert [bucket.take("a", 200.0).remaining for _ in range(5)] == [4, 3, 2, 1, 0]
    assert not bucket.take("a", 200.0).good


def test_in_the_long_run_a_bucket_gives_its_rate_and_no_more() -> None:
    bucket = Buckets(rate=10, burst=5)
    taken = sum(bucket.take("a", 100 + tick / 1000).good for tick in range(10_000))
    assert taken == 5 + 99


@pytest.mark.parametrize("rate", ["0", "0.001"])
def test_a_rate_of_zero_is_no_limit(rate: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSENT_REQUESTS_BURST", "1")
        patch.setenv("ASSENT_REQUESTS_PER_SECOND", rate)
        settings.cache_clear()
        with Flask("nothing").app_context():
            limits.take(SOMEBODY)
            assert ("limits" in g) == (rate != "0")
            with nullcontext() if rate == "0" else pytest.raises(TooMany):
                limits.take(SOMEBODY)
    settings.cache_clear()


def test_a_key_s_streams_are_limited_and_a_closed_one_makes_room(strict: Caller) -> None:
    session = strict.session()
    path = f"/v1/sessions/{session['id']}/events/stream"
    with stream(strict, session["id"]) as opened:
        with stream(strict, session["id"]):
            refused = strict.get(path)
            assert bad(refused, 429, str(STREAMS), "ASSENT_STREAMS_PER_KEY")["type"] == "rate_limit_error"
        for _ in range(10):
            event = strict.say(session["id"])  # the server learns that a reader is gone when it writes
            while opened.next().data["id"] != event["id"]:
                pass
            with strict.stream("GET", path) as again:
                if again.status_code == 200:
                    return
    pytest.fail("the closed stream is still counted")


def test_a_stream_that_never_began_is_not_counted(strict: Caller) -> None:
    for _ in range(STREAMS + 1):
        bad(strict.get("/v1/sessions/sesn_none/events/stream"), 404)


def test_a_page_is_as_long_as_the_setting_says(strict: Caller) -> None:
    good(strict.get("/v1/agents", params={"limit": ROWS}))
    bad(strict.get("/v1/agents", params={"limit": ROWS + 1}), 400, "limit", f"at most {ROWS}")
    session = strict.session()
    bad(strict.get(f"/v1/sessions/{session['id']}/events", params={"limit": 1001}), 400, "limit", "at most 1000")


def test_a_post_with_too_many_events_stores_none(strict: Caller) -> None:
    session = strict.session()
    bad(strict.tell(session["id"], *[message()] * (EVENTS + 1)), 400, "events", f"at most {EVENTS}")
    assert strict.events(session["id"]) == []
    good(strict.tell(session["id"], *[message()] * EVENTS))


def test_a_body_too_large_is_a_413_that_names_the_limit(strict: Caller) -> None:
    body = {"name": "A", "model": MODEL, "description": "d" * 8000}
    bad(strict.post("/v1/agents", json=body), 413, "body", "8000 bytes")


@pytest.mark.parametrize("value", [[1] * VALUES, ["1"] * VALUES, [{}] * VALUES, [[[0]]] * (VALUES // 3)])
def test_a_body_with_too_many_values_is_a_400_that_names_the_limit(strict: Caller, value: list[object]) -> None:
    raw = json.dumps({"name": value}, separators=(",", ":"))
    bad(strict.post("/v1/agents", content=raw, headers={"content-type": "application/json"}), 400, "body", f"{VALUES} values")


def test_signs_inside_of_texts_are_no_values(strict: Caller) -> None:
    text = 'a,[{"\\' * 250
    assert good(strict.post("/v1/agents", json={"name": "A", "model": MODEL, "description": text}))["description"] == text


def test_a_body_that_does_not_arrive_in_time_is_a_408_and_ends_the_connection(strict: Caller, strict_api: str) -> None:
    head = ("POST /v1/agents HTTP/1.1", "host: x", "content-type: application/json", "content-length: 100")
    lines = [*head, f"x-api-key: {strict.headers['x-api-key']}", "", "{"]
    with connect(strict_api) as connection:
        bad(exchange(connection, "\r\n".join(lines).encode()), 408, "0.3 s")
        assert not connection.recv(1), "the connection goes on"


def form(url: str, path: str, length: int, body: bytes = b"") -> httpx2.Response:
    """Send the head of a form and a part of its body. Returns the response."""
    head = [f"POST {path} HTTP/1.1", f"host: {urlsplit(url).netloc}", "sec-fetch-site: same-origin", f"content-length: {length}"]
    head += ["content-type: application/x-www-form-urlencoded", "", ""]
    with connect(url) as connection:
        return exchange(connection, "\r\n".join(head).encode() + body)


def test_a_form_is_read_within_the_limits_of_size_and_time_and_behind_the_limit_of_rate(strict_api: str) -> None:
    late = [form(strict_api, path, 100, b"a") for path in ("/sign-in/password", "/link/x", "/sign-in/link/x")]
    assert [(answer.status_code, "0.3 s" in answer.text) for answer in late] == [(408, True)] * 3
    large = form(strict_api, "/sign-in/password", FORM + 1)
    assert (large.status_code, f"Form: must have at most {FORM} bytes" in large.text) == (413, True)
    statuses = [form(strict_api, "/sign-in/password", FORM + 1).status_code for _ in range(ATTEMPTS)]
    assert statuses[-1] == 429, "each counted, although none was read"


def test_the_sdk_raises_its_rate_limit_error(strict: Caller, strict_api: str) -> None:
    while strict.get("/v1/agents?limit=1").status_code == 200:
        pass
    secret = strict.headers["x-api-key"]
    sdk = Anthropic(api_key=secret, base_url=strict_api, max_retries=0, _strict_response_validation=True)
    with sdk, pytest.raises(RateLimitError) as refused:
        sdk.beta.agents.list()
    assert refused.value.type == "rate_limit_error"


def test_an_address_too_long_is_a_414_in_the_wire_s_shape(strict: Caller, strict_log: Path) -> None:
    answer = strict.get("/v1/agents", params={"page": "x" * 1000})
    assert bad(answer, 414, "1000 bytes")["type"] == "invalid_request_error"
    assert answer.headers["connection"] == "close"
    assert f"{answer.headers['request-id']} refused: 414 LimitRequestLine, by nobody known" in strict_log.read_text()


def test_headers_too_large_or_too_many_are_a_431_in_the_wire_s_shape(strict: Caller) -> None:
    for headers in ({"x-large": "x" * 1500}, {f"x-{n}": "x" for n in range(41)}):
        bad(strict.get("/v1/agents", headers=headers), 431, "40 headers", "1500 bytes")


def test_the_document_has_the_configured_limits(strict: Caller) -> None:
    document = good(strict.get("/openapi.json"))
    [limit] = [p for p in document["paths"]["/v1/agents"]["get"]["parameters"] if p.get("name") == "limit"]
    assert limit["schema"]["maximum"] == ROWS
    assert document["components"]["schemas"]["EventsSend"]["properties"]["events"]["maxItems"] == EVENTS


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nbad header: x\r\n\r\n",
        b"POST /v1/agents HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
        b"POST /v1/agents HTTP/1.1\r\nhost: x\r\nx-api-key: KEY\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/agents HTTP/1.1\r\nhost: x\r\nx-api-key: KEY\r\ncontent-length: -1\r\n\r\n",
    ],
)
def test_invalid_http_is_a_400_in_the_wire_s_shape(api: str, stage: Stage, request_: bytes) -> None:
    with connect(api) as connection:
        bad(exchange(connection, request_.replace(b"KEY", key(stage).encode())), 400, "HTTP")
