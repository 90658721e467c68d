"""An open page follows what happens elsewhere, and never moves what is being read."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from crashes.processes import wait_for
from doors.served import served
from doors.stream_frames import delta, publish, publish_so_far, readers, start
from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import TimeoutError as NothingCame
from playwright.sync_api import expect
from rows.stage import Stage, call, say
from wire.proxy import Proxy

from models.flow.begin.sessions import archive
from models.session.tool_call.row import ToolCall


def test_a_new_card_comes_last_and_a_card_decided_elsewhere_says_by_whom(admin: Visitor, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    admin.open()
    expect(admin.rows).to_have_count(2)
    admin.page.get_by_role("checkbox").nth(1).check()
    top = admin.rows.nth(1).bounding_box()
    asked(stage, call(command="echo 3"))
    expect(admin.rows).to_have_count(3)
    expect(admin.rows.nth(2)).to_contain_text("echo 3")
    expect(admin.page).to_have_title("(3) Inbox · Assent")
    stage.decide(first, result="deny")
    expect(admin.rows.first).to_contain_text("Denied by")
    expect(admin.rows.first.get_by_role("button")).to_have_count(0)
    assert admin.rows.nth(1).get_attribute("id") == second.id
    expect(admin.page.get_by_role("checkbox").first).to_be_checked()
    after = admin.rows.nth(1).bounding_box()
    assert top
    assert after
    assert abs(after["height"] - top["height"]) < 1


def test_an_open_card_says_who_decided_it_and_keeps_what_is_typed_until_then(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    admin.open(f"/inbox/approvals/{approval.id}")
    admin.page.locator("details.deny > summary").click()
    admin.page.locator("#deny_message").fill("I am thinking")
    asked(stage, call(command="echo 2"))
    expect(admin.page).to_have_title("(2) Agent wants to run a shell command · Assent")
    expect(admin.page.locator("#deny_message")).to_have_value("I am thinking")
    stage.decide(approval, result="allow")
    expect(admin.page.locator("#outcome")).to_contain_text("Allowed by")
    expect(admin.page.locator("#outcome")).to_be_focused()
    expect(admin.page.locator("aside")).to_have_text("You were writing:I am thinking")
    expect(admin.page.get_by_text("If nobody decides")).to_have_count(0)
    expect(admin.page.get_by_text("What follows")).to_have_count(0)
    asked(stage, call(command="echo 3"))
    expect(admin.page.locator("#nav-inbox .count")).to_contain_text("2")
    expect(admin.page.locator("aside")).to_have_text("You were writing:I am thinking")


def test_only_a_new_call_is_announced_and_not_a_row_that_moved_up(admin: Visitor, stage: Stage) -> None:
    rows = asked(stage, *[call(command=f"echo {n}") for n in range(26)], max_turns=9)
    admin.page.add_init_script("""
        new MutationObserver((changes) => {
          for (const toast of changes.flatMap((change) => [...change.addedNodes])) {
            if (toast.matches?.(".toast")) (globalThis.announced ??= []).push(toast.textContent);
          }
        }).observe(document, { subtree: true, childList: true });
    """)
    admin.open()
    expect(admin.rows).to_have_count(25)
    stage.decide(rows[0], result="deny")
    expect(admin.rows).to_have_count(26)
    expect(admin.rows.nth(25)).to_have_id(rows[25].id)
    assert admin.page.evaluate("globalThis.announced ?? []") == []
    asked(stage, call(command="echo new"))
    expect(admin.page.locator(".toast")).to_have_text("A new call waits.")
    expect(admin.page.get_by_role("link", name="Show more")).to_be_visible()
    assert admin.page.evaluate("globalThis.announced") == ["A new call waits."]


def test_the_slower_of_two_people_sees_the_decision_of_the_other(visit: Callable[..., Visitor], stage: Stage) -> None:
    """Without scripts, so that the slower person's page does not follow."""
    quick, slow = visit("admin"), visit("approver", java_script_enabled=False)
    [approval] = asked(stage)
    for person in (quick, slow):
        person.open(f"/inbox/approvals/{approval.id}")
    quick.deny()
    expect(quick.page.locator("#decided")).to_contain_text("Denied by admin0")
    slow.button("Allow once").click()
    expect(slow.page.get_by_role("alert")).to_have_text("This approval is already denied.")
    expect(slow.page.locator("#outcome")).to_contain_text("Denied by admin0")
    assert status(stage, approval) == "denied"


def test_an_open_conversation_follows_the_session(admin: Visitor, stage: Stage) -> None:
    session_id = stage.session()
    stage.message(session_id, "Look around.")
    admin.open(f"/inbox/sessions/{session_id}")
    stage.reply(session_id, say("I look."), call(command="ls"))
    line = admin.page.locator("#conversation li.call")
    expect(line).to_contain_text("waiting for a decision")
    expect(line.get_by_role("link", name="Decide this")).to_be_visible()
    [approval] = stage.approvals(session_id)
    stage.decide(approval, result="deny", deny_message="Not now.")
    expect(line).to_contain_text("denied by")
    expect(line).to_contain_text("Not now.")
    expect(line.get_by_role("link")).to_have_count(0)


