"""Who has allowed a call at a link sees there what comes of it, for an hour and in that browser alone, with and without scripts."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from inbox.linked import Message, fields, new_message
from inbox.waiting import asked
from inbox.windows import Windows
from own_database import Clock
from people import Somebody, Visitor
from playwright.sync_api import expect
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt

REFRESH = 'http-equiv="refresh"'


@pytest.fixture
def phone(api: str) -> Iterator[Visitor]:
    """The browser at which a link is opened."""
    with Visitor(api) as browser:
        yield browser


@pytest.fixture
def decide(phone: Visitor, message: Message) -> Callable[..., httpx2.Response]:
    """`decide(do)`: decide at the link, with the code."""
    return lambda do="allow": phone.post(message.path, data=fields(phone.get(message.path), code=message.code, do=do))


def finish(stage: Stage, approval: Approval, **more: Any) -> None:
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    stage.finish_call(held, content=[say("stdout:\n3 files"), say("exit code: 0\ndirectory: .")], **more)


def test_the_page_tells_what_comes_of_the_call_and_then_rests(
    stage: Stage, phone: Visitor, approval: Approval, message: Message, decide: Callable[..., httpx2.Response]
) -> None:
    assert "Allowed, waiting for a worker" in decide().text
    page = phone.get(message.path)
    assert page.status_code == 200
    assert "Allowed, waiting for a worker" in page.text
    assert REFRESH in page.text
    finish(stage, approval)
    page = phone.get(message.path)
    assert "exit code 0</b>: <code>3 files</code>" in page.text
    assert REFRESH not in page.text
    assert '<form method="post"' not in page.text


def test_a_halt_is_told_before_and_after_the_decision(
    stage: Stage, phone: Visitor, message: Message, decide: Callable[..., httpx2.Response]
) -> None:
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, "It pays twice.")
    assert "The time stands still until the halt ends." in phone.get(message.path).text
    assert "Allowed, held by the halt" in decide().text


def test_a_denial_is_shown_again_and_nothing_is_followed(
    phone: Visitor, message: Message, decide: Callable[..., httpx2.Response]
) -> None:
    assert REFRESH not in decide("deny").text
    page = phone.get(message.path)
    assert "Denied by anna" in page.text
    assert REFRESH not in page.text


def test_no_other_browser_and_no_other_link_is_opened_by_it(
    api: str, stage: Stage, phone: Visitor, anna: Somebody, message: Message, decide: Callable[..., httpx2.Response]
) -> None:
    decide()
    with Visitor(api) as other:
        assert other.get(message.path).status_code == 404
    second = new_message(stage, asked(stage, call(command="ls second"))[0], anna)
    with Visitor(api) as elsewhere:
        elsewhere.post(second.path, data=fields(elsewhere.get(second.path), code=second.code, do="allow"))
    assert phone.get(second.path).status_code == 404
    assert phone.get(message.path).status_code == 200


def test_it_ends_after_an_hour(phone: Visitor, message: Message, decide: Callable[..., httpx2.Response], clock: Clock) -> None:
    decide()
    clock.advance(3500)
    assert phone.get(message.path).status_code == 200
    clock.advance(200)
    assert phone.get(message.path).status_code == 404


def test_the_cookie_is_for_the_server_alone(decide: Callable[..., httpx2.Response], message: Message) -> None:
    cookie = decide().headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert message.token not in cookie


def test_with_scripts_the_page_changes_by_itself(
    windows: Windows, api: str, stage: Stage, approval: Approval, message: Message
) -> None:
    page = windows.open(phone=True).page
    page.goto(api + message.path)
    page.get_by_label("The six-digit code").fill(message.code)
    page.get_by_role("button", name="Allow once").click()
    came_of = page.locator(".came-of")
    expect(came_of).to_have_text("Allowed, waiting for a worker")
    finish(stage, approval)
    expect(came_of).to_contain_text("exit code 0: 3 files")
