"""The page of the system tells admins what waits and how long, who works, what fails and what to do: of their workspace alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from audit.tampering import sealed
from inbox.accessibility import check_at_desk_and_phone
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import endpoint_with_deliveries
from outbox.notified import channel
from own_database import Clock
from people import member
from rows.spending import PRICED
from rows.stage import Stage, call, entry, say

from models.audit import signed_heads
from models.database.metric import sweep_succeeded
from models.database.transactions import transaction
from models.notices.channel import Channel
from models.operate import system
from models.people.member import Member
from models.settings import settings
from models.workspace import toolset
from models.workspace.halt import Halt
from workers.schedule import BEAT

PATH = "/inbox/system"


@pytest.fixture
def sweeps(clean_database: object) -> None:
    """All sweeps have just succeeded."""
    for name in ("sweep.dispatch", "sweep.rescue", "tool.tidy"):
        sweep_succeeded(name)


def alarms(plain: Plain) -> list[str]:
    """Return what needs somebody, as the page says it."""
    lists = plain.page.all("ul", name="What needs somebody")
    return [text.partition(".")[0] for one in lists for text in one.texts("li")]


def test_it_says_that_everything_runs(plain: Plain, sweeps: None) -> None:
    plain.open(PATH)
    assert "Everything runs." in plain.page.one("main")
    assert [plain.page.cells("Queues", name)[1] for name in ("Turns of agents", "Tool calls", "Webhooks")] == ["empty"] * 3
    assert alarms(plain) == []


def test_a_queue_says_how_long_its_first_row_waits(plain: Plain, sweeps: None, stage: Stage, clock: Clock) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    stage.reply(session, call(), call())
    stage.message(stage.session())
    plain.open(PATH)
    assert plain.page.cells("Queues", "Tool calls")[1:3] == ["queued", "2"]
    clock.advance(400)
    sweep_succeeded("sweep.dispatch")
    sweep_succeeded("sweep.rescue")
    plain.open(PATH)
    assert plain.page.cells("Queues", "Turns of agents") == ["Turns of agents", "late", "1", "6 minutes ago", "0"]
    assert alarms(plain) == ["Turns of agents have waited for 6 minutes", "Tool calls have waited for 6 minutes"]


def test_a_last_admin_whom_the_issuer_no_longer_names_is_told(plain: Plain, sweeps: None, stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        [row] = db.find(Member, "WHERE role = 'admin'")
        row.source = "corp"
        row.keep_admin(db, "viewer", by=stage.principal)
    plain.open(PATH)
    [alarm] = alarms(plain)
    assert alarm.endswith("is the last admin, and corp no longer gives that role")
    other = member(stage, "admin")
    plain.open(PATH)
    assert alarms(plain) == [alarm.replace("the last admin", "still an admin")]
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, other.person_id, by=stage.principal)
    plain.open(PATH)
    assert alarms(plain) == [alarm]
    with transaction(stage.workspace_id) as db:
        Member.give_role(db, row.person_id, "admin", source="corp", by=stage.principal)
    plain.open(PATH)
    assert alarms(plain) == []


def test_a_beat_that_stands_still_is_seen(plain: Plain, clock: Clock, sweeps: None) -> None:
    clock.advance(400)
    plain.open(PATH)
    assert alarms(plain) == ["No sweep has run for 6 minutes"]
    sweep_succeeded("sweep.dispatch")
    plain.open(PATH)
    assert alarms(plain) == ["Some sweeps do not succeed: sweep"], "the one of files runs rarely"
    assert "sweep.rescue" in plain.page.one("main")


def test_a_sweep_is_not_late_before_it_is_due() -> None:
    rare = {line["task"] for line in BEAT.values() if line["schedule"] >= system.LATE.total_seconds()}
    assert rare == system.SLOW_SWEEPS


def test_failing_deliveries_and_the_seal_are_told_with_their_pages(plain: Plain, sweeps: None, stage: Stage) -> None:
    endpoint_with_deliveries(stage)
    ops = channel(stage, kind="slack", address="C0ROOM", name="#ops")
    with transaction(stage.workspace_id) as db:
        Channel.find(db, ops.id, lock=True).error = "Slack did not answer."
        db.write("UPDATE workspace SET seal_alarm = 'a head differs' WHERE id = %(id)s", id=stage.workspace_id)
    plain.open(PATH)
    assert alarms(plain) == [
        "The audit is not sealed: a head differs",
        "1 webhook cannot be delivered",
        "1 channel takes no messages at the moment",
    ]
    assert plain.page.cells("Deliveries that fail", "#ops")[1] == "slack: Slack did not answer."
    plain.follow("Go there because 1 webhook cannot be delivered")
    assert plain.response.url.path == "/inbox/webhooks"


def standing(plain: Plain, title: str) -> str:
    """Return what stands beside a title, in one line."""
    return plain.page.one(".standing div", title).one("dd").text


def test_workers_of_tools_are_seen_with_their_toolsets(plain: Plain, sweeps: None, stage: Stage, clock: Clock) -> None:
    plain.open(PATH)
    assert standing(plain, "Workers of tools") == "none seen in a day"
    toolset.announce({"shop": [entry("refund"), entry("look")]})
    clock.advance(120)
    plain.open(PATH)
    assert standing(plain, "Workers of tools") == "seen 2 minutes ago, with 1 toolset"
    assert plain.page.cells("Toolsets", "shop")[1:] == ["2", "2 minutes ago"]


def test_the_seal_says_when_it_was_made(
    plain: Plain, sweeps: None, stage: Stage, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.open(PATH)
    assert standing(plain, "Seal") == "no seal yet Verify"
    signed_heads.make(tmp_path / "heads")
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(tmp_path / "heads"))
    settings.cache_clear()
    stage.session()
    sealed(stage)
    plain.open(PATH)
    assert standing(plain, "Seal").startswith("sealed last just now, act ")
    plain.follow("Verify")
    assert "Intact." in plain.page.one("main")


def test_models_say_who_replied(plain: Plain, sweeps: None, stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, say("Done."), charge=PRICED)
    plain.open(PATH)
    assert plain.page.cells("Models that replied", PRICED.model)[1:3] == ["anthropic", "1"]


def test_models_say_what_failed(plain: Plain, sweeps: None, stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.fail(stage.begin(session))
    plain.open(PATH)
    assert "Failures: the model was overloaded, 1 time." in plain.page.one("main")


def test_a_person_s_channel_keeps_its_address(plain: Plain, sweeps: None, stage: Stage) -> None:
    row = channel(stage, plain.somebody, kind="slack", address="C0SECRET", name="My own")
    with transaction(stage.workspace_id) as db:
        Channel.find(db, row.id, lock=True).error = "Slack did not answer."
    plain.open(PATH)
    assert plain.page.cells("Deliveries that fail", "channel")[1] == "slack: the person sees why"


def test_a_halt_is_told_and_explains_what_waits(plain: Plain, sweeps: None, stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    plain.open(PATH)
    assert "Halted just now." in plain.page.one("main")
    assert alarms(plain) == []


def test_what_a_halt_holds_is_not_late(plain: Plain, sweeps: None, stage: Stage, clock: Clock) -> None:
    stage.message(stage.session())
    endpoint_with_deliveries(stage)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
        db.write("UPDATE endpoint SET failing_since = NULL, paused_until = NULL")
    clock.advance(400)
    for name in ("sweep.dispatch", "sweep.rescue", "tool.tidy"):
        sweep_succeeded(name)
    plain.open(PATH)
    assert [plain.page.cells("Queues", name)[1] for name in ("Turns of agents", "Webhooks")] == ["queued", "late"]
    assert alarms(plain) == ["Webhooks have waited for 6 minutes"]


def test_another_workspace_s_work_is_not_on_it(plain: Plain, sweeps: None, clock: Clock) -> None:
    other = Stage()
    session = other.session(bash="always_allow")
    other.message(session)
    other.reply(session, call(), charge=PRICED)
    endpoint_with_deliveries(other)
    plain.open(PATH)
    assert [plain.page.cells("Queues", name)[2:5] for name in ("Tool calls", "Webhooks")] == [["0", "", "0"]] * 2
    assert "No model was asked." in plain.page.one("main")


@pytest.mark.parametrize("role", ["viewer", "developer", "approver"])
def test_only_admins_see_it(visit_without_scripts: Callable[..., Plain], role: str) -> None:
    person = visit_without_scripts(role)
    person.open(PATH)
    assert person.response.status_code == 403


def test_everybody_can_use_it(admin: Visitor, stage: Stage, sweeps: None) -> None:
    endpoint_with_deliveries(stage)
    stage.message(stage.session())
    admin.open(PATH)
    check_at_desk_and_phone(admin.page)
