"""The people who are notified of an approval, the time, and whether a notification is still needed."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, cast

from models.database import clock
from models.database.rows import Db
from models.database.transactions import outbox
from models.notices import push
from models.notices.channel import SETTINGS, Channel, NewChannel
from models.notices.flood import LATER, Flood, told_later
from models.notices.notice import ALONE, Notice, Stage
from models.notices.notification import DueNotification, Notification, Receipt
from models.notices.texts import delegation_notice, flood_notice, notice, test_notice
from models.outbox.approval_change import TOLD_OF_RESULT, ApprovalChange
from models.people.delegation import DECIDING_ROLES, Delegation, Right, rights_of_each
from models.people.person import Person
from models.people.slack_user import SlackUser
from models.pure.quorum import Quorum
from models.session.approval.deadline import overdue
from models.session.approval.decider import Decider
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.tool_call.row import ToolCall

_EDITED_IN_PLACE = frozenset({"slack", "push"})
"""Kinds that edit the message in place, so that quiet hours do not delay the outcome. Nor do they where an incident is resolved."""
RESULT_WAIT = timedelta(seconds=30)
"""How long a mail about a decision waits for the result of the call, so that one mail tells both."""
_TOLD = f"""
    SELECT notification.id FROM notification JOIN channel ON channel.id = channel_id JOIN approval ON approval.id = approval_id
    WHERE approval_id = %(approval)s AND {TOLD_OF_RESULT}
"""  # noqa: S608 - a condition of our own
_WITHOUT_CHANNEL = """
    SELECT m.person_id FROM member m WHERE m.workspace_id = %(workspace)s AND m.deactivated_at IS NULL
        AND m.role = ANY(%(roles)s) AND NOT EXISTS (
            SELECT FROM channel c WHERE c.workspace_id = m.workspace_id AND c.person_id = m.person_id
        )
    ORDER BY m.person_id
"""


class Message(NamedTuple):
    """A notification whose lease the caller has, and what to send."""

    notification: Notification
    channel: Channel
    notice: Notice
    seq: int
    earlier: Receipt | None
    """The receipt of the earlier message, to edit it or to follow up."""


def fan_out(db: Db, change_id: str) -> int:
    """Turn a change of an approval into notifications, and delete the change. Returns how many notifications the approval has.

    No-op without the change, as for a late or doubled hint.
    """
    change = db.first(ApprovalChange, "WHERE id = %(id)s FOR UPDATE SKIP LOCKED", id=change_id)
    if change is None:
        return 0
    # Two changes of one approval at once would insert the same notification.
    db.write("SELECT pg_advisory_xact_lock(hashtextextended('notify ' || %(id)s, 0))", id=change.approval_id)
    now, approval = clock.now(db), db.get(Approval, change.approval_id)
    waits = approval is not None and approval.status == "pending"
    stage = cast("Stage", change.stage if waits else "decided")
    existing, more = Notification.of_approval(db, change.approval_id), list[Channel]()
    to_tell = {id_ for (id_,) in db.rows(_TOLD, approval=change.approval_id)} if stage == "decided" else set()
    waits_for_result = change.stage == "decided" and approval is not None and _is_under_way(db, approval)
    for row in existing:
        if change.stage != "settled" or row.id in to_tell:
            is_late = waits_for_result and row.id in to_tell and Channel.find(db, row.channel_id).kind == "mail"
            _follow(db, row, stage, change.seq, now + RESULT_WAIT if is_late else now)
    if approval is not None and waits and stage != "decided":
        channel_ids = {row.channel_id for row in existing}
        more = [one for one in _channels(db, approval, stage, now) if one.id not in channel_ids]
        _add(db, more, approval, change, now)
    db.delete(change)
    return len(existing) + len(more)


def prepare(db: Db, notification_id: str, task: str | None = None) -> Message | None:
    """Claim a due notification. Returns None if there is nothing to send, or if it is cancelled or postponed.

    `task`: the worker's task, for Flower.
    """
    due = Notification.due(db, notification_id)
    if due is None:
        return None
    row, channel, now = due
    if row.stage in ALONE:
        return _prepare_alone(db, row, channel, now, task)
    approval = db.get(Approval, row.approval_id)
    stage = cast("Stage", row.stage if approval is not None and approval.status == "pending" else "decided")
    if _is_needless(db, due, approval, stage):
        row.cancel(db, now)
        return None
    is_silent = stage == "decided" and (channel.kind in _EDITED_IN_PLACE or channel.has_incidents)
    if not is_silent and _is_postponed(row, channel, now):
        return None
    row.claim(db, now, task)
    if channel.has_incidents and row.receipt is None:
        row.receipt = {}
    return Message(row, channel, notice(db, row, channel, approval, stage), row.seq, row.receipt)


def _prepare_alone(db: Db, row: Notification, channel: Channel, now: datetime, task: str | None) -> Message | None:
    """Claim a notification without an approval; a test even in quiet hours, since somebody waits for it.

    Cancels it and returns None if the channel was turned off, if the delegation does not wait any more, or if the flood is over.
    """
    delegation = Delegation.find(db, row.approval_id) if row.stage == "delegation" else None
    flood = db.get(Flood, row.approval_id) if row.stage == "flood" else None
    is_over = not delegation.waits(now) if delegation else row.stage == "flood" and flood is None
    if is_over or channel.state != "enabled" or _is_unlinked(db, channel) or push.is_signed_out(db, channel):
        row.cancel(db, now)
        return None
    if row.stage != "test" and _is_postponed(row, channel, now):
        return None
    row.claim(db, now, task)
    if flood is not None:
        return Message(row, channel, flood_notice(db, row, flood, channel.person_id), row.seq, None)
    return Message(row, channel, delegation_notice(db, row, delegation) if delegation else test_notice(row), row.seq, None)


def _is_postponed(row: Notification, channel: Channel, now: datetime) -> bool:
    """Return True in the channel's quiet hours, and have the notification be due at their end."""
    hours = channel.quiet_hours
    quiet_until = hours.end_after(now) if hours else None
    if quiet_until is not None:
        row.postpone(quiet_until)
    return quiet_until is not None


