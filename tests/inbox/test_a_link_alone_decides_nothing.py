"""Mail scanners, previews and prefetches open links and submit forms. A link without its code decides nothing."""

import json
import re
from html import unescape
from pathlib import Path

import httpx2
import pytest
import redis
from crashes.processes import wait_for
from doors.served import served
from inbox.linked import Message, fields, new_message, send
from inbox.waiting import asked, status
from people import Somebody, Visitor
from rows.stage import Stage, call, say

from api import create_app
from models.database import transactions
from models.database.transactions import transaction
from models.notices import link
from models.session.approval.row import Approval
from models.settings import settings


@pytest.fixture
def approval(stage: Stage) -> Approval:
    return asked(stage, call(command="echo sk-proj-Zq8vT3nB7yK2mW5xR9cL4dF6"))[0]


def everything(stage: Stage) -> list[object]:
    """All rows of the tables that a decision would change."""
    with transaction(stage.workspace_id) as db:
        tables = ("approval", "tool_call", "event", "audit", "vote", "link")
        return [db.rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables]


def checked(response: httpx2.Response) -> httpx2.Response:
    """Assert that the response has the headers of every response at a link. Returns the response."""
    headers = response.headers
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-robots-tag"] == "noindex, nofollow"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    return response


def test_opening_a_link_changes_nothing_however_often(api: str, stage: Stage, message: Message) -> None:
    before = everything(stage)
    for headers in ({}, {"sec-purpose": "prefetch"}, {"user-agent": "Slackbot-LinkExpanding 1.0"}):
        with Visitor(api, headers=headers) as browser:
            assert checked(browser.get(message.path)).status_code == 200
            head = checked(browser.head(message.path))
            assert (head.status_code, head.content) == (200, b"")
            assert browser.options(message.path).status_code == 200
            assert browser.put(message.path).status_code == 405
    assert everything(stage) == before


def test_a_scanner_that_opens_and_submits_everything_changes_nothing(api: str, stage: Stage, message: Message) -> None:
    """It keeps cookies, presses every button, and fills each field with what it finds on the page, or with nothing."""
    before = everything(stage)
    with Visitor(api) as scanner:
        page = scanner.get(message.path).text
        buttons = re.findall(r'<button[^>]*name="(\w+)" value="(\w+)"', page)
        assert ("do", "allow") in buttons
        token = fields(scanner.get(message.path))
        texts = {word for word in re.findall(r"[\w-]+", page) if not re.fullmatch(r"\d{6}", word)}
        for name, value in buttons:
            for filled in ("", "test", "on", *sorted(texts)[:20]):
                checked(scanner.post(message.path, data=token | {name: value, "code": filled, "deny_message": filled}))
            checked(scanner.post(message.path, data=token | {name: value}))
        checked(scanner.post(message.path))
        checked(scanner.post(message.path, json={"do": "allow"}))
        for address in {unescape(text) for text in re.findall(r'(?:href|src|action)="(/[^"]*)"', page)}:
            scanner.get(address)
            scanner.post(address, data=token)
    assert everything(stage) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site", "origin": "https://other.example.com"},
        {"sec-fetch-site": "", "origin": "https://evil.example"},
    ],
)
def test_another_site_s_page_sends_no_form(
    api: str, stage: Stage, approval: Approval, message: Message, headers: dict[str, str]
) -> None:
    with Visitor(api) as browser:
        values = fields(browser.get(message.path), code=message.code, do="allow")
        response = checked(browser.post(message.path, data=values, headers=headers))
    assert response.status_code == 403
    assert "another site" in response.text
    assert status(stage, approval) == "pending"


