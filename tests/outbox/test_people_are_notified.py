"""People hear of the approvals that they may decide, and of the outcomes, once per channel."""

import json
from datetime import timedelta

import pytest
from outbox.mailbox import Mailbox
from outbox.notified import changes, channel, fan_out, mail_channel, notifications, notify
from outbox.receiver import Receiver
from own_database import Clock
from people import group, member
from rows.crew import Crew, send
from rows.stage import Stage, call
from rows.tasks import work
from rows.voting import ask, escalating, leave, vote

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.decide.deadlines import remind_due
from models.notices import delegating
from models.notices import recipients as verbs
from models.notices.channel import Channel, NewChannel
from models.notices.notification import ATTEMPTS, Notification
from models.notices.texts import MOST_EVIDENCE
from models.operate import queued
from models.outbox.approval_change import ApprovalChange
from models.people.delegation import Delegation, Terms
from models.people.member import Member
from models.settings import settings
from models.workspace.halt import Halt
from workers import notifying
from workers.sweeps import deleting, rescuing


def titles(receiver: Receiver) -> list[str]:
    """The titles of the messages that arrived."""
    return [json.loads(request.body)["title"] for request in receiver.requests]


def statuses(stage: Stage) -> list[str]:
    return [row.status for row in notifications(stage)]