def may_be_told(db: Db, approval: Approval, people: Iterable[str], now: datetime) -> dict[str, list[Right]]:
    """Return those of these people who may decide the approval now, each with the rights that allow it."""
    rights = {decider.person_id: decider.rights_on(approval) for decider in Decider.each(db, people, now)}
    return {person_id: each for person_id, each in rights.items() if each}


def _is_under_way(db: Db, approval: Approval) -> bool:
    """True if the call was allowed, and has no result yet."""
    call = db.get(ToolCall, approval.tool_call_id) if approval.tool_call_id and approval.status == "allowed" else None
    return call is not None and call.settled_at is None


def _follow(db: Db, row: Notification, stage: Stage, seq: int, at: datetime) -> None:
    """Have a notification report this stage from the time `at` on. If it was never sent and the approval has ended, cancel it."""
    now = clock.now(db)
    if stage == "decided" and row.receipt is None and row.status != "running":
        if row.status == "queued":
            row.cancel(db, now)
        return
    due_at = at if row.receipt is not None else max(at, row.due_at)  # what waits for its channel's delay goes on waiting
    if row.follow(db, stage, seq, due_at, now) and due_at <= now:
        outbox(db).hints.append(Notification.hint_of(row.id, row.workspace_id))


def _add(db: Db, channels: list[Channel], approval: Approval, change: ApprovalChange, now: datetime) -> None:
    people = {channel.person_id for channel in channels if channel.person_id} if change.stage == "requested" else set()
    later = told_later(db, people, Quorum.of(approval.quorum).required_people)
    rows = []
    for channel in channels:
        due_at = max(now, approval.created_at + channel.delay)
        due_at = now + LATER if channel.person_id in later else due_at
        rows.append(Notification.of_change(change, channel, due_at, now))
        if due_at <= now:
            outbox(db).hints.append(Notification.hint_of(rows[-1]["id"], change.workspace_id))
    db.insert_many(Notification, rows)


def _channels(db: Db, approval: Approval, stage: Stage, now: datetime) -> list[Channel]:
    """Return the enabled channels that get this stage."""
    give_default(db, now)
    rows = db.find(Channel, "WHERE state = 'enabled' AND NOT for_everyone ORDER BY id")
    rows = [row for row in rows if row.timing == "at_once" or stage != "requested"]
    eligible = may_be_told(db, approval, {row.person_id for row in rows if row.person_id}, now)
    voters = _voters(db, approval)
    return [row for row in rows if row.person_id is None or (row.person_id not in voters and _wants(row, approval, eligible))]