def test_a_form_needs_its_page_and_the_page_s_cookie(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    with Visitor(api) as browser, Visitor(api) as without_cookie:
        values = fields(browser.get(message.path), code=message.code, do="allow")
        for response in (
            without_cookie.post(message.path, data=values),
            browser.post(message.path, data=values | {"csrf_token": ""}),
            browser.post(message.path, data=values | {"csrf_token": "é"}),
        ):
            assert checked(response).status_code == 403
        assert status(stage, approval) == "pending"


def test_a_browser_without_sec_fetch_headers_hides_the_origin_and_decides(
    api: str, stage: Stage, approval: Approval, message: Message
) -> None:
    """By the policy `no-referrer` such a browser sends the origin `null`."""
    with httpx2.Client(base_url=api) as browser:
        values = fields(browser.get(message.path), code=message.code, do="allow")
        assert browser.post(message.path, data=values).status_code == 403, "no origin at all"
        assert browser.post(message.path, data=values, headers={"origin": "null"}).status_code == 200
    assert status(stage, approval) == "allowed"


def test_over_plain_http_a_link_shows_and_decides_nothing(api: str, stage: Stage, approval: Approval, message: Message) -> None:
    with Visitor(api, headers={"host": "assent.example.com"}) as browser:
        page = checked(browser.get(message.path))
        assert (page.status_code, "needs HTTPS" in page.text) == (403, True)
        assert "echo" not in page.text
        assert browser.post(message.path, data={"code": message.code, "do": "allow"}).status_code == 403
    assert status(stage, approval) == "pending"


def test_the_page_shows_what_the_card_shows_and_no_other_approval(api: str, stage: Stage, anna: Somebody) -> None:
    """The same question and the same masks, without the session's story and without earlier decisions."""
    [earlier] = asked(stage, call(command="curl https://earlier.example"), text="Please do the earlier thing.")
    stage.decide(earlier, result="deny", deny_message="No, not the earlier one.")
    command = "curl -H 'Authorization: Bearer sk-proj-Zq8vT3nB7yK2mW5xR9cL4dF6' https://x.example"
    blocks = [say("I go on."), call(command=command)]
    [approval] = asked(stage, *blocks, session_id=earlier.session_id, text="Please do the later thing.")
    message = new_message(stage, approval, anna)
    with Visitor(api) as browser, anna.client(api) as signed_in:
        page, card = browser.get(message.path).text, signed_in.get(f"/inbox/approvals/{approval.id}").text
        stage.message(earlier.session_id, "Hurry up.")
        assert "Hurry up." not in browser.get(message.path).text
    assert matter(page) == matter(card)
    assert "curl" in page
    for text in ("sk-proj-Zq8vT3nB7yK2mW5xR9cL4dF6", "earlier", "Please", "I go on.", "Last denied", 'name="csrf_token" value=""'):
        assert text not in page, text
    for text in ("Please do the later thing.", "I go on.", "No, not the earlier one.", "Last denied"):
        assert text in card, "the card shows the texts that the page leaves out"


def matter(page: str) -> str:
    """The question with its evidence, what follows each answer, and the facts, without the times that pass between two pages."""
    cuts = (
        ('<div class="matter">', '<dl class="briefing">'),
        ("<dt>What follows</dt>", "</dd>"),
        ("<summary>Facts</summary>", '<div class="actions"'),
    )
    parts = [page.partition(start)[2].partition(end)[0] for start, end in cuts]
    assert all(parts)
    return re.sub(r"<time.*?</time>", "", "\n".join(parts))


def looks(queues: "redis.Redis", approval_id: str) -> int:
    """How many hints in the queue have a worker look at the files for this approval."""
    messages = [json.loads(text)["headers"] for text in queues.lrange("tools", 0, -1)]
    return sum(headers["task"] == "tool.look" and approval_id in headers["argsrepr"] for headers in messages)


def test_opening_a_link_has_no_worker_look_at_files(
    api: str, stage: Stage, anna: Somebody, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a card has a worker look again. A scanner at a link must not cause that work."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)  # the question's own hint, which this process would send
    [approval] = asked(stage, call("edit", file_path="a.py", old_string="a", new_string="b"), edit="always_ask")
    message = new_message(stage, approval, anna)
    with Visitor(api) as browser, anna.client(api) as signed_in, redis.Redis.from_url(redis_url) as queues:
        card = f"/inbox/approvals/{approval.id}"
        assert signed_in.get(card).status_code == 200
        wait_for("the card's hint is queued", lambda: looks(queues, approval.id) == 1)
        assert "a.py" in browser.get(message.path).text
        assert signed_in.get(card).status_code == 200
        wait_for("the second hint is queued", lambda: looks(queues, approval.id) > 1)
        assert looks(queues, approval.id) == 2


def test_the_same_page_stands_for_unknown_malformed_and_used_links(
    api: str, stage: Stage, approval: Approval, message: Message
) -> None:
    assert send(api, message, do="deny").status_code == 200
    unknown = [
        "/link/" + "a" * 43,
        "/link/x",
        "/link/",
        f"/link/{message.token}/x",
        f"/link/{message.token[:-1]}",
        "/link/%00",
        "/link/%ff",
        "/link/" + "é" * 99,
    ]
    with Visitor(api) as browser:
        used = checked(browser.get(message.path))
        assert (used.status_code, "does not work" in used.text) == (404, True)
        for path in unknown:
            response = checked(browser.get(path))
            assert (response.status_code, response.text) == (404, used.text), path
        token = fields(browser.get("/sign-in"), do="allow", code="000000" if message.code != "000000" else "000001")
        used = checked(browser.post(message.path, data=token))
        assert used.status_code == 404
        for path in unknown:
            response = checked(browser.post(path, data=token))
            assert (response.status_code, response.text) == (404, used.text), path


def test_a_used_link_takes_as_long_as_an_unknown_one(stage: Stage, message: Message) -> None:
    """One statement returns no row for either link, so no second step takes time."""
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE link SET used_at = assent_now()")
    find = "SELECT id FROM assent_find_link(%(digest)s, '')"
    with transaction() as db:
        assert db.rows(find, digest=link.sha256(message.token)) == db.rows(find, digest=link.sha256("unknown")) == []


def test_attempts_are_limited_per_address(
    message: Message, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Unknown links and wrong codes count; looking at a link that exists does not."""
    monkeypatch.setenv("ASSENT_SIGN_IN_ATTEMPTS_BURST", "3")
    monkeypatch.setenv("ASSENT_SIGN_IN_ATTEMPTS_PER_SECOND", "0.01")
    monkeypatch.setenv("ASSENT_PUBLIC_URL", "http://localhost")
    settings.cache_clear()
    caplog.set_level("DEBUG")
    url, server = "http://127.0.0.1", httpx2.WSGITransport(create_app())
    with Visitor(url, transport=server) as browser:
        for _ in range(6):
            assert browser.get(message.path).status_code == 200
        values = fields(browser.get(message.path), do="allow")
        assert browser.post(message.path, data=values | {"code": message.wrong_code}).status_code == 403
        assert [browser.get(f"/link/{number}").status_code for number in range(2)] == [404, 404]
        for limited in (
            checked(browser.get("/link/unknown")),
            checked(browser.get(message.path)),
            browser.post(message.path, data=values),
        ):
            assert limited.status_code == 429
            assert int(limited.headers["retry-after"]) > 0
    assert message.row.tries == 1
    records = [record.getMessage() for record in caplog.records if record.name.partition(".")[0] not in {"httpx2", "httpcore2"}]
    assert not [text for text in records if message.token in text or message.code in text]


def test_no_log_of_ours_holds_a_token(stage: Stage, message: Message, tmp_path: Path) -> None:
    """Neither at the debug level, nor in an access log, nor in the trace of a failure."""
    log = tmp_path / "log"
    with served(log, GUNICORN_CMD_ARGS="--log-level debug --access-logfile -") as url, Visitor(url) as browser:
        values = fields(browser.get(message.path), do="allow", code=message.wrong_code)
        browser.post(message.path, data=values)
        browser.post(message.path, data=values | {"code": message.code})
        browser.get(f"{message.path}?from=mail", headers={"referer": f"{url}{message.path}"})
        with transaction(stage.workspace_id) as db:
            db.write("UPDATE link SET used_at = NULL")
            db.write("DELETE FROM vote")
            db.write("UPDATE approval SET status = 'pending', input = 'no JSON', shown_input = NULL")
        assert checked(browser.get(message.path)).status_code == 500
        written = log.read_text()
    assert "JSONDecodeError" in written, "the log has the trace of the failure"
    assert '"POST /link/... HTTP/1.1" 403' in written, "the access log has each request"
    for secret in (message.token, message.code):
        assert secret not in written
