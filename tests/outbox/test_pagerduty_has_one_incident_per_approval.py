"""An approval is one incident in PagerDuty, and whatever ends the approval resolves the incident."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from apprise.plugins import pagerduty
from outbox.notified import OPERATOR, channel, fan_out, notifications, notify
from outbox.receiver import Receiver
from own_database import Clock
from people import Somebody, member
from rows.stage import Stage
from rows.voting import ask

from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.decide.deadlines import remind_due
from models.notices import new_channel as channels
from models.notices import recipients as verbs
from models.notices.channel import Channel
from models.notices.notification import ATTEMPTS, Notification
from models.people.member import Member
from models.session.approval.row import Approval
from models.settings import settings
from workers import notifying
from workers.sweeps import rescuing

KEY = "i" * 32
URL = f"pagerduty://{KEY}@{'a' * 20}"
TO_PAGERDUTY = channels.Destination("apprise", url=URL)


class PagerDuty:
    """PagerDuty's endpoint for events: a real server, whose requests are counted as PagerDuty counts incidents."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that arrived, in their order."""
        return [json.loads(request.body) for request in self.receiver.requests]

    @property
    def actions(self) -> list[str]:
        return [event["event_action"] for event in self.events]

    @property
    def open(self) -> list[str]:
        """The keys of the incidents that are open: an event without a key opens one of its own."""
        incidents: dict[str, bool] = {}
        for number, event in enumerate(self.events):
            incidents[event.get("dedup_key") or str(number)] = event["event_action"] == "trigger"
        return [key for key, is_open in incidents.items() if is_open]


@pytest.fixture
def pager(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> PagerDuty:
    """The receiver in the place of PagerDuty, and the operator's URL `ops` leads there."""
    monkeypatch.setattr(pagerduty, "PAGERDUTY_API_LOOKUP", {"us": receiver.url, "eu": receiver.url})
    monkeypatch.setenv("ASSENT_NOTIFICATION_URLS", json.dumps({"ops": f"{URL}?region=eu&dedup=all&action=trigger"}))
    settings.cache_clear()
    return PagerDuty(receiver)


def service(stage: Stage, who: Somebody | None = None) -> Channel:
    """A channel that leads to PagerDuty by the URL that a person may choose."""
    with transaction(stage.workspace_id) as db:
        if who:
            return channels.add_own(db, who.person_id, who.principal, TO_PAGERDUTY, {})
        return channels.add_of_workspace(db, stage.principal, TO_PAGERDUTY, {})


def expire(stage: Stage, approval: Approval, clock: Clock) -> None:
    clock.advance(settings().approval_seconds + 1)
    stage.expire(approval.session_id)


ENDS: dict[str, Callable[[Stage, Approval, Clock], object]] = {
    "decided": lambda stage, approval, _: stage.decide(approval, result="allow"),
    "expired": expire,
    "interrupted": lambda stage, approval, _: stage.send(approval.session_id, {"type": "user.interrupt"}),
    "deleted": lambda stage, approval, _: stage.locked(approval.session_id, sessions.delete),
}


@pytest.mark.parametrize("kind", ["apprise", "operator"])
@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_an_approval_resolves_its_one_incident(
    stage: Stage, pager: PagerDuty, clock: Clock, end: str, kind: str
) -> None:
    if kind == "operator":
        channel(stage, **OPERATOR)
    else:
        service(stage)
    approval = ask(stage, stage.session())
    notify(stage)
    clock.advance(settings().remind_after_seconds + 1)
    remind_due(stage.workspace_id, approval.session_id)
    notify(stage)
    assert pager.open == [approval.id], "the reminder updates the incident"
    ENDS[end](stage, approval, clock)
    notify(stage)
    assert (pager.actions, pager.open) == (["trigger", "trigger", "resolve"], [])
    assert {event["routing_key"] for event in pager.events} == {KEY}


def test_two_approvals_are_two_incidents(stage: Stage, pager: PagerDuty) -> None:
    channel(stage)
    first, second = (ask(stage, stage.session()) for _ in range(2))
    notify(stage)
    stage.decide(first, result="deny")
    notify(stage)
    assert pager.open == [second.id], "although the operator's URL names one key for all"


def test_a_question_without_a_response_may_have_opened_an_incident(stage: Stage, pager: PagerDuty, clock: Clock) -> None:
    service(stage)
    approval = ask(stage, stage.session())
    pager.receiver.status = 500  # as if the response of a server that took the event were lost
    notify(stage)
    assert pager.open == [approval.id]
    stage.decide(approval, result="deny")
    pager.receiver.status = 202
    notify(stage)
    assert pager.open == []


def test_a_decision_during_the_last_attempt_is_sent_next(stage: Stage, pager: PagerDuty, clock: Clock) -> None:
    service(stage)
    approval = ask(stage, stage.session(approval={"timeout_seconds": 10 * 86_400}))
    pager.receiver.status = 500
    for _ in range(ATTEMPTS - 1):
        notify(stage)
        clock.advance(3600)
    [row] = notifications(stage)

    def decide(_: object) -> int:
        stage.decide(approval, result="deny")
        fan_out(stage)
        pager.receiver.judge = None
        return 500

    pager.receiver.judge = decide
    notifying.attempt(row.id, stage.workspace_id)
    pager.receiver.status = 202
    clock.advance(3600)
    notify(stage)
    assert (pager.actions[-1], pager.open) == ("resolve", [])


def test_a_worker_that_was_held_up_leaves_no_incident_open(stage: Stage, pager: PagerDuty, clock: Clock) -> None:
    """Its lease ended before its request arrived, which opened the incident again after another worker had resolved it."""
    service(stage)
    approval = ask(stage, stage.session())
    fan_out(stage)
    [row] = notifications(stage)
    with transaction(stage.workspace_id) as db:
        late = verbs.prepare(db, row.id)
    assert late
    clock.advance(100)
    rescuing.rescue()
    stage.decide(approval, result="deny")
    notify(stage)
    assert pager.open == []
    notifying.send(late)
    notify(stage)
    assert (pager.actions, pager.open) == (["resolve", "trigger", "resolve"], [])


def test_an_incident_is_resolved_in_quiet_hours_and_without_its_person_s_access(stage: Stage, pager: PagerDuty) -> None:
    anna = member(stage)
    row = service(stage, anna)
    approval = ask(stage, stage.session())
    notify(stage)
    with transaction(stage.workspace_id) as db:
        own = Channel.find(db, row.id, lock=True)
        own.change(db, anna.principal, {"quiet_from": "00:00", "quiet_until": "23:59"})
        Member.change_role(db, anna.person_id, "viewer", by=stage.principal)
    stage.decide(approval, result="deny")
    notify(stage)
    assert pager.events[-1] == {"routing_key": KEY, "event_action": "resolve", "dedup_key": approval.id}
    assert pager.open == []


def test_a_test_leaves_no_incident_open(stage: Stage, pager: PagerDuty) -> None:
    with transaction(stage.workspace_id) as db:
        Notification.test(db, Channel.find(db, service(stage).id, lock=True))
    notify(stage)
    assert (pager.actions, pager.open) == (["trigger", "resolve"], [])


def test_a_long_question_is_cut_to_what_pagerduty_takes(stage: Stage, pager: PagerDuty) -> None:
    service(stage, member(stage))
    ask(stage, stage.session(), command="x " * 2000)
    notify(stage)
    [event] = pager.events
    assert len(event["payload"]["summary"]) <= 1024
    assert f"{settings().public_url}/" in event["payload"]["summary"]