def give_default(db: Db, now: datetime) -> None:
    """Give a channel with the default's settings to each person who may decide and has no channel. No-op without a default."""
    default = db.first(Channel, "WHERE for_everyone AND state = 'enabled'")
    if default is None:
        return
    values = {"workspace": db.workspace_id, "roles": DECIDING_ROLES}
    if not db.rows(_WITHOUT_CHANNEL, **values):
        return
    # Another worker may do the same: read again under the lock.
    db.write("SELECT pg_advisory_xact_lock(hashtextextended('channels ' || %(id)s, 0))", id=db.workspace_id)
    people = [person_id for (person_id,) in db.rows(_WITHOUT_CHANNEL, **values)]
    settings = {name: getattr(default, name) for name in SETTINGS}
    for person in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=people):
        row = Channel.new(db.workspace_id, now, NewChannel(kind="mail", address=person.email, person_id=person.id, **settings))
        row.follows_default = True
        db.insert(row)


def _wants(channel: Channel, approval: Approval, eligible: Mapping[str, list[Right]]) -> bool:
    """True if the channel's person may decide the approval, and the channel's `about` includes it."""
    rights = eligible.get(channel.person_id or "")
    if not rights:
        return False
    if channel.about == "all":
        return True
    approvers = {name for one in Quorum.of(approval.quorum).approvers for name in one}
    own = {name for right in rights for name in right.names if channel.about == "groups" or name.startswith("user:")}
    return bool(approvers & own)


def _voters(db: Db, approval: Approval) -> set[str]:
    return {vote.person_id for vote in Vote.of_approval(db, approval.id)}


def _is_needless(db: Db, due: DueNotification, approval: Approval | None, stage: Stage) -> bool:
    """True if the channel is off, the person lost access or has voted, or the approval ended before anything was sent.

    An incident is resolved also after its person lost access: PagerDuty gets the approval's id and nothing else.
    """
    row, channel, now = due
    if channel.state != "enabled" or (stage == "decided" and row.receipt is None):
        return True
    if stage != "decided" and approval is not None and overdue(db, [approval], now):
        return True  # the sweep is about to expire or to escalate it, which is another change
    if channel.person_id is None or (stage == "decided" and channel.has_incidents):
        return False
    if _is_unlinked(db, channel) or push.is_signed_out(db, channel):
        return True
    people = [channel.person_id]
    eligible = may_be_told(db, approval, people, now) if approval else rights_of_each(db, people, now, lock=False)
    return not eligible or (approval is not None and stage != "decided" and channel.person_id in _voters(db, approval))


def _is_unlinked(db: Db, channel: Channel) -> bool:
    """True if the channel's Slack user is no longer linked to its person."""
    if channel.kind != "slack" or channel.person_id is None:
        return False
    return channel.address.rpartition("/")[2] not in {row.slack_id for row in SlackUser.of_person(db, channel.person_id)}


def finish(db: Db, message: Message, receipt: Receipt) -> None:
    """Record that a message was sent. Raises Stale."""
    row = message.notification.as_held(db, lock=True)
    row.succeed(db, message.notice.stage, message.seq, receipt)
    if row.status == "queued":
        outbox(db).hints.append(Notification.hint_of(row.id, row.workspace_id))


def resolve_again(db: Db, message: Message) -> None:
    """Resolve an incident once more, if a worker without its lease has just opened it again. No-op for other messages."""
    row = db.get(Notification, message.notification.id, lock=True)
    if row is None or not message.channel.has_incidents or row.stage != "decided" or message.notice.stage == "decided":
        return
    now = clock.now(db)
    if row.follow(db, "decided", row.seq + 1, now, now):
        outbox(db).hints.append(Notification.hint_of(row.id, row.workspace_id))


def kind_of(db: Db, notification_id: str) -> str:
    """Return the kind of a queued notification's channel; empty if there is none."""
    return str(db.value(_KIND, id=notification_id) or "")


def next_due(db: Db, kind: str) -> str | None:
    """Return the id of the workspace's notification of this kind that has been due for the longest time, or None."""
    next_id: str | None = db.value(_NEXT, kind=kind)
    return next_id


_KIND = "SELECT kind FROM notification n JOIN channel c ON c.id = n.channel_id WHERE n.id = %(id)s AND status = 'queued'"
_NEXT = """
    SELECT n.id FROM notification n JOIN channel c ON c.id = n.channel_id
    WHERE n.status = 'queued' AND n.due_at <= assent_now() AND c.kind = %(kind)s ORDER BY n.due_at, n.id LIMIT 1
    FOR NO KEY UPDATE OF n SKIP LOCKED
"""