def test_text_shows_while_the_agent_writes_until_the_message_is_stored(admin: Visitor, stage: Stage, redis_url: str) -> None:
    session_id = stage.session()
    stage.message(session_id, "Look around.")
    admin.open(f"/inbox/sessions/{session_id}")
    turn = stage.claim(session_id)
    expect(admin.page.locator("#status")).to_have_text("working")
    channel = f"assent:session:{session_id}"
    with redis.Redis.from_url(redis_url) as client:
        wait_for("a reader of the session", lambda: client.pubsub_numsub(channel)[0][1])
    publish(redis_url, session_id, start("sevt_a"), delta("sevt_a", "I <b>lo"))
    expect(admin.page.locator("#writing")).to_have_text("I <b>lo")
    publish(redis_url, session_id, delta("sevt_a", "ok"))
    expect(admin.page.locator("#writing")).to_have_text("I <b>look")
    stage.reply(session_id, say("I look, done."), turn=turn)
    expect(admin.page.locator("#conversation")).to_contain_text("I look, done.")


def test_text_shows_on_a_page_that_is_opened_while_the_agent_writes(admin: Visitor, stage: Stage, redis_url: str) -> None:
    session_id = stage.session()
    stage.message(session_id, "Look around.")
    turn = stage.claim(session_id)
    publish(redis_url, session_id, start("sevt_a"), delta("sevt_a", "I "))
    admin.open(f"/inbox/sessions/{session_id}")
    wait_for("a reader of the session", lambda: readers(redis_url, session_id))
    publish_so_far(redis_url, session_id, "sevt_a", "lo", "I lo")
    expect(admin.page.locator("#writing")).to_have_text("I lo")
    publish(redis_url, session_id, delta("sevt_a", "ok"))
    expect(admin.page.locator("#writing")).to_have_text("I look")
    stage.reply(session_id, say("I look, done."), turn=turn)
    expect(admin.page.locator("#conversation")).to_contain_text("I look, done.")


def test_a_session_s_page_follows_changes_after_a_refusal_too(admin: Visitor, stage: Stage) -> None:
    session_id = stage.session()
    admin.open(f"/inbox/sessions/{session_id}")
    admin.page.locator("#text").evaluate("field => { field.removeAttribute('maxlength'); field.value = 'x'.repeat(100001); }")
    admin.button("Send").click()
    expect(admin.page.locator("#refusal")).to_contain_text("at most")
    stage.message(session_id)
    expect(admin.page.locator("#status")).to_have_text("working")


def test_the_page_of_a_session_that_has_ended_loses_no_connection(admin: Visitor, stage: Stage) -> None:
    session_id = stage.session()
    admin.open(f"/inbox/sessions/{session_id}")
    expect(admin.page.locator("#status")).to_have_text("new")
    stage.locked(session_id, archive, by=admin.somebody.principal)
    expect(admin.page.locator("#status")).to_have_text("archived")
    for number in (1, 2):
        asked(stage)
        expect(admin.page.locator("#nav-inbox")).to_contain_text(f"{number} waiting for you")
        assert admin.page.get_by_text("The connection is lost.").count() == 0
        admin.page.reload()


@pytest.mark.slow
def test_a_page_outlives_a_restart_of_the_server(visit: Callable[..., Visitor], api: str, stage: Stage, tmp_path: Path) -> None:
    """A proxy stands for the first server: when the proxy closes, all connections end and nobody listens."""
    visitor, first = visit("admin"), Proxy(api)
    visitor.somebody.enter(visitor.page.context, first.url)
    visitor.page.goto(f"{first.url}/inbox")
    expect(visitor.page.get_by_text("Nothing waits.")).to_be_visible()
    first.close()
    expect(visitor.page.get_by_text("The connection is lost.")).to_be_visible()
    asked(stage)
    with served(tmp_path / "log", port=int(first.url.rpartition(":")[2]), ASSENT_STREAM_POLL_SECONDS="0.2"):
        expect(visitor.rows).to_have_count(1)
        expect(visitor.page.get_by_text("The connection is lost.")).to_have_count(0)


def test_a_card_opened_while_its_call_runs_looks_again_until_the_call_has_ended(admin: Visitor, stage: Stage) -> None:
    """No stream tells of the call: the page's own tells of decisions alone."""
    [approval] = asked(stage)
    stage.decide(approval, result="allow")
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    admin.window.control_time()
    admin.open(f"/inbox/approvals/{approval.id}")
    came_of = admin.page.locator(".came-of")
    expect(came_of).to_have_text("Running")
    stage.finish_call(held)
    admin.page.clock.run_for(1_600)
    expect(came_of).to_contain_text("Done")
    with pytest.raises(NothingCame), admin.page.expect_request(lambda _request: True, timeout=200):
        admin.page.clock.run_for(60_000)
