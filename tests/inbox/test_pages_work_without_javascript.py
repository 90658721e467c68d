"""Every action is a plain form that works with JavaScript switched off."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from audit.tampering import sealed
from doors.served import Caller, key
from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.audit import signed_heads
from models.database.transactions import transaction
from models.session.approval.grant import Grant
from models.settings import settings


@pytest.fixture
def plain(visit: Callable[..., Visitor]) -> Visitor:
    """An admin in a real browser that runs no scripts."""
    return visit("admin", java_script_enabled=False)


def test_a_card_is_allowed_and_the_next_one_follows(plain: Visitor, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    plain.open("/inbox/next")
    plain.button("Allow once").click()
    expect(plain.page.locator("#decided")).to_contain_text("Allowed by admin0")
    expect(plain.page.locator("article")).to_have_id(second.id)
    plain.deny()
    expect(plain.page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    assert [status(stage, row) for row in (first, second)] == ["allowed", "denied"]


def test_several_are_decided_at_once_all_or_none(plain: Visitor, stage: Stage) -> None:
    rows = asked(stage, call(command="echo 1"), call(command="echo 2"), call(command="echo 3"))
    plain.open()
    for box in plain.page.get_by_role("checkbox").all()[:2]:
        box.check()
    stage.decide(rows[1], result="deny")
    plain.button("Allow each once").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("because of “echo 2”. This approval is already denied.")
    assert status(stage, rows[0]) == "pending"
    for box in plain.page.get_by_role("checkbox").all():
        box.check()
    plain.button("Allow each once").click()
    expect(plain.rows).to_have_count(0)
    expect(plain.page.locator("#decided")).to_have_text(re.compile("^2 calls: Allowed by admin0, "))
    assert [status(stage, row) for row in rows] == ["allowed", "denied", "allowed"]


def test_a_grant_is_given_seen_and_revoked(plain: Visitor, stage: Stage) -> None:
    [approval] = asked(stage, call(command="git push origin main"))
    plain.open(f"/inbox/approvals/{approval.id}/always")
    plain.page.get_by_label("bash(git push *)").check()
    plain.button("Allow this call, and always those").click()
    plain.open("/inbox/grants")
    expect(plain.rows).to_have_count(1)
    plain.button("Revoke").click()
    expect(plain.page.get_by_text("No grants.")).to_be_visible()
    with transaction(stage.workspace_id) as db:
        [grant] = db.find(Grant)
    assert grant.revoked_by == str(plain.somebody.principal)


def test_a_session_is_started(plain: Visitor, stage: Stage) -> None:
    with Caller(plain.url, key(stage)) as caller:
        agents = [caller.agent(name=name)["id"] for name in ("Janitor", "Clerk")]
    plain.open("/inbox/sessions")
    plain.page.get_by_role("link", name="New session").click()
    plain.page.get_by_label("Agent").select_option("Janitor")
    plain.page.get_by_label("First message").fill("Look around.")
    plain.page.get_by_label("Title").fill("Spring cleaning")
    plain.button("Start the session").click()
    expect(plain.page.locator("#conversation")).to_contain_text("Look around.")
    expect(plain.page.get_by_role("heading", name="Spring cleaning")).to_be_visible()
    started = stage.read(plain.page.url.rpartition("/")[2])
    assert (started.agent_id, started.status) == (agents[0], "running")
    assert started.speakers == [plain.somebody.person_id], "with four eyes, the person may not decide what the session asks"


def test_a_conversation_is_written_stopped_and_archived(plain: Visitor, stage: Stage) -> None:
    session_id = stage.session()
    plain.open(f"/inbox/sessions/{session_id}")
    plain.page.get_by_label("A message to the agent").fill("Look around.\nThen stop.")
    plain.button("Send").click()
    expect(plain.page.locator("#conversation")).to_contain_text("Look around.\nThen stop.", use_inner_text=True)
    plain.button("Stop the run").click()
    expect(plain.page.locator("#status")).to_have_text("stopped")
    plain.unfold("Archive…")
    plain.button("Archive for good").click()
    expect(plain.page.get_by_text("it takes no more messages")).to_be_visible()
    assert stage.read(session_id).status == "terminated"


def test_a_key_is_made_switched_off_and_archived(plain: Visitor, stage: Stage) -> None:
    plain.open("/inbox/keys")
    plain.page.get_by_role("link", name="New key").click()
    plain.page.get_by_label("Name").fill("Backend")
    plain.button("Create the key").click()
    assert plain.page.locator("#secret").inner_text().startswith("sk-")
    plain.button("Switch off").click()
    expect(plain.rows.first).to_contain_text("switched off")
    expect(plain.page.locator("#secret")).to_have_count(0)
    plain.button("Archive for good").click()
    expect(plain.rows.first).to_contain_text("archived")


def test_the_audit_is_filtered_and_verified(
    plain: Visitor, stage: Stage, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [approval] = asked(stage)
    stage.decide(approval, result="deny")
    signed_heads.make(tmp_path / "heads")
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(tmp_path / "heads"))
    settings.cache_clear()
    sealed(stage)
    plain.open("/inbox/audit")
    plain.unfold("Who, where, when")
    plain.page.get_by_label("Action").select_option("approval.decided")
    plain.button("Show").click()
    expect(plain.rows).to_have_count(1)
    plain.page.get_by_role("link", name="Verify").click()
    expect(plain.page.get_by_role("status").first).to_contain_text("Intact.")
    with plain.page.expect_download() as download:
        plain.page.get_by_role("link", name="Export").click()
    assert approval.id in download.value.path().read_text()


def test_a_decision_that_comes_too_late_is_refused_in_words_without_ids(plain: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    plain.open(f"/inbox/approvals/{approval.id}")
    stage.decide(approval, result="deny")
    plain.settle()
    plain.button("Allow once").click()
    expect(plain.page.locator("#refusal")).to_have_text("This approval is already denied.")
    expect(plain.page.locator("#outcome")).to_contain_text("Denied by")