def test_a_workspace_s_channel_gets_the_question_and_then_the_decision(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    anna = member(stage)
    approval = ask(stage, stage.session(), command="ls -la")
    notify(stage)
    [request] = ops.requests
    message = json.loads(request.body)["message"]
    assert titles(ops) == ["Run shell command: ls -la"]
    assert "Agent wants to run a shell command." in message
    assert f"{settings().public_url}/inbox/approvals/{approval.id}" in message
    assert "code" not in message, "no code without a person"
    vote(stage, anna, approval)
    notify(stage)
    name = anna.email.partition("@")[0]
    assert titles(ops)[1:] == [f"Allowed by {name}: Run shell command: ls -la"]
    assert statuses(stage) == ["done"], "one row per approval and channel"


def test_a_sub_agent_s_question_names_it_and_the_agents_above_it(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader"))
    crew.replies(call(command="ls"))
    notify(stage)
    [request] = ops.requests
    message = json.loads(request.body)["message"]
    assert "Lead › Reader wants to run a shell command." in message


def test_a_workspace_without_channels_queues_nothing(stage: Stage) -> None:
    ask(stage, stage.session())
    assert changes(stage) == []
    row = channel(stage)
    with transaction(stage.workspace_id) as db:
        Channel.find(db, row.id).change(db, stage.principal, {"state": "disabled"})
    ask(stage, stage.session())
    assert changes(stage) == []


def test_a_decision_before_the_message_cancels_it(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    approval = ask(stage, stage.session())
    fan_out(stage)
    stage.decide(approval, result="deny")
    notify(stage)
    assert ops.requests == []
    assert statuses(stage) == ["cancelled"]
    stage.decide(ask(stage, stage.session()), result="deny")
    notify(stage)
    assert ops.requests == []
    assert statuses(stage) == ["cancelled"], "an approval that was decided before its fan-out queues nothing"


def test_changes_in_the_wrong_order_end_with_the_decision(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    approval = ask(stage, stage.session())
    [requested] = changes(stage)
    notify(stage)
    stage.decide(approval, result="deny")
    notify(stage)
    with transaction(stage.workspace_id) as db:
        values = {name: getattr(requested, name) for name in ("session_id", "approval_id", "stage", "seq", "due_at")}
        db.insert(ApprovalChange(id="apch_late", workspace_id=stage.workspace_id, **values))
    notify(stage)
    assert len(ops.requests) == 2
    assert notifications(stage)[0].sent_stage == "decided"


def test_mail_waits_for_a_minute_and_comes_only_if_nobody_decided(stage: Stage, mailbox: Mailbox, clock: Clock) -> None:
    anna = member(stage)
    mail_channel(stage, anna)
    decided, waiting = ask(stage, stage.session()), ask(stage, stage.session())
    notify(stage)
    clock.advance(30)
    notify(stage)
    assert mailbox.mails == []
    vote(stage, anna, decided)
    clock.advance(31)
    notify(stage)
    assert [waiting.id in mail["message-id"] for mail in mailbox.mails] == [True]
    assert mailbox.recipients == [[anna.email]]


def test_a_reminder_uses_the_same_row(stage: Stage, ops: Receiver, clock: Clock) -> None:
    channel(stage)
    channel(stage, name="Only reminders", timing="reminders")
    session = ask(stage, stage.session()).session_id
    notify(stage)
    assert len(ops.requests) == 1
    clock.advance(settings().remind_after_seconds + 1)
    remind_due(stage.workspace_id, session)
    notify(stage)
    assert titles(ops)[1:] == ["Still waiting: Run shell command: ls"] * 2
    assert [(row.stage, row.status) for row in notifications(stage)] == [("reminded", "done")] * 2


def test_an_escalation_goes_to_the_former_and_the_new_approvers(stage: Stage, ops: Receiver, clock: Clock) -> None:
    clerk, boss = member(stage), member(stage)
    for who in (clerk, boss):
        channel(stage, who)
    approval = ask(stage, stage.session(approval=escalating(clerk, (boss, 900))))
    notify(stage)
    assert len(ops.requests) == 1
    clock.advance(61)
    stage.expire(approval.session_id)
    notify(stage)
    assert titles(ops)[1:] == ["Nobody has decided yet: Run shell command: ls"] * 2


@pytest.mark.parametrize(("about", "commands"), [("mine", ["a"]), ("groups", ["a", "b"]), ("all", ["a", "b", "c"])])
def test_a_person_chooses_which_approvals_to_hear_of(stage: Stage, ops: Receiver, about: str, commands: list[str]) -> None:
    finance = group(stage)
    anna = member(stage, groups=[finance])
    channel(stage, anna, about=about)
    ask(stage, stage.session(approval={"approvers": [f"user:{anna.person_id}"]}), command="a")
    ask(stage, stage.session(approval={"approvers": [f"group:{finance}"]}), command="b")
    ask(stage, stage.session(), command="c")
    ask(stage, stage.session(approval={"approvers": [f"user:{member(stage).person_id}"]}), command="not hers")
    notify(stage)
    assert sorted(title.rpartition(" ")[2] for title in titles(ops)) == commands


def test_neither_the_requester_nor_a_person_who_has_voted_is_asked(stage: Stage, ops: Receiver, clock: Clock) -> None:
    anna, bert, carl = member(stage), member(stage), member(stage)
    rows = {channel(stage, who).id: who for who in (anna, bert, carl)}
    demands = {"four_eyes": True, "required_approvals": 2}
    session = stage.session(approval=demands, on_behalf_of=carl.person_id)
    approval = ask(stage, session)
    notify(stage)
    assert {rows[row.channel_id].person_id for row in notifications(stage)} == {anna.person_id, bert.person_id}
    vote(stage, anna, approval)
    clock.advance(settings().remind_after_seconds + 1)
    remind_due(stage.workspace_id, session)
    notify(stage)
    assert len(ops.requests) == 3, "the reminder goes to the one who has not voted"
    vote(stage, bert, approval)
    notify(stage)
    assert len(ops.requests) == 5, "the outcome goes to both"


@pytest.mark.parametrize("loss", ["role", "deactivated", "group"])
def test_a_person_who_lost_access_gets_nothing_more(stage: Stage, ops: Receiver, loss: str) -> None:
    finance = group(stage)
    anna, bert = member(stage, groups=[finance]), member(stage, groups=[finance])
    channel(stage, anna)
    first, _second = (ask(stage, stage.session(approval={"approvers": [f"group:{finance}"]})) for _ in range(2))
    fan_out(stage)
    work(notifying.notify, next(row.id for row in notifications(stage) if row.approval_id == first.id), stage.workspace_id)
    sent = len(ops.requests)
    if loss == "group":
        leave(stage, anna, finance)
    else:
        with transaction(stage.workspace_id) as db:
            if loss == "role":
                Member.change_role(db, anna.person_id, "viewer", by=stage.principal)
            else:
                Member.deactivate(db, anna.person_id, by=stage.principal)
    vote(stage, bert, first)
    notify(stage)
    assert len(ops.requests) == sent, "neither a question nor an outcome"


def test_quiet_hours_postpone_to_their_end(stage: Stage, ops: Receiver, clock: Clock) -> None:
    row = channel(stage, quiet_from="22:00", quiet_until="07:00", time_zone="Asia/Tokyo")
    with transaction(stage.workspace_id) as db:
        now = Channel.find(db, row.id).created_at
    hours = row.quiet_hours
    assert hours
    tonight = now.astimezone(hours.zone).replace(hour=23, minute=0) + timedelta(days=1)
    clock.advance((tonight - now).total_seconds())
    decided, _waiting = ask(stage, stage.session(), command="decided"), ask(stage, stage.session(), command="waiting")
    notify(stage)
    assert ops.requests == []
    clock.advance(7 * 3600)
    stage.decide(decided, result="deny")
    notify(stage)
    assert ops.requests == []
    clock.advance(3600 + 60)
    notify(stage)
    assert titles(ops) == ["Run shell command: waiting"], "no message about the approval that was decided in the night"


def test_a_question_whose_deadline_stood_still_in_a_halt_is_sent(stage: Stage, ops: Receiver, clock: Clock) -> None:
    channel(stage)
    ask(stage, stage.session(approval={"timeout_seconds": 60}), command="ls")
    fan_out(stage)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    clock.advance(3600)
    notify(stage)
    assert titles(ops) == ["Run shell command: ls"]


def test_a_failing_channel_is_tried_again_and_gives_up(stage: Stage, ops: Receiver, clock: Clock) -> None:
    row = channel(stage)
    ask(stage, stage.session(approval={"timeout_seconds": 10 * 86_400}))
    ops.status = 500
    for _ in range(ATTEMPTS):
        notify(stage)
        clock.advance(3600)
    [notification] = notifications(stage)
    assert (notification.status, notification.attempt) == ("failed", ATTEMPTS)
    assert len(ops.requests) == ATTEMPTS
    assert stage.get(Channel, row.id).error == "ops did not take the message."
    assert stage.get(Channel, row.id).state == "enabled"


def test_a_name_that_the_operator_does_not_know_disables_the_channel(stage: Stage, ops: Receiver) -> None:
    row = channel(stage, address="unknown")
    ask(stage, stage.session())
    notify(stage)
    after = stage.get(Channel, row.id)
    assert after.state == "disabled"
    assert after.disabled_reason == "The operator has configured no URL with the name unknown (ASSENT_NOTIFICATION_URLS)."
    assert statuses(stage) == ["failed"]


def test_a_doubled_hint_sends_nothing_twice(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    ask(stage, stage.session())
    [change] = changes(stage)
    for _ in range(2):
        work(notifying.fan_out, change.id, stage.workspace_id)
    [row] = notifications(stage)
    for _ in range(2):
        work(notifying.notify, row.id, stage.workspace_id)
    work(notifying.notify, "ntfn_none", stage.workspace_id)
    assert len(ops.requests) == 1


def test_a_lost_hint_is_sent_again_and_a_dead_worker_s_notification_too(stage: Stage, ops: Receiver, clock: Clock) -> None:
    channel(stage)
    ask(stage, stage.session())
    assert queued.change_hints() == []
    clock.advance(settings().rehint_seconds + 1)
    [hint] = queued.change_hints()
    assert hint.task == "deliver.fan_out"
    fan_out(stage)
    clock.advance(settings().rehint_seconds + 1)
    [row] = notifications(stage)
    assert queued.hints(Notification) == [Notification.hint_of(row.id, stage.workspace_id)]
    with transaction(stage.workspace_id) as db:
        Notification.due(db, row.id)
        db.get_one(Notification, row.id).claim(db, row.created_at)
    clock.advance(100)
    rescuing.rescue()
    [row] = notifications(stage)
    assert (row.status, row.error) == ("queued", "The worker died.")
    clock.advance(10)
    notify(stage)
    assert statuses(stage) == ["done"]


def test_a_decision_during_the_sending_is_sent_next(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    approval = ask(stage, stage.session())
    fan_out(stage)
    [row] = notifications(stage)
    with transaction(stage.workspace_id) as db:
        message = verbs.prepare(db, row.id)
    assert message
    stage.decide(approval, result="deny")
    fan_out(stage)
    with transaction(stage.workspace_id) as db:
        verbs.finish(db, message, {"stage": "requested"})
    assert statuses(stage) == ["queued"]
    notify(stage)
    assert len(ops.requests) == 1
    assert titles(ops)[0].startswith("Denied by ")
    assert notifications(stage)[0].sent_stage == "decided"


def test_a_deleted_session_withdraws_what_was_sent(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    approval = ask(stage, stage.session())
    notify(stage)
    stage.locked(approval.session_id, sessions.delete)
    notify(stage)
    assert titles(ops)[1:] == ["Withdrawn: its session was deleted: An approval was withdrawn"]


def test_secrets_and_hidden_characters_stay_out_of_messages(stage: Stage, ops: Receiver) -> None:
    channel(stage)
    secret = "hunter2-hunter2"
    ask(stage, stage.session(), command=f"login --password {secret} \u202e" + "x" * 2 * MOST_EVIDENCE)
    notify(stage)
    body = ops.requests[0].body
    assert secret not in body
    assert "\u202e" not in json.loads(body)["message"]
    assert "more characters" in body


def test_everyone_without_a_channel_gets_the_default(stage: Stage, mailbox: Mailbox, clock: Clock) -> None:
    anna, bert, _viewer = member(stage), member(stage), member(stage, "viewer")
    with transaction(stage.workspace_id) as db:
        default = Channel.create(db, stage.principal, NewChannel(kind="mail", address="", for_everyone=True))
        own = Channel.create(db, stage.principal, NewChannel(kind="mail", address=bert.email, person_id=bert.person_id))
        own.change(db, bert.principal, {"state": "disabled"})
    ask(stage, stage.session())
    notify(stage)
    clock.advance(61)
    notify(stage)
    assert mailbox.recipients == [[anna.email]], "Bert turned his channel off, and a viewer decides nothing"
    with transaction(stage.workspace_id) as db:
        Channel.find(db, default.id, lock=True).change(db, stage.principal, {"timing": "reminders"})
        [follower] = db.find(Channel, "WHERE follows_default")
        assert (follower.person_id, follower.timing) == (anna.person_id, "reminders")
        follower.change(db, anna.principal, {"timing": "at_once"})
    with transaction(stage.workspace_id) as db:
        Channel.find(db, default.id, lock=True).delete(db, stage.principal)
        assert len(db.find(Channel, "WHERE person_id = %(id)s", id=anna.person_id)) == 1, (
            "the channel stays, because Anna changed it"
        )


def test_old_notifications_are_deleted(stage: Stage, ops: Receiver, clock: Clock) -> None:
    channel(stage)
    stage.decide(ask(stage, stage.session()), result="deny")
    ask(stage, stage.session())
    notify(stage)
    clock.advance(settings().delivery_seconds + 60)
    deleting.delete_old()
    assert notifications(stage) == []


def test_a_delegate_is_notified(stage: Stage, ops: Receiver) -> None:
    anna, dora = member(stage), member(stage)
    channel(stage, dora)
    ask(stage, stage.session(approval={"approvers": [f"user:{anna.person_id}"]}))
    notify(stage)
    assert ops.requests == []
    with transaction(stage.workspace_id) as db:
        until = database_clock.now(db) + timedelta(days=1)
        pair = {"from_person_id": anna.person_id, "to_person_id": dora.person_id}
        Delegation.give(db, anna.principal, Terms(**pair, group_id=None, starts_at=None, ends_at=until))
    ask(stage, stage.session(approval={"approvers": [f"user:{anna.person_id}"]}))
    notify(stage)
    assert len(ops.requests) == 1


def test_the_giver_of_a_delegation_by_somebody_else_is_asked_to_accept_it(stage: Stage, ops: Receiver) -> None:
    anna, dora = member(stage), member(stage)
    for who in (anna, dora):
        channel(stage, who)
    with transaction(stage.workspace_id) as db:
        until = database_clock.now(db) + timedelta(days=1)
        pair = {"from_person_id": anna.person_id, "to_person_id": dora.person_id}
        terms = pair | {"group_id": None, "starts_at": None, "ends_at": until}
        delegating.give(db, stage.principal, Terms(**terms))
        over = delegating.give(db, stage.principal, Terms(**terms))
        over.end(db, stage.principal)
        delegating.give(db, anna.principal, Terms(**terms))
    notify(stage)
    [request] = ops.requests
    assert titles(ops) == [f"May {dora.email.partition('@')[0]} decide for you?"]
    assert f"{settings().public_url}/inbox/account#delegations" in json.loads(request.body)["message"]
    assert sorted(statuses(stage)) == ["cancelled", "done"], (
        "what was ended asks for nothing, and what she gave herself asks nobody"
    )


def test_a_person_s_message_has_a_link_and_a_code_where_a_code_decides(stage: Stage, ops: Receiver) -> None:
    channel(stage, member(stage))
    member(stage)
    ask(stage, stage.session())
    ask(stage, stage.session(approval={"required_approvals": 2}))
    notify(stage)
    messages = [json.loads(request.body)["message"] for request in ops.requests]
    assert ["/link/" in message for message in messages] == [True, True]
    assert sorted("The code for that page: " in message for message in messages) == [False, True]
