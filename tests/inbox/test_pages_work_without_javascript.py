"""Every action is a plain form that works with JavaScript switched off."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from audit.tampering import sealed
from doors.served import Caller, key
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.audit import signed_heads
from models.database.transactions import transaction
from models.session.approval.grant import Grant
from models.settings import settings


@pytest.fixture
def admin(visit: Callable[..., Visitor]) -> Visitor:
    """An admin in a real browser that runs no scripts."""
    return visit("admin", java_script_enabled=False)


def test_a_card_is_allowed_and_the_next_one_follows(admin: Visitor, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    admin.open("/inbox/next")
    admin.button("Allow once").click()
    expect(admin.page.locator("#decided")).to_contain_text("Allowed by admin0")
    expect(admin.page.locator("article")).to_have_id(second.id)
    admin.deny()
    expect(admin.page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    assert [status(stage, row) for row in (first, second)] == ["allowed", "denied"]


def test_several_are_decided_at_once_all_or_none(admin: Visitor, stage: Stage) -> None:
    rows = asked(stage, call(command="echo 1"), call(command="echo 2"), call(command="echo 3"))
    admin.open()
    for box in admin.page.get_by_role("checkbox").all()[:2]:
        box.check()
    stage.decide(rows[1], result="deny")
    admin.button("Allow each once").click()
    expect(admin.page.get_by_role("alert")).to_contain_text("because of “echo 2”. This approval is already denied.")
    assert status(stage, rows[0]) == "pending"
    for box in admin.page.get_by_role("checkbox").all():
        box.check()
    admin.button("Allow each once").click()
    expect(admin.rows).to_have_count(0)
    expect(admin.page.locator("#decided")).to_have_text(re.compile("^2 calls: Allowed by admin0, "))
    assert [status(stage, row) for row in rows] == ["allowed", "denied", "allowed"]


def test_a_grant_is_given_seen_and_revoked(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage, call(command="git push origin main"))
    plain.open(f"/inbox/approvals/{approval.id}/always")
    plain.check("bash(git push *)")
    plain.press("Allow this call, and always those")
    plain.open("/inbox/grants")
    assert len(plain.rows) == 1
    plain.press("Revoke")
    assert "No grants." in plain.page.one("main")
    with transaction(stage.workspace_id) as db:
        [grant] = db.find(Grant)
    assert grant.revoked_by == str(plain.somebody.principal)


def test_a_session_is_started(plain: Plain, stage: Stage, api: str) -> None:
    with Caller(api, key(stage)) as caller:
        agents = [caller.agent(name=name)["id"] for name in ("Janitor", "Clerk")]
    plain.open("/inbox/sessions")
    plain.follow("New session")
    plain.fill("Agent", "Janitor")
    plain.fill("First message", "Look around.")
    plain.fill("Title", "Spring cleaning")
    plain.press("Start the session")
    assert "Look around." in plain.page.one("#conversation")
    assert "Spring cleaning" in plain.page.texts("h1")
    started = stage.read(plain.response.url.path.rpartition("/")[2])
    assert (started.agent_id, started.status) == (agents[0], "running")
    assert started.speakers == [plain.somebody.person_id], "with four eyes, the person may not decide what the session asks"


def test_a_conversation_is_written_stopped_and_archived(plain: Plain, stage: Stage) -> None:
    session_id = stage.session()
    plain.open(f"/inbox/sessions/{session_id}")
    plain.fill("A message to the agent", "Look around.\nThen stop.")
    plain.press("Send")
    assert "Look around. Then stop." in plain.page.one("#conversation")
    plain.press("Stop the run")
    assert plain.page.one("#status").text == "stopped"
    plain.press("Archive for good")
    assert "it takes no more messages" in plain.page.one("main")
    assert stage.read(session_id).status == "terminated"


def test_a_key_is_made_switched_off_and_archived(plain: Plain, stage: Stage) -> None:
    plain.open("/inbox/keys")
    plain.follow("New key")
    plain.fill("Name", "Backend")
    plain.press("Create the key")
    assert plain.page.one("#secret").text.startswith("sk-")
    plain.press("Switch off")
    assert "switched off" in plain.rows[0]
    assert not plain.page.all("#secret")
    plain.press("Archive for good")
    assert "archived" in plain.rows[0]


def test_the_audit_is_filtered_and_verified(
    plain: Plain, stage: Stage, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [approval] = asked(stage)
    stage.decide(approval, result="deny")
    signed_heads.make(tmp_path / "heads")
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(tmp_path / "heads"))
    settings.cache_clear()
    sealed(stage)
    plain.open("/inbox/audit")
    plain.fill("Action", "approval.decided")
    plain.press("Show")
    assert len(plain.rows) == 1
    plain.follow("Verify")
    assert "Intact." in plain.page.all("[role=status]")[0]
    plain.follow("Export")
    assert approval.id in plain.response.text


def test_a_decision_that_comes_too_late_is_refused_in_words_without_ids(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    admin.open(f"/inbox/approvals/{approval.id}")
    stage.decide(approval, result="deny")
    admin.settle()
    admin.button("Allow once").click()
    expect(admin.page.locator("#refusal")).to_have_text("This approval is already denied.")
    expect(admin.page.locator("#outcome")).to_contain_text("Denied by")
