"""If too many approvals wait for a person, admins and the person learn of it, and new ones are told to the least loaded first."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from doors.served import key
from flask import Flask
from outbox.mailbox import Mailbox, text_of
from outbox.notified import channel, fan_out, mail_channel, notifications, notify
from own_database import Clock
from people import Somebody, group, member
from prometheus_client.parser import text_string_to_metric_families
from rows.stage import Stage, call
from rows.voting import vote

from models.database.transactions import transaction
from models.notices.flood import LATER, Flood, waiting
from models.session.approval.row import Approval
from models.settings import settings
from workers.sweeps import watching


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`setting(name, value)` changes one setting."""

    def change(name: str, value: str) -> None:
        monkeypatch.setenv(f"ASSENT_{name.upper()}", value)
        settings.cache_clear()

    return change


@pytest.fixture(autouse=True)
def _four_are_a_flood(setting: Callable[[str, str], None]) -> None:
    setting("flood_approvals", "4")


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    """An approver who may decide everything."""
    return member(stage, email="anna@example.com")


def asks(stage: Stage, number: int, **options: Any) -> list[Approval]:
    """Let so many approvals of a new session wait, and return them. Everybody who decides may decide them."""
    session_id = stage.session(**(options or {"bash": "always_ask"}))
    stage.message(session_id)
    stage.reply(session_id, *(call(command=f"rm {place}") for place in range(number)))
    return stage.approvals(session_id)


def flooded(stage: Stage) -> set[str]:
    """Run the sweep, and return whose waiting lists are too long."""
    watching.watch_waiting_lists()
    with transaction(stage.workspace_id) as db:
        return {row.person_id for row in Flood.each(db)}


def told(stage: Stage, approval: Approval, by: datetime) -> list[str]:
    """Return the ids of the channels that tell of an approval until a time."""
    return [row.channel_id for row in notifications(stage) if row.approval_id == approval.id and row.due_at <= by]


def now(stage: Stage) -> datetime:
    """Return the database's time."""
    with transaction(stage.workspace_id) as db:
        at: datetime = db.value("SELECT assent_now()")
        return at


def test_it_begins_with_the_setting_s_number_and_ends_at_half(stage: Stage, anna: Somebody) -> None:
    rows = asks(stage, 3)
    assert flooded(stage) == set()
    rows += asks(stage, 1)
    assert flooded(stage) == {anna.person_id}
    vote(stage, anna, rows[0])
    assert flooded(stage) == {anna.person_id}, "three wait, which is more than half"
    vote(stage, anna, rows[1])
    assert flooded(stage) == set()


def test_only_those_are_counted_who_may_decide(stage: Stage, anna: Somebody) -> None:
    finance = group(stage)
    ben = member(stage, groups=[finance])
    asks(stage, 4, approval={"approvers": [f"group:{finance}"]})
    assert flooded(stage) == {ben.person_id}
    with transaction(stage.workspace_id) as db:
        assert waiting(db, [anna.person_id, ben.person_id], now(stage), 99) == {anna.person_id: 0, ben.person_id: 4}


def test_the_person_and_the_admins_are_told_once(stage: Stage, anna: Somebody, mailbox: Mailbox) -> None:
    ben, viewer = member(stage, "admin"), member(stage, "viewer")
    for who in (anna, ben, viewer):
        mail_channel(stage, who, about="mine")
    asks(stage, 4)
    assert flooded(stage) == {anna.person_id, ben.person_id}
    flooded(stage)
    notify(stage)
    subjects = Counter((mail["to"], mail["subject"]) for mail in mailbox.mails)
    assert subjects == {
        (anna.email, "4 approvals wait for you"): 1,
        (ben.email, "4 approvals wait for you"): 1,
        (ben.email, "4 approvals wait for anna"): 1,
    }
    assert "fewest" in text_of(mailbox.mails[0])


def test_new_ones_are_told_at_once_to_the_least_loaded_and_to_the_others_later(stage: Stage, anna: Somebody) -> None:
    people = {channel(stage, who, kind="apprise", address="", secret="tgram://1/2").id: who for who in (anna, member(stage))}
    asks(stage, 4)
    fan_out(stage)
    assert len(flooded(stage)) == 2
    new = asks(stage, 6)
    fan_out(stage)
    at_once = Counter(channel_id for row in new for channel_id in told(stage, row, now(stage)))
    assert at_once == dict.fromkeys(people, 3), "each is told of half"
    everybody = {row.id: set(told(stage, row, now(stage) + LATER)) for row in new}
    assert everybody == {row.id: set(people) for row in new}, "nobody is left out"


def test_who_was_not_told_may_decide_at_once_and_is_then_not_told(stage: Stage, anna: Somebody) -> None:
    ben = member(stage)
    people = {channel(stage, who, kind="apprise", address="", secret="tgram://1/2").id: who for who in (anna, ben)}
    asks(stage, 4)
    fan_out(stage)
    flooded(stage)
    [new] = asks(stage, 1)
    fan_out(stage)
    [first] = told(stage, new, now(stage))
    [late] = people.keys() - {first}
    vote(stage, people[late], new)
    fan_out(stage)
    [row] = [row for row in notifications(stage) if (row.approval_id, row.channel_id) == (new.id, late)]
    assert row.status == "cancelled"


def test_as_many_are_told_at_once_as_must_agree(stage: Stage, anna: Somebody) -> None:
    for who in (anna, member(stage), member(stage)):
        channel(stage, who, kind="apprise", address="", secret="tgram://1/2")
    agreed = {"approval": {"required_approvals": 2}}
    asks(stage, 4, **agreed)
    fan_out(stage)
    flooded(stage)
    [new] = asks(stage, 1, **agreed)
    fan_out(stage)
    assert len(told(stage, new, now(stage))) == 2


def test_without_a_flood_everybody_is_told_at_once(stage: Stage, anna: Somebody) -> None:
    for who in (anna, member(stage)):
        channel(stage, who, kind="apprise", address="", secret="tgram://1/2")
    [new] = asks(stage, 1)
    flooded(stage)
    fan_out(stage)
    assert len(told(stage, new, now(stage))) == 2


def test_0_turns_it_off(stage: Stage, anna: Somebody, setting: Callable[[str, str], None]) -> None:
    asks(stage, 4)
    assert flooded(stage) == {anna.person_id}
    setting("flood_approvals", "0")
    assert flooded(stage) == set()


def test_the_metric_says_for_how_many_people(
    stage: Stage, anna: Somebody, flask_app: Flask, clock: Clock, setting: Callable[[str, str], None]
) -> None:
    setting("metrics_seconds", "0")
    token = key(stage, "metrics")

    def value() -> float:
        text = flask_app.test_client().get("/metrics", headers={"authorization": f"Bearer {token}"}).text
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
        return sum(each.value for each in samples if each.name == "assent_waiting_list_floods")

    rows = asks(stage, 4)
    flooded(stage)
    assert value() == 1
    for row in rows[:2]:
        vote(stage, anna, row)
    flooded(stage)
    assert value() == 0
